package upstreamtest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// WeirdResult is what the tool weird of the raw modes returns: numbers beyond
// 2^53, keys in no order, content of an unknown type, odd escapes.
const WeirdResult = `{"zeta":12345678901234567890,"content":[{"type":"hologram","z":1,"a":2},{"type":"text","text":"\u003cb\u003e\u2028\ud83d\ude00"}],"structuredContent":{"n":9007199254740993,"f":1.10,"e":1E400},"alpha":null}`

// RawResource is what any resource of the mode Library reads as.
const RawResource = `{"zeta":12345678901234567890,"contents":[{"uri":"raw://1","text":"\u003cb\u003e","z":1.10,"a":2}]}`

// rawLists are the lists of the mode Library: one that is odd, one without an end, one
// of another form.
var rawLists = map[string]string{
	"resources/list":           `{"resources":[{"uri":"raw://1","name":"one","size":12345678901234567890},17,{"uri":5},{"name":"no uri"},{"uri":"note://1"}]}`,
	"resources/templates/list": `{"resourceTemplates":[{"uriTemplate":"raw://{+rest}"}],"nextCursor":"again"}`,
	"prompts/list":             `{"prompts":{"name":"x"}}`,
}

// Hidden is what the mode Hostile has in all of its texts: an escape sequence, a
// bell, and characters that are not seen or turn others around. hidden is it in JSON.
const (
	Hidden = "\x1b[31m\x07\u202e\u200b\u2066\ufe01\u3164\U000e0041\U000e0101\u0085"
	hidden = `\u001b[31m\u0007\u202e\u200b\u2066\ufe01\u3164\udb40\udc41\udb40\udd01\u0085`
)

// hostileLists are the lists of the mode Hostile.
var hostileLists = map[string]string{
	"tools/list": `{"tools":[{"name":"bad` + hidden + `","inputSchema":{}},{"name":"refused"},{"name":"fine","title":"t` + hidden + `","description":"d` + hidden + `",` +
		`"annotations":{"title":"a` + hidden + `"},"inputSchema":{"type":"object","description":"s` + hidden + `","properties":{` +
		`"p` + hidden + `":{"type":"string","title":"x` + hidden + `","description":"y` + hidden + `","enum":["e` + hidden + `"],"default":"f` + hidden + `"},` +
		`"q":{"anyOf":[{"const":"c` + hidden + `"},{"$ref":"#/$defs/r` + hidden + `"}],"examples":["g` + hidden + `"],"pattern":"h` + hidden + `","format":"i` + hidden + `"}},` +
		`"$defs":{"r` + hidden + `":{"type":"object","properties":{"k` + hidden + `":{"description":"l` + hidden + `"}}}},"required":["p` + hidden + `"]},` +
		`"outputSchema":{"type":"object","properties":{"o` + hidden + `":{"type":"string","description":"m` + hidden + `"}}}}]}`,
	"resources/list": `{"resources":[{"uri":"bad://` + hidden + `"},{"uri":"a://b","name":"n` + hidden + `","title":"t` + hidden + `","description":"d` + hidden + `",` +
		`"mimeType":"m` + hidden + `","_meta":{"k` + hidden + `":["v` + hidden + `"]}}]}`,
	"resources/templates/list": `{"resourceTemplates":[{"uriTemplate":"a://{b}","name":"n` + hidden + `"},{"uriTemplate":"bad` + hidden + `"}]}`,
	"prompts/list": `{"prompts":[{"name":"bad` + hidden + `"},{"name":"p","title":"t` + hidden + `","description":"d` + hidden + `",` +
		`"arguments":[{"name":"a` + hidden + `","description":"b` + hidden + `"}]}]}`,
}

// A raw server speaks MCP as its mode says, message by message.
type raw struct {
	mode  string
	in    *bufio.Scanner
	first string // method of the first request
}

type request struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string          `json:"name"`
		Cursor    string          `json:"cursor"`
		URI       string          `json:"uri"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"params"`
}

