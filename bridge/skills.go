package bridge

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/mcp-bridge/mcp-bridge/bridge/internal/store"
	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// skillsServer is the server that skills are tools of, for searches. It is no
// name that somebody would give to a server of theirs.
const skillsServer = "@skills"

// maxSkillSignature bounds what is shown of a skill's parameters, in bytes.
const maxSkillSignature = 400

var skillName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,63}$`)

// skillDocs remembers what is known of skills, by their stamps.
type skillDocs struct {
	mu    sync.Mutex
	known map[string]skillDoc // by key
}

type skillDoc struct {
	stamp     string
	tool      discovery.Tool
	signature string
}

// Skills returns the kept skills as the tools of a server, for searches, and a
// version that changes when they do. Without any there is no server, and no
// version.
func (b *Bridge) Skills() (discovery.IndexedServer, string) {
	var none discovery.IndexedServer
	s, err := b.openStore()
	if err != nil {
		return none, ""
	}
	area := s.Area("skills", stateLimits()["skills"])
	entries, err := area.List()
	if err != nil {
		b.log.Warn("skills could not be listed", "error", err)
		return none, ""
	}
	slices.SortFunc(entries, func(x, y store.Entry) int { return strings.Compare(x.Key, y.Key) })
	docs := b.skills.read(area, entries)
	if len(docs) == 0 {
		return none, ""
	}
	server := discovery.Server{Name: skillsServer, Ident: "skills", Description: "functions kept across sessions"}
	tools := make([]discovery.Tool, len(docs))
	version := sha256.New()
	for i, doc := range docs {
		tools[i] = doc.tool
		_, _ = io.WriteString(version, doc.tool.Name+" "+doc.stamp+"\n") // a hash takes everything
	}
	indexed := discovery.IndexedServer{Server: server, Tools: discovery.Document(server, tools), Listed: true}
	for i, doc := range docs {
		indexed.Tools[i].Signature = "skills." + doc.tool.Name + doc.signature
	}
	return indexed, hex.EncodeToString(version.Sum(nil))
}

// read returns what is known of the entries; it reads those that have changed.
func (d *skillDocs) read(area *store.Area, entries []store.Entry) []skillDoc {
	d.mu.Lock()
	defer d.mu.Unlock()
	known := make(map[string]skillDoc, len(entries))
	var docs []skillDoc
	for _, entry := range entries {
		doc, ok := d.known[entry.Key]
		if !ok || doc.stamp != entry.Stamp {
			doc = readSkill(area, entry)
		}
		known[entry.Key] = doc
		if doc.tool.Name != "" {
			docs = append(docs, doc)
		}
	}
	d.known = known
	return docs
}

// readSkill returns a document without a name for what is no skill. What is in an
// entry a cell has written, so none of it is taken as it is.
func readSkill(area *store.Area, entry store.Entry) skillDoc {
	doc := skillDoc{stamp: entry.Stamp}
	data, err := area.Get(entry.Key)
	var record struct {
		Signature   string   `json:"signature"`
		Description string   `json:"description"`
		Tags        []string `json:"tags"`
	}
	if err != nil || !skillName.MatchString(entry.Key) || json.Unmarshal(openEnvelope(data).value, &record) != nil {
		return doc
	}
	doc.tool = discovery.Tool{Name: entry.Key, Title: strings.Join(record.Tags, " "), Description: record.Description}
	doc.signature = "(...)"
	shown := !strings.ContainsFunc(record.Signature, func(r rune) bool { return !unicode.IsPrint(r) })
	if shown && strings.HasPrefix(record.Signature, "(") && len(record.Signature) <= maxSkillSignature {
		doc.signature = record.Signature
	}
	return doc
}
