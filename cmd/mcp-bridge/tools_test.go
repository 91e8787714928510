package main_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// TestToolsOfRealServers uses two servers from npm, found by search alone.
func TestToolsOfRealServers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "hello.txt"), []byte("hello from disk"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := connect(t, setup{servers: map[string]definition{
		"everything": everything(t),
		"files":      npmServer(t, "server-filesystem", dir),
	}})
	contains(t, c.run(t, `tools.search("echo")`), "everything.echo(message: str)", "Echoes")
	c.wants(t, `tools.search("echo")[0](message="found")`, "'Echo: found'")
	c.wants(t, `tools.search("ehco")[0].tool`, "'echo'")
	c.wants(t, `hit = tools.search("read a text file from disk", limit=3)[0]; hit.server`, "'files'")
	c.wants(t, `"hello from disk" in str(tools.files.read_text_file(path=`+strconv.Quote(filepath.Join(dir, "hello.txt"))+`))`, "True")
	c.wants(t, `[s.name for s in tools.servers()]`, "['everything', 'files']")
	c.wants(t, `w = tools.everything.get_structured_content(location="Chicago"); type(w["temperature"]), w.conditions == w["conditions"]`, "(<class 'int'>, True)")
	contains(t, c.run(t, `tools.everything.get_sum(2, 3)`), "5")
	contains(t, c.run(t, `tools.everything.get_sum(b=3, a=4)`), "7")
	contains(t, c.run(t, `help(tools.everything.get_sum)`), "get_sum(a: float, b: float)")
	contains(t, c.run(t, `dir(tools.everything)`), "'echo'", "'get_tiny_image'")
	contains(t, c.run(t, `tools.everything`), "everything.echo(message: str)")
	text := c.fails(t, `tools.files.read_text_file(path="/etc/shadow")`)
	contains(t, text, "ToolError", "denied")
}

// TestImage shows a tool's image to the model.
func TestImage(t *testing.T) {
	t.Parallel()
	c := connect(t, setup{servers: map[string]definition{"everything": everything(t)}})
	png := []byte("\x89PNG\r\n\x1a\n")
	for _, code := range []string{
		"r = tools.everything.get_tiny_image()\nr",
		"[b for b in r if hasattr(b, 'data')][0]",
		"(await tools.everything.get_tiny_image.aio())[1]",
		"class Figure:\n    def _repr_png_(self): return _.data if hasattr(_, 'data') else r[1].data\nFigure()",
	} {
		r := c.call(t, arguments{"code": code})
		if r.isError || len(r.images) != 1 {
			t.Errorf("%s: %d images, error %v: %s", code, len(r.images), r.isError, r.text)
			continue
		}
		if image := r.images[0]; image.MIMEType != "image/png" || !bytes.HasPrefix(image.Data, png) {
			t.Errorf("%s: an image of type %q that begins with %q", code, image.MIMEType, image.Data[:8])
		}
	}
	c.wants(t, "r[1].save('/workspace/tiny.png'); open('/workspace/tiny.png', 'rb').read(4)", `b'\x89PNG'`)
	contains(t, c.run(t, "print(r[1])"), "image/png")
}

func TestToolResults(t *testing.T) {
	t.Parallel()
	c := connect(t, special(t))
	for _, test := range []struct{ name, code, want string }{
		{"integer beyond a double", "tools.special.same(value=2**53 + 1)['value'] == 2**53 + 1", "True"},
		{"huge integer", "tools.special.same(value=10**40)['value'] == 10**40", "True"},
		{"float", "tools.special.same(value=0.1)['value']", "0.1"},
		{"nested", "tools.special.same(value={'a': [None, True, {'b': 'ż'}]}).value.a[2].b", "'ż'"},
		{"key order", "list(tools.special.same(value={'z': 1, 'a': 2}).value)", "['z', 'a']"},
		{"arguments nobody named", "tools.special.anything(x=1, y=[2])", "{'x': 1, 'y': [2]}"},
		{"lone surrogate", `tools.special.same(value='\ud800')['value'] in ('\ud800', '\ufffd')`, "True"},
		{"unusual characters", `v = 'a\0\u2028\x7f🐢'; tools.special.same(value=v)['value'] == v`, "True"},
		{"positional", "tools.special.same(5)['value']", "5"},
		{"by name", "tools.call('special', 'same', {'value': 6})['value']", "6"},
		{"subscripts", "tools['special']['odd-name'](**{'class': 'c'})['class']", "'c'"},
		{"identifier of an odd name", "tools.special.odd_name(class_='c', from_='f', max_items=3)", "{'class': 'c', 'from': 'f', 'max-items': 3}"},
		{"signature of an odd name", "str(__import__('inspect').signature(tools.special.odd_name)).replace(\"'\", '')", "'(class_: str, from_: str = None, max_items: int = None)'"},
		{"several blocks", "tools.special.texts()", "['plain', {'a': [1, 2]}, '007']"},
		{"secrets are upstream's", "tools.special.stats().secret", "True"},
		{"2 MB of arguments", "len(tools.special.same(value='v' * 2_000_000)['value'])", "2000000"},
	} {
		t.Run(test.name, func(t *testing.T) { c.wants(t, test.code, test.want) })
	}
}

func TestToolError(t *testing.T) {
	t.Parallel()
	c := connect(t, special(t))
	c.wants(t, `
try:
    tools.special.fail(why="because")
except ToolError as e:
    caught = e
caught.server, caught.tool, caught.result["isError"], "because" in str(caught)`, "('special', 'fail', True, True)")
	c.wants(t, `
try:
    await tools.special.fail.aio(why="async")
except ToolError as e:
    caught = e
caught.server, caught.tool, "async" in str(caught)`, "('special', 'fail', True)")
	c.wants(t, `issubclass(ToolError, Exception)`, "True")
	contains(t, c.fails(t, `tools.call("special", "nothing", {})`), "UnknownTool", "nothing")
	contains(t, c.fails(t, `tools.call("nothing", "same", {})`), "UnknownTool", "nothing")
	contains(t, c.fails(t, `tools.special.same(value={1})`), "TypeError")
}

