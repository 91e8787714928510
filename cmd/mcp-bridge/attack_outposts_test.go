package main_test

import (
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// outposts are listeners on the host that no sandbox must reach.
type outposts struct {
	dir      string
	contexts map[string]any
	dials    map[string]func() (net.Conn, error)

	mu   sync.Mutex
	seen map[string]int
}

const outpostBanner = "outpost of the attack table"

// openOutposts listens on the loopback addresses, in the abstract namespace and in
// a directory, and shows that one can get there from the host.
func openOutposts(t *testing.T) *outposts {
	t.Helper()
	dir := t.TempDir()
	o := &outposts{dir: dir, contexts: map[string]any{"banner": outpostBanner}, dials: map[string]func() (net.Conn, error){}, seen: map[string]int{}}
	unique := fmt.Sprintf("mcp-bridge-attack-%d-%d", os.Getpid(), time.Now().UnixNano())
	o.stream(t, "tcp", "tcp4", "127.0.0.1:0")
	o.stream(t, "tcp6", "tcp6", "[::1]:0")
	o.stream(t, "abstract", "unix", "@"+unique)
	o.stream(t, "path_socket", "unix", filepath.Join(dir, "s"))
	o.datagrams(t, "udp", "udp4", "127.0.0.1:0")
	o.datagrams(t, "abstract_datagram", "unixgram", "@"+unique+"-datagram")
	o.answers(t)
	return o
}

// stream greets whoever connects.
func (o *outposts) stream(t *testing.T, what, network, address string) {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatalf("the control cannot listen: %v", err)
	}
	t.Cleanup(func() { l.Close() })
	o.place(what, l.Addr())
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			o.note(what)
			_, _ = conn.Write([]byte(outpostBanner))
			conn.Close()
		}
	}()
}

// datagrams answers whatever is sent.
func (o *outposts) datagrams(t *testing.T, what, network, address string) {
	t.Helper()
	l, err := listenPacket(network, address)
	if err != nil {
		t.Fatalf("the control cannot listen: %v", err)
	}
	t.Cleanup(func() { l.Close() })
	o.place(what, l.LocalAddr())
	go func() {
		buffer := make([]byte, 1024)
		for {
			_, from, err := l.ReadFrom(buffer)
			if err != nil {
				return
			}
			o.note(what)
			if from != nil && from.String() != "" {
				_, _ = l.WriteTo([]byte(outpostBanner), from)
			}
		}
	}()
}

func listenPacket(network, address string) (net.PacketConn, error) {
	if network == "unixgram" {
		return net.ListenUnixgram(network, &net.UnixAddr{Name: address, Net: network})
	}
	return net.ListenPacket(network, address)
}

func (o *outposts) place(what string, at net.Addr) {
	o.dials[what] = func() (net.Conn, error) { return net.DialTimeout(at.Network(), at.String(), time.Second) }
	switch at := at.(type) {
	case *net.TCPAddr:
		o.contexts[what] = at.Port
	case *net.UDPAddr:
		o.contexts[what] = at.Port
	case *net.UnixAddr:
		o.contexts[what] = at.Name
		if at.Name[0] == '@' {
			o.contexts[what] = at.Name[1:]
		}
	}
}

func (o *outposts) note(what string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seen[what]++
}

// context tells an attacker where the outposts are.
func (o *outposts) context() map[string]any {
	return maps.Clone(o.contexts)
}

// visits counts those since the last call of answers.
func (o *outposts) visits() map[string]int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.seen
}

// answers visits every outpost from the host, and forgets these visits.
func (o *outposts) answers(t *testing.T) {
	t.Helper()
	before := 0
	for _, n := range o.visits() {
		before += n
	}
	for what, dial := range o.dials {
		conn, err := dial()
		if err != nil {
			t.Fatalf("the host itself cannot reach its %s: %v", what, err)
		}
		_, _ = conn.Write([]byte("hello")) // a stream may be closed already; who listens counts
		conn.Close()
	}
	eventually(t, patience, "the host's own visits arrive", func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		n := 0
		for _, each := range o.seen {
			n += each
		}
		return n >= before+len(o.dials)
	})
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seen = map[string]int{}
}
