package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

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
		var names []string
		for _, sub := range cmd.Commands() {
			names = append(names, sub.Name())
		}
		return usageError(cmd.CommandPath()+" --help", "unknown command %q for %q%s", args[0], cmd.CommandPath(), didYouMean(similar(args[0], names)...))
	}
	return cmd.Help()
}

// cobraUsage is an error of cobra's in our form.
func cobraUsage(cmd *cobra.Command, err error) error {
	text, suggestions, _ := strings.Cut(err.Error(), "\n\nDid you mean this?\n")
	return usageError(cmd.CommandPath()+" --help", "%s%s", text, didYouMean(strings.Fields(suggestions)...))
}

// flagError is the error of a flag with a value that is none.
func flagError(cmd *cobra.Command, err error) error {
	text := err.Error()
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		text = fmt.Sprintf("--%s: %v", invalid.GetFlag().Name, wanted(invalid.GetFlag(), invalid.GetValue(), invalid.Unwrap()))
	}
	return usageError(cmd.CommandPath()+" --help", "%s", text)
}

// wanted says what a flag's value has to be, where Go's own error would say how
// it was read.
func wanted(flag *pflag.Flag, text string, err error) error {
	want := map[string]string{
		"int": "a whole number", "int64": "a whole number", "float64": "a number", "bool": "true or false",
	}[flag.Value.Type()]
	if _, ok := flag.Value.(interface{ Level() slog.Level }); ok || flag.Name == "log-level" {
		want = "debug, info, warn or error"
	}
	if _, ours := errors.AsType[rangeError](err); want == "" || ours {
		return err
	}
	return fmt.Errorf("%q is not %s", text, want)
}

// set gives a flag a value that is not from the command line.
func set(flag *pflag.Flag, text string) error {
	if err := flag.Value.Set(text); err != nil {
		return wanted(flag, text, err)
	}
	return nil
}

// didYouMean is the end of an error about a name, if there are others like it.
func didYouMean(names ...string) string {
	if len(names) == 0 {
		return ""
	}
	return ": did you mean " + strings.Join(names, " or ") + "?"
}

// similar is the one of names that was probably meant, or none.
func similar(written string, names []string) []string {
	return discovery.Nearest(written, names, 1)
}
