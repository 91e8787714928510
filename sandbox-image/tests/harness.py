"""A host for the kernel under test: starts the supervisor and talks the wire."""

import io
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import hostmux  # noqa: E402
from mcpbridge import wire  # noqa: E402

TIMEOUT = 60.0  # for what should take no time
TRANSPORT = os.environ.get("MCP_BRIDGE_TEST_TRANSPORT", "socket")  # socket, fd or stdio

BOOT = (ROOT / "boot.py").read_text()
ECHO_DOC = {
    "name": "get-sum",
    "ident": "get_sum",
    "description": "Adds two numbers.\nReally.",
    "signature": "demo.get_sum(a: float, b: float, from_: str = None) -> dict",
    "params": [
        {"name": "a", "ident": "a", "type": "float", "required": True},
        {"name": "b", "ident": "b", "type": "float", "required": True},
        {"name": "from", "ident": "from_", "type": "str", "required": False},
    ],
}


class Peer:
    """One connection, in frames."""

    def __init__(self, sock):
        self.sock = sock
        sock.settimeout(TIMEOUT)
        self.decoder = wire.Decoder()
        self.ready = []
        self.lock = threading.Lock()  # over sending

    def send(self, **message):
        self.send_bytes(wire.frame(wire.dumps({"jsonrpc": "2.0", **message})))

    def send_bytes(self, data):
        with self.lock:
            self.sock.sendall(data)

    def receive(self):
        while not self.ready:
            data = self.sock.recv(1 << 16)
            if not data:
                raise EOFError
            self.ready += [json.loads(p) for p in self.decoder.feed(data)]
        return self.ready.pop(0)


class CallbackPeer(Peer):
    """The callback connection: can be resynchronised."""

    def __init__(self, sock):
        super().__init__(sock)
        sock.settimeout(None)
        self.marker = None
        self.synced = threading.Event()

    def expect(self, marker):
        self.synced.clear()
        self.marker = marker

    def receive(self):
        while not self.ready:
            data = self.sock.recv(1 << 16)
            if not data:
                raise EOFError
            if self.marker is None:
                self.ready += [json.loads(p) for p in self.decoder.feed(data)]
                continue
            self.decoder._buffer += data
            if self.decoder._buffer.endswith(self.marker):
                self.decoder, self.marker = wire.Decoder(), None
                self.synced.set()
        return self.ready.pop(0)


class Refusal(LookupError):
    """Raised by answers: an error of a kind of its own. See proxy.Error."""

    def __init__(self, message, kind, hint="", code=-32000):
        super().__init__(message)
        self.kind = kind
        self.hint = hint
        self.code = code


