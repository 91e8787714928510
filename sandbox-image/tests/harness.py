"""A host for the kernel under test: starts the supervisor and talks the wire."""

import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import threading

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from mcpbridge import wire  # noqa: E402

BOOT = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from mcpbridge import supervisor; supervisor.main(sys.argv[2], {})"
)
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
        sock.settimeout(20)
        self.decoder = wire.Decoder()
        self.ready = []

    def send(self, **message):
        self.sock.sendall(wire.frame(wire.dumps({"jsonrpc": "2.0", **message})))

    def receive(self):
        while not self.ready:
            data = self.sock.recv(1 << 16)
            if not data:
                raise EOFError
            self.ready += [json.loads(p) for p in self.decoder.feed(data)]
        return self.ready.pop(0)


class Kernel:
    """A running supervisor. answer(method, params) serves the callback channel."""

    def __init__(self, answer=None):
        self.dir = tempfile.mkdtemp()
        path = os.path.join(self.dir, "s")
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        listener.listen()
        listener.settimeout(20)
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-c", BOOT, str(ROOT), path], cwd=self.dir
        )
        self.control = Peer(listener.accept()[0])
        self.callback = Peer(listener.accept()[0])
        listener.close()
        self.answer = answer or demo_server
        self.calls = []  # (method, params) of what the cells asked
        self.cells = 0
        self.hello = self.control.receive()
        self.lost = []
        self.generation = threading.Thread(target=self._serve, daemon=True)
        self.generation.start()

    def _serve(self):
        try:
            while True:
                message = self.callback.receive()
                self.calls.append((message["method"], message.get("params")))
                if "id" in message:
                    threading.Thread(target=self._reply, args=(message,), daemon=True).start()
        except (EOFError, OSError, wire.ProtocolError):
            pass

    def _reply(self, message):
        try:
            self.callback.send(id=message["id"], result=self.answer(message["method"], message["params"]))
        except LookupError as error:
            data = {"kind": "unknown_tool", "hint": "Try another."}
            self.callback.send(id=message["id"], error={"code": -32000, "message": str(error), "data": data})
        except OSError:
            pass

    def start(self, code, timeout=20.0, grace=1.0, value_limit=2000):
        """Send a cell without waiting; returns its number."""
        self.cells += 1
        params = dict(nonce=f"n{self.cells}", cell=self.cells, code=code)
        params.update(timeout=timeout, grace=grace, value_limit=value_limit)
        self.control.send(id=self.cells, method="execute", params=params)
        return self.cells

    def finish(self):
        """The result of the running cell, with its output under "output"."""
        output = []
        while True:
            message = self.control.receive()
            if message.get("method") == "output":
                output.append(message["params"]["text"])
            elif message.get("method") == "lost":
                self.lost.append(message["params"]["reason"])
            else:
                result = message["result"]
                assert result["nonce"] == f"n{self.cells}", result
                result["output"] = output
                result["text"] = "".join(output)
                return result

    def run(self, code, **options):
        self.start(code, **options)
        return self.finish()

    def value(self, code):
        """The repr of code's value; fails with the traceback if the cell failed."""
        result = self.run(code)
        assert result["cell"]["status"] == "ok", result
        return result["cell"].get("value", {}).get("text")

    def restart(self):
        """What the host does after `lost`: resynchronise, then a new REPL."""
        marker = os.urandom(16)
        self.control.send(method="resync", params={"marker": marker.hex()})
        self.control.send(method="start", params={})

    def close(self):
        for peer in (self.control, self.callback):
            peer.sock.close()
        status = self.process.wait(20)
        shutil.rmtree(self.dir)
        return status


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
