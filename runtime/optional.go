package runtime

import (
	"context"
	"io/fs"
	"time"
)

// What an engine may offer beyond [Engine], and its sandboxes beyond [Sandbox];
// ask with a type assertion.

// A Snapshot is a sandbox that shows folders of the host as they were when it
// started.
type Snapshot interface {
	// Outdated reports whether a sandbox that starts now would show them
	// otherwise, or might. It looks at every file's name and times.
	Outdated(ctx context.Context) bool
}

// An ImageStore is an engine that keeps images.
type ImageStore interface {
	// Pull gets an image from a registry. progress may be nil; it is called
	// from one goroutine. Errors wrap [ErrImageMissing] where the registry
	// does not have it or does not answer.
	Pull(ctx context.Context, image string, progress func(PullProgress)) error
	// Images returns the images that are there, newest first.
	Images(ctx context.Context) ([]Image, error)
	// Build builds an image. log takes what the engine says, a line each.
	Build(ctx context.Context, opts BuildOptions, log func(line string)) error
}

// PullProgress is how far a pull has come.
type PullProgress struct {
	Status string // in the engine's words, sanitized
	// Bytes of all that is known so far; Total is 0 while it is not known.
	Done, Total int64
}

// An Image is one image on an engine.
type Image struct {
	ID      string
	Names   []string // references; none for a dangling image
	Bytes   int64
	Created time.Time
	Labels  map[string]string
}

// BuildOptions say what to build.
type BuildOptions struct {
	Name       string // reference for the new image
	Dockerfile string // its text
	Context    fs.FS  // the files that it may COPY
	Target     string // the stage; "" is the last
	Args       map[string]string
}

// A Diagnoser can say what works and what does not.
type Diagnoser interface {
	// Diagnose looks at everything that a sandbox needs of the engine: version,
	// socket, rootless, cgroup version and which limits are real, seccomp, user
	// namespace, image, transport. It changes nothing.
	Diagnose(ctx context.Context, image string) []Finding
}

// A Finding is one line of a diagnosis.
type Finding struct {
	Name   string `json:"name"` // what was looked at, such as "cgroup limits"
	Level  Level  `json:"level"`
	Detail string `json:"detail"`        // what was found
	Fix    string `json:"fix,omitempty"` // a command or change that mends it
}

// A Level is how a finding bears on sandboxes.
type Level string

// The levels.
const (
	LevelOK   Level = "ok"
	LevelWarn Level = "warn" // sandboxes start, with less than there could be
	LevelFail Level = "fail" // sandboxes do not start
)
