package cli

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge"
	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/proxy"
	"github.com/mcp-bridge/mcp-bridge/runtime"
)

func (r *root) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(r.io.Err, &slog.HandlerOptions{Level: r.settings.logLevel}))
}

// proxy opens the catalog and the upstream servers; the caller closes it.
func (r *root) proxy(config *discovery.Config, log *slog.Logger, approver proxy.Approver) (*proxy.Proxy, error) {
	opts, err := r.proxyOptions(config, log)
	if err != nil {
		return nil, err
	}
	opts.Approver = approver
	return proxy.New(opts), nil
}

// proxyOptions are those of a proxy that asks nobody for approval.
func (r *root) proxyOptions(config *discovery.Config, log *slog.Logger) (proxy.Options, error) {
	dir, err := r.catalogDir()
	if err != nil {
		return proxy.Options{}, err
	}
	catalog, err := discovery.OpenCatalog(dir)
	if err != nil {
		return proxy.Options{}, configError("set --cache-dir to a folder that you own", "%v", err)
	}
	var env map[string]string
	if !r.settings.allowSelf {
		env = map[string]string{underBridge: "1"}
	}
	return proxy.Options{
		ServerEnv: env,
		Servers:   config.Servers, Catalog: catalog, LearnShapes: r.settings.learnShapes, Logger: log, Version: programVersion(),
		BlockChanged: r.settings.onChange == changeBlock,
	}, nil
}

// catalogDir is where the catalog of tools is kept.
func (r *root) catalogDir() (string, error) {
	if r.settings.cacheDir != "" {
		return r.settings.cacheDir, nil
	}
	base, err := os.UserCacheDir()
	if err != nil {
		return "", configError("set --cache-dir", "no folder for the catalog of tools: %v", err)
	}
	return filepath.Join(base, "mcp-bridge", "catalog"), nil
}

// stateDir is where memory, skills and the like are kept, or "" if there is no
// such place. One that was asked for must be usable.
func (r *root) stateDir() (string, error) {
	home, homeErr := os.UserHomeDir()
	if dir := r.settings.stateDir; dir != "" {
		if below, ok := strings.CutPrefix(dir, "~/"); ok && homeErr == nil { // no shell has read a client's file
			dir = filepath.Join(home, below)
		}
		if err := bridge.PrepareStateDir(dir); err != nil {
			return "", configError("set --state-dir to a folder that you own", "%s: %v", r.settings.nameOf("state-dir"), err)
		}
		return dir, nil
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "mcp-bridge"), nil
	}
	if homeErr != nil {
		return "", nil //nolint:nilerr // cells that want to keep something hear of it
	}
	return filepath.Join(home, ".local", "state", "mcp-bridge"), nil
}

// workingDir is where the program was started, if it can be told.
func workingDir() string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	return dir
}

// workspaceQuota is the quota as the bridge takes it.
func (r *root) workspaceQuota() int64 {
	if r.settings.quota == 0 {
		return -1
	}
	return int64(r.settings.quota)
}

// An app is everything that runs cells, put together.
type app struct {
	bridge *bridge.Bridge
	engine runtime.Engine
	tools  *proxy.Proxy
	sweep  *sweep         // nil if none was asked for
	edits  *edits         // nil if they are not to be followed
	exit   func(code int) // see IO
}

// appOptions are what commands want of an app besides the settings.
type appOptions struct {
	sweep       bool          // remove, in the background, what dead bridges left
	follow      bool          // take over edits of the definitions of servers
	outputLimit int           // see bridge.Options
	outputMode  bridge.Mode   // see bridge.Options
	notesApart  bool          // see bridge.Options
	yield       time.Duration // see bridge.Options
	warm        int           // see bridge.Options
	hibernate   bool          // see bridge.Options
}

// open puts an app together; the caller closes it.
func (r *root) open(ctx context.Context, opts appOptions) (*app, error) {
	if err := r.settings.validate(); err != nil {
		return nil, err
	}
	if r.settings.allowUnlimited {
		fmt.Fprintln(r.io.Err, "mcp-bridge: warning: --allow-unlimited: where the engine cannot limit memory, processes and processors, cells have no such limits")
	}
	stateDir, err := r.stateDir()
	if err != nil {
		return nil, err
	}
	binds, err := r.binds(stateDir)
	if err != nil {
		return nil, err
	}
	log := r.logger()
	engine, err := r.engine(log)
	if err != nil {
		return nil, err
	}
	config := r.config()
	servers, notes := withInvalid(config)
	tools, err := r.proxy(&discovery.Config{Servers: servers}, log, bridge.Approver{})
	if err != nil {
		return nil, err
	}
	tools.SetNotes(notes)
	a := &app{engine: engine, tools: tools, exit: r.io.Exit}
	a.bridge = bridge.New(bridge.Options{
		Engine:         engine,
		Image:          r.settings.image,
		Limits:         r.settings.limits(),
		AllowUnlimited: r.settings.allowUnlimited,
		Tools:          tools,
		Servers:        enabled(config),
		Version:        programVersion(),
		Logger:         log,
		Binds:          binds,
		StateDir:       stateDir,
		WorkspaceQuota: r.workspaceQuota(),
		Hibernate:      opts.hibernate,
		Directory:      workingDir(),
		Timeout:        time.Duration(r.settings.timeout),
		MaxTimeout:     time.Duration(r.settings.maxTimeout),
		Yield:          opts.yield,
		PullTimeout:    time.Duration(r.settings.pullTimeout),
		OutputLimit:    opts.outputLimit,
		OutputMode:     opts.outputMode,
		NotesApart:     opts.notesApart,

		Warm:         opts.warm,
		MaxSandboxes: r.settings.maxSandboxes,
		IdleTimeout:  time.Duration(r.settings.idleTimeout),
	})
	tools.Include(a.bridge.Skills)
	if opts.follow {
		if r.settings.fillCatalog {
			tools.Fill(ctx)
		}
		a.edits = followEdits(ctx, r.loadOptions(), a, config, log)
	}
	if opts.sweep {
		a.sweep = startSweep(ctx, engine, log)
	}
	return a, nil
}

// close removes every sandbox and ends every server. Where that hangs the program
// ends.
func (a *app) close(log *slog.Logger) {
	if a.edits != nil {
		a.edits.end()
	}
	closeWithin(closeLimit, a.bridge.Close, log, a.exit)
	if a.sweep != nil {
		a.sweep.end()
	}
	if err := a.tools.Close(); err != nil {
		log.Warn("servers not closed", "error", err)
	}
	if err := a.engine.Close(); err != nil {
		log.Warn("engine not closed", "error", err)
	}
}

// enabled returns the Python names of the servers that may be used.
func enabled(config *discovery.Config) []string {
	var names []string
	for _, s := range config.Servers {
		if !s.Disabled {
			names = append(names, s.Ident)
		}
	}
	return names
}
