package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types"
	containertypes "github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/system"
	"github.com/docker/docker/api/types/volume"
	dockerclient "github.com/docker/docker/client"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/internal/container"
)

// pingTimeout bounds the first exchange with a daemon.
const pingTimeout = 5 * time.Second

// attachTimeout bounds the wait for a stream.
const attachTimeout = 10 * time.Second

// clockSlack is how wrong we may be about the daemon's clock.
const clockSlack = 100 * time.Millisecond

// Sandboxes get ids from firstUID to lastUID of their user namespace. Where
// that is the host's, which it is unless the daemon maps ids, the range is one
// that no distribution, systemd-nspawn or subordinate id allocation gives away
// (see systemd's UIDS-GIDS).
const (
	firstUID = 1000
	lastUID  = 59999
	hostBase = 0x71000000
)

// A client makes API calls on one daemon. It is safe for concurrent use.
type client struct {
	docker       *dockerclient.Client
	mapped       bool                 // whether the daemon gives containers a user namespace
	architecture string               // the daemon's, in the kernel's words
	missing      []runtime.Difference // limits that the daemon cannot put in force
	ahead        time.Duration        // of our clock is the daemon's
	elsewhere    string               // why the daemon's processes are not to be seen here; "" if they are
}

// newClient connects to the daemon at host.
func newClient(ctx context.Context, host string) (*client, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, pingTimeout, errors.New("it does not answer"))
	defer cancel()
	docker, err := dial(host)
	if err != nil {
		return nil, err
	}
	c := &client{docker: docker}
	if _, err = docker.Ping(ctx); err == nil {
		var info system.Info
		if info, err = docker.Info(ctx); err == nil {
			c.mapped, c.architecture, c.missing = mapsUsers(info), info.Architecture, missingLimits(info)
			if theirs, err := time.Parse(time.RFC3339Nano, info.SystemTime); err == nil {
				c.ahead = time.Until(theirs)
			}
			c.elsewhere, err = elsewhere(ctx, host, info)
		}
		if err == nil {
			return c, nil
		}
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return nil, errors.Join(err, docker.Close())
}

// mapsUsers reports whether the daemon runs containers in a user namespace:
// with userns-remap, or without root.
func mapsUsers(info system.Info) bool {
	return slices.ContainsFunc(info.SecurityOptions, func(option string) bool {
		return option == "name=userns" || option == "name=rootless"
	})
}

// Host implements [container.API].
func (c *client) Host() container.Host {
	host := container.Host{
		Remote:   c.elsewhere != "",
		Missing:  c.missing,
		FirstUID: firstUID, LastUID: lastUID,
		Expectation: runtime.Expectation{
			EngineEnv:     []string{"HOSTNAME=" + container.Hostname},
			SharedUserNS:  !c.mapped,
			PlainBinds:    true,
			ExecutableDev: true,
			HiddenVolumes: true,
			Covered:       slices.Concat(maskedPaths, readonlyPaths),
			Settings:      true,
		},
	}
	if !c.mapped {
		host.FirstUID += hostBase
		host.LastUID += hostBase
	}
	return host
}

// Create implements [container.API].
func (c *client) Create(ctx context.Context, p container.Placement) error {
	image, err := inspectImage(ctx, c.docker, p.Spec.Image)
	if err != nil {
		return err
	}
	request, err := newCreateRequest(p, image, c.architecture)
	if err != nil {
		return err
	}
	_, err = c.docker.ContainerCreate(ctx, &request.config, &request.host, nil, nil, p.ID)
	return err
}

// Prepare implements [container.API]. Docker cannot stop half-way.
func (c *client) Prepare(context.Context, string) (container.Info, error) {
	return container.Info{}, nil
}

// Start implements [container.API].
func (c *client) Start(ctx context.Context, id string) error {
	return mark(c.docker.ContainerStart(ctx, id, containertypes.StartOptions{}))
}

// Inspect implements [container.API].
func (c *client) Inspect(ctx context.Context, id string) (container.Info, error) {
	found, err := c.docker.ContainerInspect(ctx, id)
	if err != nil {
		return container.Info{}, mark(err)
	}
	info := container.Info{Settings: settings(found), Differences: recordDifferences(found), Limits: recordLimits(found)}
	if found.State != nil && found.State.Running {
		info.PID = found.State.Pid
	}
	if found.Config != nil {
		info.Env = found.Config.Env
	}
	if info.PID != 0 && c.elsewhere == "" {
		err = verify(info.PID, found.ID)
	}
	return info, err
}

// verify makes sure that the process is of the container: the daemon may count
// processes otherwise than we do.
func verify(pid int, id string) error {
	groups, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return err
	}
	if !strings.Contains(string(groups), id) {
		if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err != nil || strings.Contains(string(stat), ") Z ") {
			return fs.ErrNotExist // it has ended, and is in no group any more
		}
		return fmt.Errorf("process %d is not the container's here: the daemon is in another PID namespace, or on another machine", pid)
	}
	return nil
}

