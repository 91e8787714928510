"""Saves what cells have made, and brings it back in another process.

What is saved is a pickle, which can run anything when it is read. So it is made and
read here, where cells run, and is bytes to the host.
"""

import base64
import builtins
import io
import json
import os
import sys
import zlib

from . import context, lasting, pickling, provided, session, unpickling

FORMAT = 1
MAGIC = b"mcp-bridge state\n"
CHUNK = 3 << 20  # bytes of one message, before they are base64
MAX_NAMES = 10_000
MAX_LOST = 200  # names of what was not kept that are told
MAX_SOURCES = 1 << 20  # characters of cells' source text
MAX_VALUES = 20  # of out[n].value
QUICK_LIMIT = 1 << 20  # bytes: with so low a limit it is to take no time,
QUICK_MEMORY = 150 << 20  # and is not tried with so much in memory
MAX_SEARCHED = 4 << 20  # bytes of an entry that are searched for what it refers to
MAX_DEFLATED = 2 << 20  # bytes that are compressed: it takes far longer than pickling


class TooLarge(Exception):
    """It does not fit into what is left of the limit."""


class _Bounded(io.BytesIO):
    """A file in memory of at most so many bytes."""

    limit = 0

    def write(self, data):
        if self.tell() + memoryview(data).nbytes > self.limit:
            raise TooLarge
        return super().write(data)


def save(runner, cell, limit, **_):
    """Send the host what is worth keeping. The report's value says how it went."""
    parts = runner.parts
    if limit <= QUICK_LIMIT and session.resident() > QUICK_MEMORY:
        return _report(cell, count=0, lost=[], whole=False)
    state = State(runner, limit)
    whole = _guarded(runner, cell, state.add_all)
    if state.kept:
        data = state.pack(cell)
        for start in range(0, len(data), CHUNK):
            piece = base64.b64encode(data[start : start + CHUNK]).decode()
            parts.client.call("kernel/save", {"offset": start, "data": piece})
    return _report(
        cell, count=state.count(), lost=state.lost[:MAX_LOST], whole=whole and not state.left_out, short=not whole
    )


def restore(runner, cell, limit, **_):
    """Fetch what was saved and bind it. The report's value says what is there again."""
    data = bytearray()
    while True:
        reply = runner.parts.client.call("kernel/load", {"offset": len(data)})
        data += base64.b64decode(reply["data"])
        if not reply["data"] or len(data) >= reply["size"]:
            break
    saved = Saved(bytes(data), limit)
    if not _guarded(runner, cell, lambda: saved.bind(runner)):
        saved.give_up()
    lasting.lost.update(saved.lost)
    return _report(cell, names=saved.restored[:MAX_NAMES], lost=saved.lost[:MAX_LOST])


def _guarded(runner, cell, work):
    """Call work, which an interrupt ends; report whether it came to its own end."""
    guard = runner.parts.guard
    runner.cell = cell
    guard.install()
    try:
        guard.arm()
        work()
        return True
    except KeyboardInterrupt:
        return False
    finally:
        guard.disarm()


def _report(cell, **what):
    return {"cell": cell, "status": "ok", "value": {"text": json.dumps(what)}}


