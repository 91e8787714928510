package discovery

import (
	"slices"
	"strings"
)

// A wrapper is a program that runs another, which its arguments name.
type wrapper struct {
	valued  string // the flags that take the next word as their value
	skipped int    // words before the command that are no flags
	vars    bool   // NAME=value may come before the command
	verbs   string // the first word is one of these; empty for none
	dashes  bool   // the command comes after "--", and may be left out before it
}

// wrapperOf knows the usual wrappers by their names.
func wrapperOf(name string) (wrapper, bool) {
	switch name {
	case "env":
		return wrapper{valued: "-u --unset -C --chdir", vars: true}, true
	case "sudo":
		return wrapper{valued: "-u --user -g --group -h --host -p --prompt -C -D --chdir -R --chroot -r -t -T -U", vars: true}, true
	case "doas":
		return wrapper{valued: "-u -C -a"}, true
	case "nice":
		return wrapper{valued: "-n --adjustment"}, true
	case "ionice":
		return wrapper{valued: "-c --class -n --classdata"}, true
	case "nohup", "setsid", "exec", "command", "caffeinate", "unbuffer", "dbus-run-session", "winpty", "builtin":
		return wrapper{}, true
	case "time":
		return wrapper{valued: "-f --format -o --output"}, true
	case "timeout", "gtimeout":
		return wrapper{valued: "-s --signal -k --kill-after", skipped: 1}, true
	case "stdbuf":
		return wrapper{valued: "-i --input -o --output -e --error"}, true
	case "taskset", "chrt":
		return wrapper{valued: "-T -P -D", skipped: 1}, true
	case "xvfb-run":
		return wrapper{valued: "-n -e -f -p -s -w"}, true
	case "systemd-run":
		return wrapper{valued: "-p --property -u --unit -E --setenv --slice -M -H"}, true
	case "wsl":
		return wrapper{valued: "-d --distribution -u --user --cd"}, true
	case "mise", "rtx":
		return wrapper{verbs: "x exec", dashes: true}, true
	case "asdf", "rbenv", "pyenv", "nodenv", "poetry", "pipenv", "pdm", "hatch", "rye":
		return wrapper{verbs: "exec run"}, true
	case "direnv":
		return wrapper{verbs: "exec", skipped: 1}, true
	case "op":
		return wrapper{verbs: "run", valued: "--env-file --account", dashes: true}, true
	case "doppler", "infisical", "dotenvx":
		return wrapper{verbs: "run", dashes: true}, true
	}
	return wrapper{}, false
}

// unwrapped returns the command that a wrapper runs. It reports false for what
// is no wrapper.
func unwrapped(name string, args []string) ([]string, bool) {
	w, ok := wrapperOf(name)
	if !ok {
		return nil, false
	}
	if w.verbs != "" {
		if len(args) == 0 || !slices.Contains(strings.Fields(w.verbs), args[0]) {
			return nil, false
		}
		args = args[1:]
	}
	if i := slices.Index(args, "--"); w.dashes && i >= 0 {
		return args[i+1:], true
	}
	if name == "env" {
		for i, arg := range args { // env -S "A=1 command"
			if text, ok := splitString(args, i, arg); ok {
				return append([]string{"env"}, append(shellWords(text), rest(args, i+2)...)...), true
			}
			if !strings.HasPrefix(arg, "-") && !strings.Contains(arg, "=") {
				break
			}
		}
	}
	args = afterFlags(args, strings.Fields(w.valued))
	for w.vars && len(args) > 0 && isAssignment(args[0]) {
		args = args[1:]
	}
	return rest(args, w.skipped), true
}

func splitString(args []string, i int, arg string) (string, bool) {
	switch {
	case arg == "-S" || arg == "--split-string" || arg == "-vS":
		if i+1 < len(args) {
			return args[i+1], true
		}
	case strings.HasPrefix(arg, "--split-string="):
		return strings.TrimPrefix(arg, "--split-string="), true
	case strings.HasPrefix(arg, "-S"):
		return arg[2:], true
	}
	return "", false
}

