package discovery

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

// programName is the name the bridge is installed under.
const programName = "mcp-bridge"

// ErrSelf is why a definition of the bridge itself is left out.
var ErrSelf = errors.New("it is mcp-bridge itself")

// A selfMatcher recognises definitions that would start the bridge, which then
// would start itself again, without end. It looks at what is run, never at
// words that merely occur: a file server for a folder named mcp-bridge stays.
type selfMatcher struct {
	executable fs.FileInfo            // nil if unknown
	commands   map[string]fs.FileInfo // found before; nil for what cannot be found
}

func newSelfMatcher(executable string) *selfMatcher {
	m := &selfMatcher{commands: make(map[string]fs.FileInfo)}
	if executable != "" {
		if info, err := os.Stat(executable); err == nil {
			m.executable = info
		}
	}
	return m
}

// matches is false for a nil matcher.
func (m *selfMatcher) matches(s Server) bool {
	if m == nil || s.Command == "" {
		return false
	}
	switch commandName(s.Command) {
	case programName:
		if runsBridge(s.Args) {
			return true
		}
	case "go":
		if goRunsBridge(s.Args, s.Cwd) {
			return true
		}
	}
	return m.isExecutable(s)
}

// isExecutable compares files rather than paths: that sees through symbolic
// and hard links and the case of letters.
func (m *selfMatcher) isExecutable(s Server) bool {
	if m.executable == nil {
		return false
	}
	command := s.Command
	if s.Cwd != "" && filepath.Base(command) != command && !filepath.IsAbs(command) {
		command = filepath.Join(s.Cwd, command)
	}
	info, known := m.commands[command]
	if !known {
		if found, err := exec.LookPath(command); err == nil {
			if stat, err := os.Stat(found); err == nil {
				info = stat
			}
		}
		m.commands[command] = info
	}
	return info != nil && os.SameFile(info, m.executable)
}

// commandName is the base name of a command, of either kind of path.
func commandName(command string) string {
	name := command[strings.LastIndexAny(command, `/\`)+1:]
	if ext := len(name) - len(".exe"); ext > 0 && strings.EqualFold(name[ext:], ".exe") {
		name = name[:ext]
	}
	return name
}

// runsBridge reports whether these arguments of mcp-bridge make it a server.
func runsBridge(args []string) bool {
	i := firstWord(args, func(arg string) bool { return arg == "run" })
	return len(args) == 0 || i >= 0
}

// goRunsBridge recognises "go run …/mcp-bridge/cmd/mcp-bridge[@version] run".
func goRunsBridge(args []string, cwd string) bool {
	run := firstWord(args, func(arg string) bool { return arg == "run" })
	if run < 0 {
		return false
	}
	args = args[run+1:]
	pkg := firstWord(args, func(arg string) bool { return bridgePackage(arg, cwd) })
	return pkg >= 0 && runsBridge(args[pkg+1:])
}

func bridgePackage(arg, cwd string) bool {
	arg, _, _ = strings.Cut(arg, "@")
	arg = filepath.ToSlash(arg)
	if strings.HasPrefix(arg, ".") {
		if cwd == "" {
			return path.Clean(arg) == "cmd/"+programName
		}
		arg = path.Join(filepath.ToSlash(cwd), arg)
	}
	return strings.HasSuffix("/"+arg, "/"+programName+"/cmd/"+programName)
}

// firstWord returns the index of the first argument that is wanted, or -1 if
// something else comes first that is neither a flag nor a flag's value.
func firstWord(args []string, wanted func(string) bool) int {
	for i, arg := range args {
		switch {
		case wanted(arg):
			return i
		case strings.HasPrefix(arg, "-"):
		case i > 0 && strings.HasPrefix(args[i-1], "-"):
		default:
			return -1
		}
	}
	return -1
}
