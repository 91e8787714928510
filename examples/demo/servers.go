package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A server is a definition as it stands in ~/MCPs.
type server struct {
	Command string   `json:"command"`
	Args    []string `json:"args"`
}

// prepare writes the data the servers serve, and their definitions, into dir.
func prepare(dir, npm string) (map[string]server, error) {
	data := filepath.Join(dir, "data")
	script := func(name string) string {
		return filepath.Join(npm, "node_modules", "@modelcontextprotocol", name, "dist", "index.js")
	}
	servers := map[string]server{
		"everything": {"node", []string{script("server-everything"), "stdio"}},
		"filesystem": {"node", []string{script("server-filesystem"), data}},
	}
	for _, s := range servers {
		if _, err := os.Stat(s.Args[0]); err != nil {
			return nil, fmt.Errorf("the npm server is not installed: %w; `make demo` installs it", err)
		}
	}
	var orders, customers []map[string]any
	names := []string{"Ada", "Grace", "Edsger", "Barbara", "Donald", "Tony", "Leslie", "Radia"}
	for i, name := range names {
		customers = append(customers, map[string]any{"id": i + 1, "name": name, "email": name + "@example.com"})
	}
	for i := range 400 {
		orders = append(orders, map[string]any{
			"id": 1000 + i, "customer": (i*13+i/7)%len(names) + 1, "amount": float64(i*i*37%997) / 4, "status": "paid",
		})
	}
	for path, content := range map[string]any{
		filepath.Join(data, "orders.json"):         orders,
		filepath.Join(data, "customers.json"):      customers,
		filepath.Join(dir, "MCPs", "servers.json"): map[string]any{"mcpServers": servers},
	} {
		if err := writeJSON(path, content); err != nil {
			return nil, err
		}
	}
	return servers, nil
}

func writeJSON(path string, content any) error {
	text, err := json.Marshal(content)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

// connect starts an MCP server and returns a client's session with it.
func connect(ctx context.Context, cmd *exec.Cmd) (*mcp.ClientSession, error) {
	// Without the SDK's default capabilities: with roots a server offers more tools.
	client := mcp.NewClient(&mcp.Implementation{Name: "mcp-bridge-demo", Version: "1"}, &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}})
	return client.Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
}

// definitions returns a server's tools as a client would load them.
func definitions(ctx context.Context, session *mcp.ClientSession) ([]*mcp.Tool, error) {
	var tools []*mcp.Tool
	for tool, err := range session.Tools(ctx, nil) {
		if err != nil {
			return nil, err
		}
		tools = append(tools, tool)
	}
	return tools, nil
}
