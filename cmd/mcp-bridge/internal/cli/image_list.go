package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/spf13/cobra"

	"github.com/mcp-bridge/mcp-bridge/bridge"
	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// pythonLabel says which Python is in an image.
const pythonLabel = "io.mcp-bridge.python"

// listTimeout bounds what one engine takes to list its images.
const listTimeout = 30 * time.Second

// A listedImage is one entry of `image list --json`.
type listedImage struct {
	Engine  string    `json:"engine"`
	ID      string    `json:"id"`
	Names   []string  `json:"names"`
	Bytes   int64     `json:"bytes"`
	Created time.Time `json:"created"`
	Python  string    `json:"python,omitempty"` // if the image says so
	Used    bool      `json:"used"`             // sandboxes on this engine are started from it
}

func (r *root) imageListCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the images on each engine that is there",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			images, err := r.listImages(cmd.Context())
			switch {
			case err != nil:
				return err
			case asJSON:
				return r.writeJSON(images)
			}
			return r.writeImages(images, time.Now())
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	r.settings.addEngine(cmd.Flags())
	r.settings.addImage(cmd.Flags())
	return cmd
}

// listImages lists the named images of every engine. An engine that is not there
// is told on stderr; that none is there is an error.
func (r *root) listImages(ctx context.Context) ([]listedImage, error) {
	listed := []listedImage{}
	return listed, r.withStores(func(stores []store) error {
		var errs []error
		for _, s := range stores {
			images, err := imagesOf(ctx, s)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			for _, i := range images {
				if len(i.Names) > 0 {
					listed = append(listed, listedImage{
						Engine: s.name, ID: i.ID, Names: i.Names, Bytes: i.Bytes, Created: i.Created, Python: i.Labels[pythonLabel],
						Used: slices.ContainsFunc(i.Names, func(name string) bool { return sameImage(name, cmp.Or(r.settings.image, ownImage(s.name))) }),
					})
				}
			}
		}
		if len(errs) == len(stores) {
			return runtime.NewNoneError("list images", errs)
		}
		for _, err := range errs {
			if e, ok := errors.AsType[*runtime.Error](err); ok {
				fmt.Fprintln(r.io.Err, "mcp-bridge: not listed: "+e.Reason())
			}
		}
		return nil
	})
}

func imagesOf(ctx context.Context, s store) ([]runtime.Image, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	return s.Images(ctx)
}

func (r *root) writeImages(images []listedImage, now time.Time) error {
	if len(images) == 0 {
		fmt.Fprintln(r.io.Err, "there are no images: mcp-bridge image build, or mcp-bridge image pull")
		return nil
	}
	w := tabwriter.NewWriter(r.io.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ENGINE\tIMAGE\tSIZE\tAGE\tPYTHON\tUSED")
	for _, i := range images {
		used := ""
		if i.Used {
			used = "yes"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", i.Engine, oneLined(strings.Join(i.Names, ", ")), bridge.Size(i.Bytes), age(now, i.Created), cmp.Or(oneLined(i.Python), "?"), used)
	}
	return w.Flush()
}

// sameImage reports whether two names are of the same image.
func sameImage(a, b string) bool {
	first, err := name.ParseReference(a)
	if err != nil {
		return a == b
	}
	second, err := name.ParseReference(b)
	return err == nil && first.Name() == second.Name()
}

// age writes how long ago something was, in one unit.
func age(now, then time.Time) string {
	d := now.Sub(then)
	switch {
	case then.Unix() <= 0: // nobody knows
		return "?"
	case d < time.Minute:
		return "now"
	case d < time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", d/time.Hour)
	default:
		return fmt.Sprintf("%d d", d/(24*time.Hour))
	}
}
