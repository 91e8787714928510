package cli

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge"
	"github.com/mcp-bridge/mcp-bridge/proxy"
	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// trialTimeout bounds a cell that only shows that cells run.
const trialTimeout = 20 * time.Second

// A trial is a cell in a sandbox of its own, without servers.
type trial struct {
	text string        // what the cell printed
	took time.Duration // from the sandbox's start to its first answer
	err  error         // why it did not run, or failed
}

// try starts a sandbox on an engine, as the settings have it, and runs a cell. It
// leaves nothing behind.
func (r *root) try(ctx context.Context, engine runtime.Engine, image, code string, log *slog.Logger) trial {
	tools := proxy.New(proxy.Options{Logger: log})
	defer tools.Close()
	b := bridge.New(bridge.Options{
		Engine:         engine,
		Image:          image,
		Limits:         r.settings.limits(),
		AllowUnlimited: r.settings.allowUnlimited,
		Tools:          tools,
		Logger:         log,
		Yield:          never,
		PullTimeout:    time.Duration(r.settings.pullTimeout),
	})
	defer b.Close()
	pull := newProgress(r.io.Err, "getting "+image+":")
	begin := time.Now()
	result := b.Run(ctx, bridge.Request{Code: "None", Progress: pull.update})
	pull.end()
	t := trial{took: time.Since(begin)}
	if result.Err == nil && !result.IsError {
		result = b.Run(ctx, bridge.Request{Code: code, Timeout: trialTimeout})
	}
	t.text, t.err = result.Text, result.Err
	if t.err == nil && result.IsError {
		t.err = errors.New(result.Text)
	}
	return t
}
