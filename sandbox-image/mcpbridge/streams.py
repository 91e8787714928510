"""sys.stdout and sys.stderr of a cell: real text files over pipes to the supervisor.

The two pipes are read independently, so a write that follows a write to the
other stream first waits until the supervisor has read that one: what the model
sees is in the order it was printed.
"""

import io
import os
import sys
import threading


class _Order:
    """Which stream was written last, and the line to the supervisor."""

    def __init__(self, sync):
        self._sync = sync
        self._last = None
        self._pid = os.getpid()
        self._lock = threading.Lock()

    def switch(self, stream):
        last = self._last
        if last is stream:
            return
        self._last = stream
        if last is None or os.getpid() != self._pid:
            return
        last.flush()
        with self._lock:
            try:
                self._sync.send(b"s")
                self._sync.recv(1)
            except OSError:
                pass  # order is a courtesy; losing it must not fail a print


class Stream(io.TextIOWrapper):
    """A line-buffered text stream that keeps its place among its siblings."""

    def __init__(self, fd, order):
        raw = open(fd, "wb", closefd=False)
        super().__init__(raw, encoding="utf-8", errors="backslashreplace", line_buffering=True)
        self._order = order

    def write(self, text):
        self._order.switch(self)
        return super().write(text)


def install(sync):
    """Make fd 0 empty, and sys.stdin/stdout/stderr files over fds 0, 1 and 2."""
    null = os.open(os.devnull, os.O_RDONLY)
    if null != 0:
        os.dup2(null, 0)
        os.close(null)
    sync.setblocking(True)
    order = _Order(sync)
    sys.stdin = sys.__stdin__ = open(0, closefd=False)
    sys.stdout = sys.__stdout__ = Stream(1, order)
    sys.stderr = sys.__stderr__ = Stream(2, order)


def flush():
    """Push out what is buffered, whatever a cell did to the streams."""
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        try:
            stream.flush()
        except Exception:
            pass
