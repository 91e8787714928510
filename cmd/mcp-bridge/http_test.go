package main_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	withSession = "2025-11-25" // the latest protocol that has sessions of its own
	sessionless = "2026-07-28"
	httpToken   = "a-token-for-tests-only"
)

// A server is a bridge that listens.
type server struct {
	url    string
	token  string
	cmd    *exec.Cmd
	stderr *buffer
	ended  chan error
}

// listen starts `mcp-bridge run --http` and ends it with the test.
func listen(t *testing.T, s setup) *server {
	t.Helper()
	cmd := s.command(t, "run", "--http", "127.0.0.1:0")
	l := &server{cmd: cmd, stderr: &buffer{}, token: httpToken, ended: make(chan error, 1)}
	cmd.Stderr = l.stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	bridges.add(cmd.Process.Pid)
	go func() { l.ended <- cmd.Wait() }()
	t.Cleanup(func() {
		l.stop(t)
		if t.Failed() {
			t.Logf("stderr of the bridge:\n%s", l.stderr)
		}
	})
	at := regexp.MustCompile(`serving MCP at (http://\S+)\n`)
	eventually(t, patience, "the bridge listens", func() bool {
		if m := at.FindStringSubmatch(l.stderr.String()); m != nil {
			l.url = m[1]
		}
		return l.url != ""
	})
	return l
}

func withToken(s setup) setup {
	s.env = append(s.env, "MCP_BRIDGE_HTTP_TOKEN="+httpToken)
	return s
}

// stop ends the bridge as a service manager does.
func (l *server) stop(t *testing.T) {
	t.Helper()
	_ = l.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-l.ended:
		if err != nil {
			t.Errorf("the bridge ended with %v", err)
		}
		l.ended <- err
	case <-time.After(patience):
		t.Error("the bridge did not end")
		_ = l.cmd.Process.Kill()
	}
}

// A bearer adds the token to requests.
type bearer struct {
	token string
	base  http.RoundTripper
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.base.RoundTrip(r)
}

// connect returns a client of a protocol version, which has connections of its own.
func (l *server) connect(t *testing.T, version string) *client {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	session, err := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, nil).Connect(t.Context(), &mcp.StreamableClientTransport{
		Endpoint: l.url, HTTPClient: &http.Client{Transport: bearer{l.token, transport}},
	}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	if got := session.InitializeResult().ProtocolVersion; got != version {
		t.Fatalf("the protocol is %s, want %s", got, version)
	}
	return &client{ClientSession: session, cmd: l.cmd, stderr: l.stderr}
}

// A raw request is sent as it stands; what is empty has a good default.
type raw struct {
	method, path, host, origin, site, auth, body string

	header map[string]string
}