func runRaw(mode string) error {
	r := &raw{mode: mode, in: bufio.NewScanner(os.Stdin)}
	r.in.Buffer(nil, 64<<20)
	if mode == Stubborn {
		signal.Ignore(syscall.SIGTERM)
	}
	for r.in.Scan() {
		var req request
		if err := json.Unmarshal(r.in.Bytes(), &req); err != nil {
			return err
		}
		if r.first == "" {
			r.first = req.Method
		}
		if mode == Strict && r.first != "initialize" {
			return fmt.Errorf("expected initialize, got %s", req.Method)
		}
		r.handle(req)
	}
	if mode == Stubborn {
		time.Sleep(time.Hour) // select {} is a deadlock to a runtime with nothing else to do
	}
	return nil
}

func (r *raw) handle(req request) {
	switch {
	case req.Method == "initialize" && r.mode == Refusing:
		r.send(`{"jsonrpc":"2.0","id":` + string(req.ID) + `,"error":{"code":-32000,"message":"no license for key ` + os.Getenv("API_KEY") + `"}}`)
	case r.mode == Hostile && hostileLists[req.Method] != "":
		r.reply(req, hostileLists[req.Method])
	case r.mode == Hostile && req.Method == "tools/call" && req.Params.Name == "refused":
		r.send(`{"jsonrpc":"2.0","id":` + string(req.ID) + `,"error":{"code":-32000,"message":"no` + hidden + `"}}`)
	case req.Method == "initialize":
		capabilities := `{"tools":{"listChanged":true}}`
		if r.mode == Library || r.mode == Hostile {
			capabilities = `{"tools":{},"resources":{},"prompts":{}}`
		}
		r.reply(req, `{"protocolVersion":"2025-11-25","capabilities":`+capabilities+`,"serverInfo":{"name":"raw","version":"1"}}`)
	case req.Method == "tools/list" && r.mode != Toolless:
		r.reply(req, r.list(req.Params.Cursor))
		if r.mode == Deaf {
			time.Sleep(time.Hour) // select {} is a deadlock to a runtime with nothing else to do
		}
	case req.Method == "tools/call":
		r.call(req)
	case r.mode == Library && rawLists[req.Method] != "":
		r.reply(req, rawLists[req.Method])
	case r.mode == Library && req.Method == "resources/read" && req.Params.URI == "raw://exit":
		os.Exit(4)
	case r.mode == Library && req.Method == "resources/read":
		r.reply(req, RawResource)
	case req.ID != nil && r.mode != Silent:
		r.send(`{"jsonrpc":"2.0","id":` + string(req.ID) + `,"error":{"code":-32601,"message":"Method not found"}}`)
	}
}

const rawTools = `{"name":"weird","inputSchema":{"type":"object","properties":{"zulu":{"type":"integer"},"alpha":{"type":"string"}},"additionalProperties":true}},` +
	`{"name":"args","inputSchema":{"type":"object"}},{"name":"huge","inputSchema":{"type":"object"}},{"name":"deep","inputSchema":{"type":"object"}},` +
	`{"name":"nothing","inputSchema":{"type":"object"}},{"name":"refuse","inputSchema":{"type":"object"}},{"name":"exit","inputSchema":{"type":"object"}},` +
	`{"name":"input","inputSchema":{"type":"object"}},{"name":"first","inputSchema":{"type":"object"}}`

func (r *raw) list(cursor string) string {
	page, _ := strconv.Atoi(strings.TrimPrefix(cursor, "page-"))
	tools := rawTools
	next := ""
	switch r.mode {
	case Paged:
		tools = numbered(page*50, 50)
		if page < 5 {
			next = fmt.Sprintf("page-%d", page+1)
		}
	case Endless:
		tools = numbered(page, 1)
		next = fmt.Sprintf("page-%d", page+1)
	case Circular:
		next = "page-1"
	case Listed:
		data, err := os.ReadFile(os.Getenv("LISTED"))
		if err != nil {
			panic(err)
		}
		return strings.TrimSpace(string(data))
	case Odd:
		tools = `{"name":"listed","inputSchema":"none"}`
	case Deep:
		tools = `{"name":"before","inputSchema":{}},{"name":"odd","inputSchema":` + strings.Repeat(`{"not":`, 5000) + `{}` +
			strings.Repeat("}", 5000) + `},{"name":"after","inputSchema":{}}`
	case Duplicate:
		tools = `{"name":"twin","description":"first","inputSchema":{}},{"name":"twin","description":"second"},` +
			`17,{"name":5},{"name":""},{"name":"bell\u0007"},{"name":"` + strings.Repeat("x", 300) + `"},` +
			`{"name":"wordy","description":"` + strings.Repeat("blah ", 1<<20) + `"}`
	}
	if next != "" {
		return `{"tools":[` + tools + `],"nextCursor":"` + next + `"}`
	}
	return `{"tools":[` + tools + `]}`
}

