package cli

import (
	"context"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
)

const (
	// finderAgain is how long after a search the finder searches again while
	// servers are still listing their tools.
	finderAgain = 300 * time.Millisecond

	maxFinderQuery = 500 // characters
)

// A finderSource is what a finder finds tools in. It may be asked by several
// goroutines at a time.
type finderSource interface {
	// Find ranks tools for a query, or has all there are for an empty one, and
	// waits for no server.
	Find(ctx context.Context, query string) (found, error)
	// About documents a tool in several lines.
	About(ctx context.Context, of foundTool) string
}

// A foundTool is a line of the finder. Its texts come from servers.
type foundTool struct {
	server, tool           string // tool is empty for a server that is not listed yet
	signature, description string
}

// What was found.
type found struct {
	tools   []foundTool
	total   int // tools that are known, of all servers
	listing int // servers whose tools are not known yet
	failed  int // servers that could not be listed
}

// A finder is the interactive search for a tool, as bubbletea has it: Update is
// told what happens, View says what is to be seen. Only the program's loop calls
// its methods.
type finder struct {
	ctx    context.Context //nolint:containedctx // bubbletea has no other way to it
	source finderSource
	colour bool

	width, height int
	query         []rune
	shown         found
	err           error
	selected      int // in shown.tools
	top           int // the first line of them that is seen

	searching bool   // a search is under way
	stale     bool   // and it is not for the query any more
	searched  string // the query of what is shown
	seen      bool   // a search has ended
	waiting   bool   // the next search is due after a while

	about     string // of aboutOf
	aboutOf   foundTool
	aboutFrom int // its first line that is seen

	entered bool       // Enter was pressed before its query was searched for
	chosen  *foundTool // what Enter chose; nil after Esc
}

type (
	foundMsg struct {
		query string
		found found
		err   error
	}
	aboutMsg struct {
		of   foundTool
		text string
	}
	againMsg struct{}
)

// Init searches for nothing, which shows all tools.
func (f *finder) Init() tea.Cmd { return f.search() }

// search begins a search for the query, or has it done once the one that is under
// way has ended.
func (f *finder) search() tea.Cmd {
	if f.searching {
		f.stale = true
		return nil
	}
	f.searching, f.stale = true, false
	query := f.wanted()
	return func() tea.Msg {
		found, err := f.source.Find(f.ctx, query)
		return foundMsg{query, found, err}
	}
}

// Update takes what has happened.
func (f *finder) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var next tea.Cmd
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		f.width, f.height = msg.Width, msg.Height
	case tea.PasteMsg:
		next = f.typed(msg.Content)
	case tea.KeyPressMsg:
		next = f.key(msg)
	case foundMsg:
		next = f.take(msg)
	case againMsg:
		f.waiting = false
		next = f.search()
	case aboutMsg:
		if msg.of == f.aboutOf {
			f.about = msg.text
		}
	}
	return f, tea.Batch(next, f.look())
}

// key does what a key says.
func (f *finder) key(key tea.KeyPressMsg) tea.Cmd {
	page := max(f.layout().rows-1, 1)
	f.entered = false
	switch key.String() {
	case "esc", "ctrl+c", "ctrl+g":
		return tea.Quit
	case "enter":
		return f.enter()
	case "up", "ctrl+p", "ctrl+k":
		f.move(-1)
	case "down", "ctrl+n", "ctrl+j", "tab":
		f.move(1)
	case "pgup":
		f.move(-page)
	case "pgdown":
		f.move(page)
	case "home":
		f.move(-len(f.shown.tools))
	case "end":
		f.move(len(f.shown.tools))
	case "shift+up":
		f.aboutFrom = max(f.aboutFrom-1, 0)
	case "shift+down":
		f.aboutFrom++
	case "ctrl+l":
		return tea.ClearScreen
	case "ctrl+u":
		return f.edit(nil)
	case "ctrl+w":
		text := strings.TrimRight(string(f.query), " ")
		return f.edit([]rune(text[:strings.LastIndex(text, " ")+1]))
	case "backspace", "ctrl+h":
		if len(f.query) > 0 {
			return f.edit(f.query[:len(f.query)-1])
		}
	default:
		return f.typed(key.Text)
	}
	return nil
}

// enter chooses the selected tool: of the query as it stands, however fast that
// was typed.
func (f *finder) enter() tea.Cmd {
	if f.entered = f.wanted() != f.searched; f.entered {
		return nil
	}
	tool := f.current()
	if tool.tool == "" {
		return nil
	}
	f.chosen = &tool
	return tea.Quit
}

// wanted is the query as it is searched for.
func (f *finder) wanted() string { return strings.TrimSpace(string(f.query)) }

// typed adds text to the query.
func (f *finder) typed(text string) tea.Cmd {
	if text == "" {
		return nil
	}
	if text != " " {
		text = harmlessSpan(text)
	}
	query := append(f.query, []rune(text)...)
	return f.edit(query[:min(len(query), maxFinderQuery)])
}

func (f *finder) edit(query []rune) tea.Cmd {
	f.query = query
	f.selected, f.top = 0, 0
	return f.search()
}

func (f *finder) move(lines int) {
	f.selected = max(min(f.selected+lines, len(f.shown.tools)-1), 0)
}

// take shows what a search has found, with the same tool selected, if it is there
// and the query is the same.
func (f *finder) take(msg foundMsg) tea.Cmd {
	f.searching = false
	if f.stale {
		return f.search()
	}
	before := f.current()
	again := msg.query == f.searched
	f.seen = true
	f.shown, f.err, f.searched = msg.found, msg.err, msg.query
	if again {
		for i, t := range f.shown.tools {
			if t.server == before.server && t.tool == before.tool {
				f.selected = i
				break
			}
		}
	}
	f.move(0)
	if f.entered {
		return f.enter()
	}
	if f.shown.listing > 0 && !f.waiting {
		f.waiting = true
		return tea.Tick(finderAgain, func(time.Time) tea.Msg { return againMsg{} })
	}
	return nil
}

// current is the selected tool, or none.
func (f *finder) current() foundTool {
	if f.selected >= len(f.shown.tools) {
		return foundTool{}
	}
	return f.shown.tools[f.selected]
}

// look has the selected tool described, if it is another one than before.
func (f *finder) look() tea.Cmd {
	tool := f.current()
	if tool == f.aboutOf {
		return nil
	}
	f.about, f.aboutOf, f.aboutFrom = "", tool, 0
	if tool.tool == "" {
		f.about = tool.description
		return nil
	}
	return func() tea.Msg { return aboutMsg{tool, f.source.About(f.ctx, tool)} }
}
