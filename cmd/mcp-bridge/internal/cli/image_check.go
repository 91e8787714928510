package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// dataModules are what the data image adds.
var dataModules = []string{"matplotlib", "numpy", "openpyxl", "pandas", "PIL", "scipy"}

func (r *root) imageCheckCommand() *cobra.Command {
	var modules []string
	cmd := &cobra.Command{
		Use:   "check [IMAGE]",
		Short: "Start a sandbox from an image and see what is in it",
		Long: "Start a sandbox from an image, by default the one that sandboxes are started from, and see which Python\n" +
			"and which modules for data work are in it. The exit code is 1 if the image is of no use, or lacks a\n" +
			"module that was asked for.",
		Example: "  mcp-bridge image check\n  mcp-bridge image check docker.io/library/python:3.14-slim\n" +
			"  mcp-bridge image check localhost/mcp-bridge-sandbox-data --module numpy --module pandas",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			image := r.settings.image
			if len(args) == 1 {
				image = args[0]
			}
			found, err := r.checkImage(cmd.Context(), image, modules)
			if err != nil {
				return err
			}
			p := r.printer()
			p.findings(found)
			if p.err == nil && slices.ContainsFunc(found, func(f runtime.Finding) bool { return f.Level == runtime.LevelFail }) {
				return errShown
			}
			return p.err
		},
	}
	cmd.Flags().StringSliceVar(&modules, "module", nil, "a module that the image must have, repeatable")
	r.settings.addSandbox(cmd.Flags())
	return cmd
}

// inventory is the cell that looks at an image. It does not import what it finds:
// a version is read from what was installed.
const inventory = `
import importlib.metadata, importlib.util, json, sys
def look(name):
    try:
        if importlib.util.find_spec(name) is None:
            return None
    except (ImportError, ValueError):
        return None
    try:
        return importlib.metadata.version({"PIL": "pillow"}.get(name, name))
    except importlib.metadata.PackageNotFoundError:
        return ""
print(json.dumps({"python": sys.version.split()[0], "modules": {n: look(n) for n in MODULES}}))
`

// A content is what inventory prints: hostile, as all that an image says.
type content struct {
	Python  string             `json:"python"`
	Modules map[string]*string `json:"modules"`
}

// checkImage starts a sandbox from the image. An engine that cannot start any is
// an error; what is wrong with the image is a finding.
func (r *root) checkImage(ctx context.Context, image string, wanted []string) ([]runtime.Finding, error) {
	if err := r.settings.validate(); err != nil {
		return nil, err
	}
	log := r.logger()
	engine, err := r.engine(log)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err := engine.Close(); err != nil {
			log.Warn("engine not closed", "error", err)
		}
	}()
	modules, err := json.Marshal(slices.Concat(dataModules, wanted))
	if err != nil {
		return nil, err
	}
	t := r.try(ctx, engine, image, strings.ReplaceAll(inventory, "MODULES", string(modules)), log)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if _, ok := errors.AsType[*runtime.Error](t.err); ok && !errors.Is(t.err, runtime.ErrNoProgram) {
		return nil, t.err
	}
	return describeImage(cmp.Or(image, ownImage(cmp.Or(r.taken, engine.Name()))), t, wanted), nil
}

func describeImage(image string, t trial, wanted []string) []runtime.Finding {
	if t.err != nil {
		return []runtime.Finding{{Name: "image", Level: runtime.LevelFail, Detail: image + ": " + t.err.Error(), Fix: hintOf(t.err)}}
	}
	var c content
	if err := json.Unmarshal([]byte(t.text), &c); err != nil || c.Python == "" {
		return []runtime.Finding{{Name: "image", Level: runtime.LevelFail, Detail: image + ": its Python does not answer as Python does"}}
	}
	found := []runtime.Finding{
		{Name: "image", Level: runtime.LevelOK, Detail: fmt.Sprintf("%s: works, %.2f s from a sandbox's start to the answer", image, t.took.Seconds())},
		{Name: "python", Level: runtime.LevelOK, Detail: c.Python},
		dataFinding(c.Modules),
	}
	for _, name := range wanted {
		f := runtime.Finding{Name: name, Level: runtime.LevelOK}
		if version := c.Modules[name]; version != nil {
			f.Detail = cmp.Or(*version, "there")
		} else {
			f.Level, f.Detail = runtime.LevelFail, "missing: no such module in "+image
			if slices.Contains(dataModules, name) {
				f.Fix = "mcp-bridge image build --target data"
			}
		}
		found = append(found, f)
	}
	return found
}

// dataFinding says which modules for data work there are. To have none is no
// fault of an image.
func dataFinding(modules map[string]*string) runtime.Finding {
	var there, missing []string
	for _, name := range dataModules {
		if version := modules[name]; version != nil {
			there = append(there, strings.TrimSpace(name+" "+*version))
		} else {
			missing = append(missing, name)
		}
	}
	f := runtime.Finding{Name: "data", Level: runtime.LevelOK, Detail: strings.Join(there, ", ")}
	if len(missing) > 0 {
		f.Level, f.Fix = runtime.LevelWarn, "mcp-bridge image build --target data"
		f.Detail = strings.TrimPrefix(f.Detail+"; without "+strings.Join(missing, ", "), "; ")
	}
	return f
}
