"""KeyboardInterrupt where it does no harm.

A SIGINT that arrives between reading bytes from a stream and keeping them would
lose them, and with them the stream. So such code is shielded: the interrupt
waits until it is left, or gets to a place that says it can be interrupted.
Outside a cell a SIGINT is late and ignored.
"""

import _signal  # the functions of signal make enums of everything, which takes longer than they do
import sys
import threading

_ANY = Exception  # whatever a cell makes of that name


class Guard:
    """Decides what a SIGINT does. `with guard:` shields the main thread."""

    def __init__(self, tell):
        """tell("noticed") is called when a SIGINT has got here while armed, and
        tell("swallowed") if what it raised has come to nothing."""
        self._tell = tell
        self._main = threading.get_ident()
        self._armed = False
        self._shields = 0
        self._open = False  # the shield has a gap
        self._pending = False

    def install(self):
        """SIGINT comes here: to be called before each cell, for one may have replaced the handler."""
        _signal.signal(_signal.SIGINT, self.on_sigint)

    def arm(self):
        """From here a SIGINT raises KeyboardInterrupt in the main thread."""
        self._shields, self._open, self._pending = 0, False, False
        self._armed = True

    def disarm(self):
        self._armed = False

    def on_sigint(self, _signum, _frame):
        if not self._armed:
            return
        try:
            self._tell("noticed")
        except _ANY:
            pass  # the cell has replaced what that needs; the supervisor repeats itself
        if self._shields and not self._open:
            self._pending = True
            return
        self._open = False
        raise KeyboardInterrupt

    def on_unraisable(self, unraisable):
        """For sys.unraisablehook: a finalizer or a callback, of an import for one,
        has no caller to raise in. A KeyboardInterrupt there would be lost."""
        if self._armed and unraisable.exc_type is KeyboardInterrupt:
            self._tell("swallowed")
        else:
            sys.__unraisablehook__(unraisable)

    def interruptible(self, wait, *args):
        """wait(*args), which a SIGINT interrupts even inside the shield."""
        if threading.get_ident() != self._main:
            return wait(*args)
        self._open = True
        try:
            self._raise_pending()
            return wait(*args)
        finally:
            self._open = False

    def __enter__(self):
        if threading.get_ident() == self._main:
            self._shields += 1

    def __exit__(self, *_):
        if threading.get_ident() != self._main:
            return
        self._shields -= 1
        if not self._shields:
            self._raise_pending()

    def _raise_pending(self):
        if self._pending:
            self._pending = False
            if self._armed:
                raise KeyboardInterrupt
