package discovery

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	// catalogVersion is the format of the files. Other versions are ignored,
	// and overwritten when the server is next listed.
	catalogVersion = 1

	maxCatalogFile  = 16 << 20
	maxCatalogTools = 20_000

	// Files older than these are removed when a catalog is opened: temporary
	// files of processes that died, and entries of servers long gone.
	staleTemporary = time.Hour
	staleEntry     = 90 * 24 * time.Hour

	temporaryPrefix = ".new-"
)

// An Entry is what a server offered when it was last asked.
type Entry struct {
	Fingerprint string
	Fetched     time.Time
	Tools       []Tool
}

// A Catalog remembers on disk which tools servers offer, so that searching
// needs no server to run. It is a cache: damage to it costs a new listing and
// nothing else. It is safe for concurrent use by any number of processes, and
// holds nothing that must be closed.
type Catalog struct{ dir string }

// OpenCatalog opens the catalog in dir and creates the folder, readable by the
// user alone, if need be.
func OpenCatalog(dir string) (*Catalog, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open catalog: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("open catalog: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		if err := os.Chmod(dir, 0o700); err != nil { //nolint:gosec // a folder needs x
			return nil, fmt.Errorf("open catalog: %w", err)
		}
	}
	c := &Catalog{dir}
	c.sweep()
	return c, nil
}

// catalogFile is the content of a file.
type catalogFile struct {
	Version     int       `json:"version"`
	Server      string    `json:"server"`
	Fingerprint string    `json:"fingerprint"`
	Fetched     time.Time `json:"fetched"`
	Tools       []Tool    `json:"tools"`
}

// Get returns the entry of exactly this definition of the server. It reports
// false if there is none or it cannot be used.
func (c *Catalog) Get(s Server) (Entry, bool) {
	data, err := readRegular(c.path(s), maxCatalogFile)
	if err != nil {
		return Entry{}, false
	}
	// The version first: a later format may differ in any other way.
	var head struct {
		Version int `json:"version"`
	}
	if json.Unmarshal(data, &head) != nil || head.Version != catalogVersion {
		return Entry{}, false
	}
	var f catalogFile
	if json.Unmarshal(data, &f) != nil || f.Server != s.Name || f.Fingerprint != s.Fingerprint() || len(f.Tools) > maxCatalogTools {
		return Entry{}, false
	}
	return Entry{Fingerprint: f.Fingerprint, Fetched: f.Fetched, Tools: f.Tools}, true
}

// Put stores the tools of a server and removes what was stored for other
// definitions of it. Readers see the old entry or the new one, never a part.
func (c *Catalog) Put(s Server, tools []Tool) error {
	if len(tools) > maxCatalogTools {
		return fmt.Errorf("catalog %s: %d tools, more than %d", s.Name, len(tools), maxCatalogTools)
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // or schemas are not what the server wrote
	err := encoder.Encode(catalogFile{
		Version:     catalogVersion,
		Server:      s.Name,
		Fingerprint: s.Fingerprint(),
		Fetched:     time.Now().UTC(),
		Tools:       tools,
	})
	data := text.Bytes()
	if err != nil {
		return fmt.Errorf("catalog %s: %w", s.Name, err)
	}
	if len(data) > maxCatalogFile {
		return fmt.Errorf("catalog %s: %d MiB, more than %d", s.Name, len(data)>>20, maxCatalogFile>>20)
	}
	path := c.path(s)
	if err := c.write(path, data); err != nil {
		return fmt.Errorf("catalog %s: %w", s.Name, err)
	}
	c.removeOthers(s, path)
	return nil
}

// Age is how long ago the server was last listed with this definition. It
// reports false if nothing is known of it.
func (c *Catalog) Age(s Server) (time.Duration, bool) {
	info, err := os.Stat(c.path(s))
	if err != nil {
		return 0, false
	}
	return time.Since(info.ModTime()), true
}

// Renew notes that the server was listed, and offers what it did before.
func (c *Catalog) Renew(s Server) {
	if age, ok := c.Age(s); ok && age > time.Hour {
		now := time.Now()
		_ = os.Chtimes(c.path(s), now, now) // or it is listed again
	}
}

// write replaces a file in one step. It is not synced to the disk: a file that
// a crash leaves empty is ignored like any other damage.
func (c *Catalog) write(path string, data []byte) (err error) {
	f, err := os.CreateTemp(c.dir, temporaryPrefix+"*") // of mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	if _, err := f.Write(data); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// path names the file of a definition: the server, then the fingerprint. The
// name is hashed because it may hold anything.
func (c *Catalog) path(s Server) string {
	return filepath.Join(c.dir, filePrefix(s)+s.Fingerprint()[:32]+".json")
}

func filePrefix(s Server) string {
	sum := sha256.Sum256([]byte(s.Name))
	return hex.EncodeToString(sum[:16]) + "-"
}

// removeOthers removes the entries of the server's other definitions. What
// cannot be removed now is removed when it has become stale.
func (c *Catalog) removeOthers(s Server, keep string) {
	prefix := filePrefix(s)
	for _, e := range c.entries() {
		if path := filepath.Join(c.dir, e.Name()); strings.HasPrefix(e.Name(), prefix) && path != keep && path != c.shapesPath(s) {
			_ = os.Remove(path)
		}
	}
}

// sweep removes what is stale, as far as it can.
func (c *Catalog) sweep() {
	for _, e := range c.entries() {
		limit := staleEntry
		if strings.HasPrefix(e.Name(), temporaryPrefix) {
			limit = staleTemporary
		} else if !strings.HasSuffix(e.Name(), ".json") {
			continue // not ours
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > limit {
			_ = os.Remove(filepath.Join(c.dir, e.Name()))
		}
	}
}

func (c *Catalog) entries() []os.DirEntry {
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return nil // the folder was removed; the next Put says so
	}
	return entries
}
