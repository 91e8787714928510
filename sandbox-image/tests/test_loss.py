"""The REPL dies: the host is told so, its children die with it, and a new one works."""

import json
import os
import signal
import time
import unittest

from harness import KernelTest
from mcpbridge import wire


def dies_within(pid, seconds=5.0):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
            with open(f"/proc/{pid}/stat") as stat:
                if stat.read().rpartition(")")[2].split()[0] == "Z":
                    return True
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.01)
    return False


# Finds the descriptor of the callback connection in a cell.
CALLBACK_FD = "fd = tools._client._sock.fileno()\n"


class Loss(KernelTest):
    def setUp(self):
        self.kernel = self.new_kernel()

    def check_lost(self, code, reason, **options):
        result = self.kernel.run(code, **options)
        self.assertIsNone(result["cell"], result)
        self.assertIn(reason, result["lost"])
        self.assertEqual(self.kernel.lost[-1], result["lost"])
        self.kernel.restart()
        self.assert_alive()
        return result

    def test_reasons(self):
        for code, reason in (
            ("import os; os._exit(0)", "exited with status 0"),
            ("import os; os._exit(3)", "exited with status 3"),
            ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "killed (SIGKILL"),
            ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", "signal 15 (Terminated)"),
            ("import os; os.abort()", "signal 6 (Aborted)"),
            ("import ctypes; ctypes.string_at(0)", "signal 11 (Segmentation fault)"),
            ("import os; os.closerange(3, 200)", "status 70"),
        ):
            with self.subTest(code):
                self.check_lost(code, reason)

    def test_another_program_in_its_place(self):
        result = self.check_lost("import os; os.execv('/bin/sleep', ['sleep', '60'])", "signal 2", timeout=0.5)
        self.assertEqual(result["interrupted"], "timeout")

    def test_output_before_the_end_arrives(self):
        result = self.check_lost("import os\nprint('a' * 30_000)\nprint('last', flush=True)\nos._exit(1)", "status 1")
        self.assertTrue(result["text"].endswith("a\nlast\n"))

    def test_variables_are_gone(self):
        self.value("x = 1")
        self.check_lost("import os; os._exit(0)", "")
        self.assertEqual(self.error("x")["type"], "NameError")

    def test_children_are_killed(self):
        result = self.kernel.run(
            "import subprocess, os\np = subprocess.Popen(['sleep', '60'])\nprint(p.pid)\nsys = 0\nos._exit(0)"
        )
        self.assertTrue(result["lost"])
        self.assertTrue(dies_within(self.pid_in(result["text"])))

    def pid_in(self, text):
        return int(text.split()[-1])

    def test_in_the_middle_of_a_callback_frame(self):
        frame = wire.pack("tools/call", {"server": "demo", "tool": "get-sum", "arguments": {"a": 1, "b": 2}}, 9)
        for cut in (1, 3, 4, 20, len(frame) - 1):
            with self.subTest(cut):
                calls = len(self.kernel.calls)
                self.check_lost(CALLBACK_FD + f"import os\nos.write(fd, {frame[:cut]!r})\nos._exit(0)", "status 0")
                asked = [params for method, params in self.kernel.calls[calls:] if method == "tools/call"]
                self.assertEqual([params["arguments"]["a"] for params in asked], [20])

    def test_while_the_host_sends_a_long_answer(self):
        self.kernel.answer = lambda method, params: (
            {"servers": [{"name": "x" * 20_000_000}]} if method == "servers/list" else demo(method, params)
        )
        from harness import demo_server as demo

        code = "import threading, os, time\nthreading.Timer(0.3, lambda: os._exit(5)).start()\n"
        code += "tools._client.start('servers/list', {})\ntime.sleep(60)"
        result = self.kernel.run(code)
        self.assertIn("status 5", result["lost"])
        self.kernel.answer = demo
        self.kernel.restart()
        self.assert_alive()

    def test_answers_to_the_dead_do_not_reach_the_new(self):
        self.kernel.replies = False
        result = self.kernel.run("import os\ntools._client.start('servers/list', {})\nos._exit(0)")
        self.assertTrue(result["lost"])
        time.sleep(0.1)
        for i in range(1, 4):
            self.kernel.callback.send(id=i, result={"servers": "stale"})
        self.kernel.replies = True
        self.kernel.restart()
        self.assert_alive()

    def test_between_cells(self):
        self.value("import threading, os\nthreading.Timer(0.1, lambda: os._exit(7)).start()")
        self.assertEqual(self.kernel.next_lost(), "it exited with status 7")
        self.kernel.restart()
        self.assert_alive()

    def test_a_cell_that_crosses_the_loss(self):
        """The host sends a cell before it has read `lost`: the cell is lost too, not the sandbox."""
        self.value("import threading, os\nthreading.Timer(0.1, lambda: os._exit(7)).start()")
        time.sleep(0.5)
        result = self.kernel.run("1")
        self.assertEqual((result["lost"], result["cell"]), ("it exited with status 7", None))
        self.assertEqual(len(self.kernel.lost), 1)
        self.kernel.restart()
        self.assert_alive()

    def test_many_times(self):
        self.assert_alive()
        with_fds = len(os.listdir(f"/proc/{self.kernel.process.pid}/fd")) if os.geteuid() == 0 else None
        for _ in range(20):
            self.check_lost("import os; os._exit(0)", "status 0")
        self.assert_alive()  # the last REPL has been started
        if with_fds is not None:  # the supervisor is not dumpable: only root may look
            self.assertEqual(len(os.listdir(f"/proc/{self.kernel.process.pid}/fd")), with_fds)

    def test_forks(self):
        for code in (
            "import os\nif os.fork() == 0: print('child')\nelse: os.wait(); print('parent')",
            "if os.fork() == 0: raise ValueError('child')\nelse: os.wait(); print('parent')",
            "if os.fork() == 0:\n  import sys; sys.exit(3)\nelse: print('parent', os.wait()[1] >> 8)",
        ):
            result = self.kernel.run(code)
            self.assertEqual(result["cell"]["status"], "ok", result)
            self.assertIn("parent", result["text"])
        self.assertIn("parent 3", result["text"])
        self.assert_alive()

    def test_memory_limit(self):
        kernel = self.new_kernel(settings={"data_limit": 300 << 20})
        kernel.run("x = 1")
        result = kernel.run("y = bytearray(1 << 30)")
        self.assertEqual(result["cell"]["error"]["type"], "MemoryError")
        self.assertEqual(kernel.run("x")["cell"]["value"]["text"], "1")
        self.assert_alive(kernel)