func (l *server) send(ctx context.Context, t *testing.T, r raw) *http.Response {
	t.Helper()
	if r.method == "" {
		r.method = http.MethodPost
	}
	if r.auth == "" {
		r.auth = "Bearer " + l.token
	}
	req, err := http.NewRequestWithContext(ctx, r.method, strings.TrimSuffix(l.url, "/mcp")+r.path, strings.NewReader(r.body))
	if err != nil {
		t.Fatal(err)
	}
	if r.path == "" {
		req.URL.Path = "/mcp"
	}
	req.Host = r.host
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for name, value := range map[string]string{"Origin": r.origin, "Sec-Fetch-Site": r.site, "Authorization": r.auth} {
		if value != "" && value != "none at all" {
			req.Header.Set(name, value)
		}
	}
	for name, value := range r.header {
		req.Header.Set(name, value)
	}
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	return response
}

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`

// TestHTTPGuard sends what web pages and strangers can send: nothing of it
// reaches MCP.
func TestHTTPGuard(t *testing.T) {
	t.Parallel()
	l := listen(t, withToken(setup{args: []string{"--warm=0", "--http-host=bridge.example"}}))
	_, port, _ := net.SplitHostPort(strings.TrimSuffix(strings.TrimPrefix(l.url, "http://"), "/mcp"))
	for _, test := range []struct {
		name string
		raw  raw
		want int
	}{
		{"a client", raw{}, 200},
		{"localhost", raw{host: "localhost:" + port}, 200},
		{"IPv6", raw{host: "[::1]:" + port}, 200},
		{"no port", raw{host: "127.0.0.1"}, 200},
		{"a configured name", raw{host: "bridge.example"}, 200},
		{"its own page", raw{host: "127.0.0.1:" + port, origin: "http://127.0.0.1:" + port, site: "same-origin"}, 200},
		{"typed into a browser", raw{site: "none"}, 200},
		{"a small bearer", raw{auth: "bearer " + httpToken}, 200},

		{"a name that means this machine", raw{host: "evil.example:" + port}, 403},
		{"an address in a name", raw{host: "127.0.0.1.evil.example"}, 403},
		{"a trailing dot", raw{host: "localhost."}, 403},
		{"a number for an address", raw{host: "2130706433"}, 403},
		{"another address", raw{host: "192.0.2.1"}, 403},
		{"a part of a configured name", raw{host: "example"}, 403},
		{"a page elsewhere", raw{origin: "https://evil.example"}, 403},
		{"a page of this machine", raw{origin: "http://localhost:3000"}, 403},
		{"a page of this port by another name", raw{host: "127.0.0.1:" + port, origin: "http://localhost:" + port}, 403},
		{"a file", raw{origin: "file://"}, 403},
		{"a sandboxed page", raw{origin: "null"}, 403},
		{"across sites", raw{site: "cross-site"}, 403},
		{"of the same site", raw{site: "same-site"}, 403},
		{"a preflight", raw{method: "OPTIONS", origin: "https://evil.example", auth: "none at all"}, 403},
		{"a preflight without origin", raw{method: "OPTIONS", auth: "none at all"}, 405},

		{"no token", raw{auth: "none at all"}, 401},
		{"a wrong token", raw{auth: "Bearer " + httpToken + "x"}, 401},
		{"a part of the token", raw{auth: "Bearer " + httpToken[:20]}, 401},
		{"an empty token", raw{auth: "Bearer "}, 401},
		{"another scheme", raw{auth: "Basic " + httpToken}, 401},
		{"a token in the query", raw{path: "/mcp?token=" + httpToken + "&access_token=" + httpToken, auth: "none at all"}, 401},
		{"a token in a cookie", raw{auth: "none at all", header: map[string]string{"Cookie": "token=" + httpToken}}, 401},
		{"no token to read", raw{method: "GET", auth: "none at all"}, 401},
		{"no token to delete", raw{method: "DELETE", auth: "none at all", header: map[string]string{"Mcp-Session-Id": "x"}}, 401},

		{"another path", raw{path: "/"}, 404},
		{"a path below", raw{path: "/mcp/x"}, 404},
		{"OAuth metadata", raw{method: "GET", path: "/.well-known/oauth-protected-resource", auth: "none at all"}, 404},
		{"another method", raw{method: "PUT"}, 405},
		{"a form", raw{header: map[string]string{"Content-Type": "text/plain"}}, 415},
		{"no session of that id", raw{header: map[string]string{"Mcp-Session-Id": "AAAAAAAAAAAAAAAAAAAAAAAAAA"}}, 404},
		{"nothing to read", raw{method: "GET"}, 400},
		{"a batch", raw{body: " [" + initialize + "]"}, 400},
		{"no JSON", raw{body: "{"}, 400},
		{"too much", raw{body: strings.Repeat(" ", 17<<20)}, 413},
		{"a large header", raw{header: map[string]string{"X-Large": strings.Repeat("x", 100<<10)}}, 431},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := test.raw
			if r.body == "" {
				r.body = initialize
			}
			response := l.send(t.Context(), t, r)
			defer response.Body.Close()
			text, _ := io.ReadAll(response.Body)
			if response.StatusCode != test.want {
				t.Errorf("status %d, want %d: %.300s", response.StatusCode, test.want, text)
			}
			if reached := strings.Contains(string(text), "serverInfo"); reached != (test.want == 200) {
				t.Errorf("reached MCP: %v", reached)
			}
			for name := range response.Header {
				if strings.HasPrefix(name, "Access-Control-") {
					t.Errorf("the answer has a header %s", name)
				}
			}
			lacks(t, string(text), httpToken)
		})
	}
	lacks(t, l.stderr.String(), httpToken)
}

// TestHTTPClientsAreSeparate has two clients with sessions of the protocol: no
// name that one gives reaches what is the other's.
func TestHTTPClientsAreSeparate(t *testing.T) {
	t.Parallel()
	l := listen(t, withToken(setup{args: []string{"--warm=0"}}))
	a, b := l.connect(t, withSession), l.connect(t, withSession)
	a.run(t, "secret = 'of a'")
	a.runIn(t, "work", "secret = 'of a, at work'")
	b.wants(t, "'secret' in globals()", "False")
	a.wants(t, "secret", "'of a'")
	for _, name := range []string{"work", a.ID(), a.ID() + "/", a.ID() + "/work", "sessionless", "/", ".."} {
		r := b.call(t, arguments{"session": name, "code": "'secret' in globals()"})
		if !r.isError && r.text != "False" {
			t.Errorf("session %q: %s", name, r.text)
		}
	}
	r := l.connect(t, sessionless).call(t, arguments{"session": "work", "code": "secret"})
	contains(t, r.text, "no session \"work\"")
	before := len(containersOf(t, l.cmd.Process.Pid))
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, patience, "the client's sandboxes are gone with it", func() bool {
		return len(containersOf(t, l.cmd.Process.Pid)) == before-2
	})
	b.wants(t, "1", "1")
}

// TestHTTPSessionless names the session in the answer, and takes only such names.
func TestHTTPSessionless(t *testing.T) {
	t.Parallel()
	l := listen(t, withToken(setup{args: []string{"--yield=2"}}))
	c := l.connect(t, sessionless)
	if c.ID() != "" {
		t.Fatalf("there is a session %q", c.ID())
	}
	named := regexp.MustCompile(`(?s)^6\n\[session "([a-z0-9]{26})": pass it as .session. to go on with these variables\]$`)
	first := named.FindStringSubmatch(c.run(t, "x = 6; x"))
	second := named.FindStringSubmatch(c.run(t, "x = 6; x"))
	if first == nil || second == nil || first[1] == second[1] {
		t.Fatalf("the sessions are %q and %q", first, second)
	}
	if got := c.runIn(t, first[1], "x += 1; x"); got != "7" { // and no name again
		t.Errorf("the session has %q", got)
	}
	if got := l.connect(t, sessionless).runIn(t, second[1], "x"); got != "6" {
		t.Errorf("the other session has %q", got)
	}
	result, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "run_python", Arguments: arguments{"code": "x", "session": first[1]}})
	if err != nil || result.Meta["io.mcp-bridge/session"] != first[1] {
		t.Errorf("the result's _meta is %v, %v", result.Meta, err)
	}
	for args, told := range map[string]string{
		`{"code": "1", "session": "mine"}`:                 "no session \"mine\"",
		`{"code": "1", "session": "` + first[1][1:] + `"}`: "no session",
		`{"code": ""}`:                    "needs the `session`",
		`{"code": "session.interrupt()"}`: "needs the `session`",
		`{"code": "1", "sesion": "a"}`:    "did you mean \"session\"?",
	} {
		r := c.send(t, json.RawMessage(args))
		if !r.isError {
			t.Errorf("%s: %s", args, r.text)
		}
		contains(t, r.text, told)
	}
	// What is kept for all sessions does not give the name away.
	c.runIn(t, first[1], "memory['from'] = 'the first'")
	r := c.call(t, arguments{"session": second[1], "code": "memory.info('from')"})
	contains(t, r.text, first[1][:6])
	lacks(t, r.text, first[1])
	// What outlasts its call is waited for, and stopped, by name.
	r = c.call(t, arguments{"code": "import time\nprint('begun')\nwhile True: time.sleep(0.1)", "session": first[1], "timeout": 60})
	contains(t, r.text, "begun", "still running")
	contains(t, c.call(t, arguments{"code": "", "session": first[1]}).text, "still running", "with this `session` and empty `code`")
	contains(t, c.call(t, arguments{"code": "session.interrupt()", "session": first[1]}).text, "Interrupted by")
	lacks(t, l.stderr.String(), first[1], second[1])
}

// TestHTTPDisconnect loses the connection in the middle of a cell. With a session
// of the protocol the cell goes on and the client may come back for the answer;
// without one that is how a call is cancelled.
func TestHTTPDisconnect(t *testing.T) {
	t.Parallel()
	upstream := special(t)
	upstream.env = append(upstream.env, "MCP_BRIDGE_HTTP_TOKEN="+httpToken)
	l := listen(t, upstream)
	watch := l.connect(t, withSession)
	running := func() string { return watch.run(t, "tools.special.stats().running") }
	watch.run(t, "tools.special.stats()")

	response := l.send(t.Context(), t, raw{body: initialize})
	id := response.Header.Get("Mcp-Session-Id")
	_, _ = io.Copy(io.Discard, response.Body) // the session's name comes before the answer
	response.Body.Close()
	header := map[string]string{"Mcp-Session-Id": id, "Mcp-Protocol-Version": withSession}
	l.send(t.Context(), t, raw{header: header, body: `{"jsonrpc":"2.0","method":"notifications/initialized"}`}).Body.Close()
	const call = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"run_python","arguments":{"code":"tools.special.sleep(ms=15_000)\n'to the end'"}}}`
	ctx, drop := context.WithCancel(t.Context())
	response = l.send(ctx, t, raw{header: header, body: call})
	lines := bufio.NewScanner(response.Body)
	event := ""
	for lines.Scan() && event == "" {
		event, _ = strings.CutPrefix(lines.Text(), "id: ")
		if !strings.HasPrefix(lines.Text(), "id: ") {
			event = ""
		}
	}
	eventually(t, patience, "the cell runs", func() bool { return running() == "1" })
	drop()
	response.Body.Close()
	header["Last-Event-ID"] = event
	var text []byte
	eventually(t, patience, "the answer is there for who comes back", func() bool {
		response := l.send(t.Context(), t, raw{method: "GET", header: header})
		defer response.Body.Close()
		text, _ = io.ReadAll(response.Body)
		return strings.Contains(string(text), "to the end")
	})
	contains(t, watch.run(t, "tools.special.stats().cancelled"), "0")

	c := l.connect(t, sessionless)
	ctx, drop = context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := c.try(ctx, arguments{"code": "tools.special.sleep(ms=100_000)", "timeout": 100})
		ended <- err
	}()
	eventually(t, patience, "the cell runs", func() bool { return running() == "1" })
	drop()
	<-ended
	eventually(t, patience, "the call has been cancelled", func() bool { return running() == "0" })
	eventually(t, patience, "upstream has heard of it", func() bool { return watch.run(t, "tools.special.stats().cancelled") == "1" })
}

