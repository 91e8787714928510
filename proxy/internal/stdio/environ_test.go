package stdio_test

import (
	"slices"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/proxy/internal/stdio"
)

func TestEnviron(t *testing.T) {
	host := []string{
		"PATH=/bin", "HOME=/root", "LC_ALL=C", "XDG_RUNTIME_DIR=/run", "https_proxy=http://p", "LANG=()  { evil; }",
		"GITHUB_TOKEN=x", "AWS_SECRET_ACCESS_KEY=x", "LD_PRELOAD=x", "npm_config__authToken=x", "=weird", "novalue", "TERM=vt100",
	}
	got := stdio.Environ(host, map[string]string{"TOKEN": "own", "TERM": "dumb"})
	want := []string{"HOME=/root", "LC_ALL=C", "PATH=/bin", "TERM=dumb", "TOKEN=own", "XDG_RUNTIME_DIR=/run", "https_proxy=http://p"}
	if !slices.Equal(got, want) {
		t.Errorf("environment is %q, want %q", got, want)
	}
}
