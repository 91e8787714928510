"""The supervisor's life, and whom it kills."""

import os
import re
import signal
import time
import types
import unittest
from unittest import mock

from harness import ROOT, Kernel, KernelTest
from mcpbridge import supervisor


class KillGuard(unittest.TestCase):
    """kill(-1) reaches every process there is; only as PID 1 of a sandbox are those ours."""

    def kill(self, pid, child):
        fake = types.SimpleNamespace(getpid=lambda: pid, kill=mock.Mock(), killpg=mock.Mock())
        fake.waitpid = mock.Mock(side_effect=ChildProcessError)
        with mock.patch.object(supervisor, "os", fake):
            supervisor.kill_everything(child)
        return fake.kill.mock_calls, fake.killpg.mock_calls

    def test_as_pid_1(self):
        kills, groups = self.kill(1, types.SimpleNamespace(pid=17))
        self.assertEqual((kills, groups), ([mock.call(-1, signal.SIGKILL)], []))

    def test_as_any_other(self):
        kills, groups = self.kill(4711, types.SimpleNamespace(pid=17))
        self.assertEqual((kills, groups), ([], [mock.call(17, signal.SIGKILL)]))
        self.assertEqual(self.kill(4711, None), ([], []))

    def test_nothing_else_kills_everything(self):
        for path in sorted((ROOT / "mcpbridge").glob("*.py")):
            source = path.read_text()
            found = re.findall(r".*\bkill(?:pg)?\b.*-1.*", source)
            self.assertEqual(len(found), 1 if path.name == "supervisor.py" else 0, path)
        self.assertRegex(source_of_guard(), r"if os\.getpid\(\) == 1:\n\s+send_signal\(os\.kill, -1, ")


def source_of_guard():
    import inspect

    return inspect.getsource(supervisor.kill_everything)


class EndOfFile(unittest.TestCase):
    """The process ends within a second after the host has gone, whatever it is doing."""

    def test_ends(self):
        for name, code in {
            "idle": None,
            "busy": "while True: pass",
            "deaf": "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass",
            "flood": "while True: print('x' * 10_000)",
            "call": "tools.demo.get_sum(1, 2)\nwhile True: tools.servers()",
            "children": "import subprocess\nsubprocess.run(['sleep', '60'])",
        }.items():
            with self.subTest(name):
                kernel = Kernel()
                try:
                    if code:
                        kernel.start(code)
                        time.sleep(0.3)
                    self.assertLess(kernel.hang_up(), 1)
                    self.assertEqual(kernel.process.returncode, 0)
                finally:
                    self.assertEqual(kernel.close(), "")

    def test_control_alone(self):
        kernel = Kernel()
        begin = time.monotonic()
        kernel.control.sock.close()
        kernel.process.wait(10)
        self.assertLess(time.monotonic() - begin, 1)
        self.assertEqual(kernel.close(), "")

    def test_between_lost_and_start(self):
        for step in range(2):
            kernel = Kernel()
            self.assertTrue(kernel.run("import os; os._exit(1)")["lost"])
            if step:
                kernel.control.send(method="resync", params={"marker": "00"})
            self.assertLess(kernel.hang_up(), 1)
            self.assertEqual(kernel.close(), "")

    def test_children_end_too(self):
        kernel = Kernel()
        kernel.start("import subprocess\np = subprocess.Popen(['sleep', '60'])\nprint('pid', p.pid, flush=True)\np.wait()")
        pid = int(kernel.output_until("\n").split()[1])
        kernel.hang_up()
        deadline = time.monotonic() + 5
        while os.path.exists(f"/proc/{pid}/stat") and time.monotonic() < deadline:
            with open(f"/proc/{pid}/stat") as stat:
                if " Z " in stat.read():
                    break
            time.sleep(0.01)
        else:
            self.assertFalse(os.path.exists(f"/proc/{pid}"))
        self.assertEqual(kernel.close(), "")


class Protocol(KernelTest):
    def test_hello(self):
        self.assertEqual(self.kernel.hello["method"], "hello")
        self.assertEqual(self.kernel.hello["params"]["protocol"], supervisor.PROTOCOL)

    def test_second_cell_is_refused_while_one_runs(self):
        self.kernel.start("import time; time.sleep(0.5); 'first'")
        params = dict(nonce="x", cell=99, code="1", timeout=1.0, grace=1.0, value_limit=10)
        self.kernel.control.send(id=99, method="execute", params=params)
        refused = self.kernel.control.receive()
        self.assertEqual((refused["id"], refused["error"]["message"]), (99, "the kernel is busy"))
        self.assertEqual(self.kernel.finish()["cell"]["value"]["text"], "'first'")

    def test_unknown_parameters_are_refused(self):
        params = dict(nonce="x", cell=99, code="1", timeout=1.0, grace=1.0, value_limit=10)
        self.kernel.control.send(id=99, method="execute", params={**params, "colour": "red"})
        refused = self.kernel.control.receive()
        self.assertEqual((refused["id"], refused["error"]["code"]), (99, -32602))
        self.assertIn("'colour'", refused["error"]["message"])
        self.assertEqual(self.value("'not busy'"), "'not busy'")

    def test_large_code(self):
        code = "x = '" + "y" * (4 << 20) + "'\nlen(x)"
        self.assertEqual(self.value(code), str(4 << 20))

    def test_cells_in_pieces(self):
        """The host's frames may arrive in any pieces."""
        from mcpbridge import wire

        self.kernel.cells += 1
        params = dict(nonce=f"n{self.kernel.cells}", cell=self.kernel.cells, code="'pieces'")
        params.update(timeout=20.0, grace=1.0, value_limit=100)
        for byte in wire.pack("execute", params, self.kernel.cells):
            self.kernel.control.send_bytes(bytes([byte]))
        self.assertEqual(self.kernel.finish()["cell"]["value"]["text"], "'pieces'")

    def test_environment_of_a_cell(self):
        code = """
            import os, signal
            [signal.getsignal(s) for s in (signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)] == [signal.SIG_DFL] * 3
            """
        self.assertEqual(self.value(code), "True")
        self.assertEqual(self.value("os.getsid(0) == os.getpid()"), "True")
        self.assertEqual(self.value("import resource; resource.getrlimit(resource.RLIMIT_CORE)"), "(0, 0)")

    def test_orphans_of_cells_are_reaped_or_left_to_init(self):
        code = "import subprocess\nfor _ in range(20): subprocess.run(['sh', '-c', 'sleep 0.01 &'])"
        self.run_ok(code)
        self.assert_alive()


if __name__ == "__main__":
    unittest.main()
