package discovery

import (
	"strconv"
	"strings"
	"unicode"
)

const (
	maxIdent = 100 // characters, before a number that makes it unique

	// pythonKeywords cannot be attribute or parameter names. Soft keywords
	// ("match", "type", …) can.
	pythonKeywords = "False None True and as assert async await break class continue def del elif else except " +
		"finally for from global if import in is lambda nonlocal not or pass raise return try while with yield"

	// toolsAttributes are the names the Python object tools has itself.
	toolsAttributes = "search servers call acall map amap read prompt resources prompts"
)

// ServerIdents returns the identifiers by which Python code reaches servers of
// these names as attributes of the object tools: valid, unique, neither
// keywords nor what tools itself offers. An earlier name never changes its
// identifier because of a later one.
func ServerIdents(names []string) []string {
	return identifiers(names, pythonKeywords+" "+toolsAttributes)
}

// MoreServerIdents is ServerIdents where some have theirs already: those that are
// not empty stay as they are, unless two are the same.
func MoreServerIdents(names, idents []string) []string {
	taken := make(map[string]bool, len(names))
	all := make([]string, len(names))
	var rest []string
	for i, ident := range idents {
		if ident == "" || taken[ident] {
			rest = append(rest, names[i])
			continue
		}
		all[i], taken[ident] = ident, true
	}
	more := uniqueIdents(rest, wordSet(pythonKeywords+" "+toolsAttributes), taken)
	for i := range all {
		if all[i] == "" {
			all[i], more = more[0], more[1:]
		}
	}
	return all
}

// ServerAliases returns for each server further names that lead to it and to no
// other: its identifier in snake_case, if it has capitals.
func ServerAliases(names, idents []string) [][]string {
	aliases := snakeAliases(names, idents)
	own := wordSet(toolsAttributes)
	for i := range aliases {
		if len(aliases[i]) > 0 && own[aliases[i][0]] {
			aliases[i] = nil
		}
	}
	return aliases
}

// memberIdents returns the identifiers of tools of one server, or parameters of
// one tool. A name that is an identifier is its own, whatever others become.
func memberIdents(names []string) []string {
	taken := make(map[string]bool, len(names))
	for _, name := range names {
		if isIdentifier(name) && !isKeyword(name) {
			taken[name] = true
		}
	}
	own := make(map[string]bool, len(taken)) // given to the first of that name
	var rest []string
	for _, name := range names {
		if !taken[name] || own[name] {
			rest = append(rest, name)
		}
		own[name] = true
	}
	var others []string
	if len(rest) > 0 {
		others = uniqueIdents(rest, wordSet(pythonKeywords), taken)
	}
	idents := make([]string, len(names))
	clear(own)
	for i, name := range names {
		if taken[name] && isIdentifier(name) && !isKeyword(name) && !own[name] {
			idents[i] = name
		} else {
			idents[i], others = others[0], others[1:]
		}
		own[name] = true
	}
	return idents
}

// isIdentifier reports whether Python takes a name as it is, keyword or not.
func isIdentifier(name string) bool {
	dunder := strings.HasPrefix(name, "__") && strings.HasSuffix(name, "__")
	if name == "" || dunder || len(name) > maxIdent || name[0] >= '0' && name[0] <= '9' {
		return false
	}
	for i := range len(name) {
		if c := name[i]; c != '_' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			return identifier(name, stableLetters()) == name
		}
	}
	return true
}

// isKeyword reports whether Python takes an identifier for a word of its own.
func isKeyword(ident string) bool {
	return strings.Contains(" "+pythonKeywords+" ", " "+ident+" ")
}

// snakeAliases returns for each thing that has a name in camelCase the same in
// snake_case, if it leads to no other.
func snakeAliases(names, idents []string) [][]string {
	count := make(map[string]int, 2*len(names))
	for i, ident := range idents {
		count[ident]++
		if names[i] != ident {
			count[names[i]]++
		}
	}
	snakes := make([]string, len(idents))
	for i, ident := range idents {
		if snake := snakeCase(ident); snake != ident && !isKeyword(snake) {
			snakes[i] = snake
			count[snake]++
		}
	}
	aliases := make([][]string, len(idents))
	for i, snake := range snakes {
		if snake != "" && count[snake] == 1 {
			aliases[i] = []string{snake}
		}
	}
	return aliases
}

