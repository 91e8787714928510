"""Which cell a thread belongs to, so that what it prints later can be told to be of it."""

import os
import sys
import threading

_ATTRIBUTE = "_mcpbridge_cell"


class Threads:
    """Notes, as a cell's own code starts a thread, which cell that is.

    Threads of a pool run what any cell gives them, so only those count whose
    function is a cell's.
    """

    def __init__(self):
        self.running = None  # the number of the cell that runs
        self._main = threading.get_ident()
        start = threading.Thread.start
        threads = self

        def start_noted(self):
            threads._note(self)
            start(self)

        start_noted.__name__, start_noted.__qualname__ = start.__name__, start.__qualname__
        start_noted.__doc__ = start.__doc__
        threading.Thread.start = start_noted
        threading.excepthook = _excepthook
        os.register_at_fork(after_in_child=self._forget)

    def late(self):
        """The number of the cell that has started this thread and has ended, or None."""
        if self._main is None or threading.get_ident() == self._main:
            return None
        cell = _cell_of(threading._active.get(threading.get_ident()))
        return None if cell == self.running else cell

    def _note(self, thread):
        if self._main is not None and _is_users(thread):
            cell = _cell_of(threading.current_thread())
            thread.__dict__[_ATTRIBUTE] = self.running if cell is None else cell

    def _forget(self):
        """In a fork: the kernel hears nothing of it but its output."""
        self._main = None


def _cell_of(thread):
    return getattr(thread, "__dict__", {}).get(_ATTRIBUTE)


def _is_users(thread):
    """Whether a thread runs a function that a cell, and no library, has given it."""
    function = getattr(thread, "_target", None) or getattr(thread, "function", None) or type(thread).run
    while hasattr(function, "func"):  # functools.partial
        function = function.func
    return getattr(function, "__module__", None) in ("__main__", "builtins", None)


def _excepthook(args):
    """As Python's own, with a cell's lines alone."""
    if args.exc_type is SystemExit:
        return
    try:
        from . import tracebacks

        name = args.thread.name if args.thread is not None else "unknown"
        text = tracebacks.describe(args.exc_value)["traceback"]
        print(f"Exception in thread {name}:\n{text}", file=sys.stderr, flush=True)
    except Exception:
        threading.__excepthook__(args)
