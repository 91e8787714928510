package bridge

import (
	"context"
	"net"
	"testing"
)

// Connections that were not let in are bounded: the oldest goes. Those that were
// have their places until they are closed.
func TestLimited(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	l := newLimited(listener, 2)
	accept := func() *limitedConn {
		t.Helper()
		client, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { client.Close() })
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c.(*limitedConn)
	}
	isClosed := func(c *limitedConn) bool {
		select {
		case <-c.closed:
			return true
		default:
			return false
		}
	}
	of := func(c *limitedConn) context.Context { return withConn(t.Context(), c) }
	in := accept()
	for range 2 { // requests
		if !enter(of(in)) {
			t.Fatal("the first is not let in")
		}
	}
	a, b, c := accept(), accept(), accept()
	if isClosed(in) || !isClosed(a) || isClosed(b) || isClosed(c) {
		t.Errorf("closed: %v, %v, %v, %v; want the oldest that was not let in", isClosed(in), isClosed(a), isClosed(b), isClosed(c))
	}
	if enter(of(a)) {
		t.Error("a closed one is let in")
	}
	if !enter(of(b)) {
		t.Error("the second is not let in")
	}
	waited := make(chan bool)
	go func() { waited <- enter(of(c)) }()
	accept()
	in.Close()
	in.Close() // leaves once
	if !<-waited {
		t.Error("it is not let in when there is room")
	}
	c.Close()
	b.Close()
	if len(l.places) != 0 || len(l.waiting) != 1 {
		t.Errorf("%d places are taken, %d wait", len(l.places), len(l.waiting))
	}
}
