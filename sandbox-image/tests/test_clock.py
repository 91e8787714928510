"""The clock of a cell stands still while the host asks a person."""

import threading
import time
import unittest

from harness import Kernel, KernelTest, demo_server

BUDGET = 0.5  # seconds: short, so that a clock that does not stand still is seen
LONG = 1.5


class Clock(KernelTest):
    def setUp(self):
        self.asking = threading.Event()  # a call is waiting for its answer
        self.answered = threading.Event()

        def answer(method, params):
            if method == "tools/call":
                self.asking.set()
                self.answered.wait(60)
            return demo_server(method, params)

        self.kernel = self.new_kernel(answer)
        self.kernel.run("total = lambda: tools.demo.get_sum(20, 22).sum")

    def clock(self, running, cell=None):
        """What the host says before and after it asks a person."""
        self.kernel.control.send(method="clock", params={"cell": cell or self.kernel.cells, "running": running})

    def ask(self, code="tools.demo.get_sum(20, 22).sum", **options):
        """Start a cell that waits for an answer, and stop its clock."""
        self.kernel.start(code, **{"timeout": BUDGET, "grace": 30, **options})
        self.clock(False)
        self.assertTrue(self.asking.wait(60))

    def test_time_of_a_question_does_not_count(self):
        self.ask()
        time.sleep(LONG)
        self.answered.set()
        result = self.kernel.finish()
        self.assertEqual((result["interrupted"], result["cell"]["value"]["text"]), (None, "42"))

    def test_time_goes_on_afterwards(self):
        self.ask("tools.demo.get_sum(20, 22)\nwhile True: pass")
        time.sleep(LONG)
        self.clock(True)
        self.answered.set()
        self.assertEqual(self.kernel.finish()["interrupted"], "timeout")
        self.assert_alive()

    def test_stopping_twice_is_stopping_once(self):
        self.ask()
        self.clock(False)
        self.clock(True)
        self.assertEqual(self.kernel.finish()["interrupted"], "timeout")
        self.answered.set()
        self.assert_alive()

    def test_interrupt_while_it_stands_still(self):
        self.ask(timeout=600.0)
        self.kernel.cancel()
        result = self.kernel.finish()
        self.assertEqual((result["interrupted"], result["cell"]["error"]["type"]), ("cancel", "KeyboardInterrupt"))
        self.answered.set()
        self.assert_alive()

    def test_grace_counts_while_it_stands_still(self):
        self.ask("import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\ntools.demo.get_sum(1, 2)\nwhile True: pass", timeout=600.0, grace=0.3)
        self.answered.set()
        self.kernel.cancel()
        self.clock(False)  # it is too late for that
        self.assertEqual(self.kernel.finish()["lost"], "it ignored the interrupt")

    def test_clocks_of_other_cells(self):
        self.clock(False, cell=99)  # none runs
        self.kernel.start("while True: pass", timeout=BUDGET, grace=30)
        self.clock(False, cell=self.kernel.cells - 1)
        self.clock(True)  # it runs
        self.assertEqual(self.kernel.finish()["interrupted"], "timeout")

    def test_clock_of_the_next_cell_runs(self):
        self.answered.set()
        self.ask()
        self.assertIsNone(self.kernel.finish()["interrupted"])
        self.assertEqual(self.kernel.run("while True: pass", timeout=BUDGET, grace=30)["interrupted"], "timeout")


if __name__ == "__main__":
    unittest.main()
