package discovery

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// programName is the name the bridge is installed under.
const programName = "mcp-bridge"

// ErrSelf is why a definition of the bridge itself is left out.
var ErrSelf = errors.New("it is mcp-bridge itself")

// Bounds of what is looked into.
const (
	maxWrappers = 8      // around a command
	maxCommands = 10_000 // of one definition, those in scripts included
)

// A selfMatcher recognises definitions that would start the bridge, which then
// would start itself again, without end. It looks at what is run, through
// wrappers and package runners, never at words that merely occur: a file server
// for a folder named mcp-bridge stays.
type selfMatcher struct {
	path       string
	executable fs.FileInfo            // nil if unknown
	commands   map[string]fs.FileInfo // found before; nil for what cannot be found
	same       map[string]bool        // whether a command is a copy of executable
	scripts    map[string][][]string  // what scripts run, by command and folder
	left       int                    // commands that may still be looked at for this definition
}

func newSelfMatcher(executable string) *selfMatcher {
	m := &selfMatcher{path: executable, commands: make(map[string]fs.FileInfo), same: make(map[string]bool), scripts: make(map[string][][]string)}
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
	m.left = maxCommands
	return m.runs(append([]string{s.Command}, s.Args...), s.Cwd, maxWrappers)
}

// runs reports whether these words, as a command, start the bridge in the end.
func (m *selfMatcher) runs(words []string, cwd string, depth int) bool {
	if m.left--; len(words) == 0 || words[0] == "" || depth == 0 || m.left < 0 {
		return false
	}
	name, args := commandName(words[0]), words[1:]
	if name == programName && runsBridge(args) || m.isExecutable(words[0], cwd) {
		return true
	}
	if name == "go" {
		return goRunsBridge(args, cwd)
	}
	if pkg, rest, ok := runner(name, args); ok {
		if bridgeName(pkg) {
			return runsBridge(rest)
		}
		program := name == "uv" || name == "npm" || name == "pnpm" || name == "yarn" || name == "bun"
		return program && !strings.Contains(pkg, "/") && m.runs(append([]string{pkg}, rest...), cwd, depth-1)
	}
	if lines, ok := script(name, args); ok {
		for _, line := range lines {
			if m.runs(line, cwd, depth-1) {
				return true
			}
		}
		return false
	}
	if inner, ok := unwrapped(name, args); ok {
		return m.runs(inner, cwd, depth-1)
	}
	if isShell(name) { // "sh start.sh"
		if args = afterFlags(args, nil); len(args) == 0 {
			return false
		}
		words, args = args, args[1:]
	}
	for _, line := range m.scriptFile(words[0], cwd) {
		if m.runs(withArgs(line, args), cwd, depth-1) {
			return true
		}
	}
	return false
}

// maxScript bounds the scripts that are looked into, in bytes.
const maxScript = 64 << 10

// scriptFile returns the simple commands of a command that is a shell's script.
func (m *selfMatcher) scriptFile(command, cwd string) [][]string {
	if lines, known := m.scripts[command+"\x00"+cwd]; known {
		return lines
	}
	m.scripts[command+"\x00"+cwd] = nil
	path := command
	if cwd != "" && !filepath.IsAbs(path) && strings.ContainsAny(path, `/\`) {
		path = filepath.Join(cwd, path)
	}
	if found, err := exec.LookPath(path); err == nil {
		path = found
	}
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxScript {
		return nil
	}
	data, err := readRegular(path, maxScript)
	if err != nil {
		return nil
	}
	first, text, _ := strings.Cut(string(data), "\n")
	interpreter := shellWords(strings.TrimPrefix(first, "#!"))
	if !strings.HasPrefix(first, "#!") || len(interpreter) == 0 || !isShell(commandName(interpreter[0])) &&
		(commandName(interpreter[0]) != "env" || len(interpreter) < 2 || !isShell(interpreter[len(interpreter)-1])) {
		return nil
	}
	lines := simpleCommands(text)
	m.scripts[command+"\x00"+cwd] = lines
	return lines
}

// withArgs puts the script's arguments in the place of "$@".
func withArgs(line, args []string) []string {
	if i := slices.Index(line, "$@"); i >= 0 {
		return slices.Concat(line[:i], args, line[i+1:])
	}
	return line
}

func isShell(name string) bool {
	switch name {
	case "sh", "bash", "dash", "zsh", "ksh", "ash", "fish":
		return true
	}
	return false
}

// isExecutable compares files rather than paths: that sees through symbolic
// and hard links and the case of letters. A copy has the same content.
func (m *selfMatcher) isExecutable(command, cwd string) bool {
	if m.executable == nil {
		return false
	}
	if cwd != "" && filepath.Base(command) != command && !filepath.IsAbs(command) {
		command = filepath.Join(cwd, command)
	}
	if info, known := m.commands[command]; known {
		return info != nil && (os.SameFile(info, m.executable) || m.same[command])
	}
	m.commands[command] = nil
	found, err := exec.LookPath(command)
	if err != nil {
		return false
	}
	info, err := os.Stat(found)
	if err != nil {
		return false
	}
	m.commands[command] = info
	if os.SameFile(info, m.executable) {
		return true
	}
	m.same[command] = info.Mode().IsRegular() && info.Size() > 0 && info.Size() == m.executable.Size() && sameContent(found, m.path)
	return m.same[command]
}

// sameContent reports whether two files are equal, false if that cannot be found out.
func sameContent(a, b string) bool {
	x, err := os.Open(a) //nolint:gosec // a command of the user's own definitions
	if err != nil {
		return false
	}
	defer func() { _ = x.Close() }() // nothing was written
	y, err := os.Open(b)             //nolint:gosec // our own executable
	if err != nil {
		return false
	}
	defer func() { _ = y.Close() }() // nothing was written
	one, other := make([]byte, 64<<10), make([]byte, 64<<10)
	for {
		n, err := io.ReadFull(x, one)
		k, _ := io.ReadFull(y, other)
		if n != k || !bytes.Equal(one[:n], other[:k]) {
			return false
		}
		if err != nil {
			return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		}
	}
}

// commandName is the base name of a command, of either kind of path.
func commandName(command string) string {
	name := command[strings.LastIndexAny(command, `/\`)+1:]
	for _, ext := range []string{".exe", ".cmd", ".bat"} {
		if at := len(name) - len(ext); at > 0 && strings.EqualFold(name[at:], ext) {
			return name[:at]
		}
	}
	return name
}

// runsBridge reports whether these arguments of mcp-bridge make it a server.
func runsBridge(args []string) bool {
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
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
