package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"image/png"
	"reflect"
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

// TestOutputLimit shows a result within the limit that was set, and what was cut
// by its shape and both ends.
func TestOutputLimit(t *testing.T) {
	t.Parallel()
	c := connect(t, setup{env: []string{"MCP_BRIDGE_OUTPUT_LIMIT=1000"}})
	r := c.call(t, arguments{"code": "print('x' * 5000)\nrows = [{'id': i, 'name': f'name {i}'} for i in range(10_000)]\nrows"})
	contains(t, r.text, "xxx\n[… 4,001 of 5,001 characters cut; the whole is in out[1] …]\nxxx", "the whole is in _ and out[1].value")
	if len(r.text) > 1600 {
		t.Errorf("%d bytes are shown: %s", len(r.text), r.text)
	}
	c.wants(t, "out[1].value is rows, len(out[1])", "(True, 5001)")
	contains(t, c.run(t, "rows"), "[{'id': 0, 'name': 'name 0'},", "{'id': 9999, 'name': 'name 9999'}]\n",
		"[cut: list of 10,000 dict: id, name; the whole is in _ and out[3].value]")
	c.wants(t, "display({'a': 1}); print('then'); display('x')", "{'a': 1}\nthen\n'x'")
}

// TestOutputModeJSON has structured content only when it is asked for.
func TestOutputModeJSON(t *testing.T) {
	t.Parallel()
	c := connect(t, setup{args: []string{"--output-mode=json"}})
	for _, test := range []struct{ session, code, want string }{
		{"value", "print('out')\n{'a': [1, None]}", `{"status":"ok","cell":1,"output":"out\n","value":{"a":[1,null]}}`},
		{"repr", "{1, 2}", `{"status":"ok","cell":1,"value_text":"{1, 2}"}`},
		{"exit", "import sys; sys.exit(4)", `{"status":"exit","cell":1,"exit_code":4}`},
		{"error", "1 / 0", `{"status":"error","cell":1,"error":{"type":"ZeroDivisionError","message":"division by zero","traceback":`},
		{"timeout", "import time; time.sleep(600)", `{"status":"timeout","cell":1,`},
		{"lost", "import os; os.kill(os.getpid(), 9)", `{"status":"lost","cell":1,"error":{"message":"Error: the Python process ended: it was killed`},
	} {
		timeout := 60
		if test.session == "timeout" {
			timeout = 1
		}
		result, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "run_python", Arguments: arguments{
			"code": test.code, "session": test.session, "timeout": timeout,
		}})
		if err != nil {
			t.Fatal(err)
		}
		text := result.Content[0].(*mcp.TextContent).Text
		if !strings.HasPrefix(text, test.want) {
			t.Errorf("%s: got %s", test.session, text)
		}
		var same any
		if err := json.Unmarshal([]byte(text), &same); err != nil || !reflect.DeepEqual(same, result.StructuredContent) {
			t.Errorf("%s: %v: the text is not the structured content %v", test.session, err, result.StructuredContent)
		}
	}
	compact := connect(t, setup{})
	if r, err := compact.CallTool(t.Context(), &mcp.CallToolParams{Name: "run_python", Arguments: arguments{"code": "1"}}); err != nil || r.StructuredContent != nil {
		t.Errorf("%v, %+v", err, r)
	}
}

// pictures is code that makes PNG files without a library.
const pictures = `
import struct, zlib
def chunk(kind, data): return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))
def png(width, height, rows=None):
    data = zlib.compress(b''.join(b'\0' + bytes(width) for _ in range(height))) if rows is None else rows
    return b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', width, height, 8, 0, 0, 0, 0)) + chunk(b'IDAT', data) + chunk(b'IEND', b'')
class Picture:
    def __init__(self, data): self.data = data
    def _repr_png_(self): return self.data
`

// TestImagesFit shows that what reaches a client is an image, of a size that it
// takes, whatever a cell made.
func TestImagesFit(t *testing.T) {
	t.Parallel()
	c := connect(t, setup{})
	c.run(t, pictures)
	for _, test := range []struct {
		name, code    string
		text          string
		width, height int
	}{
		{"small", "Picture(png(30, 20))", "", 30, 20},
		{"large", "Picture(png(3136, 1000))", "[image 1: scaled down from 3,136 × 1,000 pixels to 1,568 × 500]", 1568, 500},
		{"bomb", "Picture(png(100_000, 100_000, zlib.compress(bytes(10_000_000))))", "[image 1 not shown: it has 100,000 × 100,000 pixels", 0, 0},
		{"damaged", "Picture(png(30, 20)[:-40])", "[image 1 not shown: it is damaged]", 0, 0},
		{"no image", "Picture(b'x' * 1000)", "[image 1 not shown: it is none of PNG, JPEG, GIF and WebP]", 0, 0},
		{"displayed", "print('before'); display(Picture(png(3, 2))); print('after')", "before\n[image 1]\nafter", 3, 2},
		{"of a cell that fails", "display(Picture(png(3, 2))); 1 / 0", "[image 1]\nTraceback", 3, 2},
	} {
		r := c.call(t, arguments{"code": test.code})
		contains(t, r.text, test.text)
		if test.width == 0 {
			if len(r.images) > 0 {
				t.Errorf("%s: an image is shown", test.name)
			}
			continue
		}
		if len(r.images) != 1 {
			t.Errorf("%s: %d images: %s", test.name, len(r.images), r.text)
			continue
		}
		config, err := png.DecodeConfig(bytes.NewReader(r.images[0].Data))
		if err != nil || config.Width != test.width || config.Height != test.height {
			t.Errorf("%s: %v, %+v", test.name, err, config)
		}
	}
	r := c.call(t, arguments{"code": "for i in range(100): display(Picture(png(3, 2)))"})
	contains(t, r.text, "[image 8]\n[92 more images not shown: at most 8")
	if len(r.images) != 8 {
		t.Errorf("%d images", len(r.images))
	}
}

// TestWrongOutputSettings shows what is wrong where it was given.
func TestWrongOutputSettings(t *testing.T) {
	t.Parallel()
	for setting, words := range map[string]string{
		"MCP_BRIDGE_OUTPUT_MODE=toon": "MCP_BRIDGE_OUTPUT_MODE: toon is not supported: no maintained Go library",
		"MCP_BRIDGE_OUTPUT_MODE=xml":  "compact or json",
		"MCP_BRIDGE_OUTPUT_LIMIT=10":  "is out of range: give 500 to",
	} {
		s := setup{env: []string{setting}}
		out, err := s.command(t, "run").CombinedOutput()
		if err == nil {
			t.Errorf("%s is accepted", setting)
		}
		contains(t, string(out), words)
	}
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
