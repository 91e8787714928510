package cli

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	goruntime "runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/internal/inputs"
	"github.com/mcp-bridge/mcp-bridge/discovery"
)

func (r *root) serversInputCommand() *cobra.Command {
	var again, forget bool
	cmd := &cobra.Command{
		Use:   "input SERVER",
		Short: "Ask for the values that a server's definition calls ${input:…}",
		Long: "Ask for the values that a server's definition calls ${input:…}, such as tokens, and keep them in\n" +
			"the system's keyring, or where there is none in a file in the state directory that only you can\n" +
			"read. Without a terminal they are read from stdin, a line for each.",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: r.completeServers,
		RunE: func(_ *cobra.Command, args []string) error {
			def, err := r.definition(args[0])
			if err != nil {
				return err
			}
			if len(def.Inputs) == 0 {
				fmt.Fprintf(r.io.Err, "server %s asks for nothing\n", oneLined(def.Server.Name))
				return nil
			}
			store, err := r.inputStore()
			if err != nil {
				return err
			}
			if forget {
				for _, in := range def.Inputs {
					if err := store.Forget(in.ID); err != nil {
						return err
					}
				}
				return store.Changed()
			}
			return r.askInputs(store, def.Inputs, again)
		},
	}
	cmd.Flags().BoolVar(&again, "again", false, "ask for values that are known, too")
	cmd.Flags().BoolVar(&forget, "forget", false, "remove the values instead")
	return cmd
}

// inputStore is where the values of inputs are kept.
func (r *root) inputStore() (*inputs.Store, error) {
	dir, err := r.stateDir()
	if err != nil {
		return nil, err
	}
	return inputs.Open(dir, goruntime.GOOS, os.LookupEnv), nil
}

// input finds the value of ${input:id}.
func (r *root) input(id string, _ discovery.Input) (string, bool) {
	store, err := r.inputStore()
	if err != nil {
		return "", false // whoever needs the folder says what is wrong with it
	}
	return store.Get(id)
}

// askInputs asks for values, unless they are known, and keeps them.
func (r *root) askInputs(store *inputs.Store, wanted []discovery.Input, again bool) (err error) {
	given := false
	defer func() {
		if given { // those before a failure count, too
			err = errors.Join(err, store.Changed())
		}
	}()
	lines := bufio.NewReader(io.LimitReader(r.io.In, 1<<20))
	for _, in := range wanted {
		if _, known := store.Get(in.ID); known && !again {
			continue
		}
		value, err := r.ask(lines, in)
		if err != nil {
			return err
		}
		where, err := store.Set(in.ID, value)
		if err != nil {
			return err
		}
		given = true
		fmt.Fprintf(r.io.Err, "%s is kept in %s\n", oneLined(in.ID), oneLined(where))
	}
	return nil
}

// ask asks for one value, and again for one that is none of the choices.
func (r *root) ask(lines *bufio.Reader, in discovery.Input) (string, error) {
	for range 3 {
		if isTerminal(r.io.In) {
			fmt.Fprint(r.io.Err, prompt(in))
		}
		value, err := r.readValue(lines, in.Password || in.Description == "")
		if err != nil {
			return "", configError("mcp-bridge servers input SERVER asks for it on a terminal, or reads it from stdin", "no value for input %q: %v", in.ID, err)
		}
		value = cmp.Or(value, in.Default)
		switch {
		case value == "":
			fmt.Fprintln(r.io.Err, "it must not be empty")
		case len(in.Options) > 0 && !slices.Contains(in.Options, value):
			fmt.Fprintf(r.io.Err, "it must be one of %s\n", oneLined(anyOf(in.Options)))
		default:
			return value, nil
		}
	}
	return "", configError("", "no value for input %q", in.ID)
}

func prompt(in discovery.Input) string {
	text := oneLined(cmp.Or(in.Description, in.ID))
	if len(in.Options) > 0 {
		text += " (" + oneLined(strings.Join(in.Options, ", ")) + ")"
	}
	if in.Default != "" && !in.Password {
		text += " [" + oneLined(in.Default) + "]"
	}
	return text + ": "
}

// readValue reads a line; a secret is not shown while it is typed.
func (r *root) readValue(lines *bufio.Reader, secret bool) (string, error) {
	if file, ok := r.io.In.(*os.File); ok && secret && isTerminal(file) {
		value, err := term.ReadPassword(int(file.Fd()))
		fmt.Fprintln(r.io.Err)
		return strings.TrimSpace(string(value)), err
	}
	line, err := lines.ReadString('\n')
	if line = strings.TrimSpace(line); line != "" && errors.Is(err, io.EOF) {
		err = nil
	}
	return line, err
}
