"""Attacks on the host over the callback connection, used without the kernel's client.

Each runs in a sandbox of its own. What is expected of the host: it refuses, exactly
this; nothing reaches the servers behind it; and it goes on serving everybody else.
A protocol violation ends the sandbox, which the test sees.
"""

import array
import gc
import json
import os
import random
import socket
import struct
import threading
import time

from harness import CONTEXT, Denied, attack

TOUCH = {"server": "special", "tool": "touch", "arguments": {}}


class Raw:
    """The callback connection of this process."""

    def __init__(self):
        self.socket = next(vars(o)["_sock"] for o in gc.get_objects() if f"{type(o).__module__}.{type(o).__name__}" == "mcpbridge.callback.Client")
        self.socket.setblocking(True)
        self.socket.settimeout(3)
        self.received = bytearray()

    def send(self, data):
        self.socket.sendall(data)

    def frame(self, payload):
        self.send(struct.pack(">I", len(payload)) + payload)

    def message(self, **message):
        self.frame(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def answer(self):
        """The next answer. Raises Denied if there is none."""
        until = time.monotonic() + 1
        while True:
            if len(self.received) >= 4:
                size = struct.unpack(">I", self.received[:4])[0]
                if len(self.received) >= 4 + size:
                    payload = bytes(self.received[4 : 4 + size])
                    del self.received[: 4 + size]
                    return json.loads(payload)
            self.socket.settimeout(max(0.01, until - time.monotonic()))
            try:
                data = self.socket.recv(1 << 20)
            except TimeoutError:
                raise Denied("no answer") from None
            if not data:
                time.sleep(1)  # and the sandbox is ended
                raise Denied("the connection is closed")
            self.received += data

    def ask(self, method="servers/list", params=None):
        """Send a proper request; its answer. Others that come before are dropped."""
        id = random.randrange(10**6, 10**9)
        self.message(id=id, method=method, params=params or {})
        while True:
            answer = self.answer()
            if answer.get("id") == id:
                return answer

    def ignored(self):
        """Raise Denied if the host serves on, as if nothing had been."""
        if "result" in self.ask():
            raise Denied("ignored")
        return "it no longer serves"


def judged(answer):
    if "error" in answer:
        raise Denied("answered: " + answer["error"]["message"])
    return answer


def payload(name, data, what):
    """A frame around something that is no request. The host must not take it for one."""

    @attack(name=name)
    def send():
        raw = Raw()
        raw.frame(data)
        return judged(raw.answer())

    send.__doc__ = what


def request(text):
    """A request for the tool that must not be touched, with something else in it."""
    return ('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":%s%s}' % (json.dumps(TOUCH), text)).encode()


payload("garbage", b"\x80\x81\xfe\xff", "No JSON at all.")
payload("truncated_json", request("")[:-1], "JSON that ends too early.")
payload("trailing_garbage", request("") + b"x", "JSON with something behind.")
payload("two_objects", request("") * 2, "Two in one frame.")
payload("batch", b"[" + request("") + b"]", "A batch, which JSON-RPC has and we do not.")
payload("scalar", b"4711", "A number.")
payload("null", b"null", "Nothing.")
payload("not_utf8", request("").replace(b"touch", b"tou\xff\xfech"), "Bytes that are no UTF-8.")
payload("byte_order_mark", b"\xef\xbb\xbf" + request(""), "A byte order mark before it.")
payload("utf16", request("").decode().encode("utf-16"), "Another encoding.")
payload("duplicate_keys", request(',"method":"tools/call"'), "A key twice: which counts?")
payload("other_case", request("").replace(b'"method"', b'"Method"'), "Keys in capitals, which Go's decoder takes for the same.")
payload("unknown_key", request(',"trace":1'), "A key that is none.")
payload("no_version", request("").replace(b'"jsonrpc":"2.0",', b""), "Without a version.")
payload("other_version", request("").replace(b'"2.0"', b'"1.0"'), "Of another version.")
payload("id_text", request("").replace(b'"id":1', b'"id":"1"'), "An id that is a text.")
payload("id_fraction", request("").replace(b'"id":1', b'"id":1.5'), "An id that is no whole number.")
payload("id_negative", request("").replace(b'"id":1', b'"id":-1'), "A negative id.")
payload("id_huge", request("").replace(b'"id":1', b'"id":99999999999999999999'), "An id over all bounds.")
payload("id_null", request("").replace(b'"id":1', b'"id":null'), "An id that is null.")
payload("method_number", request("").replace(b'"tools/call"', b"7"), "A method that is a number.")
payload("request_and_result", request(',"result":{}'), "Request and response in one.")
payload("result_and_error", b'{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}', "Both kinds of response.")
payload("response_to_nothing", b'{"jsonrpc":"2.0","id":99,"result":{}}', "A response that nobody asked for.")
payload("error_to_nothing", b'{"jsonrpc":"2.0","id":99,"error":{"code":1,"message":"no"}}', "An error likewise.")
payload("empty_object", b"{}", "An object with nothing in it.")
payload("nan", request("").replace(b'"arguments": {}', b'"arguments": {"x": NaN}'), "A number that JSON does not have.")
payload("control_characters", request("").replace(b"touch", b"tou\x00ch"), "NUL in a string.")
payload("long_number", request("").replace(b'"arguments": {}', b'"arguments": []').replace(b'"id":1', b'"id":' + b"1" * 10**6), "A number of a million digits.")
payload("deep_envelope", b"[" * 10**6, "A million brackets.")


def refused(name, method, params, what):
    """A proper request for what there is not."""

    @attack(name=name)
    def ask():
        return judged(Raw().ask(method, params))

    ask.__doc__ = what


def deep(depth):
    value = {}
    for _ in range(depth):
        value = [value]
    return value


refused("unknown_method", "tools/run", {}, "A method that is none.")
refused("control_method", "execute", {"nonce": "x", "cell": 1, "code": "1", "timeout": 1, "grace": 1, "value_limit": 1}, "The control channel's methods.")
refused("resync_method", "resync", {"marker": "00" * 32}, "The one that gives new trust.")
refused("params_list", "tools/call", ["special", "touch"], "Parameters by position.")
refused("server_number", "tools/call", {"server": 1, "tool": "touch"}, "A server that is a number.")
refused("tool_object", "tools/call", {"server": "special", "tool": {"name": "touch"}}, "A tool that is an object.")
refused("arguments_list", "tools/call", {"server": "special", "tool": "touch", "arguments": [1]}, "Arguments that are a list.")
refused("arguments_text", "tools/call", {"server": "special", "tool": "touch", "arguments": "{}"}, "Arguments that are text.")
refused("deep_arguments", "tools/call", {"server": "special", "tool": "touch\0", "arguments": {"x": deep(900)}}, "Deep arguments, and NUL in a name.")
refused("path_for_server", "tools/call", {"server": "../special", "tool": "touch"}, "A path for a server.")
refused("command_for_server", "tools/call", {"server": "$(touch /tmp/x)", "tool": "touch"}, "A command for a server.")
refused("other_case_server", "tools/call", {"server": "SPECIAL", "tool": "touch"}, "A server in capitals.")
refused("look_alike_tool", "tools/call", {"server": "special", "tool": "t\u043euch"}, "A tool with a Cyrillic letter.")
refused("width_tool", "tools/call", {"server": "special", "tool": "touch\u200b"}, "A tool with an invisible letter.")
refused("long_tool", "tools/call", {"server": "special", "tool": "touch" * 13000}, "A name of 64 KiB.")
refused("no_tool", "tools/call", {"server": "special"}, "No tool.")
refused("protocol_tool", "tools/call", {"server": "special", "tool": "notifications/cancelled"}, "A method of MCP for a tool.")
refused("lone_surrogate_tool", "tools/call", {"server": "special", "tool": "\ud800touch"}, "Half a character in a name.")
refused("disabled_server", "tools/call", {"server": "disabled", "tool": "touch"}, "A server that its owner has disabled.")
refused("list_disabled_server", "tools/list", {"server": "disabled"}, "The same server's tools.")
refused("tools_of_a_path", "tools/list", {"server": "/etc/passwd"}, "The tools of a file.")
refused("output_of_others", "output/read", {"cell": 999}, "The output of a cell that this session never had.")
refused("output_negative", "output/read", {"cell": -1}, "Of one that cannot be.")
refused("output_text", "output/read", {"cell": "../1"}, "Of a path.")
refused("search_everything", "tools/search", {"query": 1, "limit": 1 << 62}, "A query that is none.")


@attack()
def lone_surrogate_argument():
    """Half a character in an argument goes through as it is or is refused; the host stays whole."""
    raw = Raw()
    raw.frame(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"server":"special","tool":"same","arguments":{"value":"\\ud800"}}}')
    judged_or_served = raw.answer()
    if "result" in raw.ask():
        raise Denied(f"served on after {str(judged_or_served)[:60]}")
    return "it no longer serves"


