package proxy

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// A redactor makes text of a server fit to be shown to a model.
type redactor struct{ secrets []string }

// minSecret is the shortest value worth hiding; shorter ones are "1" and "on".
const minSecret = 4

// newRedactor hides the values of the server's variables and, since some take
// their keys there, its long arguments.
func newRedactor(s discovery.Server) *redactor {
	const longArgument = 16
	var secrets []string
	add := func(value string, shortest int) {
		for _, part := range append(strings.Split(value, "\n"), value) {
			if part = strings.TrimSpace(part); len(part) >= shortest {
				secrets = append(secrets, part)
			}
		}
	}
	for value := range maps.Values(s.Env) {
		add(value, minSecret)
	}
	for _, arg := range s.Args {
		if _, value, ok := strings.Cut(arg, "="); ok {
			add(value, longArgument)
		}
		if !strings.ContainsAny(arg, "/ ") {
			add(arg, longArgument)
		}
	}
	// The longest first: one secret may contain another.
	slices.SortFunc(secrets, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	return &redactor{secrets: slices.Compact(secrets)}
}

var (
	ansi        = regexp.MustCompile(`\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-_])`)
	credentials = regexp.MustCompile(`(://)[^\s/@]+@`)
	hostPath    = regexp.MustCompile(`(?:[A-Za-z]:)?(?:[\\/][^\s\\/:'"()<>,;]+)+[\\/]([^\s\\/:'"()<>,;]+)`)
)

// clean returns at most limit bytes of text: without escape sequences, control
// characters, secrets, and the folders of host paths. The end of a longer text
// is kept, where failures are.
func (r *redactor) clean(text string, limit int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	text = ansi.ReplaceAllString(text, "")
	for _, secret := range r.secrets {
		text = strings.ReplaceAll(text, secret, "[redacted]")
	}
	text = credentials.ReplaceAllString(text, "$1[redacted]@")
	text = hideFolders(text)
	text = strings.Map(func(c rune) rune {
		if c != '\n' && (unicode.IsControl(c) || unicode.Is(unicode.Cf, c)) {
			return -1
		}
		return c
	}, text)
	return lastBytes(strings.TrimSpace(text), limit)
}

// hideFolders shortens absolute paths to their last element, and leaves URLs.
func hideFolders(text string) string {
	var b strings.Builder
	last := 0
	for _, m := range hostPath.FindAllStringSubmatchIndex(text, -1) {
		start := m[0]
		if start > 0 && (isWordByte(text[start-1]) || text[start-1] == '/') {
			continue // the end of a word like tools/list/all, or a URL after its scheme
		}
		b.WriteString(text[last:start])
		b.WriteString("…/")
		b.WriteString(text[m[2]:m[3]])
		last = m[1]
	}
	b.WriteString(text[last:])
	return b.String()
}

func isWordByte(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

func lastBytes(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	cut := len(text) - limit
	for cut < len(text) && !utf8.RuneStart(text[cut]) {
		cut++
	}
	return "…" + text[cut:]
}

// quoteName returns a name from outside as it may appear in a message.
func quoteName(name string) string {
	const limit = 80
	name = strings.Map(func(c rune) rune {
		if unicode.IsPrint(c) {
			return c
		}
		return '\uFFFD'
	}, strings.ToValidUTF8(name, "\uFFFD"))
	if runes := []rune(name); len(runes) > limit {
		name = string(runes[:limit]) + "…"
	}
	return `"` + name + `"`
}