// TestHTTPStops ends it in the middle of a cell, as a service manager does.
func TestHTTPStops(t *testing.T) {
	t.Parallel()
	l := listen(t, withToken(setup{}))
	c := l.connect(t, withSession)
	c.run(t, "kept = 1")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = c.try(t.Context(), arguments{"code": "while True: pass", "timeout": 100})
	}()
	time.Sleep(200 * time.Millisecond) // it does not matter how far the cell is
	l.stop(t)
	select {
	case <-ended:
	case <-time.After(patience):
		t.Error("the call was not ended")
	}
	if left := containersOf(t, l.cmd.Process.Pid); len(left) > 0 {
		t.Errorf("containers are left: %v", left)
	}
}

// TestHTTPSettings refuses what would open the door too far.
func TestHTTPSettings(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args []string
		env  []string
		code int
		told []string
	}{
		{[]string{"--http", "0.0.0.0:0"}, nil, 2, []string{"--http 0.0.0.0:0 can be reached from other machines", "--http-allow-remote"}},
		{[]string{"--http", ":0"}, nil, 2, []string{"other machines"}},
		{[]string{"--http", "[::]:0"}, nil, 2, []string{"other machines"}},
		{[]string{"--http", "192.0.2.1:80"}, nil, 2, []string{"other machines"}},
		{[]string{"--http", "example.com:80"}, nil, 2, []string{"other machines"}},
		{[]string{"--http", "0.0.0.0:0", "--http-allow-remote", "--http-no-auth"}, nil, 2, []string{"--http-no-auth", "only this machine"}},
		{[]string{"--http", "somewhere"}, nil, 2, []string{"--http", "is not an address such as 127.0.0.1:8080"}},
		{[]string{"--http", "127.0.0.1:http"}, nil, 2, []string{"is not an address"}},
		{[]string{"--http", "127.0.0.1:70000"}, nil, 2, []string{"is not an address"}},
		{[]string{"--http", "0"}, []string{"MCP_BRIDGE_HTTP_TOKEN=short"}, 4, []string{"has 5 characters", "openssl rand"}},
		{[]string{"--http", "0", "--http-no-auth"}, []string{"MCP_BRIDGE_HTTP_TOKEN=" + httpToken}, 2, []string{"both a token"}},
		{nil, []string{"MCP_BRIDGE_HTTP=0.0.0.0:0"}, 4, []string{"MCP_BRIDGE_HTTP 0.0.0.0:0", "other machines"}},
	} {
		s := setup{args: test.args, env: test.env}
		cmd := s.command(t, "run")
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
		out, _ := cmd.CombinedOutput()
		stop()
		cancel()
		if code := cmd.ProcessState.ExitCode(); code != test.code {
			t.Errorf("run %q: exit %d, want %d", test.args, code, test.code)
		}
		contains(t, string(out), test.told...)
		lacks(t, string(out), httpToken)
	}
}