@attack()
def deepest_arguments():
    """Arguments nested a hundred thousand deep."""
    raw = Raw()
    depth = 10**5
    raw.frame(request("").replace(b'"arguments": {}', b'"arguments": {"x":' + b"[" * depth + b"]" * depth + b"}"))
    return judged(raw.answer())


@attack()
def secrets_of_servers():
    """What the host says of servers: no commands, no variables."""
    raw = Raw()
    said = json.dumps([raw.ask(), raw.ask(method="tools/list", params={"server": "special"}), raw.ask(method="tools/search", params={"query": "e2e", "limit": 100})])
    for word in ("E2E_", "env", "command", "/tmp/", ".test", CONTEXT["canaries"][0][1]):
        if f'"{word}' in said or word == "E2E_" and word in said:
            return word
    raise Denied("names and schemas only")


# Lengths.


def header(name, size, what):
    @attack(name=name)
    def send():
        raw = Raw()
        raw.send(struct.pack(">I", size) + b"x" * 100)
        return judged(raw.answer())

    send.__doc__ = what


header("length_zero", 0, "A frame of nothing.")
header("length_largest", 2**32 - 1, "The largest length there is: nothing may be allocated for it.")
header("length_sign", 2**31, "The sign bit.")
header("length_over", (64 << 20) + 1, "One byte over the bound.")


