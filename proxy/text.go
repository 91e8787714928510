package proxy

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// A redactor makes what a server says of itself, its errors and the end of its
// output, fit to be shown to a model. The results of tools are not its business:
// they are data for the code that called, and reach it as they came.
type redactor struct{ secrets []string }

// maxCleaned is how much of a text is looked at, from its end.
const maxCleaned = 256 << 10

// minSecret is the shortest value worth hiding; shorter ones are "1" and "on".
const minSecret = 4

// newRedactor hides the values of the server's variables and, since some take
// their keys there, its long arguments: as they are, and in base64, in hex and
// as part of a URL.
func newRedactor(s discovery.Server) *redactor {
	const longArgument = 16
	var secrets []string
	add := func(value string, shortest int) {
		for _, part := range append(strings.Split(value, "\n"), value) {
			if part = strings.TrimSpace(visible(part)); len(part) >= shortest {
				secrets = append(secrets, part)
				secrets = append(secrets, encodings(part)...)
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

// encodings returns the forms of a secret in which it appears in headers and URLs.
func encodings(secret string) []string {
	lower := hex.EncodeToString([]byte(secret))
	query := url.QueryEscape(secret)
	forms := []string{lower, strings.ToUpper(lower), query, strings.ReplaceAll(query, "+", "%20"), url.PathEscape(secret)}
	for _, form := range forms[2:] {
		forms = append(forms, percent.ReplaceAllStringFunc(form, strings.ToLower))
	}
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		forms = append(forms, encoding.EncodeToString([]byte(secret)))
		forms = append(forms, withinBase64(encoding, secret)...)
	}
	return forms
}

// withinBase64 returns what is the same in the base64 of every text that
// contains secret, such as "user:secret": it may begin at any of three places in a group.
func withinBase64(encoding *base64.Encoding, secret string) []string {
	forms := make([]string, 3)
	for before := range forms {
		text := encoding.WithPadding(base64.NoPadding).EncodeToString(append(make([]byte, before), secret...))
		first := (before*8 + 5) / 6 // what comes before has a part in the characters up to here
		last := (before + len(secret)) * 8 / 6
		forms[before] = text[first:last]
	}
	return forms
}

var (
	ansi        = regexp.MustCompile(`\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-_])`)
	credentials = regexp.MustCompile(`(://)[^\s/@]+@`)
	percent     = regexp.MustCompile(`%[0-9A-F]{2}`)
	hostPath    = regexp.MustCompile(`(?:[A-Za-z]:)?(?:[\\/][^\s\\/:'"()<>,;]+)+[\\/]([^\s\\/:'"()<>,;]+)`)
)

// clean returns at most limit bytes of text: without escape sequences, control
// characters, secrets, and the folders of host paths. The end of a longer text
// is kept, where failures are.
func (r *redactor) clean(text string, limit int) string {
	text = r.hide(visible(ansi.ReplaceAllString(lastBytes(text, maxCleaned), "")))
	return lastBytes(strings.TrimSpace(hideFolders(text)), limit)
}

// hide returns text without secrets.
func (r *redactor) hide(text string) string {
	return credentials.ReplaceAllString(r.hideOwn(text), "$1[redacted]@")
}

// hideOwn returns text without the secrets of the definition, and leaves what
// only looks like one.
func (r *redactor) hideOwn(text string) string {
	for _, secret := range r.secrets {
		text = strings.ReplaceAll(text, secret, "[redacted]")
	}
	return text
}

// visible returns text without what is not seen. That comes before looking for
// anything in it, which it could hide.
func visible(text string) string {
	return strings.Map(func(c rune) rune {
		if c != '\n' && unicode.In(c, unicode.Cc, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) {
			return -1
		}
		return c
	}, strings.ToValidUTF8(text, "\uFFFD"))
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
func quoteName(name string) string { return `"` + printable(name) + `"` }

// printable is quoteName without the quotes.
func printable(name string) string {
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
	return name
}