class State:
    """What is kept of a session, as it is put together."""

    def __init__(self, runner, limit):
        self._parts = runner.parts
        self.kept = []  # [name or number of a cell, begin, end, known] in the order of their bytes
        self.lost = []  # [name, why]
        self.left_out = False  # something has no room
        self._file = _Bounded()
        self._file.limit = limit
        pickling.prepare()
        text = "\n".join(text for _, text in runner.parts.sources.items())
        self._pickler = pickling.Pickler(self._file, anchors(runner.parts), text)
        self._start = self._file.tell()

    def add_all(self):
        """Add everything; what cannot be, and what there is no time for, is noted."""
        todo = self._order()
        while todo:
            name, value = todo.pop()
            try:
                self._add(name, value)
            except KeyboardInterrupt:
                left = [name, *(name for name, _ in reversed(todo))]
                self.lost += [[name, "there was no time to save it"] for name in left if isinstance(name, str)]
                raise

    def _order(self):
        """What there is to keep, as (name, value): what others are made of, and the
        largest, come first, for they are taken from the end."""
        given, namespace = self._parts.given, dict(self._parts.namespace)
        mine = [
            (name, value)
            for name, value in namespace.items()
            if isinstance(name, str) and not (name in given and _is_ours(name, value, given[name]))
        ]
        self._names = [name for name, _ in mine[-MAX_NAMES:]]
        mine = sorted(mine[-MAX_NAMES:], key=lambda item: _weight(item[1]))
        values = self._parts.outputs.items()[-MAX_VALUES:]
        return [*values, *reversed(mine)]

    def _add(self, name, value):
        begin = self._file.tell()
        try:
            known = self._pickler.add(value)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a __reduce__ of the user's may raise anything
            self.left_out = self.left_out or isinstance(error, (TooLarge, MemoryError))
            if isinstance(name, str) and _is_told(name):
                self.lost.append([name, _why(value, error)])
            return
        self.kept.append([name, begin, self._file.tell(), known])

    def pack(self, cell):
        """The whole, as bytes."""
        head = {
            "format": FORMAT,
            "python": _python(),
            "cell": cell,
            "order": self._names,
            "entries": self.kept,
            "start": self._start,
            "lost": self.lost[:MAX_LOST],
            "sources": self._sources(),
            "flags": self._parts.sources.flags,
            "path": [entry for entry in sys.path if isinstance(entry, str)],
            "directory": _directory(),
        }
        head = json.dumps(head).encode()
        data = self._file.getbuffer()
        deflate = zlib.compressobj(1 if len(data) <= MAX_DEFLATED else 0)
        parts = [MAGIC, deflate.compress(len(head).to_bytes(4, "big") + head), deflate.compress(data), deflate.flush()]
        return b"".join(parts)

    def count(self):
        """How many variables are kept."""
        return sum(isinstance(name, str) for name, *_ in self.kept)

    def _sources(self):
        kept, size = [], 0
        for number, text in reversed(self._parts.sources.items()):
            size += len(text)
            if size > MAX_SOURCES:
                break
            kept.append([number, text])
        return kept[::-1]


class Saved:
    """What was kept of a session, as it is brought back."""

    def __init__(self, data, limit):
        if not data.startswith(MAGIC):
            raise ValueError("what was saved is not of this program")
        inflate = zlib.decompressobj()
        most = limit + (64 << 20)  # the head counts as well
        body = inflate.decompress(data[len(MAGIC) :], most)
        if not inflate.eof:
            raise ValueError("what was saved is incomplete")
        size = int.from_bytes(body[:4], "big")
        self._head = json.loads(body[4 : 4 + size])
        if self._head["format"] != FORMAT:
            raise ValueError("it was saved by another version of mcp-bridge")
        self._data = memoryview(body)[4 + size :]
        self.restored = []
        self.lost = list(self._head["lost"])
        self._gone = []  # (first, end) of the numbers of objects that there are not
        self._todo = []

    def bind(self, runner):
        """Put everything back where it was."""
        self._set_up(runner)
        file = io.BytesIO(self._data)
        reader = unpickling.Unpickler(file)
        unpickling.begin(reader, anchors(runner.parts), self._head["python"] == _python())
        entries = self._head["entries"]
        self._todo = [name for name, *_ in entries]
        for i, (name, begin, end, known) in enumerate(entries):
            file.seek(begin)
            try:
                if self._gone and _refers(self._data[begin:end], self._gone):
                    raise _Shared
                self._put(runner, name, reader.value())
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # a __setstate__ of the user's may raise anything
                self._lose(name, error)
                if i + 1 < len(entries):
                    following = entries[i + 1][3]
                    self._gone.append((known, following))
                    reader = unpickling.Resumed(file, reader, known, following)
            self._todo[0:1] = []
        namespace, there = runner.parts.namespace, set(self.restored)
        self.restored = [name for name in self._head["order"] if name in there]
        for name in self.restored:
            namespace[name] = namespace.pop(name)
        self.restored = [name for name in self.restored if _is_told(name)]

    def give_up(self):
        """An interrupt came: what is not there yet does not come."""
        self.lost += [[name, "there was no time to restore it"] for name in self._todo if isinstance(name, str)]

    def _set_up(self, runner):
        head = self._head
        for number, text in head["sources"]:
            runner.parts.sources.add(number, text)
            provided.look_through(text)
        runner.parts.sources.flags = head["flags"]
        sys.path += [entry for entry in head["path"] if entry not in sys.path]
        try:
            os.chdir(head["directory"])
        except OSError:
            pass  # it was in the sandbox that is gone

    def _put(self, runner, name, value):
        if isinstance(name, str):
            runner.parts.namespace[name] = value
            self.restored.append(name)
        else:
            runner.parts.outputs.keep(name, value)

    def _lose(self, name, error):
        if isinstance(name, str):
            kind = "" if isinstance(error, _Shared) else f"{type(error).__name__}: "
            self.lost.append([name, kind + _text(error)])


