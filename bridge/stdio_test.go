package bridge_test

import (
	"bufio"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge"
)

// TestLinesThatAreNoMessages sends what ends the SDK's own transport, and holds
// that each is answered and the next request too.
func TestLinesThatAreNoMessages(t *testing.T) {
	const tooLong = 17 << 20
	for name, tc := range map[string]struct {
		line string
		code int // of the answer; 0 for none
	}{
		"word":         {"hello", -32700},
		"null":         {"null", -32700},
		"batch":        {`[{"jsonrpc":"2.0","id":7,"method":"ping"}]`, -32600},
		"no method":    {`{"jsonrpc":"2.0","id":1}`, 0}, // a response that nobody waits for
		"id an object": {`{"jsonrpc":"2.0","id":{},"method":"ping"}`, -32700},
		"deep":         {`{"jsonrpc":"2.0","id":2,"method":"ping","params":{"a":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}}`, -32700},
		"too long":     {`{"jsonrpc":"2.0","id":2,"method":"` + strings.Repeat("x", tooLong) + `"}`, -32600},
		"empty":        {"", 0},
		"spaces":       {" \t\r", 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := bridge.New(bridge.Options{Engine: &engine{}, Image: "image"})
			in, client := io.Pipe()
			answers, out := io.Pipe()
			defer time.AfterFunc(20*time.Second, func() { _ = answers.Close() }).Stop()
			served := make(chan error, 1)
			go func() { served <- b.Serve(t.Context(), in, out) }()
			go func() {
				_, _ = io.WriteString(client, tc.line+"\n"+`{"jsonrpc":"2.0","id":99,"method":"ping"}`+"\n")
			}()
			lines := bufio.NewScanner(answers)
			if tc.code != 0 {
				if got := nextAnswer(t, lines); got.ID != nil || got.Error.Code != tc.code || got.Error.Message == "" {
					t.Errorf("got %+v, want error %d", got, tc.code)
				}
			}
			if got := nextAnswer(t, lines); got.ID == nil || *got.ID != 99 || got.Error.Code != 0 {
				t.Errorf("got %+v, want the answer to the ping after it", got)
			}
			_ = client.Close()
			if err := <-served; err != nil {
				t.Errorf("Serve returned %v", err)
			}
			b.Close()
		})
	}
}

type rpcAnswer struct {
	ID    *int
	Error struct {
		Code    int
		Message string
	}
}

func nextAnswer(t *testing.T, lines *bufio.Scanner) rpcAnswer {
	t.Helper()
	if !lines.Scan() {
		t.Fatalf("no answer: %v", lines.Err())
	}
	var a rpcAnswer
	if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
		t.Fatalf("%v: %s", err, lines.Text())
	}
	return a
}
