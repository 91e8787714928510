package bridge_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge"
)

func TestParseMode(t *testing.T) {
	for name, want := range map[string]bridge.Mode{"": bridge.ModeCompact, "compact": bridge.ModeCompact, "json": bridge.ModeJSON} {
		if got, err := bridge.ParseMode(name); got != want || err != nil {
			t.Errorf("%q: %q, %v", name, got, err)
		}
	}
	for name, words := range map[string]string{"toon": "no maintained Go library", "JSON": "compact or json", "x": "is not a mode"} {
		if _, err := bridge.ParseMode(name); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// TestModeJSON compares what a client gets as structured content, and as text.
func TestModeJSON(t *testing.T) {
	huge := strings.Repeat("x", 5000)
	e := &engine{script: func(k *kernel) {
		k.hello()
		for {
			c, ok := k.nextCell()
			if !ok {
				return
			}
			switch c.Code {
			case "value":
				k.print("printed <b>\n")
				k.answer(c, nil, object{"value": object{"text": "{'a': 1}", "json": `{"a":1}`}, "images": []object{{"mime": "image/png", "data": onePixel}}})
			case "repr":
				k.answer(c, nil, object{"value": object{"text": "<x>"}})
			case "cut":
				k.print(huge)
				k.answer(c, nil, object{"value": object{"text": huge, "shape": "list", "json": "[" + huge + "]"}, "notes": []string{"one more\nimage"}})
			case "bad json":
				k.answer(c, nil, object{"value": object{"text": "1", "json": "1}, {"}})
			case "error":
				k.answer(c, nil, object{"status": "error", "error": object{"type": "E", "message": "no", "traceback": "Traceback\nE: no"}})
			case "exit":
				k.answer(c, nil, object{"status": "exit", "exit": 3})
			case "timeout":
				k.answer(c, object{"interrupted": "timeout"}, object{"status": "error", "error": object{"type": "KeyboardInterrupt", "message": "", "traceback": "KeyboardInterrupt"}})
			default:
				k.answer(c, nil, object{})
			}
		}
	}}
	serve(t, e, bridge.Options{OutputMode: bridge.ModeJSON, OutputLimit: 1000}, func(t *testing.T, client *mcp.ClientSession) {
		for _, test := range []struct {
			code, want string
			isError    bool
		}{
			{"value", `{"status":"ok","cell":1,"output":"printed <b>\n","value":{"a":1},"images":1}`, false},
			{"repr", `{"status":"ok","cell":2,"value_text":"<x>"}`, false},
			{"bad json", `{"status":"ok","cell":3,"value_text":"1"}`, false},
			{"error", `{"status":"error","cell":4,"error":{"type":"E","message":"no","traceback":"Traceback\nE: no"}}`, true},
			{"exit", `{"status":"exit","cell":5,"exit_code":3}`, true},
			{"pass", `{"status":"ok","cell":6}`, false},
			{"", "{\"status\":\"refused\",\"error\":{\"message\":\"`code` is empty and nothing is running in this session: send code to run\"}}", true},
		} {
			r, text := structured(t, client, test.code)
			if text != test.want || r.IsError != test.isError {
				t.Errorf("%s: error %v, got\n%s, want\n%s", test.code, r.IsError, text, test.want)
			}
		}
		_, text := structured(t, client, "cut")
		if len(text) > 3000 || !strings.Contains(text, `"truncated":true`) || !strings.Contains(text, "out[7]") || !strings.Contains(text, `"notes":["[one more image]"]`) {
			t.Errorf("of what was cut: %s", text)
		}
		_, text = structured(t, client, "timeout")
		if !strings.Contains(text, `"status":"timeout"`) || !strings.Contains(text, "Timed out") {
			t.Errorf("of a timeout: %s", text)
		}
	})
}

// structured runs a cell. The text must say the same as the structured content.
func structured(t *testing.T, client *mcp.ClientSession, code string) (*mcp.CallToolResult, string) {
	t.Helper()
	r, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: "run_python", Arguments: object{"code": code}})
	if err != nil {
		t.Fatal(err)
	}
	text := r.Content[0].(*mcp.TextContent).Text
	var fromText any
	if err := json.Unmarshal([]byte(text), &fromText); err != nil || !reflect.DeepEqual(fromText, r.StructuredContent) {
		t.Errorf("%s: %v, text %s, structured %v", code, err, text, r.StructuredContent)
	}
	return r, text
}

// What a result shows is bounded as a whole: much output leaves less room for
// the value.
func TestOutputAndValueShareTheLimit(t *testing.T) {
	e := &engine{script: func(k *kernel) {
		k.hello()
		for {
			c, ok := k.nextCell()
			if !ok {
				return
			}
			k.print(strings.Repeat("o", 1000))
			k.answer(c, nil, object{"value": object{"text": strings.Repeat("v", 1000)}})
		}
	}}
	inBubble(t, e, bridge.Options{OutputLimit: 1000}, func(t *testing.T, b *bridge.Bridge) {
		r := run(t, b, "both")
		if o, v := strings.Count(r.Text, "o"), strings.Count(r.Text, "v"); o < 1000 || v < 190 || v > 250 {
			t.Errorf("%d of the output and %d of the value are shown", o, v)
		}
	})
}