// Wait implements [container.API]. The container removes itself, so it may be
// gone already; then its record among the events has the code.
func (c *client) Wait(ctx context.Context, id string, begin time.Time) (int, error) {
	result, failed := c.docker.ContainerWait(ctx, id, containertypes.WaitConditionNotRunning)
	select {
	case r := <-result:
		if r.Error != nil {
			return 0, errors.New(container.Sanitize(r.Error.Message))
		}
		return int(r.StatusCode), nil
	case err := <-failed:
		if errdefs.IsNotFound(err) {
			return c.recordedExit(ctx, id, begin)
		}
		return 0, err
	}
}

func (c *client) recordedExit(ctx context.Context, id string, begin time.Time) (int, error) {
	died, err := c.event(ctx, id, events.ActionDie, begin)
	if err != nil {
		return 0, err
	}
	if died == nil {
		return 0, container.ErrNotFound
	}
	return strconv.Atoi(died.Actor.Attributes["exitCode"])
}

// OOMKilled implements [container.OOMWitness] by the events, which come from the
// control group's own notification; a container's State says so of others.
func (c *client) OOMKilled(ctx context.Context, id string, begin time.Time) (bool, error) {
	found, err := c.event(ctx, id, events.ActionOOM, begin)
	return found != nil, err
}

// event returns what happened to a container between begin and now, or nil.
func (c *client) event(ctx context.Context, id string, action events.Action, begin time.Time) (*events.Message, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stamp := func(t time.Time) string { return fmt.Sprintf("%d.%09d", t.Unix(), t.Nanosecond()) }
	messages, failed := c.docker.Events(ctx, events.ListOptions{
		Since: stamp(begin.Add(c.ahead - clockSlack)), Until: stamp(time.Now().Add(c.ahead + clockSlack)),
		Filters: filters.NewArgs(filters.Arg("container", id), filters.Arg("event", string(action))),
	})
	select {
	case m := <-messages:
		return &m, nil
	case err := <-failed:
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return nil, err
	}
}

// Remove implements [container.API].
func (c *client) Remove(ctx context.Context, id string) error {
	err := c.docker.ContainerRemove(ctx, id, containertypes.RemoveOptions{Force: true, RemoveVolumes: true})
	if !errdefs.IsConflict(err) {
		return mark(err)
	}
	// It is being removed already, for its program has ended.
	result, failed := c.docker.ContainerWait(ctx, id, containertypes.WaitConditionRemoved)
	select {
	case <-result:
		return nil
	case err := <-failed:
		return mark(err)
	}
}

// List implements [container.API].
func (c *client) List(ctx context.Context, label, value string) ([]container.Listed, error) {
	if value != "" {
		label += "=" + value
	}
	found, err := c.docker.ContainerList(ctx, containertypes.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("label", label))})
	if err != nil {
		return nil, err
	}
	all := make([]container.Listed, len(found))
	for i, f := range found {
		all[i] = container.Listed{ID: f.ID, Labels: f.Labels}
	}
	return all, nil
}

// ListVolumes implements [container.Volumes].
func (c *client) ListVolumes(ctx context.Context, label, value string) ([]container.Listed, error) {
	if value != "" {
		label += "=" + value
	}
	found, err := c.docker.VolumeList(ctx, volume.ListOptions{Filters: filters.NewArgs(filters.Arg("label", label))})
	if err != nil {
		return nil, err
	}
	all := make([]container.Listed, 0, len(found.Volumes))
	for _, f := range found.Volumes {
		all = append(all, container.Listed{ID: f.Name, Labels: f.Labels})
	}
	return all, nil
}

// RemoveVolume implements [container.Volumes].
func (c *client) RemoveVolume(ctx context.Context, id string) error {
	err := c.docker.VolumeRemove(ctx, id, false)
	if errdefs.IsNotFound(err) {
		return fmt.Errorf("%w: %w", container.ErrNotFound, err)
	}
	return err
}

// Attach implements [container.API].
func (c *client) Attach(ctx context.Context, id string, stdin bool) (io.ReadWriteCloser, error) {
	type attached struct {
		types.HijackedResponse
		error
	}
	answer := make(chan attached, 1)
	go func() { // for the library waits for the answer whatever becomes of a context
		stream, err := c.docker.ContainerAttach(context.WithoutCancel(ctx), id,
			containertypes.AttachOptions{Stream: true, Stdin: stdin, Stdout: true, Stderr: true})
		answer <- attached{stream, err}
	}()
	select {
	case a := <-answer:
		if a.error != nil {
			return nil, mark(a.error)
		}
		return struct {
			io.Reader
			io.WriteCloser
		}{a.Reader, a.Conn}, nil
	case <-time.After(attachTimeout):
		go func() {
			if a := <-answer; a.error == nil {
				a.Close()
			}
		}()
		return nil, errors.New("the daemon does not answer to attach")
	}
}

// mark makes errors about a container that is not there recognisable.
func mark(err error) error {
	if errdefs.IsNotFound(err) && strings.Contains(err.Error(), "No such container") {
		return fmt.Errorf("%w: %w", container.ErrNotFound, err)
	}
	return err
}
