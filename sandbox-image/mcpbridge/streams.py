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


def install():
    """Make fd 0 empty, and sys.stdin/stdout/stderr files over fds 0, 1 and 2."""
    null = os.open(os.devnull, os.O_RDONLY)
    if null != 0:
        os.dup2(null, 0)
        os.close(null)
    sys.stdin = sys.__stdin__ = open(0, closefd=False)
    out, err = Stream(1), Stream(2)
    out.sibling, err.sibling = err, out
    sys.stdout = sys.__stdout__ = out
    sys.stderr = sys.__stderr__ = err


def flush():
    """Push out what is buffered, whatever a cell did to the streams."""
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        try:
            stream.flush()
        except Exception:
            pass