func isAssignment(word string) bool {
	name, _, found := strings.Cut(word, "=")
	return found && variableName(name)
}

func rest(args []string, n int) []string { return args[min(n, len(args)):] }

// afterFlags returns the arguments from the first on that is neither a flag nor
// the value of one; "--" ends the flags.
func afterFlags(args, valued []string) []string {
	for len(args) > 0 {
		switch arg := args[0]; {
		case arg == "--":
			return args[1:]
		case !strings.HasPrefix(arg, "-") || arg == "-":
			return args
		case slices.Contains(valued, arg):
			args = rest(args, 2)
		default:
			args = args[1:]
		}
	}
	return nil
}

// script returns the simple commands of the text that a shell is given as an
// argument. It reports false for what is no shell, or is given no such text.
func script(name string, args []string) ([][]string, bool) {
	name = strings.ToLower(name)
	switch {
	case isShell(name):
		for i, arg := range args {
			switch {
			case len(arg) > 1 && arg[0] == '-' && arg[1] != '-' && strings.HasSuffix(arg, "c"):
				if i+1 < len(args) {
					return simpleCommands(args[i+1]), true
				}
			case arg == "-o" || arg == "+o" || i > 0 && (args[i-1] == "-o" || args[i-1] == "+o"):
			case !strings.HasPrefix(arg, "-"):
				return nil, false
			}
		}
	case name == "cmd":
		for i, arg := range args {
			if strings.EqualFold(arg, "/c") || strings.EqualFold(arg, "/k") {
				if words := args[i+1:]; len(words) == 1 {
					return simpleCommands(strings.ReplaceAll(words[0], `\`, `/`)), true
				}
				return [][]string{args[i+1:]}, true
			}
		}
	case name == "powershell", name == "pwsh":
		for i, arg := range args {
			if strings.EqualFold(arg, "-command") || strings.EqualFold(arg, "-c") {
				return simpleCommands(strings.TrimLeft(strings.ReplaceAll(strings.Join(args[i+1:], " "), `\`, `/`), "& ")), true
			}
		}
	}
	return nil, false
}

// simpleCommands splits a shell's text at ;, &, |, parentheses, braces and ends of
// lines, and each part into words, without the variables that it sets.
func simpleCommands(text string) [][]string {
	var commands [][]string
	var words []string
	end := func() {
		for len(words) > 0 && (isAssignment(words[0]) || shellKeyword(words[0])) {
			words = words[1:]
		}
		if len(words) > 0 {
			commands = append(commands, words)
		}
		words = nil
	}
	for word, operator := range shellTokens(text) {
		if operator {
			end()
		} else {
			words = append(words, word)
		}
	}
	end()
	return commands
}

func shellKeyword(word string) bool {
	switch word {
	case "if", "then", "else", "elif", "do", "while", "until", "!", "{", "}", "fi", "done":
		return true
	}
	return false
}

// shellWords splits a text into words as a shell does, operators left out.
func shellWords(text string) []string {
	var words []string
	for word, operator := range shellTokens(text) {
		if !operator {
			words = append(words, word)
		}
	}
	return words
}

// shellTokens yields words, without their quotes, and operators.
func shellTokens(text string) func(yield func(word string, operator bool) bool) {
	return func(yield func(string, bool) bool) {
		var word strings.Builder
		inside := false
		flush := func() bool {
			if !inside {
				return true
			}
			inside = false
			w := word.String()
			word.Reset()
			return yield(w, false)
		}
		for i := 0; i < len(text); i++ {
			switch c := text[i]; {
			case strings.IndexByte(";&|()\n", c) >= 0:
				if !flush() || !yield(string(c), true) {
					return
				}
			case c == ' ' || c == '\t' || c == '\r':
				if !flush() {
					return
				}
			case c == '#' && !inside:
				for i+1 < len(text) && text[i+1] != '\n' {
					i++
				}
			case c == '\\' && i+1 < len(text):
				i++
				inside = true
				if text[i] != '\n' {
					word.WriteByte(text[i])
				}
			case c == '\'' || c == '"':
				inside = true
				for i++; i < len(text) && text[i] != c; i++ {
					if text[i] == '\\' && c == '"' && i+1 < len(text) {
						i++
					}
					word.WriteByte(text[i])
				}
			default:
				inside = true
				word.WriteByte(c)
			}
		}
		flush()
	}
}

// runner returns the package that a package runner or a container engine is to
// run, and the arguments for it. It reports false for what is none.
func runner(name string, args []string) (pkg string, more []string, ok bool) {
	verb := func(verbs ...string) bool {
		if len(args) > 0 && slices.Contains(verbs, args[0]) {
			args = args[1:]
			return true
		}
		return false
	}
	const npmFlags, uvFlags = "-p --package --registry --prefix --cache -w --workspace --userconfig", "--from --with --with-editable --with-requirements --python -p --index --default-index --index-url -i --extra-index-url --directory --project --env-file --config-file --cache-dir --link-mode --refresh-package"
	valued := ""
	switch name {
	case "npx", "bunx", "pnpx":
		valued = npmFlags
	case "npm":
		if !verb("exec", "x") {
			return "", nil, false
		}
		valued = npmFlags
	case "pnpm", "yarn", "bun":
		if !verb("dlx", "exec", "x") {
			return "", nil, false
		}
		valued = npmFlags
	case "uvx":
		valued = uvFlags
	case "uv":
		if args = afterFlags(args, strings.Fields(uvFlags)); verb("tool") {
			if !verb("run") {
				return "", nil, false
			}
		} else if !verb("run") {
			return "", nil, false
		}
		valued = uvFlags
	case "pipx":
		if !verb("run") {
			return "", nil, false
		}
		valued = "--spec --python --pip-args --index-url -i"
	case "docker", "podman", "nerdctl":
		return containerImage(args)
	default:
		return "", nil, false
	}
	args = afterFlags(args, strings.Fields(valued))
	if len(args) == 0 {
		return "", nil, true
	}
	return args[0], args[1:], true
}

// containerImage returns the image of "docker run", and the arguments for it. A
// flag without a value in itself takes the next word, but for those that are known.
func containerImage(args []string) (image string, more []string, ok bool) {
	args = afterFlags(args, strings.Fields("-H --host -c --context --config -l --log-level --url --connection"))
	if len(args) > 0 && args[0] == "container" {
		args = args[1:]
	}
	if len(args) == 0 || args[0] != "run" {
		return "", nil, false
	}
	const alone = "--rm --init --privileged --read-only --interactive --tty --detach --publish-all --no-healthcheck --sig-proxy --oom-kill-disable --quiet --replace --no-hosts --rmi"
	for args = args[1:]; len(args) > 0; {
		switch arg := args[0]; {
		case !strings.HasPrefix(arg, "-"):
			return arg, args[1:], true
		case strings.Contains(arg, "=") || slices.Contains(strings.Fields(alone), arg) || !strings.HasPrefix(arg, "--") && strings.Trim(arg, "-itdPq") == "":
			args = args[1:]
		default:
			args = rest(args, 2)
		}
	}
	return "", nil, true
}

// bridgeName reports whether a package or an image is the bridge: of that name,
// in a scope or a registry that is named after it or in none.
func bridgeName(pkg string) bool {
	if pkg == "" {
		return false
	}
	name, scope := pkg, ""
	if i := strings.LastIndexByte(pkg, '/'); i >= 0 {
		scope, name = pkg[:i], pkg[i+1:]
	}
	for _, separator := range []string{"@", ":", "==", ">=", "~="} {
		name, _, _ = strings.Cut(name, separator)
	}
	owner := scope[strings.LastIndexAny(scope, "/:@")+1:]
	return name == programName && (scope == "" || owner == programName || owner == "library" || owner == "localhost")
}
