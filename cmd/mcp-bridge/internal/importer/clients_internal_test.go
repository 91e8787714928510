package importer

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// TestClientsFiles moves the servers out of a file of each client, written after
// its documentation: all servers arrive, the bridge is left, in the client's own
// dialect, everything else is as it was, and undo restores every byte.
func TestClientsFiles(t *testing.T) {
	golden, err := os.ReadDir("testdata/clients")
	if err != nil {
		t.Fatal(err)
	}
	tested := 0
	for _, client := range newMachine(t, nil).options(true).Clients {
		for _, e := range golden {
			if strings.TrimSuffix(e.Name(), filepath.Ext(e.Name())) != client.Key {
				continue
			}
			tested++
			t.Run(client.Key, func(t *testing.T) { testClient(t, client.Key, e.Name()) })
		}
	}
	if tested != len(golden) {
		t.Errorf("%d files for %d clients", len(golden), tested)
	}
}

func testClient(t *testing.T, key, name string) {
	m := newMachine(t, nil)
	data, err := os.ReadFile(filepath.Join("testdata/clients", name))
	if err != nil {
		t.Fatal(err)
	}
	var file string
	for _, c := range m.options(true).Clients {
		if c.Key == key {
			file = c.Files[0]
			if key == "vscode-insiders" {
				file = c.Files[1] // settings.json
			}
		}
	}
	if file, err = filepath.Rel(m.home, file); err != nil {
		t.Fatal(err)
	}
	m.write(file, string(data))
	before, problems := discovery.ReadFile(m.path(file))
	if len(before) == 0 || len(problems) > 0 {
		t.Fatalf("%d servers, problems %v", len(before), problems)
	}

	p := m.apply(true)
	for _, item := range p.Items {
		if item.Result != Copied && item.Result != Moved {
			t.Errorf("%+v", item)
		}
	}
	after, problems := discovery.ReadFile(m.path("MCPs/" + key + ".json"))
	if len(after) != len(before) || len(problems) > 0 {
		t.Fatalf("%d servers of %d, problems %v", len(after), len(before), problems)
	}
	for i := range after {
		a, b := after[i].Server, before[i].Server
		if b.Cwd == "" && before[i].Project != "" {
			b.Cwd = before[i].Project
		}
		if a.Name != b.Name || a.Disabled != b.Disabled || !sameServer(a, b) || fmt.Sprint(after[i].Inputs) != fmt.Sprint(before[i].Inputs) {
			t.Errorf("%s became another: %s %q %q %q %q, was %s %q %q %q %q", b.Name, a.Command, a.Args, a.Env, a.Cwd, a.URL, b.Command, b.Args, b.Env, b.Cwd, b.URL)
		}
	}
	left, problems := discovery.ReadFile(m.path(file))
	remote := 0
	for _, def := range before {
		if def.Server.Remote() { // stays, as the bridge cannot use it
			left = slices.DeleteFunc(left, func(l discovery.Definition) bool { return l.Server.Equal(def.Server) })
			remote++
		}
	}
	if len(left) != 1 || len(problems) > 0 || remote == len(before) || left[0].Server.Command != "/bin/mcp-bridge" || strings.Join(left[0].Server.Args, " ") != "run" || left[0].Dialect == discovery.DialectProjects {
		t.Errorf("%v are left, problems %v", left, problems)
	}
	goldenFile := filepath.Join("testdata/moved", name)
	if want, err := os.ReadFile(goldenFile); err != nil || m.read(file) != string(want) {
		t.Errorf("%s, not as %s: %v", m.read(file), goldenFile, err)
		if os.Getenv("UPDATE_GOLDEN") != "" && errors.Join(os.MkdirAll("testdata/moved", 0o750), os.WriteFile(goldenFile, []byte(m.read(file)), 0o600)) != nil {
			t.Error("not written")
		}
	}
	if _, _, err := Undo(m.path("state"), false); err != nil || m.read(file) != string(data) {
		t.Errorf("undo: %v", err)
	}
}
