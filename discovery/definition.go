package discovery

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"time"
)

// A Definition is a server as a file defines it: variables are not expanded.
// It may hold secrets.
type Definition struct {
	Server  Server
	Dialect string  // of the file's part that it is from
	Project string  // the folder that the client uses it in; empty if everywhere
	Inputs  []Input // that the server refers to as ${input:ID} and the file describes
}

// An Input is a value that the user is asked for.
type Input struct {
	ID          string
	Description string
	Default     string
	Password    bool     // not to be shown while it is typed
	Options     []string // one of which it must be; empty for any text
}

// maxClientBytes bounds a client's file, which may have much else: ~/.claude.json
// has the history of every project.
const maxClientBytes = 32 << 20

// ReadFile reads the definitions of one file of whichever client, in the
// file's order. Nothing is expanded and nothing is left out as a duplicate or
// as the bridge itself. The file is checked as those of [Load] are, and may be larger.
func ReadFile(path string) ([]Definition, []Problem) {
	data, err := readRegular(path, maxClientBytes)
	if err == nil {
		err = requireTrustedTarget(path)
	}
	if err != nil {
		return nil, []Problem{{File: path, Err: err}}
	}
	parsed, err := parseConfig(path, data)
	if err != nil {
		return nil, []Problem{{File: path, Err: err}}
	}
	var definitions []Definition
	var problems []Problem
	for _, d := range parsed {
		if d.err != nil {
			problems = append(problems, Problem{File: path, Server: d.server.Name, Err: d.err})
			continue
		}
		definitions = append(definitions, Definition{
			Server: d.server, Dialect: d.server.Dialect, Project: d.project, Inputs: inputsOf(d.server, d.inputs),
		})
	}
	return definitions, problems
}

// inputsOf returns the inputs that a server refers to, of those described.
func inputsOf(s Server, described map[string]*Input) []Input {
	var inputs []Input
	seen := make(map[string]bool)
	for _, text := range textsOf(&s) {
		for rest := *text; ; {
			_, after, found := strings.Cut(rest, "${input:")
			if !found {
				break
			}
			id, _, _ := strings.Cut(after, "}")
			if rest = after; seen[id] || !inputID(id) {
				continue
			}
			seen[id] = true
			if in := described[id]; in != nil {
				inputs = append(inputs, *in)
			} else {
				inputs = append(inputs, Input{ID: id})
			}
		}
	}
	return inputs
}

// textsOf returns every text of a server in which variables are expanded. Env
// and Headers are not among what may be written to.
func textsOf(s *Server) []*string {
	texts := []*string{&s.Command, &s.Cwd, &s.URL, &s.EnvFile}
	for i := range s.Args {
		texts = append(texts, &s.Args[i])
	}
	for _, m := range []map[string]string{s.Env, s.Headers} {
		for _, key := range sortedKeys(m) {
			value := m[key]
			texts = append(texts, &value)
		}
	}
	return texts
}

// bracesOf rewrites OpenCode's {env:NAME} as ${NAME}.
func bracesOf(s *Server) {
	for _, m := range []map[string]string{s.Env, s.Headers} {
		for key, value := range m {
			m[key] = withoutBraces(value)
		}
	}
	for _, text := range textsOf(s) {
		*text = withoutBraces(*text)
	}
}

func withoutBraces(s string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(s, "{env:")
		name, rest, closed := strings.Cut(after, "}")
		switch {
		case !found || !closed:
			b.WriteString(s)
			return b.String()
		case strings.HasSuffix(before, "$") || !variableName(name):
			b.WriteString(before + "{env:")
			s = after
		default:
			b.WriteString(before + "${" + name + "}")
			s = rest
		}
	}
}

// WriteServers writes servers as they are, placeholders included, in our own
// dialect, such that [ReadFile] reads the same; inputs are those that they refer
// to. It may hold secrets: a file of it is for nobody but the user.
func WriteServers(w io.Writer, servers []Server, inputs ...Input) error {
	var file struct {
		Inputs  []writtenInput `json:"inputs,omitempty"`
		Servers orderedServers `json:"mcpServers"`
	}
	file.Servers = servers
	for _, in := range inputs {
		written := writtenInput{Type: "promptString", ID: in.ID, Description: in.Description, Default: in.Default, Password: in.Password, Options: in.Options}
		if len(in.Options) > 0 {
			written.Type = "pickString"
		}
		file.Inputs = append(file.Inputs, written)
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(file)
}

type writtenInput struct {
	Type        string   `json:"type"`
	ID          string   `json:"id"`
	Description string   `json:"description,omitempty"`
	Default     string   `json:"default,omitempty"`
	Password    bool     `json:"password,omitempty"`
	Options     []string `json:"options,omitempty"`
}

// orderedServers is an object of servers by name, in their order.
type orderedServers []Server

func (o orderedServers) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	b.WriteByte('{')
	for i, s := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := e.Encode(s.Name); err != nil {
			return nil, err
		}
		b.WriteByte(':')
		if err := e.Encode(written(s)); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// A writtenServer is a server in our own dialect.
type writtenServer struct {
	Type        string            `json:"type,omitempty"`
	Command     string            `json:"command,omitempty"`
	Args        []string          `json:"args,omitempty"`
	Env         map[string]string `json:"env,omitempty"`
	EnvFile     string            `json:"envFile,omitempty"`
	Cwd         string            `json:"cwd,omitempty"`
	URL         string            `json:"url,omitempty"`
	Headers     map[string]string `json:"headers,omitempty"`
	Description string            `json:"description,omitempty"`
	Disabled    bool              `json:"disabled,omitempty"`
	Timeout     string            `json:"timeout,omitempty"`
	Tools       *writtenTools     `json:"tools,omitempty"`
	Approve     []string          `json:"approve,omitempty"`
	AutoApprove []string          `json:"autoApprove,omitempty"`
	Concurrency int               `json:"concurrency,omitempty"`
	Idle        string            `json:"idle,omitempty"`
}

type writtenTools struct {
	Allow []string `json:"allow,omitempty"`
	Deny  []string `json:"deny,omitempty"`
}

func written(s Server) writtenServer {
	w := writtenServer{
		Command: s.Command, Args: s.Args, Env: s.Env, EnvFile: s.EnvFile, Cwd: s.Cwd, URL: s.URL, Headers: s.Headers,
		Description: s.Description, Disabled: s.Disabled,
		Approve: s.Approve, AutoApprove: s.AutoApprove, Concurrency: s.Concurrency,
		Timeout: writtenDuration(s.Timeout), Idle: writtenDuration(s.Idle),
	}
	if s.Remote() {
		w.Type = s.Type
	}
	if len(s.AllowTools)+len(s.DenyTools) > 0 {
		w.Tools = &writtenTools{s.AllowTools, s.DenyTools}
	}
	return w
}

// writtenDuration is "" for 0, and "never" for what is below it.
func writtenDuration(d time.Duration) string {
	switch {
	case d == 0:
		return ""
	case d < 0:
		return "never"
	}
	return d.String()
}
