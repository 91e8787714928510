package proxy

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/proxy/internal/upstreamtest"
)

// What is asked of a session that the proxy has just ended itself is no failure of
// the server.
func TestAnEndOfOursIsNoFailure(t *testing.T) {
	var log strings.Builder // written to by this goroutine alone, when it is looked at
	server := discovery.Server{Name: "ev", Command: upstreamtest.Command(t), Env: upstreamtest.Env(upstreamtest.Legacy)}
	p := New(Options{Servers: []discovery.Server{server}})
	t.Cleanup(func() { _ = p.Close() })
	u, err := p.upstream("ev")
	if err != nil {
		t.Fatal(err)
	}
	s, err := u.session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := u.list(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	for s.usage.isUnused() {
		s.retire()
	}
	<-s.done
	_, _, err = u.list(t.Context(), s)
	if want := `server "ev" was stopped, for nobody used it, before it was asked for its tools`; err == nil || err.Error() != want {
		t.Errorf("the error is %v, want %s", err, want)
	}
	if info := p.Servers()[0]; info.Error != "" || info.State != "idle" {
		t.Errorf("the server is %+v", info)
	}
	u.logger = slog.New(slog.NewTextHandler(&log, nil))
	u.relist(t.Context(), s)
	if log.Len() > 0 {
		t.Errorf("logged: %s", log.String())
	}
}
