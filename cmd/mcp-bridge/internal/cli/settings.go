package cli

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/mcp-bridge/mcp-bridge/bridge"
	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// leastOutput is how many characters a model has to be shown to know what went
// wrong.
const leastOutput = 500

// auto is the --runtime that takes the first engine that works.
const auto = "auto"

// defaultImage is what `make image` builds, and what engines use that keep
// images.
const defaultImage = "localhost/mcp-bridge-sandbox:latest"

// maxQuota of the workspace is less than what a sandbox has room for, which is
// runtime.Limits.WorkspaceBytes: cells need some for what is not kept.
const maxQuota = 120 << 20

// settings are the flags. Each can be given as an environment variable and in a
// file, too: see [settings.complete].
type settings struct {
	configDirs []string
	project    bool
	cacheDir   string
	stateDir   string
	quota      sizeOrNone // of the workspace
	allowSelf  bool

	learnShapes bool
	onChange    onChange
	fillCatalog bool
	logLevel    slog.Level
	colour      colourMode
	pager       string
	noPager     bool // a flag of the moment, and no setting

	runtime        string
	transport      transport
	image          string
	pullTimeout    seconds
	memory         byteSize
	pids           int64
	cpus           float64
	allowUnlimited bool
	mounts         []string
	timeout        seconds
	maxTimeout     seconds
	yield          seconds
	outputLimit    int
	outputMode     outputMode

	warm         int
	maxSandboxes int
	idleTimeout  secondsOrNever
	hibernate    bool
	http         httpSettings

	sources map[string]string // where a setting was given, by its flag's name; see nameOf
}

func (s *settings) addCommon(flags *pflag.FlagSet) {
	flags.StringSliceVar(&s.configDirs, "config-dir", nil, "folder of server definitions, repeatable (default ~/MCPs)")
	flags.BoolVar(&s.project, "project", false, "read the servers of ./.mcp.json, too, after all others")
	flags.StringVar(&s.cacheDir, "cache-dir", "", "folder for the catalog of tools (default below the user's cache folder)")
	flags.BoolVar(&s.learnShapes, "learn-shapes", true, "show as return types the form of results, never their values, that tools gave before")
	s.onChange = changeFlag
	flags.Var(&s.onChange, "on-change", "what becomes of tools that changed since you approved them: flag, or block")
	flags.BoolVar(&s.allowSelf, "allow-self-server", false, "do not leave mcp-bridge itself out of the servers")
	s.colour = colourAuto
	flags.Var(&s.colour, "color", "colours: auto, always or never; auto has them on a terminal, and heeds NO_COLOR and CLICOLOR_FORCE")
	flags.TextVar(&s.logLevel, "log-level", slog.LevelWarn, "least level of log lines on stderr: debug, info, warn or error")
}

func (s *settings) addSandbox(flags *pflag.FlagSet) {
	s.addEngine(flags)
	s.memory = 512 << 20
	s.timeout, s.maxTimeout = seconds(30*time.Second), seconds(120*time.Second)
	s.addImage(flags)
	s.addPull(flags)
	flags.Var(&s.memory, "memory", "memory of a sandbox, such as 512m or 2g")
	flags.Int64Var(&s.pids, "pids", 128, "processes and threads of a sandbox")
	flags.Float64Var(&s.cpus, "cpus", 1, "processors of a sandbox")
	check(flags, "memory", func() error { return atLeast(s.memory >= 64<<20, "is too small: Python needs 64m") })
	check(flags, "pids", func() error { return atLeast(s.pids >= 8, "is too few: the kernel needs 8") })
	most := processors()
	check(flags, "cpus", func() error {
		return atLeast(s.cpus >= leastCPUs && s.cpus <= most, fmt.Sprintf("is out of range: give %v to %v", leastCPUs, most))
	})
	flags.BoolVar(&s.allowUnlimited, "allow-unlimited", false, "start sandboxes even where memory, processes and processors cannot be limited")
	flags.StringSliceVar(&s.mounts, "mount", nil, "folder of the host to show at /mnt, read-only, such as ./data:ro or ./data=/mnt/name:ro; repeatable")
	s.quota = 100 << 20
	flags.Var(&s.quota, "workspace-quota", "size of the files that are kept across sessions; 0 keeps none")
	check(flags, "workspace-quota", func() error {
		return atLeast(s.quota <= maxQuota, "is more than a sandbox has room for: give at most 120m")
	})
	s.addState(flags)
	flags.Var(&s.timeout, "timeout", "seconds a cell may take if it does not say")
	flags.Var(&s.maxTimeout, "max-timeout", "most seconds a cell may ask for")
}

