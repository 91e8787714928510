package discovery

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"maps"
	"reflect"
	"time"
)

// The types of servers: how they are reached.
const (
	TypeStdio = "stdio" // a process of the user's, started with Command
	TypeHTTP  = "http"  // Streamable HTTP at URL
	TypeSSE   = "sse"   // the HTTP with server-sent events of 2024, at URL
)

// A Server is one configured MCP server, with variables already expanded.
//
// Args, Env, URL and Headers may hold secrets: they are left out of JSON, and
// printing or logging a Server shows its name only.
type Server struct {
	Name        string            `json:"name"`
	Ident       string            `json:"ident"` // the Python identifier, unique in a Config
	Description string            `json:"description,omitempty"`
	Type        string            `json:"type,omitempty"` // TypeStdio, TypeHTTP or TypeSSE; empty is as TypeStdio
	Command     string            `json:"command"`
	Args        []string          `json:"-"`
	Env         map[string]string `json:"-"` // in addition to the inherited environment
	EnvFile     string            `json:"-"` // of a Definition only: Load has put what it says into Env
	Cwd         string            `json:"cwd,omitempty"`
	URL         string            `json:"-"`
	Headers     map[string]string `json:"-"`
	Disabled    bool              `json:"disabled,omitempty"` // never to be started; variables may be unexpanded
	File        string            `json:"file"`               // path of the file that defines it
	Dialect     string            `json:"dialect,omitempty"`  // in which it is written there

	Timeout     time.Duration `json:"-"`                     // of one call; 0 for the bridge's own
	AllowTools  []string      `json:"allowTools,omitempty"`  // globs; tools that none matches are not there; empty allows all
	DenyTools   []string      `json:"denyTools,omitempty"`   // globs; tools that one matches are not there
	Approve     []string      `json:"approve,omitempty"`     // globs; calls of tools that one matches need the user's approval
	AutoApprove []string      `json:"autoApprove,omitempty"` // globs; tools that one matches are exempt from Approve
	Concurrency int           `json:"concurrency,omitempty"` // calls at a time; 0 for the bridge's own
	Idle        time.Duration `json:"-"`                     // without a call, after which it is stopped; 0 for the bridge's own, below 0 for never
}

// Remote reports whether the server is reached over HTTP, and not started.
func (s Server) Remote() bool { return s.Type == TypeHTTP || s.Type == TypeSSE }

// Fingerprint identifies the definition: it changes whenever something else
// would be started or connected to, and with nothing else.
func (s Server) Fingerprint() string {
	def := struct {
		Command string
		Args    []string
		Env     map[string]string
		Cwd     string
		Type    string            `json:",omitempty"`
		URL     string            `json:",omitempty"`
		Headers map[string]string `json:",omitempty"`
	}{Command: s.Command, Args: append([]string{}, s.Args...), Env: maps.Clone(s.Env), Cwd: s.Cwd}
	if def.Env == nil {
		def.Env = map[string]string{}
	}
	if s.Remote() {
		def.Type, def.URL, def.Headers = s.Type, s.URL, s.Headers
	}
	// Marshalling strings cannot fail, and maps are written in key order.
	text, _ := json.Marshal(def)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Equal reports whether two definitions are the same in everything, such as
// the approval of tools and the file; empty lists and absent ones are the same.
func (s Server) Equal(other Server) bool {
	return reflect.DeepEqual(s.normal(), other.normal())
}

// normal is s with nil for what is empty.
func (s Server) normal() Server {
	for _, list := range []*[]string{&s.Args, &s.AllowTools, &s.DenyTools, &s.Approve, &s.AutoApprove} {
		if len(*list) == 0 {
			*list = nil
		}
	}
	for _, m := range []*map[string]string{&s.Env, &s.Headers} {
		if len(*m) == 0 {
			*m = nil
		}
	}
	if s.Type == "" {
		s.Type = TypeStdio
	}
	return s
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
	// Kept names the servers whose definition is one read before, for what there
	// is now cannot be used; see Watch. Load keeps none.
	Kept []string
}
