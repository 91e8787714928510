package container

import (
	"testing"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

func TestClampRlimits(t *testing.T) {
	limits := map[string]int64{"core": runtime.Unlimited, "fsize": runtime.Unlimited, "memlock": 1 << 23, "nofile": 100, "nproc": 64}
	asked := runtime.Limits{}.WithDefaults()
	got, err := clampRlimits(asked, nil, func(name string) (int64, error) { return limits[name], nil })
	if err != nil {
		t.Fatal(err)
	}
	for name, limit := range got {
		if want := min(asked.Rlimits()[name], orMax(limits[name])); limit != want {
			t.Errorf("rlimit %s is %d, want %d", name, limit, want)
		}
	}
	if len(got) != len(limits) {
		t.Errorf("rlimits: %v", got)
	}
}

func orMax(limit int64) int64 {
	if limit == runtime.Unlimited {
		return 1<<63 - 1
	}
	return limit
}

func TestTail(t *testing.T) {
	var long Tail
	for range 100 {
		long.Write(make([]byte, 1000))
	}
	long.Write([]byte("end"))
	if got := long.String(); got != "end" || len(long.data) != tailBytes {
		t.Errorf("tail is %q of %d bytes", got, len(long.data))
	}
	for text, want := range map[string]string{
		"a\nb\tc":                         "a\nb\tc",
		"\x1b[31mred\x1b]8;;x\x07\x00":    "[31mred]8;;x",
		"\u202eabc\u2066\u200b\U000e0041": "abc",
		"ok\xff\xfe\u009b1m":              "ok1m",
		"naïve 日本 🙂":                      "naïve 日本 🙂",
	} {
		if got := Sanitize(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}
