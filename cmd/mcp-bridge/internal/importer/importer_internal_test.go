package importer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// A machine is a home folder with clients.
type machine struct {
	t    *testing.T
	home string
}

func newMachine(t *testing.T, files map[string]string) machine {
	t.Helper()
	m := machine{t, t.TempDir()}
	for name, text := range files {
		m.write(name, text)
	}
	return m
}

func (m machine) path(name string) string { return filepath.Join(m.home, filepath.FromSlash(name)) }

func (m machine) write(name, text string) {
	m.t.Helper()
	if err := os.MkdirAll(filepath.Dir(m.path(name)), 0o700); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(m.path(name), []byte(text), 0o600); err != nil {
		m.t.Fatal(err)
	}
}

func (m machine) read(name string) string {
	m.t.Helper()
	data, err := os.ReadFile(m.path(name))
	if err != nil {
		m.t.Fatal(err)
	}
	return string(data)
}

func (m machine) options(move bool) Options {
	return Options{
		Clients: discovery.Clients("linux", func(name string) (string, bool) { return m.home, name == "HOME" }),
		Dir:     m.path("MCPs"), StateDir: m.path("state"), Command: "/bin/mcp-bridge", Args: []string{"run"}, Move: move,
	}
}

func (m machine) plan(move bool) *Plan {
	m.t.Helper()
	p, err := Make(m.options(move))
	if err != nil {
		m.t.Fatal(err)
	}
	return p
}

func (m machine) apply(move bool) *Plan {
	m.t.Helper()
	p := m.plan(move)
	if err := p.Apply(); err != nil {
		m.t.Fatal(err)
	}
	return p
}

// items are a plan's, one a line.
func items(p *Plan) string {
	var b strings.Builder
	for _, i := range p.Items {
		fmt.Fprintf(&b, "%s: %s %s %s\n", i.Client, i.Server, i.Result, strings.TrimSpace(i.As+" "+i.Note))
	}
	return b.String()
}

const (
	claudeFile = ".config/Claude/claude_desktop_config.json"
	cursorFile = ".cursor/mcp.json"
	claudeText = `{
  "globalShortcut": "Ctrl+Space",
  "mcpServers": {
    "github": {"command": "npx", "args": ["-y", "gh"], "env": {"TOKEN": "s3cret"}},
    "files": {"command": "files"},
    "mcp-bridge": {"command": "mcp-bridge", "args": ["run"]}
  }
}
`
	cursorText = `{
  "mcpServers": {
    "gh": {"command": "npx", "args": ["-y", "gh"], "env": {"TOKEN": "s3cret"}},
    "files": {"command": "other-files", "args": ["${env:HOME}"]}
  }
}
`
)

func twoClients(t *testing.T) machine {
	return newMachine(t, map[string]string{claudeFile: claudeText, cursorFile: cursorText, ".gemini/settings.json": `{"theme": "x"}`})
}

func TestImportMergesDuplicates(t *testing.T) {
	m := twoClients(t)
	p := m.apply(false)
	want := `Claude Desktop: github copied github
Claude Desktop: files copied files
Claude Desktop: mcp-bridge self is mcp-bridge itself
Cursor: gh same github is the same as github of Claude Desktop
Cursor: files copied files-cursor another server has that name
`
	if got := items(p); got != want {
		t.Errorf("items\n%swant\n%s", got, want)
	}
	definitions, problems := discovery.ReadFile(m.path("MCPs/cursor.json"))
	if len(problems) != 0 || len(definitions) != 1 || definitions[0].Server.Name != "files-cursor" || definitions[0].Server.Args[0] != "${env:HOME}" {
		t.Errorf("%v, problems %v", definitions, problems)
	}
	if m.read(claudeFile) != claudeText || m.read(cursorFile) != cursorText {
		t.Error("a client's file was changed")
	}
	info, err := os.Stat(m.path("MCPs/claude-desktop.json"))
	if err != nil || info.Mode().Perm() != 0o600 || !strings.Contains(m.read("MCPs/claude-desktop.json"), "s3cret") {
		t.Errorf("%v, %v", info, err)
	}

	again := m.plan(false)
	if len(again.Changes) != 0 || strings.Count(items(again), "present") != 4 {
		t.Errorf("a second import does\n%s", items(again))
	}
	m.write(cursorFile, `{"mcpServers": {"new": {"command": "new"}}}`)
	if p := m.apply(false); len(p.Changes) != 1 || filepath.Base(p.Changes[0].Path) != "cursor-2.json" {
		t.Errorf("a third one does\n%s", items(p))
	}
}

