package cli

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"github.com/mcp-bridge/mcp-bridge/bridge"
)

// tokenVar has the bearer token. It is no flag, which other users could read in
// the list of processes.
const tokenVar = "MCP_BRIDGE_HTTP_TOKEN" //nolint:gosec // where the token is, not the token

// leastToken is how many characters a token must have: it may be all that stands
// before a network.
const leastToken = 16

// httpSettings are the flags of `run` over HTTP.
type httpSettings struct {
	address        string
	hosts          []string
	allowRemote    bool
	noAuth         bool
	sessionTimeout seconds
}

func (s *httpSettings) add(flags *pflag.FlagSet) {
	s.sessionTimeout = seconds(24 * time.Hour)
	flags.StringVar(&s.address, "http", "", "serve Streamable HTTP on this address instead, such as 127.0.0.1:8080, or a port; the token is "+tokenVar)
	flags.StringSliceVar(&s.hosts, "http-host", nil, "name in the Host header to answer to, beside this machine's addresses, repeatable")
	flags.BoolVar(&s.allowRemote, "http-allow-remote", false, "let --http be an address that other machines reach; tokens and code cross the network in clear")
	flags.BoolVar(&s.noAuth, "http-no-auth", false, "ask for no token: every user and program of this machine can run code")
	flags.Var(&s.sessionTimeout, "http-session-timeout", "seconds after which an unused session over HTTP is forgotten")
	check(flags, "http", func() error {
		_, err := s.listenAddress()
		return err
	})
}

// listenAddress is the address in the form that net takes.
func (s *httpSettings) listenAddress() (string, error) {
	if n, err := strconv.ParseUint(s.address, 10, 16); err == nil {
		return fmt.Sprintf("127.0.0.1:%d", n), nil
	}
	_, port, err := net.SplitHostPort(s.address)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return "", rangeError("is not an address such as 127.0.0.1:8080")
	}
	return s.address, nil
}

// isLocal reports whether only this machine can reach an address.
func isLocal(address string) bool {
	host, _, _ := net.SplitHostPort(address)
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// validateHTTP checks what no single flag can know.
func (s *settings) validateHTTP() error {
	address, err := s.http.listenAddress()
	if s.http.address == "" || err != nil {
		return nil //nolint:nilerr // the flag has been checked
	}
	switch {
	case !isLocal(address) && !s.http.allowRemote:
		return s.wrong([]string{"http"}, "%s %s can be reached from other machines, which needs --http-allow-remote", s.nameOf("http"), s.http.address)
	case !isLocal(address) && s.http.noAuth:
		return s.wrong([]string{"http", "http-no-auth"}, "%s is for addresses that only this machine reaches, unlike %s", s.nameOf("http-no-auth"), s.http.address)
	}
	token := os.Getenv(tokenVar)
	if s.http.noAuth && token != "" {
		return s.wrong([]string{"http-no-auth"}, "there is both a token in %s and %s", tokenVar, s.nameOf("http-no-auth"))
	}
	if token != "" && len(token) < leastToken {
		return configError("for example: export "+tokenVar+"=$(openssl rand -hex 32)", "the token in %s has %d characters; it needs %d", tokenVar, len(token), leastToken)
	}
	return nil
}

// serveHTTP serves a's bridge until ctx is done.
func (r *root) serveHTTP(ctx context.Context, a *app) error {
	s := &r.settings.http
	address, err := s.listenAddress()
	if err != nil {
		return err
	}
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", address)
	if err != nil {
		return usageError("choose another port with --http", "%v", err)
	}
	if !s.allowRemote && !isLocal(listener.Addr().String()) {
		listener.Close()
		return usageError("", "%s means %s, which is not of this machine alone", address, listener.Addr())
	}
	token, origin := r.token()
	fmt.Fprintf(r.io.Err, "mcp-bridge: serving MCP at http://%s%s\n%s", listener.Addr(), bridge.HTTPPath, origin)
	return a.bridge.ServeOverHTTP(ctx, listener, bridge.HTTPOptions{
		Token: token, Hosts: s.hosts, SessionTimeout: time.Duration(s.sessionTimeout),
	})
}

// token returns the token that requests must have, and what to say of it.
func (r *root) token() (token, note string) {
	if r.settings.http.noAuth {
		return "", "mcp-bridge: warning: --http-no-auth: every user and program of this machine can run code, and call your servers\n"
	}
	if token = os.Getenv(tokenVar); token != "" {
		return token, "mcp-bridge: requests need the token in " + tokenVar + "\n"
	}
	token = rand.Text()
	return token, "mcp-bridge: requests need the header Authorization: Bearer " + token + "\n" +
		"mcp-bridge: (for this run only; set " + tokenVar + " to choose it)\n"
}
