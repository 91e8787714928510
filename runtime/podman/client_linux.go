package podman

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/containers/podman/v5/pkg/bindings"
	"golang.org/x/sys/unix"
)

// apiVersion is the dialect we speak, whatever the service's newest is.
const apiVersion = "4.0.0"

// pingTimeout bounds the first exchange with a service.
const pingTimeout = 5 * time.Second

// errNotFound is what the service says of a container that is not there.
var errNotFound = errors.New("no such object")

// A client makes API calls on one service. It is safe for concurrent use.
type client struct {
	conn     *bindings.Connection
	rootless bool // whether the service runs as an ordinary user
}

// probe connects to the socket once, and returns who listens. The bindings try
// three times with pauses in between, so they are not asked before this
// succeeds.
func probe(ctx context.Context, uri string) (uid int, err error) {
	path, ok := strings.CutPrefix(uri, "unix://")
	if !ok {
		return 0, errors.New("only unix:// sockets are supported: the engine must be on this machine")
	}
	c, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	raw, err := c.(*net.UnixConn).SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	var sockErr error
	if err := raw.Control(func(fd uintptr) {
		cred, sockErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return 0, err
	}
	if sockErr != nil {
		return 0, sockErr
	}
	return int(cred.Uid), nil
}

// newClient connects to a service that answers to probe.
func newClient(ctx context.Context, uri string, serviceUID int) (*client, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, pingTimeout, errors.New("it does not answer"))
	defer cancel()
	connected, err := bindings.NewConnection(ctx, uri)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, err
	}
	conn, err := bindings.GetClient(connected)
	if err != nil {
		return nil, err
	}
	return &client{conn: conn, rootless: serviceUID != 0}, nil
}

// close drops idle connections.
func (c *client) close() { c.conn.Client.CloseIdleConnections() }

// call makes one request, with in as JSON and the answer in out, either nil for none.
func (c *client) call(ctx context.Context, method, endpoint string, query url.Values, in, out any, names ...string) error {
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(data)
	}
	header := http.Header{"Api-Version": {apiVersion}, "Content-Type": {"application/json"}}
	resp, err := c.conn.DoRequest(ctx, body, method, endpoint, query, header, names...)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	err = resp.Process(out)
	if code, _ := bindings.CheckResponseCode(err); err != nil && code == http.StatusNotFound {
		return fmt.Errorf("%w: %w", errNotFound, err)
	}
	return err
}

func (c *client) imageExists(ctx context.Context, image string) (bool, error) {
	err := c.call(ctx, http.MethodGet, "/images/%s/exists", nil, nil, nil, image)
	if errors.Is(err, errNotFound) {
		return false, nil
	}
	return err == nil, err
}

// hostInfo is the part of GET /info that we look at.
type hostInfo struct {
	Host struct {
		CgroupVersion string `json:"cgroupVersion"`
		OCIRuntime    struct {
			Name string `json:"name"`
		} `json:"ociRuntime"`
		Security struct {
			Rootless       bool `json:"rootless"`
			SeccompEnabled bool `json:"seccompEnabled"`
		} `json:"security"`
	} `json:"host"`
}

func (c *client) info(ctx context.Context) (hostInfo, error) {
	var info hostInfo
	return info, c.call(ctx, http.MethodGet, "/info", nil, nil, &info)
}

func (c *client) create(ctx context.Context, r createRequest) error {
	return c.call(ctx, http.MethodPost, "/containers/create", nil, r, nil)
}

// initialize makes everything of the container but does not run its program.
func (c *client) initialize(ctx context.Context, id string) error {
	return c.call(ctx, http.MethodPost, "/containers/%s/init", nil, nil, nil, id)
}

func (c *client) start(ctx context.Context, id string) error {
	return c.call(ctx, http.MethodPost, "/containers/%s/start", nil, nil, nil, id)
}

// containerInfo is the part of a container's inspection that we look at.
type containerInfo struct {
	State struct {
		PID int `json:"Pid"`
	} `json:"State"`
	Config struct {
		Env []string `json:"Env"`
	} `json:"Config"`
}

func (c *client) inspect(ctx context.Context, id string) (containerInfo, error) {
	var info containerInfo
	return info, c.call(ctx, http.MethodGet, "/containers/%s/json", nil, nil, &info, id)
}

// wait returns the exit code of a container whose program has ended since the
// given time. The container removes itself, so it may be gone already; then its
// record among the events has the code.
func (c *client) wait(ctx context.Context, id string, since time.Time) (int, error) {
	var code int
	query := url.Values{"condition": {"exited"}, "interval": {"10ms"}}
	err := c.call(ctx, http.MethodPost, "/containers/%s/wait", query, nil, &code, id)
	if errors.Is(err, errNotFound) {
		return c.recordedExit(ctx, id, since)
	}
	return code, err
}

func (c *client) recordedExit(ctx context.Context, id string, since time.Time) (int, error) {
	filters, err := json.Marshal(map[string][]string{"container": {id}, "event": {"died"}})
	if err != nil {
		return 0, err
	}
	var event struct {
		Actor struct {
			Attributes struct {
				ExitCode string `json:"containerExitCode"`
			}
		}
	}
	query := url.Values{"stream": {"false"}, "filters": {string(filters)}, "since": {strconv.FormatInt(since.Unix(), 10)}}
	if err := c.call(ctx, http.MethodGet, "/events", query, nil, &event); err != nil {
		return 0, err
	}
	return strconv.Atoi(event.Actor.Attributes.ExitCode)
}

// remove kills and removes the container. A container that does not exist is
// reported as errNotFound.
func (c *client) remove(ctx context.Context, id string) error {
	query := url.Values{"force": {"true"}, "timeout": {"0"}, "v": {"true"}}
	return c.call(ctx, http.MethodDelete, "/containers/%s", query, nil, nil, id)
}

// container is one entry of a listing.
type container struct {
	ID     string            `json:"Id"`
	Labels map[string]string `json:"Labels"`
}

// list returns the containers, running or not, with the label.
func (c *client) list(ctx context.Context, label string) ([]container, error) {
	filters, err := json.Marshal(map[string][]string{"label": {label}})
	if err != nil {
		return nil, err
	}
	var all []container
	query := url.Values{"all": {"true"}, "filters": {string(filters)}}
	return all, c.call(ctx, http.MethodGet, "/containers/json", query, nil, &all)
}

// attach returns the program's stdout and stderr, in the engine's framing. The
// caller must close it, whatever becomes of ctx.
func (c *client) attach(ctx context.Context, id string) (io.ReadCloser, error) {
	header := http.Header{"Api-Version": {apiVersion}, "Connection": {"Upgrade"}, "Upgrade": {"tcp"}}
	query := url.Values{"stream": {"true"}, "stdout": {"true"}, "stderr": {"true"}, "stdin": {"false"}}
	resp, err := c.conn.DoRequest(context.WithoutCancel(ctx), nil, http.MethodPost, "/containers/%s/attach", query, header, id)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusSwitchingProtocols || resp.StatusCode == http.StatusOK {
		return resp.Body, nil
	}
	defer resp.Body.Close()
	return nil, resp.Process(nil)
}
