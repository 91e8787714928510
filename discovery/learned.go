package discovery

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
)

// Bounds of what is kept of the results of one server's tools.
const (
	shapesVersion  = 3 // those before had names in them that may be data
	maxShapesFile  = 8 << 20
	maxShapesTools = 5_000
	shapesSuffix   = ".shapes.json"
)

// Learned is what is known of the results of a tool.
type Learned struct {
	Definition string `json:"definition"` // of the tool it is about, as Definition has it
	Shape      *Shape `json:"shape"`
}

// Definition identifies what a server says of a tool. What was learned of its
// results is void when it changes.
func (t Tool) Definition() string {
	h := sha256.New()
	for _, part := range []string{t.Name, t.Description, string(t.InputSchema), string(t.OutputSchema)} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Learnable reports whether the tool's server leaves open what the tool returns.
// It knows only of documents as Document made them.
func (d ToolDoc) Learnable() bool { return d.learnable }

// WithShape returns the document of a tool with what was learned of its results
// as the return type. It is for tools that are Learnable.
func (d ToolDoc) WithShape(s *Shape) ToolDoc {
	call := strings.TrimSuffix(d.Signature, arrow(d.Returns))
	if returns := s.String(); returns != anyType {
		d.Returns = returns
	}
	d.Signature = call + arrow(d.Returns)
	return d
}

// shapesFile is the content of a file of shapes.
type shapesFile struct {
	Version     int                `json:"version"`
	Server      string             `json:"server"`
	Fingerprint string             `json:"fingerprint"`
	Tools       map[string]Learned `json:"tools"`
}

func (c *Catalog) shapesPath(s Server) string {
	return strings.TrimSuffix(c.path(s), ".json") + shapesSuffix
}

// Shapes returns what was learned of the results of a server's tools, by their
// names. It is a cache, as the rest of the catalog is.
func (c *Catalog) Shapes(s Server) map[string]Learned {
	data, err := readRegular(c.shapesPath(s), maxShapesFile)
	if err != nil {
		return nil
	}
	var f shapesFile
	if json.Unmarshal(data, &f) != nil || f.Version != shapesVersion || f.Server != s.Name || f.Fingerprint != s.Fingerprint() ||
		len(f.Tools) > maxShapesTools {
		return nil
	}
	for name, learned := range f.Tools {
		if learned.Shape == nil || !learned.Shape.usable(0) {
			delete(f.Tools, name)
		}
	}
	return f.Tools
}

// PutShapes adds to what was learned of a server's tools, and forgets what is
// about others than these, or about these as they were.
func (c *Catalog) PutShapes(s Server, tools []Tool, learned map[string]Learned) error {
	known := c.Shapes(s) // another process may have learned more
	kept := make(map[string]Learned, len(learned))
	for _, tool := range tools[:min(len(tools), maxShapesTools)] {
		mine, isMine := learned[tool.Name]
		other, isOther := known[tool.Name]
		definition := tool.Definition()
		isMine, isOther = isMine && mine.Definition == definition, isOther && other.Definition == definition
		switch {
		case isMine && isOther:
			kept[tool.Name] = Learned{definition, other.Shape.Merged(mine.Shape)}
		case isMine:
			kept[tool.Name] = mine
		case isOther:
			kept[tool.Name] = other
		}
	}
	data, err := json.Marshal(shapesFile{shapesVersion, s.Name, s.Fingerprint(), kept})
	if err != nil {
		return fmt.Errorf("catalog %s: %w", s.Name, err)
	}
	if len(data) > maxShapesFile {
		return fmt.Errorf("catalog %s: shapes of %d MiB, more than %d", s.Name, len(data)>>20, maxShapesFile>>20)
	}
	if err := c.write(c.shapesPath(s), data); err != nil {
		return fmt.Errorf("catalog %s: %w", s.Name, err)
	}
	return nil
}