func TestMoveLeavesTheBridge(t *testing.T) {
	m := twoClients(t)
	link := m.path("real.json")
	if err := os.Rename(m.path(cursorFile), link); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(link, m.path(cursorFile)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(link, 0o644); err != nil {
		t.Fatal(err)
	}
	m.apply(true)
	if got, want := m.read(claudeFile), "{\n  \"globalShortcut\": \"Ctrl+Space\",\n  \"mcpServers\": {\n    \"mcp-bridge\": {\"command\": \"mcp-bridge\", \"args\": [\"run\"]}\n  }\n}\n"; got != want {
		t.Errorf("%s, want\n%s", got, want)
	}
	if got, want := m.read(cursorFile), "{\n  \"mcpServers\": {\n    \"bridge\": {\n      \"command\": \"/bin/mcp-bridge\",\n      \"args\": [\"run\"]\n    }\n  }\n}\n"; got != want {
		t.Errorf("%s, want\n%s", got, want)
	}
	info, err := os.Lstat(m.path(cursorFile))
	if err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v, %v", info, err)
	}
	if info, err = os.Stat(link); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("the mode is %v, %v", info.Mode(), err)
	}
	if p := m.plan(true); len(p.Changes) != 0 {
		t.Errorf("a second move does\n%s", items(p))
	}

	files, _, err := Undo(m.path("state"), false)
	if err != nil || len(files) != 4 {
		t.Fatalf("undo: %v, %v", files, err)
	}
	if m.read(claudeFile) != claudeText || m.read(cursorFile) != cursorText {
		t.Error("undo did not restore")
	}
	if left, err := os.ReadDir(m.path("MCPs")); err != nil || len(left) != 0 {
		t.Errorf("undo left %v, %v", left, err)
	}
	if _, _, err := Undo(m.path("state"), false); !errors.Is(err, ErrNothing) {
		t.Errorf("a second undo: %v", err)
	}
}

func TestUndoRefusesWhatWasChanged(t *testing.T) {
	m := twoClients(t)
	m.apply(true)
	mine := m.read(claudeFile) + "{" // no JSON any more
	m.write(claudeFile, mine)
	cursor := m.read(cursorFile)
	_, _, err := Undo(m.path("state"), false)
	changed, ok := errors.AsType[*ChangedError](err)
	if !ok || !slices.Equal(changed.Files, []string{m.path(claudeFile)}) || m.read(claudeFile) != mine || m.read(cursorFile) != cursor {
		t.Fatalf("%v", err)
	}
	_, kept, err := Undo(m.path("state"), true)
	if err != nil || m.read(claudeFile) != claudeText {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(kept, "changed-*"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%v, %v", found, err)
	}
	if data, err := os.ReadFile(found[0]); err != nil || string(data) != mine {
		t.Errorf("%q, %v", data, err)
	}
	if _, _, err := Undo(m.path("state"), false); !errors.Is(err, ErrNothing) {
		t.Errorf("a further undo: %v", err)
	}
}

// A client that writes its file all the time loses nothing of that.
func TestUndoOfAFileThatWasChanged(t *testing.T) {
	m := newMachine(t, map[string]string{
		".claude.json": `{"starts": 1, "mcpServers": {"files": {"command": "x", "args": ["-y"], "env": {"T": "1"}, "timeout": 5}, "web": {"command": "y"}}}`,
	})
	m.apply(true)
	if text := m.read(".claude.json"); strings.Contains(text, "files") || !strings.Contains(text, "bridge") {
		t.Fatal(text)
	}
	m.write(".claude.json", strings.Replace(m.read(".claude.json"), `"starts": 1`, `"starts": 2, "tips": {"a": [1, 2]}`, 1))
	files, kept, err := Undo(m.path("state"), false)
	if err != nil || kept != "" || len(files) != 2 {
		t.Fatalf("%v, %q, %v", files, kept, err)
	}
	var got, want any
	if err := json.Unmarshal([]byte(m.read(".claude.json")), &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(`{"starts": 2, "tips": {"a": [1, 2]}, "mcpServers": {"files": {"command": "x", "args": ["-y"], "env": {"T": "1"}, "timeout": 5}, "web": {"command": "y"}}}`), &want); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s", m.read(".claude.json"))
	}
}

