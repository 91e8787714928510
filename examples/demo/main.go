// Command demo is a whole session with mcp-bridge, as an MCP client and its
// model would have it: it starts the built binary with two real MCP servers,
// sends run_python what a model would write, and shows what the model sees and
// what that costs in tokens.
//
//	make demo
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

func main() {
	home, _ := os.UserCacheDir()
	opts := options{}
	flag.StringVar(&opts.binary, "bridge", "bin/mcp-bridge", "the mcp-bridge binary")
	flag.StringVar(&opts.npm, "npm", filepath.Join(home, "mcp-bridge-dev", "npm"), "folder with the servers' node_modules")
	flag.StringVar(&opts.runtime, "runtime", "auto", "engine that runs the sandbox")
	flag.Parse()
	if err := run(context.Background(), os.Stdout, opts); err != nil {
		fmt.Fprintln(os.Stderr, "demo: error:", err)
		os.Exit(1)
	}
}

type options struct {
	binary  string // mcp-bridge
	npm     string // where node_modules is
	runtime string // engine; auto takes the first that works
}

// cells are what a model writes to answer: which customers spent most?
var cells = []struct {
	why, code string
	fails     bool // as it should
}{
	{"It looks for tools. No definition of any of them was loaded.", `
tools.search("read a file", limit=2) + tools.search("add numbers", limit=1)`, false},
	{"It calls two servers and joins what they return. What is in the files stays in the sandbox.", `
import json
orders    = json.loads(tools.filesystem.read_text_file(path="DATA/orders.json").content)
customers = {c["id"]: c["name"] for c in json.loads(tools.filesystem.read_text_file(path="DATA/customers.json").content)}

spent = {}
for order in orders:
    name = customers[order["customer"]]
    spent[name] = spent.get(name, 0) + order["amount"]

top = sorted(spent.items(), key=lambda item: -item[1])[:3]
for name, amount in top:
    print(f"{name:8} {amount:>7.2f}")
print(tools.everything.get_sum(a=top[0][1], b=top[1][1]))`, false},
	{"Variables are still there. The network is not.", `
import socket
print(len(orders), "orders in memory")
socket.socket(socket.AF_INET)`, true},
}

func run(ctx context.Context, out io.Writer, opts options) error {
	dir, err := os.MkdirTemp("", "mcp-bridge-demo")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	servers, err := prepare(dir, opts.npm)
	if err != nil {
		return err
	}
	count, err := newCounter()
	if err != nil {
		return err
	}
	begin := time.Now()
	cmd := exec.CommandContext(ctx, opts.binary, "run", "--runtime", opts.runtime, "--config-dir", filepath.Join(dir, "MCPs"),
		"--cache-dir", filepath.Join(dir, "cache"), "--state-dir", filepath.Join(dir, "state"), "--log-level", "error") // what fails is in the answers
	cmd.Stderr = os.Stderr
	bridge, err := connect(ctx, cmd)
	if err != nil {
		return fmt.Errorf("start %s: %w", opts.binary, err)
	}
	defer bridge.Close()
	if err := compareDefinitions(ctx, out, bridge, servers, count); err != nil {
		return err
	}
	if err := converse(ctx, out, bridge, dir, count); err != nil {
		return err
	}
	fmt.Fprintf(out, "\n── The whole session took %s.\n", time.Since(begin).Round(10*time.Millisecond))
	return nil
}
