"""sys.stdout and sys.stderr of a cell: real text files over one pipe to the supervisor.

What the model sees is in the order it was written. So text that waits in the
buffer of one stream is written out before anything is written to the other.

A thread may print when the cell that started it has ended. Such text goes through
the same pipe, so that it keeps its place, with a label in front of it:

    mark, cell: 4 bytes, size: 4 bytes, both big-endian; then so many bytes of text

The mark is random and no UTF-8. The whole is written at once and at most
LABELLED bytes, so that nothing comes in between. A cell that finds out the mark
can but mislabel its own output.
"""

import io
import os
import struct
import sys

MARK_START = b"\xff"  # of every mark
MARK_SIZE = 16
LABEL = struct.Struct(">II")  # follows the mark: cell, size
LABELLED = 4096  # PIPE_BUF: less is written as a whole
_PIECE = 600  # characters; in UTF-8, or as escapes, they fit


def new_mark():
    return MARK_START + os.urandom(MARK_SIZE - len(MARK_START))


class Stream(io.TextIOWrapper):
    """A line-buffered text stream that keeps its place beside its sibling."""

    sibling = None

    def __init__(self, fd, standard):
        raw = open(fd, "wb", closefd=False)
        super().__init__(raw, encoding="utf-8", errors="backslashreplace", line_buffering=True)
        self._standard = standard

    def write(self, text):
        if not self.sibling.closed:
            self.sibling.flush()
        cell = self._standard.late()
        if cell is not None and type(text) is str and self._standard.reaches_pipe(self):
            return self._write_labelled(cell, text)
        return super().write(text)

    def _write_labelled(self, cell, text):
        self.flush()
        for i in range(0, len(text), _PIECE):
            data = text[i : i + _PIECE].encode("utf-8", "backslashreplace")
            os.write(self.fileno(), self._standard.mark + LABEL.pack(cell, len(data)) + data)
        return len(text)


class Labels:
    """Takes the output of a REPL apart again. mark is that REPL's."""

    def __init__(self, mark):
        self._mark = mark
        self._kept = b""  # what may be the start of a label

    def feed(self, data):
        """The pieces of data and what was kept, as (cell or None, bytes), in order."""
        if MARK_START not in data and not self._kept:
            return [(None, data)]
        data = self._kept + data
        self._kept = b""
        pieces = []
        while data:
            start = data.find(self._mark)
            if start < 0:
                start = len(data) - self._beginning(data)
                pieces.append((None, data[:start]))
                self._kept = data[start:]
                break
            body = start + MARK_SIZE + LABEL.size
            cell, size = LABEL.unpack(data[start + MARK_SIZE : body]) if len(data) >= body else (0, 0)
            if size > LABELLED:  # none of ours
                pieces.append((None, data[: start + 1]))
                data = data[start + 1 :]
                continue
            pieces.append((None, data[:start]))
            if len(data) < body + size:
                self._kept = data[start:]
                break
            pieces.append((cell, data[body : body + size]))
            data = data[body + size :]
        return [piece for piece in pieces if piece[1]]

    def rest(self):
        """What was kept, if no more is to come soon."""
        kept, self._kept = self._kept, b""
        return kept

    def _beginning(self, data):
        """How many bytes at the end of data are the mark's first ones."""
        for size in range(min(MARK_SIZE - 1, len(data)), 0, -1):
            if data.endswith(self._mark[:size]):
                return size
        return 0


class Standard:
    """fds 0, 1 and 2 of the REPL, and sys.stdin, stdout and stderr over them."""

    def __init__(self, late, mark):
        """late() is the cell to label the text of the calling thread with, or None."""
        self.late = late
        self.mark = mark
        self._null = os.open(os.devnull, os.O_RDONLY)
        self._pipe = os.dup(1)
        os.dup2(self._null, 0)
        self._in = sys.stdin = sys.__stdin__ = open(0, closefd=False)
        self._identity = _identity(self._pipe)
        self._out = sys.stdout = sys.__stdout__ = Stream(1, self)
        self._err = sys.stderr = sys.__stderr__ = Stream(2, self)
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
        if self._in.closed:
            self._in = sys.stdin = sys.__stdin__ = open(0, closefd=False)
        if self._out.closed or self._err.closed:
            self._out, self._err = self._renewed(self._out, 1), self._renewed(self._err, 2)
            self._join()

    def flush(self):
        """Push out what is buffered, whatever a cell did to the streams."""
        for stream in (sys.stdout, sys.stderr, self._out, self._err):
            try:
                stream.flush()
            except Exception:
                pass

    def reaches_pipe(self, stream):
        """Whether stream writes to the supervisor: a cell may have redirected its descriptor."""
        try:
            return stream.encoding == "utf-8" and _identity(stream.fileno()) == self._identity
        except (OSError, ValueError):
            return False

    def _renewed(self, stream, fd):
        """stream, or if it is closed a new one that takes its place in sys."""
        if not stream.closed:
            return stream
        new = Stream(fd, self)
        for name in ("stdout", "stderr", "__stdout__", "__stderr__"):
            if getattr(sys, name, None) is stream:
                setattr(sys, name, new)
        return new


def _identity(fd):
    status = os.fstat(fd)
    return status.st_dev, status.st_ino
