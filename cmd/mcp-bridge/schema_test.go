package main_test

import (
	"strings"
	"testing"
)

// TestWrongArguments makes calls that a server would refuse: they fail before
// they are sent, and say how they are meant.
func TestWrongArguments(t *testing.T) {
	t.Parallel()
	c := connect(t, setup{servers: map[string]definition{"everything": everything(t)}})
	for code, want := range map[string][]string{
		`tools.everything.get_sum(a=1, b="2")`:                                        {"TypeError", "argument b: expected float, got str '2'", "everything.get_sum(a: float, b: float)"},
		`tools.call("everything", "get-sum", {"a": 1})`:                               {"TypeError", "missing argument b: float", "everything.get_sum(a: float, b: float)"},
		`tools.call("everything", "get-sum", {"a": 1, "b": 2, "bb": 3})`:              {"TypeError", "unknown argument bb", "everything.get_sum(a: float, b: float)"},
		`tools.everything.get_sum(a=1, bee=2)`:                                        {"TypeError", "bee", "everything.get_sum(a: float, b: float)"},
		`tools.everything.get_annotated_message(messageType="eror")`:                  {"TypeError", "messageType", "'eror'", "did you mean 'error'?"},
		`tools.call("everything", "get-annotated-message", {"mesage_type": "x"})`:     {"TypeError", "unknown argument mesage_type; did you mean messageType?"},
		`tools.everything.get_annotated_message(messageType="error", includeImage=1)`: {"TypeError", "argument includeImage: expected bool, got int 1"},
		`await tools.everything.get_sum.aio(a=1, b=None)`:                             {"TypeError", "argument b: expected float, got None"},
	} {
		contains(t, c.fails(t, code), want...)
	}
	c.wants(t, `"error" in str(tools.everything.get_annotated_message(message_type="error")).lower()`, "True")
	c.wants(t, `"error" in str(tools.call("everything", "get_annotated_message", {"message_type": "error", "includeImage": None})).lower()`, "True")
	contains(t, c.run(t, "try:\n    tools.everything.get_sum(a=1, b='2')\nexcept TypeError as error:\n    print('caught')"), "caught")
	contains(t, c.run(t, `tools.everything.get_annotated_message.doc("full")`), "Literal['error', 'success', 'debug']", "Input schema:", "also message_type")
}

// TestLearnedShapes: what a tool returned is its return type from then on, in
// help, in searches and on the command line, and after a restart; unless the
// user does not want that.
func TestLearnedShapes(t *testing.T) {
	t.Parallel()
	s := special(t)
	const learned = "-> {value: {id: int, tags: list[str]}"
	lacks(t, shell(t, &s, "tools", "list", "special").stdout, learned)
	c := connect(t, s)
	if text := c.run(t, `help(tools.special.same)`); strings.Contains(text, learned) {
		t.Fatalf("known before the first call: %s", text)
	}
	c.run(t, `for id in range(2): tools.special.same(value={"id": id, "tags": ["sEcReT"]})`)
	contains(t, c.run(t, `help(tools.special.same)`), learned)
	contains(t, c.run(t, `tools.search("same value")`), learned)
	contains(t, c.run(t, `print(tools.special.same.doc("full"))`), "Returns, as seen so far:", "id: int", "tags: list[str]")
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}

	got := shell(t, &s, "tools", "describe", "special.same", "--detail", "full")
	contains(t, got.stdout, learned, "Returns, as seen so far:")
	if strings.Contains(got.stdout, "sEcReT") {
		t.Errorf("a value was kept: %s", got.stdout)
	}
	contains(t, shell(t, &s, "tools", "list", "special").stdout, learned)
	c = connect(t, s)
	contains(t, c.run(t, `tools.special.same`), learned)
	if got := shell(t, &s, "tools", "list", "special", "--learn-shapes=false"); strings.Contains(got.stdout, learned) {
		t.Errorf("shown though it is switched off: %s", got.stdout)
	}
}
