package cli

import (
	"fmt"
	"net/url"
	"os"
	goruntime "runtime"
	"slices"

	"github.com/spf13/pflag"
)

// leastCPUs is the least share of a processor that control groups can give.
const leastCPUs = 0.01

// processors is the most that a sandbox can have: this machine's, unless the
// engine is another's.
func processors() float64 {
	const elsewhere = 1024
	for _, name := range []string{"CONTAINER_HOST", "DOCKER_HOST"} {
		if host, err := url.Parse(os.Getenv(name)); err != nil || host.Scheme != "" && host.Scheme != "unix" {
			return elsewhere
		}
	}
	return float64(goruntime.NumCPU())
}

// A checked is a flag's value with a check of its own, so that whatever it is
// given by is to blame.
type checked struct {
	pflag.Value

	check func() error
}

func (c checked) Set(text string) error {
	if err := c.Value.Set(text); err != nil {
		return err
	}
	if err := c.check(); err != nil {
		return fmt.Errorf("%s %w", text, err)
	}
	return nil
}

// check adds a check to a flag.
func check(flags *pflag.FlagSet, name string, ok func() error) {
	flag := flags.Lookup(name)
	flag.Value = checked{flag.Value, ok}
}

// A rangeError says what values are right.
type rangeError string

func (e rangeError) Error() string { return string(e) }

func atLeast(ok bool, otherwise string) error {
	if ok {
		return nil
	}
	return rangeError(otherwise)
}

func (s *settings) knownEngine() error {
	if s.runtime == auto || slices.Contains(engineNames(), s.runtime) {
		return nil
	}
	names := append(engineNames(), auto)
	return rangeError("is no container engine: there are " + anyOf(names))
}

// nameOf is how a setting was given: as a flag, a variable, or in the file.
func (s *settings) nameOf(flag string) string {
	if source, ok := s.sources[flag]; ok {
		return source
	}
	return "--" + flag
}

// wrong is the error for settings that do not go together. It is one of usage
// if a flag is among them, and otherwise one of the configuration.
func (s *settings) wrong(flags []string, format string, args ...any) error {
	given := slices.ContainsFunc(flags, func(name string) bool { return s.sources[name] == "--"+name })
	if given {
		return usageError("", format, args...)
	}
	return configError("", format, args...)
}
