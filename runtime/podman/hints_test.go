package podman

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
	for _, scheme := range []string{"unix", "tcp"} {
		_, err := (&driver{}).connectTo(t.Context(), connection{URI: scheme + "://" + secret})
		if hint := runtime.HintOf(err); hint == "" || strings.Contains(hint, "secret") {
			t.Errorf("%v: hint %q", err, hint)
		}
	}
	texts := []string{"", "no such image: ", "image not known: ", "permission denied", "no such file or directory"}
	for _, c := range knownConditions {
		texts = append(texts, c.Phrases...)
	}
	for _, text := range texts {
		err := errors.New(text + " " + secret)
		all := []error{
			explain("start", "docker-archive:"+secret, err), explain("start", secret, err), explain("start", "localhost/x", err),
			imageMissing("check", secret), imageMissing("check", "oci-archive:"+secret),
		}
		for _, err := range all {
			if hint := runtime.HintOf(err); strings.Contains(hint, "/home/") || strings.Contains(hint, "secret") {
				t.Errorf("%v: hint %q", err, hint)
			}
		}
	}
}
