package cli

import (
	"testing"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

func TestDiskFinding(t *testing.T) {
	dir := t.TempDir()
	for _, test := range []struct {
		dir  string
		want runtime.Level
	}{
		{dir, runtime.LevelOK},
		{dir + "/to/be/made", runtime.LevelOK},
		{"/proc/nothing", runtime.LevelFail}, // there is no space in /proc
		{"/dev/null/below", runtime.LevelFail},
	} {
		if f := diskFinding("cache", test.dir); f.Level != test.want || (f.Fix == "") != (f.Level == runtime.LevelOK) {
			t.Errorf("%s: %+v", test.dir, f)
		}
	}
}
