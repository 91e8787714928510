package bridge_test

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge"
	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/sandbox-image/wire"
)

// Whatever a kernel does, the call is answered, the sandbox is killed, and the
// next call has a new one.
func TestViolations(t *testing.T) {
	result := func(c *cell, more object) *wire.Message {
		report := object{"cell": 1, "status": "ok"}
		return &wire.Message{ID: c.id, Result: toJSON(merged(object{"nonce": c.Nonce, "interrupted": nil, "lost": nil, "cell": report}, more))}
	}
	send := func(m func(c *cell) *wire.Message) func(*kernel, *cell) {
		return func(k *kernel, c *cell) { _ = k.control.Send(m(c)) }
	}
	write := func(data string) func(*kernel, *cell) {
		return func(k *kernel, _ *cell) { _, _ = k.raw.Write([]byte(data)) }
	}
	tests := map[string]func(k *kernel, c *cell){
		"wrong nonce":     send(func(c *cell) *wire.Message { return result(c, object{"nonce": "forged"}) }),
		"no nonce":        send(func(c *cell) *wire.Message { return result(c, object{"nonce": nil}) }),
		"unknown id":      send(func(c *cell) *wire.Message { m := result(c, nil); m.ID += 7; return m }),
		"error":           send(func(c *cell) *wire.Message { return &wire.Message{ID: c.id, Error: &wire.Error{Message: "no"}} }),
		"result null":     send(func(c *cell) *wire.Message { return &wire.Message{ID: c.id, Result: []byte("null")} }),
		"no report":       send(func(c *cell) *wire.Message { return result(c, object{"cell": nil}) }),
		"report and lost": send(func(c *cell) *wire.Message { return result(c, object{"lost": "it died"}) }),
		"report of text":  send(func(c *cell) *wire.Message { return result(c, object{"cell": "ok"}) }),
		"wrong types":     send(func(c *cell) *wire.Message { return result(c, object{"cell": object{"exit": "1"}}) }),
		"bad base64": send(func(c *cell) *wire.Message {
			return result(c, object{"cell": object{"images": []object{{"mime": "image/png", "data": "?"}}}})
		}),
		"unknown method": send(func(*cell) *wire.Message { return &wire.Message{Method: "reboot", Params: []byte("{}")} }),
		"request":        send(func(*cell) *wire.Message { return &wire.Message{ID: 1, Method: "tools/call", Params: []byte("{}")} }),
		"output of a number": send(func(*cell) *wire.Message {
			return &wire.Message{Method: "output", Params: []byte(`{"text":5}`)}
		}),
		"output of a list":          send(func(*cell) *wire.Message { return &wire.Message{Method: "output", Params: []byte(`[]`)} }),
		"hello again":               func(k *kernel, _ *cell) { k.hello() },
		"early end":                 func(*kernel, *cell) {},
		"garbage on callback":       write("garbage, of no length"),
		"too long on callback":      write("\xff\xff\xff\xff"),
		"not JSON on callback":      write("\x00\x00\x00\x01x"),
		"a response nobody wants":   write("\x00\x00\x00\x25" + `{"jsonrpc":"2.0","id":7,"result":123}`),
		"callback closed":           func(k *kernel, _ *cell) { _ = k.raw.Close() },
		"marker without being lost": write("0123456789abcdef"),
	}
	for name, violate := range tests {
		t.Run(name, func(t *testing.T) {
			first := sync.Once{}
			e := &engine{}
			e.script = func(k *kernel) {
				good := true
				first.Do(func() { good = false })
				if good {
					k.serve()
					return
				}
				k.hello()
				if c, ok := k.nextCell(); ok {
					violate(k, c)
				}
				if name != "early end" {
					for ok := true; ok; _, ok = k.receive() {
					}
				}
			}
			inBubble(t, e, bridge.Options{}, func(t *testing.T, b *bridge.Bridge) {
				begin := time.Now()
				fails(t, b, "pass", "Error: ", "All variables and files are gone; the next call starts a new sandbox.")
				if took := time.Since(begin); took > time.Second { // to learn why it ended, if it did
					t.Errorf("it took %v", took)
				}
				synctest.Wait()
				if _, open := e.started(); open != 0 {
					t.Error("the sandbox was not killed")
				}
				runs(t, b, "value 1", "1")
			})
		})
	}
}

func TestBadGreetings(t *testing.T) {
	scripts := map[string]func(k *kernel){
		"ends at once":     func(*kernel) {},
		"silent":           func(k *kernel) { _, _ = k.receive() },
		"another protocol": func(k *kernel) { k.notify("hello", object{"protocol": 2}); _, _ = k.receive() },
		"another method":   func(k *kernel) { k.notify("output", object{"text": "x"}); _, _ = k.receive() },
		"no params":        func(k *kernel) { _ = k.control.Send(&wire.Message{Method: "hello"}); _, _ = k.receive() },
	}
	for name, script := range scripts {
		t.Run(name, func(t *testing.T) {
			e := &engine{script: script}
			inBubble(t, e, bridge.Options{}, func(t *testing.T, b *bridge.Bridge) {
				fails(t, b, "pass", "the kernel in it did not answer")
				if _, open := e.started(); open != 0 {
					t.Error("the sandbox was not removed")
				}
			})
		})
	}
}

