package stdio

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A Process is a running server. Its methods may be called concurrently.
type Process struct {
	cmd   *exec.Cmd
	group *group
	conn  *conn
	err   *os.File // our end of its standard error
	tail  *tail

	exited chan struct{} // closed when the server itself has exited
	gone   chan struct{} // closed when, too, nobody holds its standard error

	stopOnce sync.Once
	work     sync.WaitGroup // the goroutines of this process; Stop waits
}

// Start starts a server. It returns an error wrapping [ErrCommand] or [ErrDir]
// if the definition is wrong. The caller must Stop the process, also after it
// has exited by itself.
func Start(opts Options) (*Process, error) {
	cmd, err := command(opts)
	if err != nil {
		return nil, err
	}
	pipes, err := newPipes()
	if err != nil {
		return nil, err
	}
	defer pipes.closeTheirs()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = pipes.theirs[0], pipes.theirs[1], pipes.theirs[2]

	group, err := newGroup()
	if err != nil {
		pipes.closeOurs()
		return nil, fmt.Errorf("start guard: %w", err)
	}
	cmd.SysProcAttr = group.member()
	if err := cmd.Start(); err != nil {
		group.end()
		pipes.closeOurs()
		return nil, fmt.Errorf("%w: %w", ErrCommand, err)
	}
	p := &Process{
		cmd:    cmd,
		group:  group,
		err:    pipes.ours[2],
		tail:   &tail{},
		exited: make(chan struct{}),
		gone:   make(chan struct{}),
	}
	p.conn = newConn(pipes.ours[0], pipes.ours[1], p.tail, cmp.Or(opts.Unasked, &Meter{}))
	p.work.Go(p.watch)
	return p, nil
}

// watch waits for the process and keeps what it writes to standard error.
func (p *Process) watch() {
	drained := make(chan struct{})
	p.work.Go(func() {
		defer close(drained)
		_, _ = io.Copy(p.tail, p.err)
	})
	_ = p.cmd.Wait() // how it ended is in cmd.ProcessState
	select {         // what it said last belongs to how it ended
	case <-drained:
	case <-time.After(drainGrace): // a child of its holds standard error
	}
	close(p.exited)
	<-drained
	close(p.gone)
}

// Conn returns the connection to the server. Closing it does not end the
// process; Stop does both.
func (p *Process) Conn() mcp.Connection { return p.conn }

// PID is the process id of the server itself.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Exited is closed when the server has exited. Processes it started may live
// on until Stop.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// ExitStatus describes how the server ended, such as "exit status 1". It
// returns "" while it runs.
func (p *Process) ExitStatus() string {
	select {
	case <-p.exited:
		return p.cmd.ProcessState.String()
	default:
		return ""
	}
}

// Tail returns the end of what the server wrote to standard error, and to
// standard output outside of the protocol.
func (p *Process) Tail() string { return p.tail.String() }

// Stop ends the server and every process of its group, and waits for them. It
// closes standard input first, then sends SIGTERM, then SIGKILL, with a second
// between. It is idempotent.
func (p *Process) Stop() {
	p.stopOnce.Do(func() {
		p.conn.closeInput()
		if !p.wait(closeGrace) {
			p.group.terminate(p.cmd.Process)
			p.wait(termGrace)
		}
		p.group.kill(p.cmd.Process)
		<-p.exited
		p.wait(drainGrace) // only who left the group can still hold standard error
		_ = p.err.Close()
		_ = p.conn.Close()
		p.group.end()
	})
	p.work.Wait()
}

func (p *Process) wait(limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-p.gone:
		return true
	case <-timer.C:
		return false
	}
}

// command returns the command to run, looked up in the PATH it will itself see.
func command(opts Options) (*exec.Cmd, error) {
	if opts.Dir != "" {
		if info, err := os.Stat(opts.Dir); err != nil || !info.IsDir() {
			return nil, ErrDir
		}
	}
	path, err := lookPath(opts)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCommand, err)
	}
	cmd := exec.Command(path, opts.Args...) //nolint:gosec,noctx // the user configured it; it outlives the call that starts it, and Stop ends it
	cmd.Args[0] = opts.Command
	cmd.Dir = opts.Dir
	cmd.Env = Environ(os.Environ(), opts.Env)
	return cmd, nil
}

func lookPath(opts Options) (string, error) {
	if opts.Command == "" {
		return "", errors.New("no command")
	}
	if strings.ContainsRune(opts.Command, filepath.Separator) {
		path := opts.Command
		if opts.Dir != "" && !filepath.IsAbs(path) {
			path = filepath.Join(opts.Dir, path)
		}
		found, err := exec.LookPath(path)
		if err != nil {
			return "", err
		}
		return filepath.Abs(found)
	}
	own, ok := opts.Env["PATH"]
	if !ok {
		return exec.LookPath(opts.Command)
	}
	for _, dir := range filepath.SplitList(own) {
		if !filepath.IsAbs(dir) {
			continue
		}
		if found, err := exec.LookPath(filepath.Join(dir, opts.Command)); err == nil {
			return found, nil
		}
	}
	return "", exec.ErrNotFound
}

// pipes are standard input, output and error, our ends and the server's.
type pipes struct{ ours, theirs [3]*os.File }

func newPipes() (*pipes, error) {
	p := &pipes{}
	for i := range p.ours {
		r, w, err := os.Pipe()
		if err != nil {
			p.closeOurs()
			p.closeTheirs()
			return nil, fmt.Errorf("make pipe: %w", err)
		}
		p.ours[i], p.theirs[i] = r, w
		if i == 0 {
			p.ours[i], p.theirs[i] = w, r
		}
	}
	return p, nil
}

func (p *pipes) closeOurs()   { closeAll(p.ours) }
func (p *pipes) closeTheirs() { closeAll(p.theirs) }

func closeAll(files [3]*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}
