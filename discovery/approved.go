package discovery

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Bounds of what is known of the tools of one server that were seen.
const (
	approvedVersion = 2 // 1 had digests of how a server wrote its JSON
	maxApprovedFile = 16 << 20
	maxApproved     = 5_000
)

// seen is what is known of one tool: what the user trusts, and what there is
// now if that is something else.
type seen struct {
	Digest      string    `json:"digest"`
	Since       time.Time `json:"since"`
	Description string    `json:"description,omitempty"`
	Params      []string  `json:"params"`        // their names, fit to be shown; nil if they are not known
	New         bool      `json:"new,omitempty"` // it came later than the server's other tools, and nobody looked at it

	Now     string    `json:"now,omitempty"` // digest
	Changed time.Time `json:"changed,omitzero"`
}

type approvedFile struct {
	Version int              `json:"version"`
	Server  string           `json:"server"`
	Tools   map[string]*seen `json:"tools"`
}

// A Change is a tool that is not what the user has approved, or saw first. Its texts
// are fit to be shown.
type Change struct {
	Tool   string
	New    bool      // it was not there when the server's tools were first seen, which marks or blocks nothing
	Since  time.Time // when it was first seen to be another
	Before string    // its description as it was approved, in short
	Digest string    // of what it is now

	// Of Changes alone, and empty if what it is now is not at hand:
	Now            string   // its description
	Added, Removed []string // parameters
}

