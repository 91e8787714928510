package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// defaultImage is what `make image` builds.
const defaultImage = "localhost/mcp-bridge-sandbox:latest"

// settings are the flags. Each can be given as an environment variable too,
// MCP_BRIDGE_ and the flag's name in capitals; the flag wins.
type settings struct {
	configDirs []string
	cacheDir   string
	allowSelf  bool
	logLevel   slog.Level

	runtime    string
	image      string
	memory     byteSize
	pids       int64
	cpus       float64
	timeout    seconds
	maxTimeout seconds
	yield      seconds
}

func (s *settings) addCommon(flags *pflag.FlagSet) {
	flags.StringSliceVar(&s.configDirs, "config-dir", nil, "folder of server definitions, repeatable (default ~/MCPs)")
	flags.StringVar(&s.cacheDir, "cache-dir", "", "folder for the catalog of tools (default below the user's cache folder)")
	flags.BoolVar(&s.allowSelf, "allow-self-server", false, "do not leave mcp-bridge itself out of the servers")
	flags.TextVar(&s.logLevel, "log-level", slog.LevelWarn, "least level of log lines on stderr: debug, info, warn or error")
}

func (s *settings) addSandbox(flags *pflag.FlagSet) {
	s.memory = 512 << 20
	s.timeout, s.maxTimeout = seconds(30*time.Second), seconds(120*time.Second)
	flags.StringVar(&s.runtime, "runtime", "auto", "container engine: "+strings.Join(engineNames(), " or ")+", or auto")
	flags.StringVar(&s.image, "image", defaultImage, "image of the sandbox, with Python 3.10 or newer")
	flags.Var(&s.memory, "memory", "memory of a sandbox, such as 512m or 2g")
	flags.Int64Var(&s.pids, "pids", 128, "processes and threads of a sandbox")
	flags.Float64Var(&s.cpus, "cpus", 1, "processors of a sandbox")
	flags.Var(&s.timeout, "timeout", "seconds a cell may take if it does not say")
	flags.Var(&s.maxTimeout, "max-timeout", "most seconds a cell may ask for")
}

func (s *settings) addRun(flags *pflag.FlagSet) {
	s.yield = seconds(45 * time.Second)
	flags.Var(&s.yield, "yield", "seconds after which a call answers that its cell is still running")
}

// fromEnvironment sets the flags that were not given from MCP_BRIDGE_*.
func (s *settings) fromEnvironment(flags *pflag.FlagSet) error {
	var errs []error
	flags.VisitAll(func(flag *pflag.Flag) {
		name := "MCP_BRIDGE_" + strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_"))
		value, ok := os.LookupEnv(name)
		if !ok || value == "" || flag.Changed || flag.Name == "help" {
			return
		}
		if err := flag.Value.Set(value); err != nil {
			errs = append(errs, configError("unset it, or see --"+flag.Name+" in mcp-bridge run --help", "environment variable %s=%q: %v", name, value, err))
		}
	})
	return errors.Join(errs...)
}

// validate checks what no single flag can know.
func (s *settings) validate() error {
	switch {
	case s.memory < 64<<20:
		return usageError("", "--memory %v is too small: Python needs 64m", s.memory.String())
	case s.pids < 8:
		return usageError("", "--pids %d is too few: the kernel needs 8", s.pids)
	case s.cpus <= 0:
		return usageError("", "--cpus must be more than 0, not %v", s.cpus)
	case s.timeout > s.maxTimeout:
		return usageError("raise --max-timeout", "--timeout %v is more than --max-timeout %v", s.timeout.String(), s.maxTimeout.String())
	}
	return nil
}

func (s *settings) limits() runtime.Limits {
	return runtime.Limits{MemoryBytes: int64(s.memory), PIDs: s.pids, CPUs: s.cpus}
}

// byteSize is a number of bytes with an optional unit of 1024: 512m, 2g, 1GiB.
type byteSize int64

func (b *byteSize) Set(text string) error {
	number := strings.TrimRight(strings.ToLower(text), "kmgib")
	unit := strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(text)[len(number):], "b"), "i")
	shift := slices.Index([]string{"", "k", "m", "g"}, unit)
	n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
	if err != nil || shift < 0 || n <= 0 || n > 1<<40>>(10*shift) {
		return fmt.Errorf("%q is not a size such as 512m or 2g", text)
	}
	*b = byteSize(n << (10 * shift))
	return nil
}

func (b *byteSize) String() string {
	if *b%(1<<20) == 0 {
		return fmt.Sprintf("%dm", *b>>20)
	}
	return strconv.FormatInt(int64(*b), 10)
}

// Type names the value in help texts.
func (*byteSize) Type() string { return "size" }

// seconds is a duration, written as a number of seconds or as 90s, 2m.
type seconds time.Duration

func (s *seconds) Set(text string) error {
	d, err := time.ParseDuration(text)
	if n, plain := strconv.ParseFloat(text, 64); plain == nil {
		d, err = time.Duration(n*float64(time.Second)), nil
	}
	if err != nil || d <= 0 || d > 24*time.Hour {
		return fmt.Errorf("%q is not a number of seconds between 0 and 86400", text)
	}
	*s = seconds(d)
	return nil
}

func (s *seconds) String() string {
	return strconv.FormatFloat(time.Duration(*s).Seconds(), 'f', -1, 64)
}

// Type names the value in help texts.
func (*seconds) Type() string { return "seconds" }

// isCobraUsage reports whether cobra itself refused the command line; its own
// errors have no type.
func isCobraUsage(err error) bool {
	text := err.Error()
	for _, prefix := range []string{"unknown command", "accepts ", "requires ", "required flag", "if any flags in the group", "at least one of the flags", "invalid argument"} {
		if strings.HasPrefix(text, prefix) {
			return true
		}
	}
	return false
}

// needsSubcommand is the RunE of a command that only groups others.
func needsSubcommand(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError(cmd.CommandPath()+" --help", "unknown command %q for %q", args[0], cmd.CommandPath())
	}
	return cmd.Help()
}
