package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/clipperhouse/displaywidth"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// hostileText is what no terminal should get to see as it is.
const hostileText = "\x1b]0;owned\x07\x1b[2J\x1b[31m\u009b1m\r\u202eevil\u200b\x00"

// A shelf is a source of numbered tools; a query is a part of a name.
type shelf struct {
	size    int
	listing int // searches until all are listed
	err     error
	asked   []string
}

func (s *shelf) Find(_ context.Context, query string) (found, error) {
	s.asked = append(s.asked, query)
	result := found{total: s.size}
	if s.listing > 0 {
		s.listing--
		result.listing = s.listing
	}
	for i := range s.size {
		name := fmt.Sprintf("tool_%05d", i)
		if strings.Contains(name, query) {
			result.tools = append(result.tools, foundTool{"shelf", name, "shelf." + name + "(title: str)" + hostileText, "漢字 🙂 " + hostileText + "\nsecond line"})
		}
	}
	return result, s.err
}

func (s *shelf) About(_ context.Context, of foundTool) string {
	return "about " + of.tool + "\n" + hostileText + "\n" + strings.Repeat("word\t漢字 ", 100)
}

// A user drives a finder as bubbletea does, one message after another.
type user struct {
	*finder

	left bool
}

func newUser(s *shelf, width, height int) *user {
	u := &user{finder: &finder{ctx: context.Background(), source: s, colour: true}}
	u.do(u.Init())
	u.tell(tea.WindowSizeMsg{Width: width, Height: height})
	return u
}

func (u *user) tell(msg tea.Msg) {
	_, cmd := u.Update(msg)
	u.do(cmd)
}

func (u *user) do(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	switch msg := cmd().(type) {
	case tea.BatchMsg:
		for _, cmd := range msg {
			u.do(cmd)
		}
	case tea.QuitMsg:
		u.left = true
	case nil:
	default:
		u.tell(msg)
	}
}

// types presses keys: names of keys in < and >, and otherwise what they write.
func (u *user) types(keys string) {
	codes := map[string]tea.Key{
		"up": {Code: tea.KeyUp}, "down": {Code: tea.KeyDown}, "pgdown": {Code: tea.KeyPgDown}, "pgup": {Code: tea.KeyPgUp}, "end": {Code: tea.KeyEnd}, "home": {Code: tea.KeyHome},
		"enter": {Code: tea.KeyEnter}, "esc": {Code: tea.KeyEscape}, "back": {Code: tea.KeyBackspace}, "c-c": {Code: 'c', Mod: tea.ModCtrl},
		"c-u": {Code: 'u', Mod: tea.ModCtrl}, "c-w": {Code: 'w', Mod: tea.ModCtrl}, "s-down": {Code: tea.KeyDown, Mod: tea.ModShift}, "s-up": {Code: tea.KeyUp, Mod: tea.ModShift},
	}
	for _, key := range regexp.MustCompile(`<[a-z-]+>|.`).FindAllString(keys, -1) {
		if code, ok := codes[strings.Trim(key, "<>")]; ok {
			u.tell(tea.KeyPressMsg(code))
		} else {
			u.tell(tea.KeyPressMsg{Text: key, Code: []rune(key)[0]})
		}
	}
}

func (u *user) sees() string { return u.View().Content }

func TestFinder(t *testing.T) {
	u := newUser(&shelf{size: 10_000}, 80, 24)
	if text := u.sees(); !strings.Contains(text, "10000 tools") || !strings.Contains(text, "▸ shelf.tool_00000(title: str)") || !strings.Contains(text, "about tool_00000") {
		t.Errorf("at first:\n%s", text)
	}
	for _, step := range []struct{ keys, query, tool string }{
		{"<down><down><up>", "", "tool_00001"},
		{"<up><up>", "", "tool_00000"},
		{"<end>", "", "tool_09999"},
		{"<down>", "", "tool_09999"},
		{"<home><pgdown>", "", "tool_00010"},
		{"<pgup>", "", "tool_00000"},
		{"1234", "1234", "tool_01234"},
		{"<back>", "123", "tool_00123"},
		{"<down>", "123", "tool_01123"},
		{"<c-u>", "", "tool_00000"},
		{"00 7<c-w>42", "00 42", ""},
		{"<c-u>nothing<enter>", "nothing", ""},
		{"<c-u>\x00\u202e", "��", ""},
		{"<c-u>5432<enter>", "5432", "tool_05432"},
	} {
		u.types(step.keys)
		if got := string(u.query); got != step.query || u.current().tool != step.tool {
			t.Errorf("after %q: query %q, tool %q", step.keys, got, u.current().tool)
		}
		if !strings.Contains(u.sees(), "> "+step.query) || !strings.Contains(u.sees(), step.tool) {
			t.Errorf("after %q:\n%s", step.keys, u.sees())
		}
	}
	if !u.left || u.chosen == nil || u.chosen.tool != "tool_05432" {
		t.Errorf("left %v with %v", u.left, u.chosen)
	}
	for _, keys := range []string{"<esc>", "<c-c>"} {
		u := newUser(&shelf{size: 3}, 80, 24)
		if u.types(keys); !u.left || u.chosen != nil {
			t.Errorf("%s: left %v with %v", keys, u.left, u.chosen)
		}
	}
}