# Finds the descriptors of the kernel's own connections in a cell.
OWN_FDS = """
import os, stat, struct
def fds():
    found = []
    for fd in range(3, 100):
        try:
            if stat.S_ISSOCK(os.fstat(fd).st_mode): found.append(fd)
        except OSError: pass
    return found
def frame(data):
    data = data if isinstance(data, bytes) else data.encode()
    return struct.pack(">I", len(data)) + data
def send(data):
    for fd in fds():
        if fd != tools._client._sock.fileno():
            os.set_blocking(fd, True)
            view = memoryview(data)
            try:
                while view: view = view[os.write(fd, view):]
            except OSError: pass
"""


class Forgery(KernelTest):
    """A cell writes into the kernel's own channel: the supervisor survives and tells the truth."""

    def setUp(self):
        self.kernel = self.new_kernel()
        self.run_ok(OWN_FDS)

    def test_forged(self):
        report = {"cell": 0, "status": "ok"}
        deep = '{"method":"done","params":{"cell":%d,"status":' + "[" * 900 + "]" * 900 + "}}"
        forged = {
            "garbage": b"\xff" * 100,
            "zero length": b"\0\0\0\0",
            "20 MiB header": b"\x01\x40\x00\x00",
            "not JSON": "frame('nonsense')",
            "not an object": "frame('[]')",
            "NaN": 'frame(\'{"method":"done","params":{"cell":%d,"status":NaN}}\')',
            "infinity": 'frame(\'{"method":"done","params":{"cell":%d,"status":1e999}}\')',
            "wrong types": 'frame(\'{"method":"done","params":{"cell":%d,"status":5}}\')',
            "number no int64 holds": 'frame(\'{"method":"done","params":{"cell":%d,"status":"exit","exit":99999999999999999999}}\')',
            "bad base64": 'frame(\'{"method":"done","params":{"cell":%d,"images":[{"mime":"","data":"?"}]}}\')',
            "nested": f"frame('{deep}')",
            "not UTF-8": "frame(b'{\"method\":\"done\",\"params\":{\"status\":\"\\xff\"}}')",
            "many values": 'frame(\'{"method":"done","params":{"cell":%d,"images":[\' + "[]," * 5_000_000 + "[]]}}")',
        }
        for name, data in forged.items():
            with self.subTest(name):
                code = repr(data) if isinstance(data, bytes) else data.replace("%d", str(self.kernel.cells + 1))
                result = self.kernel.run(f"send({code})\nimport time; time.sleep(60)", timeout=15)
                self.assertEqual(result["lost"], "a cell wrote to the kernel's own channel", report)
                self.assertIsNone(result["cell"])
                self.kernel.restart()
                self.run_ok(OWN_FDS)
                self.assert_alive()

    def test_twenty_mebibytes(self):
        code = "data = frame(b'{\"method\":\"done\",\"params\":{\"status\":\"' + b'x' * (20 << 20) + b'\"}}')\nsend(data)\nimport time; time.sleep(60)"
        result = self.kernel.run(code, timeout=15)
        self.assertEqual(result["lost"], "a cell wrote to the kernel's own channel")
        self.kernel.restart()
        self.assert_alive()

    def test_monstrous_report(self):
        """Within its frame a report could take gigabytes to parse: the supervisor has a bound."""
        limit = 400 << 20
        kernel = self.new_kernel(settings={"data_limit": limit})
        for piece in ("{},", "[],", "[[]],"):
            kernel.run(OWN_FDS)
            code = "data = b'{\"method\":\"done\",\"params\":{\"images\":[' + b'%s' * (16_000_000 // %d) + b'0]}}'" % (piece, len(piece))
            result = kernel.run(code + "\nsend(frame(data))\nimport time; time.sleep(60)", timeout=15)
            self.assertEqual(result["lost"], "a cell wrote to the kernel's own channel")
            kernel.restart()
        self.assert_alive(kernel)
        with open(f"/proc/{kernel.process.pid}/status") as status:
            peak = [int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM")]
        self.assertLess(peak[0], limit)

    def test_forged_done(self):
        """A cell may lie about itself only: the host gets well-formed reports for the cells it sent."""
        number = self.kernel.cells + 1
        forged = json.dumps({"method": "done", "params": {"cell": number, "status": "ok", "value": {"text": "forged"}}})
        result = self.kernel.run(f"send(frame({forged!r}))\nimport time; time.sleep(0.2); print('truth')")
        self.assertEqual(result["cell"]["value"]["text"], "forged")
        later = json.dumps({"method": "done", "params": {"cell": number + 2, "status": "ok", "value": {"text": "forged"}}})
        result = self.kernel.run(f"send(frame({later!r})); 'own'")
        self.assertEqual(result["cell"]["value"]["text"], "'own'")
        self.assertEqual(self.value("'mine'"), "'mine'")

    def test_reports_between_cells_are_ignored(self):
        forged = json.dumps({"method": "done", "params": {"cell": 1, "status": "ok"}})
        self.value(f"import threading; threading.Timer(0.05, send, [frame({forged!r}) * 100]).start()")
        time.sleep(0.2)
        self.assert_alive()

    def test_the_supervisors_ends_are_not_inherited(self):
        count = int(self.value("len(fds())"))
        self.assertEqual(count, 2, "the REPL has its channel and the callback connection")
        kinds = self.value(
            "import os\n[os.readlink(f'/proc/self/fd/{fd}').split(':')[0] for fd in map(int, os.listdir('/proc/self/fd'))"
            " if fd > 2 and os.path.exists(f'/proc/self/fd/{fd}')]"
        )
        self.assertEqual(kinds.count("socket"), 2, kinds)
        self.assertLessEqual(kinds.count("pipe"), 1, kinds)

    def test_the_supervisor_is_closed_to_its_children(self):
        if os.geteuid() == 0:
            return  # root may look at anything; the image's tests run as nobody
        pid = self.kernel.process.pid
        for path in ("mem", "fd", "environ"):
            code = f"import os\nos.listdir('/proc/{pid}/fd') if {path!r} == 'fd' else open('/proc/{pid}/{path}', 'rb').read(1)"
            self.assertEqual(self.error(code)["type"], "PermissionError", path)

    def test_garbage_on_the_callback_channel_reaches_only_the_host(self):
        result = self.kernel.run(CALLBACK_FD + "os.write(fd, b'\\xff' * 10)\n'written'")
        self.assertEqual(result["cell"]["value"]["text"], "'written'")
        self.assertIsNone(self.kernel.process.poll())

    def test_signals_of_a_cell_to_the_supervisor(self):
        if os.geteuid() == 0:
            pid = self.kernel.process.pid
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
                self.value(f"import os; os.kill({pid}, {int(number)})")
            self.assert_alive()


if __name__ == "__main__":
    unittest.main()
