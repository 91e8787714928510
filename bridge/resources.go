package bridge

import (
	"context"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge/internal/workspace"
)

const (
	fileScheme   = "workspace"
	maxResource  = 8 << 20 // bytes of a file that are read as a resource
	sniffed      = 512     // bytes that tell what a file is
	filesPerPage = 500
)

// fileResources shows one client the files of the workspace as MCP resources.
type fileResources struct {
	bridge *Bridge
	server *mcp.Server

	mu      sync.Mutex
	version int64
	shown   map[string]workspace.File // by URI
}

// keepsFiles reports whether there is to be a workspace.
func (b *Bridge) keepsFiles() bool { return b.opts.StateDir != "" && b.opts.WorkspaceQuota >= 0 }

// addResources has server list and read the files of the workspace, and tell its
// clients after a call that has changed them.
func (b *Bridge) addResources(server *mcp.Server) {
	r := &fileResources{bridge: b, server: server, shown: map[string]workspace.File{}}
	server.AddResourceTemplate(&mcp.ResourceTemplate{
		Name: "workspace", Title: "Files of run_python", URITemplate: fileScheme + ":///{+path}",
		Description: "A file that Python has kept in its workspace, or that the user has put there",
	}, r.read)
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == "resources/list" {
				r.refresh(ctx)
			}
			result, err := next(ctx, method, req)
			if method == "tools/call" {
				r.refresh(context.WithoutCancel(ctx))
			}
			return result, err
		}
	})
}

// refresh makes what is listed what there is.
func (r *fileResources) refresh(ctx context.Context) {
	store, err := r.bridge.openFiles()
	if err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if store.Version(ctx) == r.version {
		return
	}
	listing := store.List(ctx)
	r.version = listing.Version
	now := map[string]workspace.File{}
	for _, file := range listing.Files {
		uri := fileURI(file.Path)
		now[uri] = file
		if r.shown[uri] != file {
			r.server.AddResource(resourceOf(uri, file), r.read)
		}
	}
	var gone []string
	for uri := range r.shown {
		if _, there := now[uri]; !there {
			gone = append(gone, uri)
		}
	}
	r.server.RemoveResources(gone...)
	r.shown = now
}

// fileURI is workspace:///a/b%20c.txt for a/b c.txt.
func fileURI(name string) string {
	return (&url.URL{Scheme: fileScheme, Path: "/" + name}).String()
}

// fileOf is the path that a URI of ours means.
func fileOf(uri string) (string, bool) {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != fileScheme || u.Host != "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", false
	}
	return strings.CutPrefix(u.Path, "/")
}

func resourceOf(uri string, file workspace.File) *mcp.Resource {
	return &mcp.Resource{
		URI: uri, Name: file.Path, MIMEType: typeByName(file.Path), Size: file.Size,
		Annotations: &mcp.Annotations{LastModified: file.Modified.UTC().Format("2006-01-02T15:04:05Z")},
	}
}

// read answers resources/read.
func (r *fileResources) read(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	uri := req.Params.URI
	name, ok := fileOf(uri)
	store, err := r.bridge.openFiles()
	if !ok || err != nil {
		return nil, mcp.ResourceNotFoundError(fileURI(name))
	}
	data, file, err := store.Read(name, 0, maxResource)
	if err != nil {
		return nil, mcp.ResourceNotFoundError(fileURI(name))
	}
	if file.Size > int64(len(data)) {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf(
			"%q has %s, and at most %s can be read as a resource: run_python can show a part of it",
			name, workspace.Size(file.Size), workspace.Size(maxResource))}
	}
	contents := &mcp.ResourceContents{URI: uri, MIMEType: typeByName(name)}
	if isText(data) {
		contents.Text = string(data)
	} else {
		contents.Blob = data
	}
	if contents.MIMEType == "" {
		contents.MIMEType = http.DetectContentType(data[:min(len(data), sniffed)])
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{contents}}, nil
}

// isText reports whether data can be sent as text. What is empty is sent as a
// blob, for the SDK leaves out an empty text.
func isText(data []byte) bool {
	return len(data) > 0 && utf8.Valid(data) && !strings.ContainsRune(string(data), 0)
}

// typeByName returns the MIME type that a file's name tells, or "". What the
// machine has set up comes after what is the same everywhere.
func typeByName(name string) string {
	extension := strings.ToLower(path.Ext(name))
	if known, ok := map[string]string{
		".csv": "text/csv", ".htm": "text/html", ".html": "text/html", ".ipynb": "application/x-ipynb+json", ".jpeg": "image/jpeg",
		".jpg": "image/jpeg", ".js": "text/javascript", ".json": "application/json", ".jsonl": "application/jsonl", ".log": "text/plain",
		".md": "text/markdown", ".parquet": "application/vnd.apache.parquet", ".pdf": "application/pdf", ".png": "image/png",
		".py": "text/x-python", ".svg": "image/svg+xml", ".toml": "application/toml", ".ts": "text/plain", ".tsv": "text/tab-separated-values",
		".txt": "text/plain", ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", ".xml": "application/xml",
		".yaml": "application/yaml", ".yml": "application/yaml", ".zip": "application/zip",
	}[extension]; ok {
		return known
	}
	kind, _, err := mime.ParseMediaType(mime.TypeByExtension(extension))
	if err != nil {
		return ""
	}
	return kind
}
