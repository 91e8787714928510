package discovery

import (
	"bytes"
	"encoding/json"
	"io"
	"time"
)

// DialectOwn is our own dialect, {"mcpServers": {"name": {…}}}, which most
// clients share.
const DialectOwn = "mcpServers"

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

// ReadFile reads the definitions of one file of whichever client, in the
// file's order. Nothing is expanded and nothing is left out as a duplicate or
// as the bridge itself. The file is bounded and checked as those of [Load] are.
func ReadFile(path string) ([]Definition, []Problem) {
	data, err := readRegular(path, maxFileBytes)
	if err == nil {
		err = requireTrustedTarget(path)
	}
	if err != nil {
		return nil, []Problem{{File: path, Err: err}}
	}
	parsed, err := parseConfig(data)
	if err != nil {
		return nil, []Problem{{File: path, Err: err}}
	}
	var definitions []Definition
	var problems []Problem
	for _, d := range parsed {
		d.server.File = path
		if d.err != nil {
			problems = append(problems, Problem{File: path, Server: d.server.Name, Err: d.err})
			continue
		}
		definitions = append(definitions, Definition{Server: d.server, Dialect: DialectOwn})
	}
	return definitions, problems
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
