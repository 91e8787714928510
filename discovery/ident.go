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

// identifiers makes each name a valid identifier that is none of the reserved
// words and unique among the others.
func identifiers(names []string, reserved string) []string {
	avoid := make(map[string]bool)
	for word := range strings.FieldsSeq(reserved) {
		avoid[word] = true
	}
	taken := make(map[string]bool, len(names))
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
