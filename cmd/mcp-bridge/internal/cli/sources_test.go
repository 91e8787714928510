package cli

import (
	"slices"
	"testing"

	"github.com/spf13/pflag"
)

// TestConfigValues writes every setting into a file's form and back.
func TestConfigValues(t *testing.T) {
	keys := map[string]any{
		"config_dir": []any{"/a,b", `/c"d`}, "mount": []any{"./data:ro"}, "cache_dir": "/x", "project": true, "allow_self_server": true, "log_level": "debug", "color": "never", "pager": "more",
		"runtime": "podman", "transport": "stdio", "image": "python:3.14", "pull_timeout": int64(90), "memory": "1g",
		"pids": int64(99), "cpus": 1.5, "allow_unlimited": true, "timeout": "2m", "max_timeout": int64(600), "yield": 2.5,
		"warm": int64(0), "max_sandboxes": int64(4), "runtime_idle_timeout": int64(0), "output_limit": int64(999), "output_mode": "json",
		"http": "127.0.0.1:0", "http_allow_remote": true, "http_host": []any{"a.example"}, "http_no_auth": true, "http_session_timeout": int64(60),
		"state_dir": "/s", "learn_shapes": false, "on_change": "block", "fill_catalog": false, "hibernate": false, "workspace_quota": "99m",
	}
	values, err := checkConfig("config.toml", keys)
	if err != nil {
		t.Fatal(err)
	}
	knownSettings().VisitAll(func(flag *pflag.Flag) {
		if _, ok := values[underscored(flag.Name)]; !ok {
			t.Errorf("this test lacks %s", flag.Name)
		}
	})
	var s settings
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	s.addCommon(flags)
	s.addSandbox(flags)
	if err := flags.Set("config-dir", values["config_dir"]); err != nil || !slices.Equal(s.configDirs, []string{"/a,b", `/c"d`}) {
		t.Errorf("config_dir is %q, %v", s.configDirs, err)
	}
	if err := flags.Set("memory", values["memory"]); err != nil || s.memory != 1<<30 {
		t.Errorf("memory is %d, %v", s.memory, err)
	}
	if err := flags.Set("transport", values["transport"]); err != nil || s.transport != "stdio" {
		t.Errorf("transport is %q, %v", s.transport, err)
	}
}

func TestConfigMistakes(t *testing.T) {
	for _, keys := range []map[string]any{
		{"transport": "carrier-pigeon"},
		{"pids": 1.5},
		{"pids": "many"},
		{"config_dir": []any{int64(1)}},
		{"timeout": map[string]any{}},
		{"max-timeout": int64(1)},
		{"json": true},
		{"help": true},
		{"": "x"},
	} {
		if values, err := checkConfig("config.toml", keys); err == nil {
			t.Errorf("%v is taken as %v", keys, values)
		}
	}
}
