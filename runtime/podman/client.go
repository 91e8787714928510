package podman

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/containers/podman/v5/pkg/bindings"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/internal/container"
)

// apiVersion is the dialect we speak, whatever the service's newest is.
const apiVersion = "4.0.0"

const (
	// pingTimeout bounds the first exchange with a service.
	pingTimeout = 5 * time.Second
	// hangTimeout is how long a service may take to say that it lives.
	hangTimeout = 2 * time.Second
	// remoteTimeout is pingTimeout where it takes a login or a network.
	remoteTimeout = 20 * time.Second
)

var errNoAnswer = errors.New("it does not answer")

// A client makes API calls on one service. It is safe for concurrent use.
type client struct {
	conn       *bindings.Connection
	rootless   bool                 // whether the service runs as an ordinary user
	missing    []runtime.Difference // limits that a rootless service cannot put in force
	ociRuntime string
	uri        string
	own        bool   // whether the engine has started the service
	elsewhere  string // why this kernel's /proc does not show the service's containers, or ""

	// suspect is set when a request was given up: the service may hang.
	suspect *atomic.Bool
}

// A connection is how a service is reached.
type connection struct {
	URI       string
	Identity  string // file of an ssh key, if another than the usual ones
	IsMachine bool   // whether it is a virtual machine of Podman's
	Default   bool   // whether Podman itself uses it
}

// newClient connects to a service.
func newClient(ctx context.Context, at connection) (*client, error) {
	limit := pingTimeout
	if !strings.HasPrefix(at.URI, "unix://") {
		limit = remoteTimeout
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errNoAnswer)
	defer cancel()
	var conn *bindings.Connection
	done := make(chan error, 1)
	go func() { // by ssh it does not look at ctx; then it ends with the attempt to connect
		connected, err := bindings.NewConnectionWithIdentity(ctx, at.URI, at.Identity, at.IsMachine)
		if err == nil {
			conn, err = bindings.GetClient(connected)
		}
		done <- err
	}()
	select {
	case err := <-done:
		if ctx.Err() == nil && err != nil {
			return nil, err
		}
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return &client{conn: conn, uri: at.URI, suspect: new(atomic.Bool)}, nil
}

// ping makes sure that the service still answers.
func (c *client) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, pingTimeout, errNoAnswer)
	defer cancel()
	return c.call(ctx, http.MethodGet, "/_ping", nil, nil, nil)
}

// close drops idle connections.
func (c *client) close() { c.conn.Client.CloseIdleConnections() }

// hangs reports whether a service that kept a request waiting does so still.
func (c *client) hangs(ctx context.Context) bool {
	if !c.suspect.Swap(false) {
		return false
	}
	ping, cancel := context.WithTimeout(ctx, hangTimeout)
	defer cancel()
	return c.call(ping, http.MethodGet, "/_ping", nil, nil, nil) != nil && ctx.Err() == nil
}

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
		c.suspect.Store(ctx.Err() != nil)
		return err
	}
	defer resp.Body.Close()
	err = resp.Process(out)
	if code, _ := bindings.CheckResponseCode(err); err != nil && code == http.StatusNotFound {
		return fmt.Errorf("%w: %w", container.ErrNotFound, err)
	}
	return err
}

