package stdio

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// show writes messages so that a test can compare them.
func show(msgs []jsonrpc.Message) string {
	var lines []string
	for _, msg := range msgs {
		switch msg := msg.(type) {
		case *jsonrpc.Request:
			lines = append(lines, fmt.Sprintf("%s %v %s", msg.Method, msg.ID.Raw(), msg.Params))
		case *jsonrpc.Response:
			lines = append(lines, fmt.Sprintf("%v %s %v", msg.ID.Raw(), msg.Result, msg.Error))
		}
	}
	return strings.Join(lines, "; ")
}

func TestDecode(t *testing.T) {
	tests := []struct{ line, want string }{
		{`{"jsonrpc":"2.0","id":1,"result":{"a": [1, "x\"}"] }}`, `1 {"a": [1, "x\"}"] } <nil>`},
		{"\xef\xbb\xbf \t" + `{ "result" : null , "id" : "s" , "jsonrpc" : "2.0" } ` + "\r", `s null <nil>`},
		{`{"jsonrpc":"2.0","method":"ping","id":0}`, `ping 0 `},
		{`{"jsonrpc":"2.0","method":"n\u006f","params":[]}`, `no <nil> []`},
		{`{"jsonrpc":"2.0","id":1e3,"error":{"code":-1,"message":"no"}}`, `1000  no`},
		{`{"jsonrpc":"2.0","id":1,"error":null,"result":{}}`, `1 {} <nil>`},
		{`{"jsonrpc":"2.0","id":1,"error":"no"}`, `1  the server answered with an error of unknown form`},
		{`{"jsonrpc":"2.0","id":1}`, `1  the server answered with neither a result nor an error`},
		{`{"jsonrpc":"2.0","id":1,"x":1,"result":-1.5e3}`, `1 -1.5e3 <nil>`},
		{`[{"jsonrpc":"2.0","id":1,"result":1},2,{"jsonrpc":"2.0","method":"m"}]`, `1 1 <nil>; m <nil> `},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"\xff\"}", `1 "` + "\uFFFD" + `" <nil>`},
		{
			`{"jsonrpc":"2.0","id":1,"result":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `}`,
			"1 " + strings.Repeat("[", 600) + strings.Repeat("]", 600) + ` the server's answer is nested over 512 levels deep`,
		},
		// No messages.
		{``, ``},
		{`   `, ``},
		{`Server running`, ``},
		{`{half`, ``},
		{`{}`, ``},
		{`[]`, ``},
		{`[1,[2]]`, ``},
		{`{"level":"info","msg":"x"}`, ``},
		{`{"jsonrpc":"1.0","id":1,"result":1}`, ``},
		{`{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}}`, ``},
		{`{"jsonrpc":"2.0","id":[1],"result":1}`, ``},
		{`{"jsonrpc":"2.0","method":7}`, ``},
		{`{"JSONRPC":"2.0","ID":1,"RESULT":1}`, ``},
	}
	for _, test := range tests {
		got, err := decode([]byte(test.line))
		if err != nil || show(got) != test.want {
			t.Errorf("decode(%.80q) is %q, %v; want %q", test.line, show(got), err, test.want)
		}
	}
	if _, err := decode([]byte(`{"jsonrpc":"2.0","id":1,"result":`)); !errors.Is(err, ErrProtocol) {
		t.Errorf("half a message gives %v, want ErrProtocol", err)
	}
}

func TestRecoverID(t *testing.T) {
	tests := []struct {
		head, tail string
		want       any
	}{
		{`{"jsonrpc":"2.0","id":7,"result":{"x`, `xxx"}}`, int64(7)},
		{`{"id":"a-1","result":{"x`, `xxx"}}`, "a-1"},
		{`{"result":{"x`, `xxx"},"jsonrpc":"2.0","id":12}`, int64(12)},
		{`{"result":{"x`, `"id":3},"id":12,"jsonrpc":"2.0"}`, int64(12)},
		{`{"result":{"x`, `xxx"}}`, nil},
		{`{"jsonrpc":"2.0","id":{"result":{"x`, `xxx"}}`, nil},
	}
	for _, test := range tests {
		if id, _ := recoverID([]byte(test.head), []byte(test.tail)); id.Raw() != test.want {
			t.Errorf("recoverID(%q, %q) is %v, want %v", test.head, test.tail, id.Raw(), test.want)
		}
	}
}

func TestTail(t *testing.T) {
	var all bytes.Buffer
	var kept tail
	for i := range 5000 {
		chunk := []byte(strings.Repeat(fmt.Sprint(i, " "), i%40))
		all.Write(chunk)
		_, _ = kept.Write(chunk)
		if i%1000 == 999 {
			want := all.Bytes()[max(0, all.Len()-tailBytes):]
			if kept.String() != string(want) {
				t.Fatalf("after %d bytes the tail differs", all.Len())
			}
		}
	}
	if all.Len() < 2*tailBytes {
		t.Fatal("the test writes too little")
	}
}

// The splitter and encoding/json agree on every object.
func FuzzEachMember(f *testing.F) {
	for _, seed := range []string{`{}`, ` { "a" : 1 , "b":[{"c":"}"}]}`, `{"a":"\\\"","b":-1.0e+5,"c":null}`, `{"":{"x":[[],{}]}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		data = bytes.TrimSpace(data)
		var want map[string]json.RawMessage
		if len(data) == 0 || data[0] != '{' || json.Unmarshal(data, &want) != nil {
			return
		}
		got := map[string]json.RawMessage{}
		eachMember(data, func(key, value []byte) {
			var name string
			if err := json.Unmarshal([]byte(`"`+string(key)+`"`), &name); err != nil {
				t.Fatalf("key %q: %v", key, err)
			}
			got[name] = value
		})
		if len(got) != len(want) {
			t.Fatalf("got %q, want %q", got, want)
		}
		for key, value := range want {
			if !bytes.Equal(got[key], value) {
				t.Errorf("%q is %q, want %q", key, got[key], value)
			}
		}
	})
}

// No line makes the decoder panic.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"result":{}}`))
	f.Add([]byte(`[{"jsonrpc":"2.0","method":"x","params":[1,2]}]`))
	f.Fuzz(func(t *testing.T, line []byte) {
		msgs, err := decode(line)
		if err != nil && msgs != nil {
			t.Error("both messages and an error")
		}
		for _, msg := range msgs {
			if _, err := jsonrpc.EncodeMessage(msg); err != nil {
				t.Errorf("decoded what cannot be encoded: %v", err)
			}
		}
	})
}