func numbered(from, count int) string {
	tools := make([]string, count)
	for i := range tools {
		tools[i] = fmt.Sprintf(`{"name":"tool-%d","inputSchema":{"type":"object"}}`, from+i)
	}
	return strings.Join(tools, ",")
}

func (r *raw) call(req request) {
	switch r.mode {
	case Flood:
		for i := 0; ; i++ {
			switch req.Params.Name {
			case "huge":
				r.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"s%d","method":"ping","params":{"x":"%s"}}`, i, strings.Repeat("x", 900_000)))
				continue
			case "nothing":
				r.send(`{"garbage":1}`)
				continue
			case "deep":
				r.send(`{"jsonrpc":"2.0","id":"nobody","result":{}}`)
				continue
			}
			r.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"s%d","method":"ping"}`, i))
		}
	case Chatter:
		for range 5000 {
			r.send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}`)
		}
	case Broken:
		r.send(`{"jsonrpc":"2.0","id":` + string(req.ID) + `,"result":{"content":[`)
		return
	case Orphan:
		child := exec.Command("sleep", "300")
		child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
		if err := child.Start(); err != nil {
			panic(err)
		}
		os.Exit(5)
	}
	switch req.Params.Name {
	case "args":
		r.reply(req, `{"content":[],"structuredContent":`+string(req.Params.Arguments)+`}`)
	case "huge":
		r.reply(req, `{"content":[{"type":"text","text":"`+strings.Repeat("x", 65<<20)+`"}]}`)
	case "deep":
		r.reply(req, `{"content":[],"structuredContent":`+strings.Repeat("[", 2000)+strings.Repeat("]", 2000)+`}`)
	case "nothing":
		r.reply(req, `null`)
	case "refuse":
		r.send(`{"jsonrpc":"2.0","id":` + string(req.ID) + `,"error":{"code":-32602,"message":"bad \u001b[31mzulu\u001b[0m in /srv/app/data/file.db"}}`)
	case "exit":
		os.Exit(4)
	case "input":
		r.reply(req, `{"resultType":"input_required","inputRequests":{"q":{"method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object","properties":{}}}}}}`)
	case "first":
		r.reply(req, `{"content":[{"type":"text","text":"`+r.first+`"}]}`)
	case "weird":
		r.reply(req, WeirdResult)
	default:
		r.reply(req, `{"content":[{"type":"text","text":"`+req.Params.Name+`"}]}`)
	}
}

func (r *raw) reply(req request, result string) {
	// Like the TypeScript SDK, which writes the id last.
	r.send(`{"result":` + result + `,"jsonrpc":"2.0","id":` + string(req.ID) + `}`)
	if r.mode == Twice {
		r.send(`{"result":{"content":[]},"jsonrpc":"2.0","id":` + string(req.ID) + `}`)
		r.send(`{"result":{"content":[]},"jsonrpc":"2.0","id":987654}`)
		r.send(`{"result":{"content":[]},"jsonrpc":"2.0","id":"a"}`)
	}
}

func (r *raw) send(line string) {
	if r.mode == Noisy {
		fmt.Print("\n  \r\nServer running on stdio\n{\"level\":\"info\",\"msg\":\"log line\"}\n{half a log line\n[1,2]\n\xff\xfe\n")
		line = "\xef\xbb\xbf" + line + "\r"
		defer time.Sleep(time.Millisecond)
	}
	fmt.Println(line)
}