func (c *client) imageExists(ctx context.Context, image string) (bool, error) {
	err := c.call(ctx, http.MethodGet, "/images/%s/exists", nil, nil, nil, image)
	if errors.Is(err, container.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// Host implements [container.API].
func (c *client) Host() container.Host {
	firstHostID := int64(rootfulBase)
	if c.rootless || c.elsewhere != "" {
		firstHostID = 0 // where the user's subordinate ids begin is for the system to say
	}
	return container.Host{
		Remote:   c.elsewhere != "",
		FirstUID: firstUID, LastUID: lastUID, Missing: c.missing,
		Expectation: runtime.Expectation{
			EngineEnv: []string{"HOSTNAME=" + container.Hostname, "container=*", "TERM=*"},
			Covered:   slices.Concat(maskedPaths, engineCovers),
			Settings:  true, UnknownProfile: c.rootless || c.elsewhere != "",
			FirstHostID: firstHostID,
		},
	}
}

// Create implements [container.API].
func (c *client) Create(ctx context.Context, p container.Placement) error {
	request := c.newCreateRequest(p)
	if p.Dir == nil {
		var err error
		if request.Image, err = c.seal(ctx, p.Spec.Image, p.Spec.Seccomp); err != nil {
			return err
		}
		request.SeccompPolicy = profileOfImage
	}
	return c.call(ctx, http.MethodPost, "/containers/create", nil, request, nil)
}

// Prepare implements [container.API].
func (c *client) Prepare(ctx context.Context, id string) (container.Info, error) {
	if err := c.call(ctx, http.MethodPost, "/containers/%s/init", nil, nil, nil, id); err != nil {
		return container.Info{}, err
	}
	return c.Inspect(ctx, id)
}

// Start implements [container.API].
func (c *client) Start(ctx context.Context, id string) error {
	return c.call(ctx, http.MethodPost, "/containers/%s/start", nil, nil, nil, id)
}

// Inspect implements [container.API].
func (c *client) Inspect(ctx context.Context, id string) (container.Info, error) {
	var info struct {
		State struct {
			PID int `json:"Pid"`
		} `json:"State"`
		Config struct {
			Env         []string      `json:"Env"`
			Healthcheck *healthConfig `json:"Healthcheck"`
		} `json:"Config"`
		HostConfig    hostConfig `json:"HostConfig"`
		OCIConfigPath string     `json:"OCIConfigPath"`
	}
	if err := c.call(ctx, http.MethodGet, "/containers/%s/json", nil, nil, &info, id); err != nil {
		return container.Info{}, err
	}
	settings := info.HostConfig.settings()
	settings.Healthcheck = info.Config.Healthcheck.runs()
	if c.elsewhere == "" {
		profile, err := seccompInForce(info.OCIConfigPath)
		if err != nil {
			return container.Info{}, err
		}
		settings.Seccomp = profile
	}
	return container.Info{
		PID: info.State.PID, Env: info.Config.Env, Settings: &settings, Limits: info.HostConfig.limits(c.missing),
	}, nil
}

// maxOCIConfig bounds the file that Podman gives to the OCI runtime.
const maxOCIConfig = 4 << 20

// seccompInForce returns the profile in the configuration that the OCI runtime
// was given, for an inspection says nothing of it. It is empty if there is none,
// and nil if it cannot be read: a rootless Podman gives it to a subordinate id,
// and a remote one has it elsewhere.
func seccompInForce(path string) ([]byte, error) {
	if path == "" { // the container is not made up yet
		return []byte{}, nil
	}
	f, err := os.Open(path) //nolint:gosec // the engine says where its files are
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var config struct {
		Linux struct {
			Seccomp json.RawMessage `json:"seccomp"`
		} `json:"linux"`
	}
	err = json.NewDecoder(io.LimitReader(f, maxOCIConfig)).Decode(&config)
	return append([]byte{}, config.Linux.Seccomp...), err
}

// hostConfig is the part of a container's inspection that says how it was made.
type hostConfig struct {
	AutoRemove    bool      `json:"AutoRemove"`
	Devices       []any     `json:"Devices"`
	LogConfig     logDriver `json:"LogConfig"`
	Privileged    bool      `json:"Privileged"`
	Memory        int64     `json:"Memory"`
	MemorySwap    int64     `json:"MemorySwap"` // memory and swap together
	PidsLimit     int64     `json:"PidsLimit"`
	CPUQuota      int64     `json:"CpuQuota"`
	CPUPeriod     int64     `json:"CpuPeriod"`
	NanoCPUs      int64     `json:"NanoCpus"`
	RestartPolicy struct {
		Name string `json:"Name"`
	} `json:"RestartPolicy"`
}

type logDriver struct {
	Type string `json:"Type"`
}

func (h hostConfig) settings() runtime.Settings {
	return runtime.Settings{
		Privileged: h.Privileged, LogDriver: h.LogConfig.Type, Restart: h.RestartPolicy.Name,
		AutoRemove: h.AutoRemove, Devices: len(h.Devices),
	}
}

// limits are the recorded ones, as far as the service can put them in force.
func (h hostConfig) limits(missing []runtime.Difference) runtime.CgroupLimits {
	has := func(fact string) bool {
		return !slices.ContainsFunc(missing, func(d runtime.Difference) bool { return d.Fact == fact })
	}
	l := runtime.CgroupLimits{
		MemoryBytes: runtime.Unlimited, SwapBytes: runtime.Unlimited, PIDs: runtime.Unlimited, MilliCPUs: runtime.Unlimited,
	}
	if h.Memory > 0 && has("memory limit") {
		l.MemoryBytes = h.Memory
		if h.MemorySwap > 0 {
			l.SwapBytes = max(0, h.MemorySwap-h.Memory)
		}
	}
	if h.PidsLimit > 0 && has("process limit") {
		l.PIDs = h.PidsLimit
	}
	if h.NanoCPUs > 0 && has("cpu limit") {
		l.MilliCPUs = h.NanoCPUs / 1_000_000
	} else if h.CPUQuota > 0 && h.CPUPeriod > 0 && has("cpu limit") {
		l.MilliCPUs = h.CPUQuota * 1000 / h.CPUPeriod
	}
	return l
}

// runs reports whether there is anything to run.
func (h *healthConfig) runs() bool {
	return h != nil && len(h.Test) > 0 && h.Test[0] != "NONE"
}

// Wait implements [container.API]. The container removes itself, so it may be
// gone already; then its record among the events has the code.
func (c *client) Wait(ctx context.Context, id string, begin time.Time) (int, error) {
	var code int
	query := url.Values{"condition": {"exited"}, "interval": {"10ms"}} // how often the service looks
	if c.elsewhere != "" {
		query.Set("interval", "250ms") // for as long as the program runs, and not just at its end
	}
	err := c.call(ctx, http.MethodPost, "/containers/%s/wait", query, nil, &code, id)
	if errors.Is(err, container.ErrNotFound) {
		return c.recordedExit(ctx, id, begin)
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

// Remove implements [container.API].
func (c *client) Remove(ctx context.Context, id string) error {
	query := url.Values{"force": {"true"}, "timeout": {"0"}, "v": {"true"}}
	return c.call(ctx, http.MethodDelete, "/containers/%s", query, nil, nil, id)
}

// List implements [container.API].
func (c *client) List(ctx context.Context, label, value string) ([]container.Listed, error) {
	if value != "" {
		label += "=" + value
	}
	filters, err := json.Marshal(map[string][]string{"label": {label}})
	if err != nil {
		return nil, err
	}
	var all []container.Listed
	query := url.Values{"all": {"true"}, "filters": {string(filters)}}
	return all, c.call(ctx, http.MethodGet, "/containers/json", query, nil, &all)
}

// Attach implements [container.API].
func (c *client) Attach(ctx context.Context, id string, stdin bool) (io.ReadWriteCloser, error) {
	header := http.Header{"Api-Version": {apiVersion}, "Connection": {"Upgrade"}, "Upgrade": {"tcp"}}
	query := url.Values{"stream": {"true"}, "stdout": {"true"}, "stderr": {"true"}, "stdin": {strconv.FormatBool(stdin)}}
	resp, err := c.conn.DoRequest(context.WithoutCancel(ctx), nil, http.MethodPost, "/containers/%s/attach", query, header, id)
	if err != nil {
		return nil, err
	}
	if stream, ok := resp.Body.(io.ReadWriteCloser); ok && resp.StatusCode == http.StatusSwitchingProtocols {
		return stream, nil
	}
	defer resp.Body.Close()
	if err := resp.Process(nil); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("attach is answered with status %d, want %d", resp.StatusCode, http.StatusSwitchingProtocols)
}