// A supervisor that says `lost` again and again, or does not follow the steps,
// costs itself only.
func TestLostOutOfOrder(t *testing.T) {
	scripts := map[string]func(k *kernel){
		"no marker": func(k *kernel) {
			k.hello()
			k.notify("lost", object{"reason": "a"})
			for ok := true; ok; _, ok = k.receive() {
			}
		},
		"many times": func(k *kernel) {
			k.hello()
			go func() {
				for range 50 {
					k.notify("lost", object{"reason": "a"})
				}
			}()
			k.loop()
		},
	}
	for name, script := range scripts {
		t.Run(name, func(t *testing.T) {
			inBubble(t, &engine{script: script}, bridge.Options{}, func(t *testing.T, b *bridge.Bridge) {
				r := run(t, b, "pass")
				if r.Text == "" {
					t.Error("no answer")
				}
			})
		})
	}
}

// What a cell prints is bounded in memory and in what is shown.
func TestOutputFlood(t *testing.T) {
	flood := toJSON(object{"text": strings.Repeat("é", 1<<20)})
	e := &engine{script: func(k *kernel) {
		k.hello()
		for {
			c, ok := k.nextCell()
			if !ok {
				return
			}
			k.print("first\n")
			for range 18 { // 36 MiB
				_ = k.control.Send(&wire.Message{Method: "output", Params: flood})
			}
			k.print("last\n")
			k.answer(c, nil, object{})
		}
	}}
	inBubble(t, e, bridge.Options{OutputLimit: 1000}, func(t *testing.T, b *bridge.Bridge) {
		r := run(t, b, "flood")
		contains(t, r, "first", "last", "characters cut; the whole is in out[1]")
		if len(r.Text) > 3000 || strings.ContainsRune(r.Text, '\uFFFD') {
			t.Errorf("%d bytes are shown, or a character was cut", len(r.Text))
		}
	})
}

func TestReportsOfAnySize(t *testing.T) {
	huge := strings.Repeat("x", 1<<20)
	images := make([]object, 50)
	for i := range images {
		images[i] = object{"mime": "image/png", "data": "AAAA"}
	}
	reports := map[string]object{
		"value":     {"value": object{"text": huge, "shape": huge}},
		"traceback": {"status": "error", "error": object{"type": huge, "message": huge, "traceback": huge}},
		"images":    {"images": images},
		"no images": {"images": []object{{"mime": "text/html", "data": "AAAA"}, {"mime": huge, "data": ""}}},
		"status":    {"status": huge},
		"exit":      {"status": "exit", "exit": 1 << 40},
	}
	for name, report := range reports {
		t.Run(name, func(t *testing.T) {
			e := &engine{script: func(k *kernel) {
				k.hello()
				for {
					c, ok := k.nextCell()
					if !ok {
						return
					}
					k.answer(c, nil, report)
				}
			}}
			inBubble(t, e, bridge.Options{OutputLimit: 1000}, func(t *testing.T, b *bridge.Bridge) {
				r := run(t, b, "pass")
				if len(r.Text) > 5000 || r.Text == "" && len(r.Images) == 0 {
					t.Errorf("%d bytes are shown", len(r.Text))
				}
				if len(r.Images) > 8 {
					t.Errorf("%d images are shown", len(r.Images))
				}
			})
		})
	}
}

func TestReasonsAreBounded(t *testing.T) {
	inBubble(t, &engine{}, bridge.Options{}, func(t *testing.T, b *bridge.Bridge) {
		huge := strings.Repeat("x", 1<<20)
		for _, code := range []string{"lose " + huge, "then lost " + huge, "value 1"} {
			if r := run(t, b, code); len(r.Text) > 2000 {
				t.Errorf("%.20s: %d bytes are shown", code, len(r.Text))
			}
		}
	})
}

// A sandbox that dies of want of memory says so.
func TestOutOfMemory(t *testing.T) {
	e := &engine{exit: runtime.Exit{Code: 137, OOMKilled: true}}
	e.script = func(k *kernel) {
		k.hello()
		k.nextCell()
	}
	inBubble(t, e, bridge.Options{Limits: runtime.Limits{MemoryBytes: 64 << 20}}, func(t *testing.T, b *bridge.Bridge) {
		fails(t, b, "pass", "Error: the sandbox ran out of memory, of which it has 64 MiB. All variables and files are gone")
	})
}
