package docker

import (
	"errors"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// TestHintsHaveNoPaths holds that hints, which models see, repeat neither the
// engine's address nor a path, whatever the engine answers.
func TestHintsHaveNoPaths(t *testing.T) {
	const secret = "/home/ann/secret.sock"
	texts := []string{"", "no such image: ", "image not known: ", "permission denied", "no such file or directory"}
	for _, c := range knownConditions {
		texts = append(texts, c.Phrases...)
	}
	for _, text := range texts {
		err := errors.New(text + " " + secret)
		all := []error{
			explain("start", "docker-archive:"+secret, err), explain("start", secret, err), explain("start", "localhost/x", err),
			imageMissing("check", secret), imageMissing("check", "oci-archive:"+secret),
			unreachable("unix://"+secret, err),
		}
		for _, err := range all {
			if hint := runtime.HintOf(err); strings.Contains(hint, "/home/") || strings.Contains(hint, "secret") {
				t.Errorf("%v: hint %q", err, hint)
			}
		}
	}
}

// TestTransportOfADaemonElsewhere holds that the diagnosis fails where sandboxes do.
func TestTransportOfADaemonElsewhere(t *testing.T) {
	for _, test := range []struct {
		elsewhere string
		asked     runtime.Transport
		want      runtime.Level
		says      string
	}{
		{"another kernel", runtime.TransportSocket, runtime.LevelFail, "no socket"},
		{"another kernel", runtime.TransportAuto, runtime.LevelWarn, "stdio: another kernel"},
		{"", runtime.TransportStdio, runtime.LevelOK, "as asked for"},
		{"", runtime.TransportAuto, runtime.LevelOK, "socket: "},
	} {
		d := diagnosis{client: &client{elsewhere: test.elsewhere}, asked: test.asked}
		d.transport()
		if f := d.found[0]; f.Level != test.want || !strings.Contains(f.Detail, test.says) {
			t.Errorf("%q, %s asked for: %+v", test.elsewhere, test.asked, f)
		}
	}
}
