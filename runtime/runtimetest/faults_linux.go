package runtimetest

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// testRemovedFromOutside takes the container away as somebody with the engine's
// command line might.
func testRemovedFromOutside(t *testing.T, s *suite) {
	p := s.start(t, s.spec())
	p.Eval(t, "pass")
	s.Remove(t, p.ID())
	requireEOF(t, p.Control())
	requireEOF(t, p.Callback())
	if exit, err := p.Wait(within(t, 10*time.Second)); err != nil || exit.OOMKilled || exit.Code != 137 && exit.Code != -1 {
		t.Errorf("exit is %+v, %v, want 137, or -1 if nobody knows any more", exit, err)
	}
	if err := p.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	s.start(t, s.spec()).Eval(t, "pass")
}

func testMissingPython(t *testing.T, s *suite) {
	if s.NoPython == "" {
		t.Log("the engine has no images without it")
		return
	}
	spec := s.spec()
	spec.Image = s.NoPython
	requireError(t, s.fail(t, spec), runtime.ErrNoProgram)
}

// testCancelledRequests cancels Start as it makes its first request to the
// engine's service, its second, and so on.
func testCancelledRequests(t *testing.T, s *suite) {
	if s.Through == nil {
		t.Log("the engine has no service")
		return
	}
	var service interposer
	engine := s.through(t, &service)
	spec := s.spec()
	spec.Binds = []runtime.Bind{{Source: sharedDir(t), Target: "/mnt/data"}} // for which an engine may make more
	sandbox, err := engine.Start(t.Context(), spec)                          // what is made once is made
	if err != nil {
		t.Fatal(err)
	}
	sandbox.Close()
	before := hostFiles(t, s.dir)
	const most = 30
	for n := 1; ; n++ {
		ctx, cancel := context.WithCancel(t.Context())
		cancelled := service.onRequest(n, cancel)
		sandbox, err := engine.Start(ctx, spec)
		switch {
		case err == nil:
			sandbox.Close()
		case !errors.Is(err, context.Canceled):
			t.Errorf("cancelled at request %d: %v", n, err)
		}
		service.onRequest(0, nil)
		cancel()
		s.requireNothingLeft(t, before)
		if !cancelled() {
			t.Logf("a start makes %d requests", n-1)
			if n < 3 || err != nil {
				t.Errorf("start made %d requests, %v: nothing is proved", n-1, err)
			}
			return
		}
		if n == most {
			t.Fatalf("start makes more than %d requests", most)
		}
	}
}

// testServiceGone has the engine's service end under a running sandbox, and
// begin again.
func testServiceGone(t *testing.T, s *suite) {
	if s.Through == nil {
		t.Log("the engine has no service")
		return
	}
	var service interposer
	engine := s.through(t, &service)
	sandbox, err := engine.Start(t.Context(), s.spec())
	if err != nil {
		t.Fatal(err)
	}
	p := NewPeer(sandbox)
	p.Eval(t, "pass")
	service.stop()
	if s.transport == runtime.TransportStdio {
		requireEOF(t, p.Control()) // it was the way to the program
		requireEOF(t, p.Callback())
	} else {
		p.Eval(t, "pass")
	}
	if _, err := engine.Start(t.Context(), s.spec()); !errors.Is(err, runtime.ErrUnavailable) || runtime.HintOf(err) == "" {
		t.Errorf("start without the service: %v (hint %q), want ErrUnavailable with a hint", err, runtime.HintOf(err))
	}
	if err := engine.Check(t.Context(), s.Image); !errors.Is(err, runtime.ErrUnavailable) || runtime.HintOf(err) == "" {
		t.Errorf("check without the service: %v (hint %q), want ErrUnavailable with a hint", err, runtime.HintOf(err))
	}
	service.start(t)
	other, err := engine.Start(t.Context(), s.spec())
	if err != nil {
		t.Errorf("start after the service was: %v", err)
	} else {
		NewPeer(other).Eval(t, "pass")
		if err := other.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	if err := sandbox.Close(); err != nil {
		t.Errorf("close of the one from before: %v", err)
	}
	s.requireGone(t, sandbox.ID())
}

// through opens an engine that reaches its service through the interposer.
func (s *suite) through(t *testing.T, service *interposer) runtime.Engine {
	t.Helper()
	engine := s.Through(t, s.dir, s.transport, func(socket string) string {
		service.target, service.path = socket, filepath.Join(shortTempDir(t), "api")
		service.start(t)
		return service.path
	})
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Errorf("close engine: %v", err)
		}
		service.stop()
	})
	return engine
}

// An interposer is a socket in front of an engine's.
type interposer struct {
	target, path string

	mu       sync.Mutex
	listener net.Listener
	conns    []net.Conn
	left     int // requests until act; 0 is never
	act      func()
	acted    bool
	pumps    sync.WaitGroup
}

func (i *interposer) start(t *testing.T) {
	t.Helper()
	l, err := net.Listen("unix", i.path)
	if err != nil {
		t.Fatal(err)
	}
	i.listener = l
	i.pumps.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			i.pumps.Go(func() { i.join(c) })
		}
	})
}

// stop ends it and all connections, as if the service had died.
func (i *interposer) stop() {
	if i.listener == nil {
		return
	}
	i.listener.Close()
	i.listener = nil
	i.mu.Lock()
	for _, c := range i.conns {
		c.Close()
	}
	i.conns = nil
	i.mu.Unlock()
	i.pumps.Wait()
}

func (i *interposer) join(client net.Conn) {
	service, err := net.Dial("unix", i.target)
	if err != nil {
		client.Close()
		return
	}
	i.mu.Lock()
	i.conns = append(i.conns, client, service)
	i.mu.Unlock()
	var ways sync.WaitGroup
	ways.Go(func() { pump(service, client, i.request) })
	ways.Go(func() { pump(client, service, func([]byte) {}) })
	ways.Wait()
	client.Close()
	service.Close()
}

func pump(to, from net.Conn, see func([]byte)) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		see(buf[:n])
		if _, writeErr := to.Write(buf[:n]); err != nil || writeErr != nil {
			break
		}
	}
	if c, ok := to.(interface{ CloseWrite() error }); ok {
		c.CloseWrite()
	}
}

var requestLine = regexp.MustCompile(`^[A-Z]{3,7} /\S* HTTP/1\.1\r\n`)

// request counts the beginnings of requests, which clients write at once.
func (i *interposer) request(data []byte) {
	if !requestLine.Match(data) {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.left == 0 {
		return
	}
	if i.left--; i.left == 0 {
		i.acted = true
		i.act()
	}
}

// onRequest has act called at the n-th request from now on, before it is passed
// on. What it returns tells whether that has been.
func (i *interposer) onRequest(n int, act func()) (acted func() bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if n > 0 {
		i.acted = false
	}
	i.left, i.act = n, act
	return func() bool {
		i.mu.Lock()
		defer i.mu.Unlock()
		return i.acted
	}
}