class Kernel:
    """A running supervisor. answer(method, params) serves the callback channel: it
    returns the result, as a value or as bytes of JSON, or raises LookupError.

    Every request is answered by a thread of its own, so an answer that waits
    lets later ones overtake it.
    """

    def __init__(self, answer=None, settings=None):
        self.answer = answer or demo_server
        self.calls = []  # (method, params) of what the cells asked, in order
        self.cells = 0
        self.lost = []  # reasons
        self.replies = True  # False: callbacks are recorded, not answered
        self._generation = 0
        self.dir = tempfile.mkdtemp()
        self._start(settings or {})
        self.hello = self.control.receive()
        threading.Thread(target=self._serve, daemon=True).start()

    def _start(self, settings):
        self.stderr = tempfile.TemporaryFile()
        command = [sys.executable, "-I", "-B", "-c", BOOT, str(ROOT), json.dumps(settings)]
        control, callback = {"socket": self._over_socket, "fd": self._over_fd, "stdio": self._over_stdio}[TRANSPORT](command)
        self.control, self.callback = Peer(control), CallbackPeer(callback)
        if TRANSPORT != "socket":
            self.report = self.control.receive()

    def _run(self, command, **options):
        self.process = subprocess.Popen(command, cwd=self.dir, stderr=self.stderr, **options)

    def _over_socket(self, command):
        path = os.path.join(self.dir, "s")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)
            listener.listen()
            listener.settimeout(TIMEOUT)
            self._run([*command, "socket:" + path], stdin=subprocess.DEVNULL)
            return listener.accept()[0], listener.accept()[0]

    def _over_fd(self, command):
        (control, a), (callback, b) = socket.socketpair(), socket.socketpair()
        with a, b:
            self._run([*command, f"fd:{a.fileno()},{b.fileno()}"], stdin=subprocess.DEVNULL, pass_fds=(a.fileno(), b.fileno()))
        return control, callback

    def _over_stdio(self, command):
        command[-2] = "/nowhere"  # nothing is to be read there
        self._run([*command, "stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        files = io.BytesIO()
        with zipfile.ZipFile(files, "w") as archive:
            for path in (ROOT / "mcpbridge").rglob("*.py"):
                archive.write(path, path.relative_to(ROOT))
        self.process.stdin.write(len(files.getvalue()).to_bytes(4, "big") + files.getvalue())
        return hostmux.Host(self.process.stdin, self.process.stdout).streams

    def _serve(self):
        try:
            while True:
                message = self.callback.receive()
                self.calls.append((message["method"], message.get("params")))
                if "id" in message and self.replies:
                    args = (message, self._generation)
                    threading.Thread(target=self._reply, args=args, daemon=True).start()
        except (EOFError, OSError, wire.ProtocolError):
            pass

    def _reply(self, message, generation):
        try:
            result = self.answer(message["method"], message["params"])
            result = result if isinstance(result, bytes) else wire.dumps(result)
            reply = b'"result":' + result
        except LookupError as error:
            code = getattr(error, "code", -32000)
            data = {"kind": getattr(error, "kind", "refused"), "hint": getattr(error, "hint", "Try another.")}
            reply = b'"error":' + wire.dumps({"code": code, "message": error.args[0], "data": data})
        frame = wire.frame(b'{"jsonrpc":"2.0","id":%d,%s}' % (message["id"], reply))
        with self.callback.lock:
            if generation == self._generation:
                try:
                    self.callback.sock.sendall(frame)
                except OSError:
                    pass

    def start(self, code, timeout=TIMEOUT, grace=1.0, value_limit=2000, **more):
        """Send a cell without waiting; returns its number."""
        self.cells += 1
        params = dict(nonce=f"n{self.cells}", cell=self.cells, code=code, **more)
        params.update(timeout=timeout, grace=grace, value_limit=value_limit)
        self.control.send(id=self.cells, method="execute", params=params)
        return self.cells

    def finish(self):
        """The result of the running cell, with its output under "text"."""
        output = []
        while True:
            message = self.control.receive()
            if message.get("method") == "output":
                output.append(message["params"]["text"])
            elif message.get("method") == "lost":
                self.lost.append(message["params"]["reason"])
            else:
                result = message["result"]
                assert message["id"] == self.cells, message
                assert result["nonce"] == f"n{self.cells}", message
                result["text"] = "".join(output)
                return result

    def run(self, code, **options):
        self.start(textwrap.dedent(code), **options)
        return self.finish()

    def output_until(self, text):
        """Receive until the running cell has printed text; returns all output."""
        output = ""
        while text not in output:
            message = self.control.receive()
            assert message.get("method") == "output", message
            output += message["params"]["text"]
        return output

    def next_lost(self):
        """Receive `lost` while no cell runs; returns the reason."""
        message = self.control.receive()
        assert message.get("method") == "lost", message
        return message["params"]["reason"]

    def cancel(self):
        """What the host does when the client cancels the running cell."""
        self.control.send(method="interrupt", params={"cell": self.cells})

    def restart(self):
        """What the host does after `lost`: resynchronise, then a new REPL."""
        marker = os.urandom(16)
        self.callback.expect(marker)
        self._generation += 1
        self.control.send(method="resync", params={"marker": marker.hex()})
        assert self.callback.synced.wait(TIMEOUT), "no marker came"
        with self.callback.lock:  # answers to the old one are out, and will be drained
            pass
        self.control.send(method="start", params={})

    def hang_up(self):
        """Close both connections; returns the seconds until the process ended."""
        begin = time.monotonic()
        for peer in (self.control, self.callback):
            try:
                peer.sock.shutdown(socket.SHUT_RDWR)  # a thread of ours may be in recv
            except OSError:
                pass
            peer.sock.close()
        self.process.wait(TIMEOUT)
        return time.monotonic() - begin

    def close(self):
        """End the process; returns what it wrote to its own stderr, which should be nothing."""
        try:
            self.hang_up()
        finally:
            self.process.kill()
            self.process.wait()
            shutil.rmtree(self.dir, ignore_errors=True)
        self.stderr.seek(0)
        with self.stderr:
            return self.stderr.read().decode()


class KernelTest(unittest.TestCase):
    """Tests that share a kernel, as cells of one session do."""

    @classmethod
    def setUpClass(cls):
        cls.kernel = Kernel()

    @classmethod
    def tearDownClass(cls):
        trouble = cls.kernel.close()
        assert not trouble, trouble

    def new_kernel(self, *args, **options):
        """A kernel of the test's own."""
        kernel = Kernel(*args, **options)
        self.addCleanup(lambda: self.assertEqual(kernel.close(), ""))
        return kernel

    def run_ok(self, code, **options):
        """Run a cell that must not fail; returns its result."""
        result = self.kernel.run(code, **options)
        self.assertIsNotNone(result["cell"], result)
        self.assertEqual(result["cell"]["status"], "ok", result)
        return result

    def value(self, code, **options):
        """The repr of a cell's last expression, or None."""
        return self.run_ok(code, **options)["cell"].get("value", {}).get("text")

    def printed(self, code, **options):
        """What a cell printed."""
        return self.run_ok(code, **options)["text"]

    def error(self, code, **options):
        """The error of a cell that must fail."""
        result = self.kernel.run(code, **options)
        self.assertIsNotNone(result["cell"], result)
        self.assertEqual(result["cell"]["status"], "error", result)
        return result["cell"]["error"]

    def assert_alive(self, kernel=None):
        """The kernel takes cells and its callbacks work."""
        result = (kernel or self.kernel).run("tools.demo.get_sum(20, 22).sum")
        self.assertEqual(result["cell"], {**result["cell"], "status": "ok", "value": {"text": "42"}}, result)


def demo_server(method, params):
    """Answers of a host with one server, `demo`."""
    if method == "servers/list":
        server = dict(name="demo", ident="demo", description="A demo", tools=1, state="idle", error="")
        return {"servers": [server]}
    if method == "tools/list":
        return {"tools": [ECHO_DOC]}
    if method == "tools/search":
        hit = dict(server="demo", tool="get-sum", signature=ECHO_DOC["signature"], description="Adds.", score=1.5)
        return {"hits": [hit], "note": ""}
    if method == "tools/call" and params["tool"] == "get-sum":
        arguments = params["arguments"]
        if arguments["a"] == 13:
            return {"content": [{"type": "text", "text": "13 is refused"}], "isError": True}
        total = arguments["a"] + arguments["b"]
        return {"content": [{"type": "text", "text": json.dumps({"sum": total})}]}
    raise LookupError(f"no tool {params.get('tool')!r} here.")
