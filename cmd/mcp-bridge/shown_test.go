package main_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestBars shows that of a progress bar the model sees what a terminal would
// show in the end, and out[n] has every byte of it.
func TestBars(t *testing.T) {
	t.Parallel()
	c := connect(t, setup{})
	c.wants(t, "import sys\nfor i in range(1001):\n    print(f'\\r\\x1b[32m{i / 10:.1f} %\\x1b[0m', end='', file=sys.stderr)\nprint('\\ndone')", "100.0 %\ndone")
	c.wants(t, "out[1].count('\\r'), out[1].count('\\x1b'), out[1].startswith('\\r\\x1b[32m0.0 %\\x1b[0m\\r')", "(1001, 2002, True)")
	c.wants(t, "print('\\x1b]0;title\\a\\x1b[2J\\x1b[Hplain')", "plain")
}

// TestProgressOfACell shows that a client hears what a cell printed last while
// it runs.
func TestProgressOfACell(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var heard []string
	last, grows := 0.0, true
	c := connectHearing(t, setup{}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			mu.Lock()
			defer mu.Unlock()
			heard = append(heard, r.Params.Message)
			grows, last = grows && r.Params.Progress > last, r.Params.Progress
		},
	})
	c.run(t, "import os, time")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	params := &mcp.CallToolParams{Name: "run_python", Arguments: arguments{
		"code": "print('begun')\nwhile not os.path.exists('go'):\n    for i in range(9): print(f'\\r\\x1b[1mat {i}\\a', end='')\n    time.sleep(0.1)\n", "timeout": 100,
	}}
	params.SetProgressToken("token")
	wait := make(chan struct{})
	go func() {
		defer close(wait)
		_, _ = c.CallTool(ctx, params)
	}()
	eventually(t, patience, "the client hears of the cell", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(heard) > 0
	})
	cancel()
	<-wait
	mu.Lock()
	defer mu.Unlock()
	if line := heard[len(heard)-1]; !strings.HasPrefix(line, "at ") || len(line) != len("at 8") || !grows {
		t.Errorf("heard %q, growing: %v", heard, grows)
	}
}
