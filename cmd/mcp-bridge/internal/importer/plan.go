// Package importer copies the servers of other clients into the bridge's own
// folder, and can leave only the bridge in their files. Whatever it changes it
// keeps a copy of, so that the last import can be taken back.
package importer

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/internal/configedit"
	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// bridgeName is the name of the bridge's own entry in a client's file.
const bridgeName = "bridge"

// remoteStays is why a server is not taken from its client, which can use it.
const remoteStays = "stays in the client, too: the bridge does not connect to addresses yet"

// Options say what to import, and where to.
type Options struct {
	Clients    []discovery.Client
	Dir        string   // the folder that gets the servers
	StateDir   string   // below which copies of changed files are kept
	Executable string   // of the bridge, by which it knows itself; may be empty
	Command    string   // that starts the bridge
	Args       []string // of it
	Move       bool     // leave only the bridge in the clients' files
}

// What becomes of a server.
const (
	Copied  = "copied"
	Moved   = "moved"   // copied, and taken from its client
	Same    = "same"    // its definition is another's, too, which counts
	Present = "present" // the folder has it already
	Self    = "self"    // it is the bridge
	Left    = "left"    // it stays where it is; Note says why
)

// An Item is one server of a client.
type Item struct {
	Client  string `json:"client"`
	File    string `json:"file"` // in which it was found
	Server  string `json:"server"`
	Project string `json:"project,omitempty"`
	Result  string `json:"result"`         // Copied, Moved, Same, Present, Self or Left
	As      string `json:"as,omitempty"`   // its name from now on
	To      string `json:"to,omitempty"`   // the file that has it from now on
	Note    string `json:"note,omitempty"` // what else there is to say
}

// A Plan is what an import would do. It has secrets, but for Items.
type Plan struct {
	Items   []Item
	Changes []Change
	Bridges []string // the clients' files that get an entry of the bridge

	opts     Options
	servers  []kept
	taken    map[string]int // index into servers, by name
	newFiles []newFile
}

// A Change is a file as it is to be.
type Change struct {
	Path   string // of the file itself, not of a link to it
	Create bool
	Mode   fs.FileMode

	before, after []byte

	taken  []taken  // what the file loses
	bridge []string // where it gets the bridge; empty if it does not
}

// taken are members that an object of a file loses.
type taken struct {
	Object []string
	Keys   []string
}

// A kept server is one that the folder has, or will have.
type kept struct {
	server discovery.Server
	client string // that it is from; empty if it was there
	file   string
}

type newFile struct {
	path    string
	servers []int // of Plan.servers
	inputs  []discovery.Input
}

// Make reads the clients' files, and changes nothing. What is wrong with one
// of them is an Item and keeps none of the others away.
func Make(opts Options) (*Plan, error) {
	p := &Plan{opts: opts, taken: map[string]int{}}
	if err := p.readOwn(); err != nil {
		return nil, err
	}
	for _, client := range opts.Clients {
		if err := p.client(client); err != nil {
			return nil, err
		}
	}
	var created []Change
	for _, file := range p.newFiles {
		var b bytes.Buffer
		var servers []discovery.Server
		for _, i := range file.servers {
			servers = append(servers, p.servers[i].server)
		}
		if err := discovery.WriteServers(&b, servers, file.inputs...); err != nil {
			return nil, err
		}
		created = append(created, Change{Path: file.path, Create: true, Mode: 0o600, after: b.Bytes()})
	}
	p.Changes = append(created, p.Changes...) // first, so that nothing is ever nowhere
	return p, nil
}

// readOwn reads what the folder has.
func (p *Plan) readOwn() error {
	entries, err := os.ReadDir(p.opts.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if !discovery.IsConfigFile(e.Name()) {
			continue
		}
		definitions, _ := discovery.ReadFile(filepath.Join(p.opts.Dir, e.Name())) // `servers list` tells of problems
		for _, def := range definitions {
			p.keep(kept{server: def.Server, file: filepath.Join(p.opts.Dir, e.Name())})
		}
	}
	return nil
}

func (p *Plan) keep(k kept) int {
	if _, ok := p.taken[k.server.Name]; !ok {
		p.taken[k.server.Name] = len(p.servers)
	}
	p.servers = append(p.servers, k)
	return len(p.servers) - 1
}

// client plans what becomes of one client's servers. Files that two of its
// paths lead to are read once.
func (p *Plan) client(client discovery.Client) error {
	file := newFile{path: p.freeFile(client.Key)}
	bridged := map[string]bool{} // folders in which one of its files has the bridge
	seen := map[string]bool{}
	for _, path := range client.Files {
		target, err := filepath.EvalSymlinks(path)
		if err != nil || seen[target] {
			continue // it is not there
		}
		seen[target] = true
		if err := p.clientFile(client, path, target, &file, bridged); err != nil {
			return err
		}
	}
	if len(file.servers) > 0 {
		p.newFiles = append(p.newFiles, file)
	}
	return nil
}

func (p *Plan) freeFile(key string) string {
	for n := 1; ; n++ {
		name := key + ".json"
		if n > 1 {
			name = fmt.Sprintf("%s-%d.json", key, n)
		}
		path := filepath.Join(p.opts.Dir, name)
		if _, err := os.Lstat(path); err != nil {
			return path
		}
	}
}