// TestFinderPaste takes a text of several lines as one, and not all of a long one.
func TestFinderPaste(t *testing.T) {
	u := newUser(&shelf{size: 3}, 80, 24)
	u.tell(tea.PasteMsg{Content: "two\nlines" + strings.Repeat("x", 1_000_000)})
	if got := string(u.query); !strings.HasPrefix(got, "two linesxx") || len(got) != maxFinderQuery {
		t.Errorf("%d: %.20q", len(got), got)
	}
}

// TestFinderFits has windows of all sizes, and texts that want out of them.
func TestFinderFits(t *testing.T) {
	sgr := regexp.MustCompile(`\x1b\[[0-9]*m`)
	u := newUser(&shelf{size: 200}, 1, 1)
	u.types("0")
	for _, width := range []int{1, 2, 3, 10, 39, 40, 79, 80, 99, 100, 101, 200} {
		for height := 1; height < 40; height++ {
			u.tell(tea.WindowSizeMsg{Width: width, Height: height})
			u.types("<down><s-down>")
			view := u.View()
			lines := strings.Split(view.Content, "\n")
			if len(lines) > height || view.Cursor.X >= width || view.Cursor.Y >= height {
				t.Fatalf("%d×%d: %d lines, the cursor at %v", width, height, len(lines), view.Cursor)
			}
			for _, line := range lines {
				text := sgr.ReplaceAllString(line, "")
				if got := displaywidth.String(text); got > width || text != printable(text) || strings.Contains(text, "\t") {
					t.Fatalf("%d×%d: %d columns: %q", width, height, got, line)
				}
			}
			if height >= 3 && width >= 40 && !strings.Contains(view.Content, "▸ shelf."+u.current().tool[:4]) {
				t.Fatalf("%d×%d: the selected tool is not seen:\n%s", width, height, view.Content)
			}
		}
	}
	u.tell(tea.WindowSizeMsg{})
	if u.sees() != "" {
		t.Errorf("in no window: %q", u.sees())
	}
}

// TestFinderWithoutTools says why there is nothing.
func TestFinderWithoutTools(t *testing.T) {
	if text := newUser(&shelf{}, 80, 24).sees(); !strings.Contains(text, "mcp-bridge servers list") {
		t.Errorf("without servers:\n%s", text)
	}
	if text := newUser(&shelf{err: errors.New("out of\x1b[2J order")}, 80, 24).sees(); !strings.Contains(text, "out of\ufffd[2J order") {
		t.Errorf("after an error:\n%s", text)
	}
}

// TestFinderWaitsForServers searches again while servers list their tools, with the
// same tool selected.
func TestFinderWaitsForServers(t *testing.T) {
	s := &shelf{size: 20, listing: 3}
	u := &user{finder: &finder{ctx: t.Context(), source: s, width: 80, height: 24}}
	_, cmd := u.Update(u.Init()())
	if text := u.sees(); !strings.Contains(text, "servers still listing theirs: 2") || !u.waiting {
		t.Errorf("%s", text)
	}
	u.types("<down><down>")
	u.do(cmd) // after a while, and again
	if text := u.sees(); strings.Contains(text, "still") || u.waiting || len(s.asked) != 3 || u.current().tool != "tool_00002" {
		t.Errorf("%d searches, %s selected:\n%s", len(s.asked), u.current().tool, text)
	}
}

// TestFinderSearchesOnceAtATime drops what was found for a query that is no more.
func TestFinderSearchesOnceAtATime(t *testing.T) {
	s := &shelf{size: 20}
	u := &user{finder: &finder{ctx: t.Context(), source: s, width: 80, height: 24}}
	first := u.Init()
	if text := u.sees(); strings.Contains(text, "no tools") || !strings.Contains(text, "looking for tools") {
		t.Errorf("before anything is known:\n%s", text)
	}
	u.types("0007<enter>") // while the first search is under way
	u.tell(first())
	if got := strings.Join(s.asked, ","); got != ",0007" || len(u.shown.tools) != 1 {
		t.Errorf("asked for %q, shows %d tools", got, len(u.shown.tools))
	}
	if !u.left || u.chosen == nil || u.chosen.tool != "tool_00007" {
		t.Errorf("left %v with %v", u.left, u.chosen)
	}
}

func TestCallLine(t *testing.T) {
	for schema, want := range map[string]string{
		`{}`: "mcp-bridge tools call s.t",
		`{"properties":{"title":{"type":"string"},"n":{"type":"integer"},"more":{"type":"string"}},"required":["title","n"]}`: "mcp-bridge tools call s.t title=… n:=…",
		`{"properties":{"$(reboot)":{"type":"string"},"a b":{}},"required":["$(reboot)","a b"]}`:                              "mcp-bridge tools call s.t __reboot_=… a_b=…",
	} {
		doc := discovery.Document(discovery.Server{Name: "s"}, []discovery.Tool{{Name: "t", InputSchema: json.RawMessage(schema)}})[0]
		if got := callLine(doc); got != want {
			t.Errorf("%s: %q, want %q", schema, got, want)
		}
	}
	if got := shellQuoted("名前; rm 'x'"); got != `'名前; rm '\''x'\'''` {
		t.Errorf("quoted as %s", got)
	}
}