var errCrash = errors.New("crash")

// crashAt ends at step n.
func crashAt(n int) applier {
	return applier{before: func(string) error {
		if n--; n < 0 {
			return errCrash
		}
		return nil
	}}
}

// Wherever an import or an undo ends, each server is in a client's file or in
// the folder, a further import finishes, and undo restores every byte.
func TestACrashLosesNothing(t *testing.T) {
	everywhere := func(m machine) {
		t.Helper()
		text := m.read(claudeFile) + m.read(cursorFile)
		for _, name := range []string{"claude-desktop.json", "cursor.json"} {
			data, err := os.ReadFile(m.path("MCPs/" + name))
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
			text += string(data)
		}
		for _, part := range []string{`"gh"`, `"files"`, "other-files", "s3cret"} {
			if !strings.Contains(text, part) {
				t.Errorf("%s is lost", part)
			}
		}
	}
	for n := 0; ; n++ {
		m := twoClients(t)
		err := m.plan(true).apply(crashAt(n))
		if err != nil && !errors.Is(err, errCrash) {
			t.Fatal(err)
		}
		everywhere(m)
		if err == nil {
			if n < 6 {
				t.Fatalf("only %d steps", n)
			}
			break
		}
		if _, _, err := Undo(m.path("state"), false); err != nil && !errors.Is(err, ErrNothing) {
			t.Fatalf("step %d: %v", n, err)
		}
		if m.read(claudeFile) != claudeText || m.read(cursorFile) != cursorText {
			t.Errorf("step %d: undo did not restore", n)
		}
	}
	for n := 0; ; n++ {
		m := twoClients(t)
		m.apply(true)
		_, _, err := undo(m.path("state"), false, crashAt(n))
		if err != nil && !errors.Is(err, errCrash) {
			t.Fatal(err)
		}
		everywhere(m)
		if err == nil {
			break
		}
		if _, _, err := Undo(m.path("state"), false); err != nil {
			t.Fatalf("step %d: %v", n, err)
		}
		if m.read(claudeFile) != claudeText || m.read(cursorFile) != cursorText {
			t.Errorf("step %d: the second undo did not restore", n)
		}
	}
}

func TestApplyLeavesWhatWasChangedMeanwhile(t *testing.T) {
	m := twoClients(t)
	p := m.plan(true)
	m.write(cursorFile, "{}")
	if err := p.Apply(); !errors.Is(err, ErrChanged) || m.read(cursorFile) != "{}" {
		t.Errorf("%v", err)
	}
	if left, err := filepath.Glob(m.path(".cursor/.mcp-bridge-*")); err != nil || len(left) != 0 {
		t.Errorf("left %v", left)
	}
}

func TestPruneKeepsTheNewest(t *testing.T) {
	m := newMachine(t, nil)
	for i := range keptImports + 3 {
		m.write(cursorFile, fmt.Sprintf(`{"mcpServers": {"s%d": {"command": "c%d"}}}`, i, i))
		m.apply(false)
	}
	entries, err := os.ReadDir(m.path("state/imports"))
	if err != nil || len(entries) != keptImports {
		t.Errorf("%d, %v", len(entries), err)
	}
}

// What cannot be read stays, and is told.
func TestImportTellsOfProblems(t *testing.T) {
	m := newMachine(t, map[string]string{
		claudeFile: `{"mcpServers": {"bad": {"command": 3}, "good": {"command": "x"}}}`,
		cursorFile: "{ nonsense",
	})
	p := m.apply(true)
	got := items(p)
	if !strings.Contains(got, "Claude Desktop: bad left not read: command") || !strings.Contains(got, "Cursor:  left not read: ") {
		t.Errorf("%s", got)
	}
	if text := m.read(claudeFile); !strings.Contains(text, `"bad": {"command": 3}`) || strings.Contains(text, "good") || !bytes.Contains([]byte(text), []byte("/bin/mcp-bridge")) {
		t.Errorf("%s", text)
	}
}
