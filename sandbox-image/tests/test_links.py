"""The ways to the host: what is theirs alone, besides everything else, which runs over each."""

import os
import subprocess
import sys
import time
import types
import unittest

import harness
from harness import TRANSPORT, KernelTest
from mcpbridge import mux


class Streams(KernelTest):
    def setUp(self):
        self.kernel = self.new_kernel()

    def test_a_flood_of_output_does_not_starve_calls(self):
        """The host reads no output: the cell's calls are answered all the same."""
        code = """
            import threading
            flood = threading.Thread(target=lambda: [print("x" * 10_000) for _ in range(2000)])
            flood.start()
            for _ in range(50): tools.demo.get_sum(1, 1)
            flood.join()
            """
        self.kernel.start(harness.textwrap.dedent(code))
        deadline = time.monotonic() + 10
        while len(self.kernel.calls) < 51 and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertGreaterEqual(len(self.kernel.calls), 51)
        result = self.kernel.finish()
        self.assertEqual((result["cell"]["status"], len(result["text"])), ("ok", 2000 * 10_001))

    def test_a_flood_of_calls_is_bounded_here(self):
        """Nobody reads the callbacks, after the first that is none: the supervisor neither grows nor hangs."""
        code = """
            import os, time
            sock = tools._client._sock
            total = 0
            try:
                for _ in range(100): total += sock.send(b"\\0" * (1 << 20))
            except BlockingIOError:
                pass
            total
            """
        before = self.rss()
        self.value(code)
        self.assertLess(self.rss() - before, 8 << 20)
        self.assertEqual(self.value("6 * 7"), "42")

    def rss(self):
        with open(f"/proc/{self.kernel.process.pid}/status") as status:
            return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmRSS"))

    def test_a_large_answer(self):
        big = b'{"servers":[{"name":"' + b"x" * ((20 << 20) - 200) + b'"}]}'
        self.kernel.answer = lambda method, params: big
        self.assertEqual(self.value("len(tools._client.call('servers/list', {})['servers'][0]['name'])"), str((20 << 20) - 200))

    def test_standard_streams_of_a_cell(self):
        code = """
            import os
            def kinds(): return [os.readlink(f"/proc/self/fd/{fd}").split(":")[0] for fd in (0, 1, 2)]
            kinds()
            """
        self.assertEqual(self.value(code), "['/dev/null', 'pipe', 'pipe']")
        self.assertEqual(self.value("len({os.fstat(1).st_ino, os.fstat(2).st_ino})"), "1")
        pipes = "[os.readlink(f'/proc/self/fd/{fd}') for fd in os.listdir('/proc/self/fd') if os.path.exists(f'/proc/self/fd/{fd}')]"
        self.assertEqual(self.value(f"len({{p for p in {pipes} if p.startswith('pipe')}})"), "1", "the output pipe alone")

    def test_the_kernel_is_all_there_and_its_importer_comes_last(self):
        self.assertEqual(self.value("import sys\n'Importer' in [type(f).__name__ for f in sys.meta_path[:-2]]"), "False")
        lazily = "import mcpbridge.parallel as p\np is sys.modules['mcpbridge.parallel']"
        self.assertEqual(self.value("'mcpbridge.parallel' in sys.modules"), "False")
        self.assertEqual(self.value(lazily), "True")
        self.assertEqual(self.value("del sys.modules['mcpbridge.parallel']\n" + lazily), "True")
        self.assertEqual(self.error("import mcpbridge.nothing")["type"], "ModuleNotFoundError")
        error = self.error("tools.demo.get_sum(13, 1)")
        self.assertNotIn("toolbox", error["traceback"])

    def test_report(self):
        if TRANSPORT == "socket":
            self.assertFalse(hasattr(self.kernel, "report"))
            return
        report = self.kernel.report
        for name in ("status", "uid_map", "gid_map", "mountinfo", "limits", "net/dev", "environ", "cgroup"):
            self.assertTrue(report[name], name)
        self.assertIn(f"Pid:\t{self.kernel.process.pid}\n", report["status"])
        self.assertTrue(report["version"].startswith("Linux version"))
        for kind in ("cgroup", "ipc", "mnt", "net", "pid", "user", "uts"):
            self.assertEqual(report["ns/" + kind], os.readlink("/proc/self/ns/" + kind))


class Unknown(unittest.TestCase):
    def test_unknown_transport(self):
        for transport in ("", "pigeon", "socketpair:/x"):
            run = subprocess.run(
                [sys.executable, "-I", "-B", "-c", harness.BOOT, str(harness.ROOT), "{}", transport],
                capture_output=True, stdin=subprocess.DEVNULL, timeout=20,
            )  # fmt: skip
            self.assertEqual((run.returncode, run.stderr.decode()), (1, f"unknown transport {transport!r}\n"))

    def test_stdin_that_is_none(self):
        for data, says in ((b"", "ended before"), (b"\0\0\0\x09PK", "ended before"), (b"\xff\xff\xff\xff", "not the kernel")):
            run = subprocess.run(
                [sys.executable, "-I", "-B", "-c", harness.BOOT, "/nowhere", "{}", "stdio"],
                capture_output=True, input=data, timeout=20,
            )  # fmt: skip
            self.assertEqual(run.returncode, 1)
            self.assertIn(says, run.stderr.decode())


