"""interrupts.Guard, with SIGINTs at chosen places."""

import signal
import threading
import unittest

import harness  # noqa: F401  (finds mcpbridge)
from mcpbridge.interrupts import Guard


class GuardTest(unittest.TestCase):
    def setUp(self):
        self.guard = Guard(lambda _: None)
        self.addCleanup(signal.signal, signal.SIGINT, signal.getsignal(signal.SIGINT))
        signal.signal(signal.SIGINT, self.guard.on_sigint)

    def interrupt(self):
        signal.raise_signal(signal.SIGINT)

    def test_late_is_ignored(self):
        self.interrupt()
        self.guard.arm()
        self.guard.disarm()
        self.interrupt()
        with self.guard:
            self.interrupt()

    def test_armed_raises(self):
        self.guard.arm()
        with self.assertRaises(KeyboardInterrupt):
            self.interrupt()

    def test_waits_for_the_end_of_the_outer_shield(self):
        self.guard.arm()
        steps = []
        with self.assertRaises(KeyboardInterrupt):
            with self.guard:
                with self.guard:
                    self.interrupt()
                    steps.append("inner")
                steps.append("outer")
        self.assertEqual(steps, ["inner", "outer"])
        with self.guard:
            pass  # it was raised once

    def test_does_not_replace_another_exception_inside(self):
        self.guard.arm()
        with self.assertRaises(KeyboardInterrupt) as caught:
            with self.guard:
                self.interrupt()
                raise ValueError
        self.assertIsInstance(caught.exception.__context__, ValueError)

    def test_interruptible_inside(self):
        self.guard.arm()
        with self.guard:
            with self.assertRaises(KeyboardInterrupt):
                self.guard.interruptible(self.interrupt)
            self.interrupt()  # shielded again
            with self.assertRaises(KeyboardInterrupt):
                self.guard.interruptible(self.fail, "what was pending comes before the wait")

    def test_interruptible_returns(self):
        self.assertEqual(self.guard.interruptible(max, 1, 2), 2)

    def test_pending_of_an_earlier_cell_is_forgotten(self):
        self.guard.arm()
        with self.guard:
            self.interrupt()
            self.guard.disarm()
        self.guard.arm()
        with self.guard:
            pass

    def test_other_threads_do_not_shield(self):
        self.guard.arm()
        inside, leave = threading.Event(), threading.Event()

        def shield():
            with self.guard:
                inside.set()
                leave.wait()

        thread = threading.Thread(target=shield)
        thread.start()
        inside.wait()
        try:
            with self.assertRaises(KeyboardInterrupt):
                self.interrupt()
        finally:
            leave.set()
            thread.join()


if __name__ == "__main__":
    unittest.main()
