package cli

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	mcpbridge "github.com/mcp-bridge/mcp-bridge"
	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// buildTimeout bounds a build, with all that it downloads.
const buildTimeout = time.Hour

func (r *root) imagePullCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "pull IMAGE",
		Short:   "Get an image from a registry",
		Example: "  mcp-bridge image pull docker.io/library/python:3.14-slim",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.pullImage(cmd.Context(), args[0])
		},
	}
	r.settings.addEngine(cmd.Flags())
	r.settings.addPull(cmd.Flags())
	return cmd
}

func (r *root) pullImage(ctx context.Context, image string) error {
	timeout := time.Duration(r.settings.pullTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("it was not there after %v: raise --pull-timeout", timeout))
	defer cancel()
	return r.onFirst(ctx, func(s store) error {
		begin := time.Now()
		shown := newProgress(r.io.Err, image+" on "+s.name+":")
		err := s.Pull(ctx, image, shown.update)
		shown.end()
		if err != nil {
			return timedOut(ctx, "get "+image, err)
		}
		_, err = fmt.Fprintf(r.io.Out, "%s is on %s, after %.1f s\n", image, s.name, time.Since(begin).Seconds())
		return err
	})
}

// timedOut puts the reason before an error that comes of ctx's end.
func timedOut(ctx context.Context, op string, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return fmt.Errorf("%s: %w", op, context.Cause(ctx))
}

// A recipe is what to build.
type recipe struct {
	target, file, context, name, base string
}

func (r *root) imageBuildCommand() *cobra.Command {
	var what recipe
	cmd := &cobra.Command{
		Use:   "build",
		Short: "Build an image for sandboxes; the log goes to stderr",
		Long: "Build an image for sandboxes, from a Dockerfile that this program carries: the plain one, or with\n" +
			"--target data one with numpy, pandas, matplotlib, pillow, scipy and openpyxl.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return r.buildImage(cmd.Context(), what)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&what.target, "target", "sandbox", "stage of the Dockerfile: sandbox or data")
	flags.StringVar(&what.name, "name", "", "name of the image (default "+defaultImageName("sandbox")+", or -data)")
	flags.StringVar(&what.base, "base", "", "image to build on, with Python 3.10 or newer (default python:3.14-slim)")
	flags.StringVar(&what.file, "file", "", "another Dockerfile")
	flags.StringVar(&what.context, "context", "", "folder of the files that it copies (default those this program carries)")
	r.settings.addEngine(flags)
	return cmd
}

func (r *root) buildImage(ctx context.Context, what recipe) error {
	opts, err := what.options()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, buildTimeout, fmt.Errorf("it was not ready after %v", buildTimeout))
	defer cancel()
	return r.onFirst(ctx, func(s store) error {
		begin := time.Now()
		if err := s.Build(ctx, opts, func(line string) { fmt.Fprintln(r.io.Err, line) }); err != nil {
			return timedOut(ctx, "build "+opts.Name, err)
		}
		_, err := fmt.Fprintf(r.io.Out, "%s is on %s, after %.1f s\n", opts.Name, s.name, time.Since(begin).Seconds())
		return err
	})
}

func (w recipe) options() (runtime.BuildOptions, error) {
	opts := runtime.BuildOptions{Name: w.name, Target: w.target, Context: mcpbridge.Image(), Args: map[string]string{"VERSION": programVersion()}}
	if opts.Name == "" {
		opts.Name = defaultImageName(w.target)
	}
	if w.base != "" {
		opts.Args["BASE"] = w.base
	}
	if w.context != "" {
		info, err := os.Stat(w.context)
		if err != nil || !info.IsDir() {
			return opts, usageError("", "--context %s is not a folder", w.context)
		}
		opts.Context = os.DirFS(w.context)
	}
	if targets := []string{"sandbox", "data"}; w.file == "" && !slices.Contains(targets, w.target) {
		return opts, usageError("mcp-bridge image build --help", "there is no --target %q%s", w.target, didYouMean(cmp.Or(strings.Join(similar(w.target, targets), ""), "sandbox or data")))
	}
	var dockerfile []byte
	var err error
	if w.file != "" {
		dockerfile, err = os.ReadFile(w.file)
	} else {
		dockerfile, err = fs.ReadFile(mcpbridge.Image(), "Dockerfile.sandbox")
	}
	if err != nil {
		return opts, usageError("mcp-bridge image build --help", "%v", err)
	}
	opts.Dockerfile = string(dockerfile)
	return opts, nil
}

// defaultImageName is what the image of a target of Dockerfile.sandbox is called.
func defaultImageName(target string) string {
	if target == "data" {
		return "localhost/mcp-bridge-sandbox-data:latest"
	}
	return defaultImage
}
