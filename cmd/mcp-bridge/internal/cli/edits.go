package cli

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// keptNote is what a model is told of a server whose definition was kept.
const keptNote = "its definition was edited and cannot be used, so the one before counts; the user's log, and `mcp-bridge servers list`, say why"

// invalidNote is what a model is told of a server whose definition is of no use.
const invalidNote = "left out: its definition cannot be used; the user's log, and `mcp-bridge servers list`, say why"

// maxNoted bounds the names of servers that models are told of, in bytes; one that
// is longer is what is wrong with its definition.
const maxNoted = 200

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
	servers, notes := withInvalid(config)
	a.tools.SetNotes(notes)
	a.tools.Reload(servers)
	var names []string
	for _, info := range a.tools.Servers() {
		if info.State != "disabled" {
			names = append(names, info.Ident)
		}
	}
	a.bridge.SetServers(names)
}

// withInvalid are the servers of a configuration with those that cannot be used,
// which are as if disabled, and what a model is told of servers: nothing of the
// host's folders.
func withInvalid(config *discovery.Config) (servers []discovery.Server, notes map[string]string) {
	notes = map[string]string{}
	for _, name := range config.Kept {
		notes[name] = keptNote
	}
	var names []string
	for _, s := range config.Servers {
		names = append(names, s.Name)
	}
	servers = slices.Clone(config.Servers)
	for _, problem := range config.Problems {
		name := problem.Server
		if name == "" || oneLined(name) != name || len(name) > maxNoted || errors.Is(problem.Err, discovery.ErrSelf) || slices.Contains(names, name) {
			continue
		}
		names = append(names, name)
		servers = append(servers, discovery.Server{Name: name, Disabled: true})
		notes[name] = invalidNote
		_, input := errors.AsType[*discovery.InputError](problem.Err)
		if _, variable := errors.AsType[*discovery.VariableError](problem.Err); input || variable {
			notes[name] = oneLined("left out: " + problem.Err.Error() + " (for the user to do)")
		}
	}
	for i, ident := range discovery.ServerIdents(names) {
		if servers[i].Ident == "" {
			servers[i].Ident = ident
		}
	}
	return servers, notes
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
