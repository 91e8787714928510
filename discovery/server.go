package discovery

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"maps"
)

// A Server is one configured MCP server, with variables already expanded.
//
// Args and Env may hold secrets: they are left out of JSON, and printing or
// logging a Server shows its name only.
type Server struct {
	Name        string            `json:"name"`
	Ident       string            `json:"ident"` // the Python identifier, unique in a Config
	Description string            `json:"description,omitempty"`
	Command     string            `json:"command"`
	Args        []string          `json:"-"`
	Env         map[string]string `json:"-"` // in addition to the inherited environment
	Cwd         string            `json:"cwd,omitempty"`
	Disabled    bool              `json:"disabled,omitempty"` // never to be started; variables may be unexpanded
	File        string            `json:"file"`               // path of the file that defines it
}

// Fingerprint identifies the definition: it changes whenever something else
// would be started, and with nothing else.
func (s Server) Fingerprint() string {
	def := struct {
		Command string
		Args    []string
		Env     map[string]string
		Cwd     string
	}{s.Command, append([]string{}, s.Args...), maps.Clone(s.Env), s.Cwd}
	if def.Env == nil {
		def.Env = map[string]string{}
	}
	// Marshalling strings cannot fail, and maps are written in key order.
	text, _ := json.Marshal(def)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// String returns the server's name.
func (s Server) String() string { return s.Name }

// GoString returns the server's name, so that %#v shows no secrets either.
func (s Server) GoString() string { return "discovery.Server{" + s.Name + "}" }

// LogValue shows the name and the file.
func (s Server) LogValue() slog.Value {
	return slog.GroupValue(slog.String("name", s.Name), slog.String("file", s.File))
}

// ident is the server's identifier even where nobody has assigned one.
func (s Server) ident() string {
	if s.Ident != "" {
		return s.Ident
	}
	return ServerIdents([]string{s.Name})[0]
}

// A Problem is something in the configuration that was left out, and why. Its
// text never contains values of arguments, of variables or of the environment.
type Problem struct {
	File   string // path; empty if it concerns no single file
	Server string // name; empty if it concerns the whole file
	Err    error
}

// String returns "file: server: what".
func (p Problem) String() string {
	text := p.Err.Error()
	if p.Server != "" {
		text = cleanLine(p.Server, maxServerName) + ": " + text
	}
	if p.File != "" {
		text = cleanLine(p.File, maxPathShown) + ": " + text
	}
	return text
}

// A Config is everything found in the configuration folders.
type Config struct {
	Servers  []Server  // in order of folders, files and definitions
	Problems []Problem // in the same order
}