@attack(seconds=20)
def length_at_the_bound():
    """64 MiB of a call that nobody takes: allowed to be read, and no more."""
    raw = Raw()
    raw.socket.settimeout(15)
    filler = b"x" * ((64 << 20) - 200)
    start = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"server":"nobody","tool":"touch","arguments":{"x":"'
    data = start + filler + b'"}}}'
    raw.send(struct.pack(">I", len(data)))
    raw.send(data)
    return judged(raw.answer())


@attack()
def frame_cut_off():
    """A frame that never ends."""
    raw = Raw()
    raw.send(struct.pack(">I", 1000) + request("")[:50])
    return judged(raw.answer())


@attack()
def slow_loris():
    """A frame a byte at a time: whoever waits for it waits alone."""
    raw = Raw()
    for byte in (struct.pack(">I", 60000) + b'{"jsonrpc"')[:14]:
        raw.send(bytes([byte]))
        time.sleep(0.1)
    raise Denied("it waits")


@attack()
def half_open():
    """Close our half of the connection, and go on."""
    raw = Raw()
    raw.socket.shutdown(socket.SHUT_WR)
    return judged(raw.answer())


@attack()
def half_closed_in_a_frame():
    """Close it in the middle of a frame."""
    raw = Raw()
    raw.send(struct.pack(">I", 1000) + b"{")
    raw.socket.shutdown(socket.SHUT_WR)
    return judged(raw.answer())


@attack()
def close():
    """Close the connection altogether."""
    raw = Raw()
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and os.path.exists(f"/proc/self/fd/{name}") and "socket" in os.readlink(f"/proc/self/fd/{name}"):
            os.close(int(name))
    raw.socket.detach()
    time.sleep(2)
    raise Denied("the other end lives")


# Orders.


@attack()
def id_in_use():
    """The same id twice at a time."""
    raw = Raw()
    sleep = {"server": "special", "tool": "sleep", "arguments": {"ms": 1000}}
    raw.message(id=7, method="tools/call", params=sleep)
    raw.message(id=7, method="tools/call", params=TOUCH)
    return judged(raw.answer())


@attack()
def replayed():
    """A whole request again, while the first is under way."""
    raw = Raw()
    data = json.dumps({"jsonrpc": "2.0", "id": 8, "method": "tools/call", "params": {"server": "special", "tool": "sleep", "arguments": {"ms": 500}}}).encode()
    raw.frame(data)
    raw.frame(data)
    return judged(raw.answer())


@attack()
def forged_result():
    """The result of a call that the host is making, said by us."""
    raw = Raw()
    raw.message(id=9, method="tools/call", params={"server": "special", "tool": "sleep", "arguments": {"ms": 1000}})
    raw.message(id=9, result={"content": []})
    return judged(raw.answer())


@attack()
def interleaved():
    """Two frames woven into each other, as threads without a lock would."""
    raw = Raw()
    one, two = (struct.pack(">I", len(p)) + p for p in (request(""), request("").replace(b'"id":1', b'"id":2')))
    raw.send(b"".join(bytes(pair) for pair in zip(one, two)))
    return judged(raw.answer())


@attack()
def random_marker():
    """Guess the marker by which the host gives trust anew."""
    raw = Raw()
    raw.send(os.urandom(64))
    return judged(raw.answer())


@attack()
def cancel_what_is_not():
    """Ten thousand cancellations of nothing."""
    raw = Raw()
    cancel = json.dumps({"jsonrpc": "2.0", "method": "cancel", "params": {"id": 1 << 40}}).encode()
    raw.send((struct.pack(">I", len(cancel)) + cancel) * 10000)
    return raw.ignored()


@attack()
def cancel_malformed():
    """A cancellation of rubbish."""
    raw = Raw()
    raw.message(method="cancel", params={"id": "../../x"})
    raw.message(method="cancel", params=[])
    return raw.ignored()


@attack()
def wrong_direction():
    """What only the supervisor says, on the other channel."""
    raw = Raw()
    raw.message(method="hello", params={"protocol": 99, "python": "0"})
    raw.message(method="output", params={"text": "forged"})
    raw.message(method="lost", params={"reason": "forged"})
    return raw.ignored()


@attack(seconds=15)
def too_many_calls():
    """More calls than may wait: the rest are refused, and none is lost."""
    raw = Raw()
    call = {"server": "special", "tool": "sleep", "arguments": {"ms": 300}}
    for n in range(1200):
        raw.message(id=n + 2001, method="tools/call", params=call)
    answers = [raw.answer() for _ in range(150)]
    busy = [a for a in answers if "too many calls" in a.get("error", {}).get("message", "")]
    if busy:
        raise Denied(f"refused: {busy[0]['error']['message']}")
    return "all were taken"


@attack(seconds=15)
def answers_unread():
    """Ask for much and read nothing: who does not read gets no more."""
    raw = Raw()
    raw.socket.settimeout(2)
    big = json.dumps({"jsonrpc": "2.0", "id": 0, "method": "tools/call", "params": {"server": "special", "tool": "big", "arguments": {"size": 2 << 20}}})
    for n in range(64):
        raw.frame(big.replace('"id": 0', f'"id": {n + 5001}').encode())
    time.sleep(1.5)
    raise Denied("nobody has to hold them all: see the host's memory")


# Other ways in.


@attack()
def descriptors():
    """Descriptors sent along by SCM_RIGHTS: the host must not take them in."""
    raw = Raw()
    data = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "servers/list", "params": {}}).encode()
    fds = array.array("i", [os.memfd_create("gift") for _ in range(50)])
    raw.socket.sendmsg([struct.pack(">I", len(data)) + data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
    raw.answer()
    return raw.ignored()


@attack()
def descriptor_to_the_network():
    """The connection's own descriptor sent down itself: a knot for garbage collectors."""
    raw = Raw()
    for _ in range(20):
        data = b'{"jsonrpc":"2.0","method":"cancel","params":{"id":1}}'
        fds = array.array("i", [raw.socket.fileno()])
        raw.socket.sendmsg([struct.pack(">I", len(data)) + data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
    return raw.ignored()


@attack()
def second_connection():
    """Connect again, where the kernel connected."""
    s = socket.socket(socket.AF_UNIX)
    s.connect("/run/mcp-bridge/socket/s")
    return "connected"


@attack()
def out_of_band():
    """Urgent data, which some servers mix up."""
    raw = Raw()
    raw.socket.send(b"x", socket.MSG_OOB)
    return judged(raw.answer())


@attack()
def peer():
    """Who is at the other end: nothing to be traced or signalled."""
    raw = Raw()
    pid, uid, gid = struct.unpack("3i", raw.socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    if pid > 1:
        os.kill(pid, 0)
        return f"process {pid} of {uid}"
    raise Denied(f"pid {pid}")


@attack()
def listen_on_it():
    """Make a listener of the connection."""
    Raw().socket.listen()
    return "listening"


@attack()
def shared_by_threads():
    """Eight threads that write at once, in whole frames: served, or refused."""
    raw = Raw()
    data = json.dumps({"jsonrpc": "2.0", "method": "cancel", "params": {"id": 1}}).encode()
    threads = [threading.Thread(target=lambda: [raw.send(struct.pack(">I", len(data)) + data) for _ in range(500)]) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return raw.ignored()


@attack()
def used_by_a_child():
    """The connection in a forked child: it is the sandbox's, not a process's, and
    gives the child no more than its parent has."""
    raw = Raw()
    pid = os.fork()
    if pid == 0:
        raw.frame(b"x")
        os._exit(0)
    os.waitpid(pid, 0)
    time.sleep(1)
    return raw.ask()