func (p *Plan) clientFile(client discovery.Client, path, target string, file *newFile, bridged map[string]bool) error {
	definitions, problems := discovery.ReadFile(path)
	item := Item{Client: client.Name, File: path, Result: Left}
	data, err := os.ReadFile(target) //nolint:gosec // one of the user's own clients
	if err != nil || len(definitions) == 0 && !hasServers(path, data) && configedit.Valid(configedit.FormatOf(path), data) == nil {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			item.Note = err.Error()
			p.Items = append(p.Items, item)
		}
		return nil
	}
	var gone []Place
	var moved []int // of p.Items
	dialect := discovery.DialectOwn
	for i, def := range definitions {
		if i == 0 && def.Dialect != discovery.DialectProjects {
			dialect = def.Dialect
		}
		item := p.item(client, path, def, file)
		switch place, ok := Locate(path, data, def); {
		case item.Result == Self:
			bridged[filepath.Dir(target)] = true
		case !ok || item.Result == Left || !p.opts.Move:
		case def.Server.Remote():
			item.Note = strings.TrimPrefix(item.Note+"; "+remoteStays, "; ")
		default:
			gone = append(gone, place)
			if item.Result == Copied {
				moved = append(moved, len(p.Items))
			}
		}
		p.Items = append(p.Items, item)
	}
	for _, problem := range problems {
		item.Server, item.Note = problem.Server, "not read: "+problem.Err.Error()
		p.Items = append(p.Items, item)
	}
	if !p.opts.Move || len(gone) == 0 {
		return nil
	}
	changes := len(p.Changes)
	if err := p.empty(client, path, target, data, gone, dialect, bridged); err != nil {
		return err
	}
	for _, i := range moved {
		if len(p.Changes) > changes {
			p.Items[i].Result = Moved
		}
	}
	return nil
}

// item decides what becomes of one server.
func (p *Plan) item(client discovery.Client, path string, def discovery.Definition, file *newFile) Item {
	item := Item{Client: client.Name, File: path, Server: def.Server.Name, Project: def.Project}
	server := def.Server
	switch {
	case def.Dialect == discovery.DialectSingle || def.Dialect == discovery.DialectRegistry:
		item.Result, item.Note = Left, "the file is no client's"
		return item
	case server.IsBridge(p.opts.Executable):
		item.Result, item.Note = Self, "is mcp-bridge itself"
		return item
	}
	if def.Project != "" && server.Cwd == "" && !server.Remote() {
		server.Cwd = def.Project // as the client starts it
	}
	for i := range p.servers {
		if k := &p.servers[i]; sameServer(k.server, server) {
			if k.server.Disabled && !server.Disabled && k.client != "" {
				k.server.Disabled = false
			}
			item.Result, item.As, item.To = Same, k.server.Name, k.file
			item.Note = "is the same as " + k.server.Name + " of " + k.client
			if k.client == "" {
				item.Result, item.Note = Present, "is there already"
				if k.server.Name != def.Server.Name {
					item.Note += ", as " + k.server.Name
				}
				if k.server.Disabled && !server.Disabled {
					item.Note += ", disabled"
				}
			}
			return item
		}
	}
	name := server.Name
	for n := 1; ; n++ {
		if _, ok := p.taken[name]; !ok {
			break
		}
		name = server.Name + "-" + client.Key
		if n > 1 {
			name = fmt.Sprintf("%s-%d", name, n)
		}
	}
	if name != server.Name {
		item.Note = "another server has that name"
	}
	server.Name = name
	item.Result, item.As, item.To = Copied, name, file.path
	file.servers = append(file.servers, p.keep(kept{server: server, client: client.Name, file: file.path}))
	for _, in := range def.Inputs {
		if !slices.ContainsFunc(file.inputs, func(have discovery.Input) bool { return have.ID == in.ID }) {
			file.inputs = append(file.inputs, in)
		}
	}
	return item
}

// sameServer compares what servers do, whatever they are called and wherever
// they are.
func sameServer(a, b discovery.Server) bool {
	for _, s := range []*discovery.Server{&a, &b} {
		s.Name, s.Ident, s.File, s.Dialect, s.Description, s.Disabled = "", "", "", "", "", false
	}
	return a.Equal(b)
}

// empty plans a client's file without the servers that are gone, and with the
// bridge.
func (p *Plan) empty(client discovery.Client, path, target string, data []byte, gone []Place, dialect string, bridged map[string]bool) error {
	format := configedit.FormatOf(path)
	after := data
	left := func(err error) error {
		p.Items = append(p.Items, Item{
			Client: client.Name, File: path, Result: Left,
			Note: fmt.Sprintf("its servers are copied, but stay in it, too: %v; change it by hand", err),
		})
		return nil
	}
	var err error
	change := Change{Path: target, before: data}
	for len(gone) > 0 {
		object := gone[0].Path
		var keys []string
		gone = slices.DeleteFunc(gone, func(g Place) bool {
			if !slices.Equal(g.Path, object) {
				return false
			}
			keys = append(keys, g.Key)
			return true
		})
		if after, err = configedit.Remove(format, after, object, keys...); err != nil {
			return left(err)
		}
		change.taken = append(change.taken, taken{object, keys})
	}
	if dir := filepath.Dir(target); !bridged[dir] {
		object := places(dialect, "")[0]
		for _, other := range places(dialect, "") {
			if configedit.Lookup(format, data, other...) != nil {
				object = other
				break
			}
		}
		name := bridgeName
		if configedit.Lookup(format, after, append(slices.Clone(object), name)...) != nil {
			name = "mcp-bridge"
		}
		if after, err = configedit.Put(format, after, entry(dialect, p.opts.Command, p.opts.Args), append(slices.Clone(object), name)...); err != nil {
			return left(err)
		}
		change.bridge = append(slices.Clone(object), name)
		bridged[dir] = true
		p.Bridges = append(p.Bridges, path)
	}
	info, err := os.Stat(target)
	if err != nil {
		return err
	}
	change.Mode, change.after = info.Mode().Perm(), after
	p.Changes = append(p.Changes, change)
	return nil
}
