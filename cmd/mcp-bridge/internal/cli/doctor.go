package cli

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// diagnoseTimeout bounds the questions to one engine.
const diagnoseTimeout = 30 * time.Second

// A diagnosis is what `doctor --json` prints. Fields are added to it, and none
// is renamed or removed.
type diagnosis struct {
	Version string            `json:"version"` // of mcp-bridge
	Works   bool              `json:"works"`   // the cell ran
	Engines []engineDiagnosis `json:"engines"` // in the order auto tries them
	Host    []runtime.Finding `json:"host"`
	Servers []runtime.Finding `json:"servers"` // of their definitions
	Cell    cellDiagnosis     `json:"cell"`
}

type engineDiagnosis struct {
	Name     string            `json:"name"`
	Findings []runtime.Finding `json:"findings"`
}

// A cellDiagnosis is how the trial ended, a real cell in a real sandbox.
type cellDiagnosis struct {
	runtime.Finding

	Engine string  `json:"engine,omitempty"` // that ran it; none if no engine works
	Millis float64 `json:"duration_ms"`      // from the sandbox's start to the answer
}

func (r *root) doctorCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look at everything that sandboxes need, and run a cell",
		Long: "Look at every engine, or the one named by --runtime, and at this machine; then run a real cell on the\n" +
			"engine that would be taken. Where something is wrong, the next line is what mends it.\n" +
			"The exit code is 0 if the cell ran, and otherwise 3.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, err := r.diagnose(cmd.Context())
			if err != nil {
				return err
			}
			if asJSON {
				err = r.writeJSON(d)
			} else {
				err = r.printer().diagnosis(d)
			}
			if err == nil && !d.Works {
				err = &hintedError{err: errShown, code: exitNoEngine}
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	r.settings.addSandbox(cmd.Flags())
	return cmd
}

func (r *root) diagnose(ctx context.Context) (*diagnosis, error) {
	if err := r.settings.validate(); err != nil {
		return nil, err
	}
	named, err := r.namedEngines()
	if err != nil {
		return nil, err
	}
	log := r.logger()
	engines := openAll(named, r.engineOptions(log))
	d := &diagnosis{Version: programVersion(), Engines: diagnoseEngines(ctx, engines, r.settings.image), Host: r.diagnoseHost(), Servers: r.diagnoseServers()}
	taken := ""
	all := runtime.NewFirstOf(engines, func(e runtime.Engine, _ []*runtime.Error) { taken = e.Name() })
	defer func() {
		if err := all.Close(); err != nil {
			log.Warn("engine not closed", "error", err)
		}
	}()
	t := r.try(ctx, all, r.settings.image, "import sys; print(sys.version.split()[0])", log)
	d.Cell = describeTrial(t, taken)
	d.Works = t.err == nil
	return d, ctx.Err()
}

func describeTrial(t trial, engine string) cellDiagnosis {
	c := cellDiagnosis{Engine: engine, Millis: float64(t.took.Microseconds()) / 1000}
	c.Name = "cell"
	if t.err != nil {
		c.Level, c.Detail, c.Fix = runtime.LevelFail, t.err.Error(), hintOf(t.err)
		return c
	}
	c.Level = runtime.LevelOK
	c.Detail = fmt.Sprintf("Python %s ran on %s, %.2f s from a sandbox's start to the answer", strings.TrimSpace(t.text), engine, t.took.Seconds())
	return c
}

// diagnoseEngines asks all engines at once: those that do not answer take their
// time together.
func diagnoseEngines(ctx context.Context, engines []runtime.Engine, image string) []engineDiagnosis {
	all := make([]engineDiagnosis, len(engines))
	var wg sync.WaitGroup
	for i, e := range engines {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, diagnoseTimeout)
			defer cancel()
			all[i] = engineDiagnosis{Name: e.Name(), Findings: findings(ctx, e, image)}
		})
	}
	wg.Wait()
	return all
}

// findings are an engine's own, or, if it has none, whether it can be used.
func findings(ctx context.Context, e runtime.Engine, image string) []runtime.Finding {
	if d, ok := e.(runtime.Diagnoser); ok {
		if found := d.Diagnose(ctx, image); len(found) > 0 {
			return found
		}
	}
	if err := e.Check(ctx, image); err != nil {
		return []runtime.Finding{{Name: "check", Level: runtime.LevelFail, Detail: err.Error(), Fix: runtime.HintOf(err)}}
	}
	return []runtime.Finding{{Name: "check", Level: runtime.LevelOK, Detail: "can start sandboxes"}}
}