// TestHTTPTokens makes a token where there is none, and asks for none only if it
// is told so.
func TestHTTPTokens(t *testing.T) {
	t.Parallel()
	made := listen(t, setup{args: []string{"--warm=0"}})
	m := regexp.MustCompile(`Authorization: Bearer (\S+)\n`).FindStringSubmatch(made.stderr.String())
	if m == nil || len(m[1]) < 26 {
		t.Fatalf("no token is told: %s", made.stderr)
	}
	made.token = "another"
	for want, token := range map[int]string{401: "another", 200: m[1]} {
		made.token = token
		response := made.send(t.Context(), t, raw{body: initialize})
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("token %q: status %d", token, response.StatusCode)
		}
	}
	open := listen(t, setup{args: []string{"--warm=0", "--http-no-auth"}})
	contains(t, open.stderr.String(), "warning: --http-no-auth")
	for _, r := range []struct {
		raw  raw
		want int
	}{{raw{auth: "none at all"}, 200}, {raw{auth: "none at all", origin: "http://evil.example"}, 403}, {raw{auth: "none at all", host: "evil.example"}, 403}} {
		r.raw.body = initialize
		response := open.send(t.Context(), t, r.raw)
		response.Body.Close()
		if response.StatusCode != r.want {
			t.Errorf("%+v: status %d", r.raw, response.StatusCode)
		}
	}
}