func (s *settings) addState(flags *pflag.FlagSet) {
	flags.StringVar(&s.stateDir, "state-dir", "", "folder for what is kept across sessions (default ~/.local/state/mcp-bridge)")
}

// addEngine adds the flags that say where sandboxes run.
func (s *settings) addEngine(flags *pflag.FlagSet) {
	s.transport = transport(runtime.TransportAuto)
	flags.StringVar(&s.runtime, "runtime", auto, "container engine: "+strings.Join(engineNames(), " or ")+", or auto: the first that works")
	check(flags, "runtime", s.knownEngine)
	flags.Var(&s.transport, "transport", "how a sandbox is joined to the host: auto, socket, fd or stdio")
}

func (s *settings) addImage(flags *pflag.FlagSet) {
	flags.StringVar(&s.image, "image", "", "image of the sandbox, with Python 3.10 or newer (default the engine's own: "+defaultImage+")")
}

func (s *settings) addPull(flags *pflag.FlagSet) {
	s.pullTimeout = seconds(10 * time.Minute)
	flags.Var(&s.pullTimeout, "pull-timeout", "seconds that getting a missing image may take")
}

func (s *settings) addRun(flags *pflag.FlagSet) {
	s.yield = seconds(45 * time.Second)
	s.idleTimeout = secondsOrNever(300 * time.Second)
	flags.IntVar(&s.outputLimit, "output-limit", 20_000, "characters of a result that a model is shown; the rest stays in out[n]")
	s.outputMode = outputMode(bridge.ModeCompact)
	flags.Var(&s.outputMode, "output-mode", "form of results: compact (text), or json (structured content)")
	check(flags, "output-limit", func() error {
		return atLeast(s.outputLimit >= leastOutput && s.outputLimit <= execOutput, fmt.Sprintf("is out of range: give %d to %d", leastOutput, execOutput))
	})
	flags.BoolVar(&s.fillCatalog, "fill-catalog", true, "start servers of which nothing is known, or nothing of this week, a few at a time, to list their tools")
	flags.Var(&s.yield, "yield", "seconds after which a call answers that its cell is still running")
	flags.IntVar(&s.warm, "warm", 1, "spare sandboxes kept ready for sessions to come")
	flags.IntVar(&s.maxSandboxes, "max-sandboxes", 16, "sandboxes at a time, spare ones included; the one idle longest makes room")
	check(flags, "warm", func() error { return atLeast(s.warm >= 0, "is less than 0") })
	check(flags, "max-sandboxes", func() error { return atLeast(s.maxSandboxes >= 1, "is less than 1") })
	flags.BoolVar(&s.hibernate, "hibernate", true, "save variables, functions and classes when a sandbox is stopped, and restore them")
	flags.Var(&s.idleTimeout, "runtime-idle-timeout", "seconds without a cell after which a sandbox is stopped; 0 is never")
	s.http.add(flags)
}

// validate checks what no single flag can know.
func (s *settings) validate() error {
	if s.timeout > s.maxTimeout {
		return s.wrong([]string{"timeout", "max-timeout"}, "%s %v is more than %s %v",
			s.nameOf("timeout"), s.timeout.String(), s.nameOf("max-timeout"), s.maxTimeout.String())
	}
	return nil
}

// validateRun checks what only `run` has.
func (s *settings) validateRun() error {
	if s.warm > s.maxSandboxes {
		return s.wrong([]string{"warm", "max-sandboxes"}, "%s %d is more than %s %d",
			s.nameOf("warm"), s.warm, s.nameOf("max-sandboxes"), s.maxSandboxes)
	}
	return s.validateHTTP()
}

func (s *settings) limits() runtime.Limits {
	return runtime.Limits{MemoryBytes: int64(s.memory), PIDs: s.pids, CPUs: s.cpus}
}
