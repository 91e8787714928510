package discovery

import (
	"slices"
	"strings"
)

// An intent is what is to be done with a thing: who wants to make one is not
// helped by a tool that deletes it, however well all other words fit.
type intent int

const (
	intentNone intent = iota
	intentAdd
	intentRemove
	intentChange
	intentGet
	intentCount
)

// intentTable lists the verbs of each intent. Verbs of several, such as "open",
// "set" and "check", are in none.
const intentTable = `
create add make insert generate build write store save remember memorize register append
delete remove drop erase destroy clear forget purge discard
edit update modify change alter patch rename
get read list show view fetch retrieve search find lookup recall describe look know
`

// How a tool counts whose name has another verb than what was asked for.
const (
	otherIntent    = 0.8
	oppositeIntent = 0.5 // making and deleting
)

// intentOf returns that of a verb, in any of its forms; "generation" is none.
func (s *synonyms) intentOf(word string) intent {
	if strings.HasSuffix(word, "ion") {
		return intentNone
	}
	return s.intents[stem(word)]
}

func intentsByStem() map[string]intent {
	intents := make(map[string]intent)
	next := intentNone // before the first line, which is empty
	for line := range strings.Lines(intentTable) {
		for verb := range strings.FieldsSeq(line) {
			intents[stem(verb)] = next
		}
		next++
	}
	return intents
}

// intents returns which are in a request: in a short one the verb it begins with,
// as words behind that may be names of things ("store", "build"). What a question
// asks about has happened already: "when was it changed" wants nothing changed.
func (q *query) intents(s *synonyms) (has [intentCount]bool) {
	question := len(q.words) > 0 && slices.Contains([]string{"how", "when", "what", "which", "who", "where", "was", "is", "are"}, q.words[0])
	for _, w := range q.words {
		i := s.intentOf(w)
		if question && (i == intentAdd || i == intentRemove || i == intentChange) && strings.HasSuffix(w, "ed") {
			i = intentGet
		}
		has[i] = true
		if !q.long && !question && !s.stop[w] {
			break
		}
	}
	has[intentNone] = false
	return has
}

// agreement is what a tool counts whose name begins with a verb of have, where
// these were asked for.
func agreement(asked [intentCount]bool, have intent, long bool) float64 {
	switch {
	case have == intentNone || asked == [intentCount]bool{}:
		return 1
	case asked[have]:
	case have == intentRemove && asked[intentAdd], have == intentAdd && asked[intentRemove]:
		return oppositeIntent
	case long: // a task has several steps
		return 1
	}
	return otherIntent
}