// TestServerCrash has a server die in the middle of a call: that call fails and
// says so, the next one has a new server.
func TestServerCrash(t *testing.T) {
	t.Parallel()
	c := connect(t, special(t))
	c.run(t, "first = tools.special.stats().pid")
	contains(t, c.fails(t, "tools.special.crash()"), "ServerUnavailable", "special", "exit status 3", "crashing as asked")
	c.wants(t, "tools.special.same(value=1)['value'], tools.special.stats().pid != first", "(1, True)")
}

// TestParallelCalls counts at the server how many calls it had at once.
func TestParallelCalls(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ code, most string }{
		"gather":       {"import asyncio\nlen(await asyncio.gather(*[tools.special.sleep.aio(ms=1000) for _ in range(10)]))", "10"},
		"map":          {"len(tools.map(tools.special.sleep, [1000] * 10, concurrency=10))", "10"},
		"map of many":  {"len(tools.map(tools.special.sleep, [1000] * 20)) // 2", "20"},
		"amap":         {"len(await tools.amap(tools.special.sleep, [1000] * 20)) // 2", "20"},
		"bounded map":  {"len(tools.map(tools.special.sleep, [200] * 10, concurrency=3))", "3"},
		"map function": {"len(tools.map(lambda ms: tools.special.sleep(ms=ms), [1000] * 10, concurrency=10))", "10"},
		"threads":      {"from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(10) as p: r = list(p.map(tools.special.sleep, [1000] * 10))\nlen(r)", "10"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := connect(t, special(t))
			c.run(t, "tools.special.stats()") // starts the server
			c.wants(t, test.code, "10")
			c.wants(t, "tools.special.stats().most", test.most)
		})
	}
}

func TestMap(t *testing.T) {
	t.Parallel()
	c := connect(t, special(t))
	c.wants(t, "[r['value'] for r in tools.map(tools.special.same, range(50))] == list(range(50))", "True")
	c.wants(t, "[r['value'] for r in tools.map(tools.special.same, [{'value': 1}, (2,)])]", "[1, 2]")
	c.wants(t, `r = tools.map(tools.special.fail, ["a", "b"], return_exceptions=True)
[type(e).__name__ for e in r], "a" in str(r[0]), "b" in str(r[1])`, "(['ToolError', 'ToolError'], True, True)")
	c.wants(t, `r = await __import__("asyncio").gather(tools.special.fail.aio(why="x"), tools.special.same.aio(value=1), return_exceptions=True)
type(r[0]).__name__, r[1]["value"]`, "('ToolError', 1)")
	contains(t, c.fails(t, "tools.map(tools.special.fail, ['x', 'y'])"), "ToolError", "it failed")
	c.wants(t, "tools.map(len, ['a', 'bb'])", "[1, 2]")
	c.wants(t, "tools.map(tools.special.same, [])", "[]")
	// Threads, tasks and the cell itself at the same time.
	c.wants(t, `
import asyncio, threading
got = []
def many(base): got.extend(tools.special.same(value=base + i)["value"] for i in range(50))
threads = [threading.Thread(target=many, args=(1000 * n,)) for n in range(1, 5)]
for th in threads: th.start()
async def task(n): return (await tools.special.same.aio(value=n))["value"]
tasks = await asyncio.gather(*[task(n) for n in range(100)])
many(0)
for th in threads: th.join()
tasks == list(range(100)), sorted(got) == sorted(1000 * n + i for n in range(5) for i in range(50))`, "(True, True)")
}

// TestServerIsShared shows that sandboxes use one server process.
func TestServerIsShared(t *testing.T) {
	t.Parallel()
	c := connect(t, special(t))
	c.runIn(t, "a", "1")
	c.runIn(t, "b", "1")
	pids := make(chan string, 2)
	for _, session := range []string{"a", "b"} { // at once, before there is a server
		go func() {
			r, err := c.try(t.Context(), arguments{"code": "tools.special.stats().pid", "session": session})
			pids <- fmt.Sprint(r.text, r.isError, err)
		}()
	}
	if a, b := <-pids, <-pids; a != b {
		t.Errorf("two sandboxes use the server processes %s and %s", a, b)
	}
}

// TestServersThatDoNotStart keep nobody else away, and say why.
func TestServersThatDoNotStart(t *testing.T) {
	t.Parallel()
	c := connect(t, setup{servers: map[string]definition{
		"absent":  {Command: "/nonexistent/program"},
		"broken":  brokenServer(t),
		"silent":  {Command: "true"},
		"off":     {Command: "/nonexistent/program", Disabled: true},
		"special": specialServer(t),
	}})
	contains(t, c.fails(t, "tools.broken.anything()"), "ServerUnavailable", "broken", "the license file is missing")
	contains(t, c.fails(t, "tools.call('absent', 'x', {})"), "ServerUnavailable", "absent")
	contains(t, c.fails(t, "tools.silent.x()"), "ServerUnavailable", "silent")
	contains(t, c.fails(t, "tools.off.x()"), "off")
	text := c.run(t, "tools.search('gives back its arguments')")
	contains(t, text, "special.same", "broken", "absent")
	c.wants(t, "tools.special.same(value=1)['value']", "1")
	contains(t, c.run(t, "tools.servers()"), "broken", "failed", "disabled")
	contains(t, c.stderr.String(), "broken")
}