class _Shared(Exception):
    def __str__(self):
        return "it has parts of another that was not restored"


def anchors(parts):
    """What the process that restores has already, by name: a pickle refers to it."""
    return {
        **{f"given {name}": value for name, value in parts.given.items()},
        "namespace": parts.namespace,
        "main": sys.modules["__main__"],
        "builtins": vars(builtins),
        "modules": sys.modules,
        "environ": os.environ,
        "client": parts.client,
        "guard": parts.guard,
    }


def _is_ours(name, value, given):
    """Whether a name that we gave still has what we gave, or has come to stand for."""
    return value is given or name == "context" and context.is_bound(value) or str(type(value).__module__).startswith(__package__ + ".")


def _is_told(name):
    """Whether whoever wrote the cells knows of a name: not of _ and __annotations__."""
    return bool(name.strip("_")) and not (name.startswith("__") and name.endswith("__"))


def _weight(value):
    """Where a value comes: modules, classes and functions first, then by size."""
    kind = type(value)
    if kind is type(sys):
        return 0, 0
    if isinstance(value, type):
        return 1, 0
    if kind is type(anchors):
        return 2, 0
    try:
        size = sys.getsizeof(value)
        more = getattr(value, "nbytes", 0) if kind.__module__.partition(".")[0] == "numpy" else 0
    except Exception:  # a __sizeof__ of the user's
        size = more = 0
    return 3, max(size, more)


def _why(value, error):
    """Why a variable is not kept, in few words, with its type."""
    kind = _short(type(value).__name__)
    if isinstance(error, (TooLarge, MemoryError)):
        return f"{kind}: too large"
    if isinstance(error, RecursionError):
        return f"{kind}: nested too deeply"
    text = _text(error)
    _, found, rest = text.partition("cannot pickle '")
    culprit = _short(rest.partition("'")[0].rpartition(".")[2]) if found else ""
    if not culprit:
        return f"{kind}: {type(error).__name__}: {text}"
    if culprit == kind:
        return f"{kind}: cannot be kept"
    return f"{kind}: has a {culprit} in it"


def _text(error):
    try:
        return _short(str(error), 120)
    except Exception:
        return "(its message cannot be shown)"


def _short(text, limit=40):
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _refers(data, gone):
    """Whether an entry refers to objects that are not there."""
    import pickletools

    if len(data) > MAX_SEARCHED:
        return True  # it would take too long to find out
    file = io.BytesIO(data)
    for _ in range(2):  # the mark and the value
        for code, argument, _ in pickletools.genops(file):
            if code.name in ("BINGET", "LONG_BINGET") and any(begin <= argument < end for begin, end in gone):
                return True
    return False


def _directory():
    try:
        return os.getcwd()
    except OSError:
        return "/"


def _python():
    """What tells whether the code of one Python is that of another."""
    magic = sys.modules["_frozen_importlib_external"].MAGIC_NUMBER
    return "%d.%d %s" % (*sys.version_info[:2], magic.hex())