// snakeCase writes createIssue as create_issue, and getURLOf as get_url_of.
func snakeCase(ident string) string {
	var b strings.Builder
	runes := []rune(ident)
	for i, r := range runes {
		if unicode.IsUpper(r) && i > 0 && runes[i-1] != '_' {
			before, after := runes[i-1], i+1 < len(runes) && unicode.IsLower(runes[i+1])
			if !unicode.IsUpper(before) || after {
				b.WriteByte('_')
			}
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

func wordSet(words string) map[string]bool {
	set := make(map[string]bool)
	for word := range strings.FieldsSeq(words) {
		set[word] = true
	}
	return set
}

// identifiers makes each name a valid identifier that is none of the reserved
// words and unique among the others.
func identifiers(names []string, reserved string) []string {
	return uniqueIdents(names, wordSet(reserved), make(map[string]bool, len(names)))
}

// uniqueIdents is identifiers where some are taken already.
func uniqueIdents(names []string, avoid, taken map[string]bool) []string {
	next := make(map[string]int)
	idents := make([]string, len(names))
	letters := stableLetters()
	for i, name := range names {
		ident := identifier(name, letters)
		if avoid[ident] || (strings.HasPrefix(ident, "__") && strings.HasSuffix(ident, "__")) {
			ident += "_" // dunder names belong to Python
		}
		base := ident
		for n := max(2, next[base]); taken[ident]; n++ {
			ident = base + "_" + strconv.Itoa(n)
			next[base] = n + 1
		}
		taken[ident] = true
		idents[i] = ident
	}
	return idents
}

// identifier replaces what cannot stand in an identifier by underscores;
// letters are those outside ASCII that can.
func identifier(name string, letters *unicode.RangeTable) string {
	var b strings.Builder
	count := 0
	for _, r := range name {
		if count++; count > maxIdent {
			break
		}
		switch {
		case r == '_' || r < 0x80 && (unicode.IsLetter(r) || unicode.IsDigit(r)) || unicode.Is(letters, r):
			b.WriteRune(r)
		default:
			b.WriteByte('_')
		}
	}
	ident := b.String()
	if ident == "" || ident[0] >= '0' && ident[0] <= '9' {
		return "_" + ident
	}
	return ident
}

// stableLetters are the letters outside ASCII that may stay. Python compares
// identifiers in normal form NFKC, so a letter that this form changes would
// make an attribute nobody can reach; these ranges hold none.
func stableLetters() *unicode.RangeTable {
	return &unicode.RangeTable{R16: []unicode.Range16{
		{Lo: 0x00C0, Hi: 0x00D6, Stride: 1}, // Latin-1
		{Lo: 0x00D8, Hi: 0x00F6, Stride: 1},
		{Lo: 0x00F8, Hi: 0x0131, Stride: 1}, // Latin Extended-A without its ligatures
		{Lo: 0x0134, Hi: 0x013E, Stride: 1},
		{Lo: 0x0141, Hi: 0x0148, Stride: 1},
		{Lo: 0x014A, Hi: 0x017E, Stride: 1},
		{Lo: 0x0388, Hi: 0x038A, Stride: 1}, // Greek
		{Lo: 0x038E, Hi: 0x03A1, Stride: 1},
		{Lo: 0x03A3, Hi: 0x03CE, Stride: 1},
		{Lo: 0x0400, Hi: 0x0481, Stride: 1}, // Cyrillic
		{Lo: 0x048A, Hi: 0x052F, Stride: 1},
		{Lo: 0x0561, Hi: 0x0586, Stride: 1}, // Armenian
		{Lo: 0x05D0, Hi: 0x05EA, Stride: 1}, // Hebrew
		{Lo: 0x0620, Hi: 0x063F, Stride: 1}, // Arabic
		{Lo: 0x0641, Hi: 0x064A, Stride: 1},
		{Lo: 0x3041, Hi: 0x3096, Stride: 1}, // Hiragana
		{Lo: 0x30A1, Hi: 0x30FA, Stride: 1}, // Katakana
		{Lo: 0x3400, Hi: 0x4DBF, Stride: 1}, // Han
		{Lo: 0x4E00, Hi: 0x9FFC, Stride: 1},
		{Lo: 0xAC00, Hi: 0xD7A3, Stride: 1}, // Hangul
	}}
}