class Ended(Exception):
    pass


class Frames(unittest.TestCase):
    """The mux by itself, with pipes in the test's hands."""

    def setUp(self):
        read, self.stdin = os.pipe()
        self.stdout, write = os.pipe()
        self.received = bytearray()
        self.supervisor = types.SimpleNamespace(
            handlers={}, poller=types.SimpleNamespace(modify=lambda *_: None), on_backlog=lambda _: None,
            watch=self.watch, unwatch=self.unwatch, receive=self.received.extend, end=self.end,
        )  # fmt: skip
        self.mux = mux.Mux(read, write, b"")
        self.mux.attach(self.supervisor)
        os.set_blocking(self.stdout, False)
        self.addCleanup(self.close, read, write, self.stdin, self.stdout)

    def close(self, *fds):
        for fd in fds:
            os.close(fd)
        for sock in (self.mux.near, self.mux.far):
            if sock:
                sock.close()

    def watch(self, fd, handler, events=None):
        self.supervisor.handlers[fd] = handler

    def unwatch(self, fd):
        self.supervisor.handlers.pop(fd, None)

    def end(self):
        raise Ended

    def say(self, data):
        os.write(self.stdin, data)
        self.mux.on_readable(None)

    def heard(self):
        try:
            return os.read(self.stdout, 1 << 20)
        except BlockingIOError:
            return b""

    def test_data_in_pieces(self):
        for byte in b"\x01\0\0\0\x03abc\x01\0\0\0\x01d":
            self.say(bytes([byte]))
        self.assertEqual(self.received, b"abcd")

    def test_violations(self):
        for data in (b"\0\0\0\0\1x", b"\x03\0\0\0\1x", b"\x31\0\0\0\1", b"\x01\0\1\0\1", b"Traceback", b"\x21\0\0\0\0", b"\x22\0\0\0\0"):
            with self.subTest(data):
                self.setUp()
                with self.assertRaises(Ended):
                    self.say(data)

    def test_credit(self):
        self.mux.send(b"x" * (3 * mux.WINDOW))
        sent = bytearray()
        for _ in range(100):
            sent += self.heard()
            self.mux.on_writable(0)
        self.assertEqual(sent.count(b"x"), mux.WINDOW)
        self.mux.lend().send(b"call")
        self.mux.on_repl(1)
        self.assertEqual(self.heard(), b"\x02\0\0\0\x04call", "the other stream goes on")
        self.say(b"\x11\0\0\0\x05")
        self.assertEqual(self.heard(), b"\x01\0\0\0\x05xxxxx")

    def test_grants(self):
        block = b"\x01\0\1\0\0" + b"y" * (1 << 16)
        for _ in range(3):
            for part in (block[:40_000], block[40_000:]):
                self.say(part)
        self.assertEqual(self.heard(), b"")
        for part in (block[:40_000], block[40_000:]):
            self.say(part)
        self.assertEqual(self.heard(), b"\x11\0\x04\0\0")

    def test_what_the_repl_does_not_read_is_not_granted(self):
        block = b"\x02\0\1\0\0" + b"y" * (1 << 16)
        far = self.mux.lend()
        far.setsockopt(harness.socket.SOL_SOCKET, harness.socket.SO_RCVBUF, 1)
        for _ in range(16):
            for part in (block[:40_000], block[40_000:]):
                self.say(part)
        held = len(self.mux.to_repl)
        self.assertGreater(held, mux.WINDOW // 4)
        self.mux.take_back()
        self.assertEqual((len(self.mux.to_repl), self.mux.callback.consumed < mux.GRANT), (0, True), "and granted when it is gone")

    def test_marker_comes_last(self):
        far = self.mux.lend()
        far.send(b"half a fra")
        self.mux.take_back()
        self.mux.mark(b"MARK")
        self.assertEqual(self.heard(), b"\x02\0\0\0\x0ahalf a fra\x02\0\0\0\x04MARK")
        self.say(b"\x02\0\0\0\x05stale")
        self.mux.lend()
        self.assertRaises(BlockingIOError, self.mux.far.recv, 1)

    def test_shut_by_a_cell(self):
        far = self.mux.lend()
        far.send(b"last")
        far.shutdown(harness.socket.SHUT_RDWR)
        for _ in range(2):
            self.mux.on_repl(1)
        self.assertEqual(self.heard(), b"\x02\0\0\0\x04last\x22\0\0\0\0")
        self.say(b"\x02\0\0\0\x01x")  # to nobody
        self.mux.take_back()
        self.assertRaises(Ended, self.mux.mark, b"MARK")


if __name__ == "__main__":
    unittest.main()
