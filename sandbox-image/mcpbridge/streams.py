"""sys.stdout and sys.stderr of a cell: real text files over one pipe to the supervisor.

What the model sees is in the order it was written. So text that waits in the
buffer of one stream is written out before anything is written to the other.
"""

import io
import os
import sys


class Stream(io.TextIOWrapper):
    """A line-buffered text stream that keeps its place beside its sibling."""

    sibling = None

    def __init__(self, fd):
        raw = open(fd, "wb", closefd=False)
        super().__init__(raw, encoding="utf-8", errors="backslashreplace", line_buffering=True)

    def write(self, text):
        if not self.sibling.closed:
            self.sibling.flush()
        return super().write(text)


class Standard:
    """fds 0, 1 and 2 of the REPL, and sys.stdin, stdout and stderr over them."""

    def __init__(self):
        self._null = os.open(os.devnull, os.O_RDONLY)
        self._pipe = os.dup(1)
        os.dup2(self._null, 0)
        sys.stdin = sys.__stdin__ = open(0, closefd=False)
        self._out = sys.stdout = sys.__stdout__ = Stream(1)
        self._err = sys.stderr = sys.__stderr__ = Stream(2)
        self._join()

    def _join(self):
        self._out.sibling, self._err.sibling = self._err, self._out

    def restore(self):
        """Open again what a cell has closed. What it has replaced stays replaced."""
        for fd, kept in ((0, self._null), (1, self._pipe), (2, self._pipe)):
            try:
                os.fstat(fd)
            except OSError:
                os.dup2(kept, fd)
        if self._out.closed or self._err.closed:
            self._out, self._err = renewed(self._out, 1), renewed(self._err, 2)
            self._join()

    def flush(self):
        """Push out what is buffered, whatever a cell did to the streams."""
        for stream in (sys.stdout, sys.stderr, self._out, self._err):
            try:
                stream.flush()
            except Exception:
                pass


def renewed(stream, fd):
    """stream, or if it is closed a new one that takes its place in sys."""
    if not stream.closed:
        return stream
    new = Stream(fd)
    for name in ("stdout", "stderr", "__stdout__", "__stderr__"):
        if getattr(sys, name, None) is stream:
            setattr(sys, name, new)
    return new
