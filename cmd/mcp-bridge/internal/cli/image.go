package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

func (r *root) imageCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "image",
		Short: "Look at, get and build images for sandboxes",
		RunE:  needsSubcommand,
	}
	cmd.AddCommand(r.imageListCommand(), r.imageCheckCommand(), r.imagePullCommand(), r.imageBuildCommand())
	return cmd
}

// A store is an engine that keeps images, by its name.
type store struct {
	name string
	runtime.ImageStore
}

// withStores opens the engines that --runtime asks for and keep images, and
// calls f with them. What f may start, it must end.
func (r *root) withStores(f func([]store) error) error {
	named, err := r.namedEngines()
	if err != nil {
		return err
	}
	log := r.logger()
	var stores []store
	for _, e := range openAll(named, r.engineOptions(log)) {
		defer func() {
			if err := e.Close(); err != nil {
				log.Warn("engine not closed", "error", err)
			}
		}()
		if s, ok := e.(runtime.ImageStore); ok {
			stores = append(stores, store{e.Name(), s})
		}
	}
	return f(stores)
}

// onFirst does something on the first engine that is there.
func (r *root) onFirst(ctx context.Context, do func(store) error) error {
	return r.withStores(func(stores []store) error {
		var errs []error
		for _, s := range stores {
			err := do(s)
			if err == nil || ctx.Err() != nil || !errors.Is(err, runtime.ErrUnavailable) && !errors.Is(err, runtime.ErrUnsupported) {
				return err
			}
			errs = append(errs, err)
		}
		if len(errs) == 0 {
			return usageError("", "no engine here keeps images")
		}
		return runtime.NewNoneError("image", errs)
	})
}
