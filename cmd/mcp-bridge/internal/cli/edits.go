package cli

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// keptNote is what a model is told of a server whose definition was kept.
const keptNote = "its definition was edited and cannot be used, so the one before counts; the user's log, and `mcp-bridge servers list`, say why"

// edits takes over edits of the definitions while a bridge runs.
type edits struct {
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// followEdits begins to. config is what a has now; the caller must end it.
func followEdits(ctx context.Context, opts discovery.LoadOptions, a *app, config *discovery.Config, log *slog.Logger) *edits {
	ctx, cancel := context.WithCancel(ctx)
	e := &edits{cancel: cancel}
	told := map[string]bool{}
	for _, problem := range config.Problems { // which have been told
		told[problemText(problem)] = true
	}
	e.done.Go(func() {
		err := discovery.Watch(ctx, opts, func(config *discovery.Config) {
			told = tellProblems(config.Problems, told, log)
			a.reload(config)
		})
		if !errors.Is(err, context.Canceled) {
			log.Warn("edits of server definitions are not followed", "error", err)
		}
	})
	return e
}

func (e *edits) end() {
	e.cancel()
	e.done.Wait()
}

// reload makes the servers those of a configuration.
func (a *app) reload(config *discovery.Config) {
	notes := map[string]string{}
	for _, name := range config.Kept {
		notes[name] = keptNote
	}
	a.tools.SetNotes(notes)
	a.tools.Reload(config.Servers)
	var names []string
	for _, info := range a.tools.Servers() {
		if info.State != "disabled" {
			names = append(names, info.Ident)
		}
	}
	a.bridge.SetServers(names)
}

// tellProblems logs problems that were not told before, and the end of those that
// were. It returns what is told now.
func tellProblems(problems []discovery.Problem, told map[string]bool, log *slog.Logger) map[string]bool {
	now := make(map[string]bool, len(problems))
	for _, problem := range problems {
		text := problemText(problem)
		if !told[text] && !now[text] {
			log.Warn("server definition not used", "problem", text)
		}
		now[text] = true
	}
	for text := range told {
		if !now[text] {
			log.Info("server definition mended, or gone", "problem", text)
		}
	}
	return now
}
