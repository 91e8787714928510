"""KeyboardInterrupt where it does no harm.

A SIGINT that arrives between reading bytes from a stream and keeping them would
lose them, and with them the stream. So such places are shielded: the interrupt
waits until they are left. Outside a cell a SIGINT is late and ignored.
"""

import threading


class Guard:
    """Decides what a SIGINT does. `with guard:` shields the main thread."""

    def __init__(self):
        self._main = threading.get_ident()
        self._armed = False
        self._shields = 0
        self._pending = False

    def arm(self):
        """From here a SIGINT raises KeyboardInterrupt in the main thread."""
        self._pending = False
        self._armed = True

    def disarm(self):
        self._armed = False

    def on_sigint(self, _signum, _frame):
        if not self._armed:
            return
        if self._shields:
            self._pending = True
            return
        raise KeyboardInterrupt

    def __enter__(self):
        if threading.get_ident() == self._main:
            self._shields += 1

    def __exit__(self, *_):
        if threading.get_ident() != self._main:
            return
        self._shields -= 1
        if self._pending and not self._shields:
            self._pending = False
            if self._armed:
                raise KeyboardInterrupt