// digest identifies all that a server says of a tool, not how it writes that.
func (t Tool) digest() string {
	h := sha256.New()
	for _, part := range [][]byte{
		[]byte(t.Name), []byte(t.Title), []byte(t.Description),
		canonicalJSON(t.InputSchema), canonicalJSON(t.OutputSchema), canonicalJSON(t.Annotations),
	} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Review compares the tools of a server with what the user has approved, and
// returns those that changed since, by their names. A tool that is seen for the
// first time counts as approved as it is; so does a server that another command, or
// other arguments, start. An error says why what was seen is not remembered; the
// changes count all the same.
func (c *Catalog) Review(s Server, tools []Tool) (map[string]Change, error) {
	known := c.approved(s)
	if !note(known, tools) {
		return changesOf(known, tools), nil
	}
	err := c.editApproved(s, func(latest map[string]*seen) {
		known = latest
		note(known, tools)
	})
	return changesOf(known, tools), err
}

// A ReviewState is what was approved of a server, and seen of it, at a time.
type ReviewState struct{ file os.FileInfo }

// Same reports whether nothing happened between the two.
func (r ReviewState) Same(other ReviewState) bool {
	if r.file == nil || other.file == nil {
		return r.file == other.file
	}
	return os.SameFile(r.file, other.file) && r.file.ModTime().Equal(other.file.ModTime()) && r.file.Size() == other.file.Size()
}

// ReviewState returns that of now.
func (c *Catalog) ReviewState(s Server) ReviewState {
	info, err := os.Stat(c.approvedPath(s))
	if err != nil {
		return ReviewState{}
	}
	return ReviewState{info}
}

// Changes returns the tools of a server that changed since they were approved, or
// came since the server was, as they were seen last, in order of their names.
func (c *Catalog) Changes(s Server) []Change {
	now := c.toolsNow(s)
	var changes []Change
	for name, is := range c.approved(s) {
		change, ok := is.change(name)
		if !ok {
			continue
		}
		if tool, ok := now[name]; ok && tool.digest() == change.Digest {
			change.Now = tool.Shortly()
			if params := tool.paramNames(); is.Params != nil && !is.New {
				change.Added, change.Removed = without(params, is.Params), without(is.Params, params)
			}
		}
		changes = append(changes, change)
	}
	slices.SortFunc(changes, func(a, b Change) int { return cmp.Compare(a.Tool, b.Tool) })
	return changes
}

// change is what the user has not approved of a tool.
func (is *seen) change(name string) (Change, bool) {
	switch {
	case is.New:
		return Change{Tool: name, New: true, Since: is.Since, Digest: cmp.Or(is.Now, is.Digest)}, true
	case is.Now != "":
		return Change{Tool: name, Since: is.Changed, Before: is.Description, Digest: is.Now}, true
	}
	return Change{}, false
}

func (c *Catalog) toolsNow(s Server) map[string]Tool {
	now := map[string]Tool{}
	entry, _ := c.Get(s)
	for _, tool := range entry.Tools {
		now[tool.Name] = tool
	}
	return now
}

// without are the names that are not among others.
func without(names, others []string) (rest []string) {
	for _, name := range names {
		if !slices.Contains(others, name) {
			rest = append(rest, name)
		}
	}
	return rest
}

// Approve approves what Changes returned, and nothing that changed again since. It
// returns how many tools that were.
func (c *Catalog) Approve(s Server, changes []Change) (int, error) {
	now := c.toolsNow(s)
	count := 0
	err := c.editApproved(s, func(known map[string]*seen) {
		for _, shown := range changes {
			is := known[shown.Tool]
			if is == nil {
				continue
			}
			if latest, ok := is.change(shown.Tool); !ok || latest.Digest != shown.Digest {
				continue
			}
			approved := &seen{Digest: shown.Digest, Since: time.Now().UTC()}
			if tool, ok := now[shown.Tool]; ok && tool.digest() == shown.Digest {
				approved.Description, approved.Params = tool.Shortly(), tool.paramNames()
			}
			known[shown.Tool] = approved
			count++
		}
	})
	return count, err
}

// paramNames are the names of the tool's first parameters, fit to be shown.
func (t Tool) paramNames() []string {
	names := []string{}
	if properties := parseSchema(t.InputSchema, maxSchemaBytes).get("properties"); properties != nil {
		for _, m := range properties.members[:min(len(properties.members), maxParams)] {
			names = append(names, cleanLine(m.key, maxTitle))
		}
	}
	return names
}

// Shortly is the tool's description on one line, fit to be shown.
func (t Tool) Shortly() string { return cleanLine(t.Description, maxParamDescription) }

// note takes what is offered into what is known, and reports whether that changed it.
func note(known map[string]*seen, tools []Tool) bool {
	changed, first := false, len(known) == 0
	now := time.Now().UTC().Truncate(time.Second)
	for _, tool := range tools {
		digest, is := tool.digest(), known[tool.Name]
		switch {
		case is == nil && len(known) < maxApproved:
			known[tool.Name] = &seen{Digest: digest, Since: now, Description: tool.Shortly(), Params: tool.paramNames(), New: !first}
		case is == nil, is.Digest == digest && is.Now == "", is.Now == digest:
			continue
		case is.Digest == digest: // it is as it was again
			is.Now, is.Changed = "", time.Time{}
		default:
			is.Now = digest
			if is.Changed.IsZero() {
				is.Changed = now
			}
		}
		changed = true
	}
	return changed
}

func changesOf(known map[string]*seen, tools []Tool) map[string]Change {
	changes := map[string]Change{}
	for _, tool := range tools {
		if is := known[tool.Name]; is != nil && is.Now != "" {
			changes[tool.Name] = Change{Tool: tool.Name, Since: is.Changed, Before: is.Description, Digest: is.Now}
		}
	}
	return changes
}

// approvedPath names the file by the server and what starts it, but not by
// variables and headers: a new token makes no other server.
func (c *Catalog) approvedPath(s Server) string {
	s.Env, s.Headers = nil, nil
	sum := sha256.Sum256([]byte(s.Name + "\x00" + s.Fingerprint()))
	return filepath.Join(c.dir, "approved-"+hex.EncodeToString(sum[:16])) // without .json: it does not go stale
}

// approved reads what is known of a server's tools. What is damaged is not known.
func (c *Catalog) approved(s Server) map[string]*seen {
	data, err := readRegular(c.approvedPath(s), maxApprovedFile)
	if err != nil {
		return map[string]*seen{}
	}
	var f approvedFile
	if json.Unmarshal(data, &f) != nil || f.Version != approvedVersion || f.Server != s.Name || f.Tools == nil || len(f.Tools) > maxApproved {
		return map[string]*seen{}
	}
	maps.DeleteFunc(f.Tools, func(_ string, is *seen) bool { return is == nil })
	return f.Tools
}

// editApproved changes what is known of a server's tools, one process at a time.
func (c *Catalog) editApproved(s Server, edit func(map[string]*seen)) error {
	unlock, err := lockFile(filepath.Join(c.dir, "approved.lock"))
	if err != nil {
		edit(c.approved(s)) // for what is returned of it
		return fmt.Errorf("catalog %s: %w", s.Name, withoutPath(err))
	}
	defer unlock()
	known := c.approved(s)
	edit(known)
	data, err := json.Marshal(approvedFile{approvedVersion, s.Name, known})
	if err != nil {
		return fmt.Errorf("catalog %s: %w", s.Name, err)
	}
	if err := c.write(c.approvedPath(s), data); err != nil {
		return fmt.Errorf("catalog %s: %w", s.Name, withoutPath(err))
	}
	return nil
}
