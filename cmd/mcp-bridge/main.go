// Command mcp-bridge gives an agent one tool, run_python, in a sandbox from
// which every configured MCP server can be called.
package main

import (
	"context"
	"os"

	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/internal/cli"
)

func main() {
	os.Exit(cli.Main(context.Background(), os.Args[1:], cli.IO{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Exit: os.Exit}))
}