// TestHTTPProgress keeps a client from giving up, on the connection of its call.
func TestHTTPProgress(t *testing.T) {
	t.Parallel()
	l := listen(t, withToken(setup{}))
	for _, version := range []string{withSession, sessionless} {
		body := `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":"p"%s},"name":"run_python","arguments":{"code":"import time\nfor i in range(3): print('step', i); time.sleep(1.5)"}}}`
		header := map[string]string{"Mcp-Protocol-Version": version}
		if version == withSession {
			response := l.send(t.Context(), t, raw{body: initialize})
			header["Mcp-Session-Id"] = response.Header.Get("Mcp-Session-Id")
			response.Body.Close()
			l.send(t.Context(), t, raw{header: header, body: `{"jsonrpc":"2.0","method":"notifications/initialized"}`}).Body.Close()
			body = fmt.Sprintf(body, "")
		} else {
			header["Mcp-Method"], header["Mcp-Name"] = "tools/call", "run_python"
			body = fmt.Sprintf(body, `,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"raw","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}`)
		}
		response := l.send(t.Context(), t, raw{header: header, body: body})
		text, _ := io.ReadAll(response.Body)
		response.Body.Close()
		contains(t, string(text), "notifications/progress", `"progressToken":"p"`, "step", `"content"`)
	}
}

// TestHTTPClientsAtOnce has clients of both kinds at work at the same time: each
// finds what it has left, and nothing else.
func TestHTTPClientsAtOnce(t *testing.T) {
	t.Parallel()
	l := listen(t, withToken(setup{args: []string{"--warm=0", "--max-sandboxes=6"}}))
	var wg sync.WaitGroup
	for i := range 6 {
		version := []string{withSession, sessionless}[i%2]
		c := l.connect(t, version)
		wg.Go(func() {
			args := arguments{"code": fmt.Sprintf("canary = ['canary-%d']", i)}
			for n := range 8 {
				r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "run_python", Arguments: args})
				if err != nil {
					t.Errorf("client %d: %v", i, err)
					return
				}
				want := fmt.Sprintf("canary-%d %d", i, n)
				if got := replyOf(r); n > 0 && (got.isError || got.text != want) {
					t.Errorf("client %d: %q, want %q", i, got.text, want)
				}
				args = arguments{"code": "canary.append(0); print(canary[0], len(canary) - 1)"}
				if version == sessionless {
					args["session"] = r.Meta["io.mcp-bridge/session"]
				}
			}
		})
	}
	wg.Wait()
}

// TestHTTPSlowRequests sends half of a request and waits.
func TestHTTPSlowRequests(t *testing.T) {
	t.Parallel()
	l := listen(t, withToken(setup{args: []string{"--warm=0"}}))
	address := strings.TrimSuffix(strings.TrimPrefix(l.url, "http://"), "/mcp")
	for name, half := range map[string]string{
		"no header":      "",
		"half a header":  "POST /mcp HTTP/1.1\r\nHost: localhost\r\n",
		"half a body":    "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + httpToken + "\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
		"without token":  "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
		"half a chunk":   "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + httpToken + "\r\nTransfer-Encoding: chunked\r\n\r\nfff\r\n{",
		"HTTP/2 upfront": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := io.WriteString(conn, half); err != nil {
				t.Fatal(err)
			}
			if err := conn.SetReadDeadline(time.Now().Add(2 * patience)); err != nil {
				t.Fatal(err)
			}
			answer, err := io.ReadAll(conn)
			if err != nil && !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("the connection was not closed: %v", err)
			}
			lacks(t, string(answer), "serverInfo", " 200 ")
		})
	}
}
