"""The files of the workspace, kept by the host for other sandboxes.

The folder is this sandbox's own. Before a cell what others have changed is
fetched from the host, after it what the cell has changed is sent there: plain
files, by their sizes and times. Of two that change the same file the last one
counts.
"""

import os
import threading
import time
from binascii import a2b_base64, b2a_base64, crc32

from .callback import RemoteError

CHUNK = 1 << 20  # bytes of a file that travel at a time
MAX_ENTRIES = 20_000  # of the folder; more than the host keeps files
MAX_DEPTH = 32
MAX_NAMED = 5  # files in a note
MAX_REFUSED = 100  # files one after the other for the same reason, before no more are tried
RACY = 50_000_000  # nanoseconds in which a second change may not show in a file's time
HURRY = 0.5  # seconds for sending after an interrupt: the supervisor is waiting
PARTIAL = ".mcp-bridge-partial-"
IGNORED_NAMES = {"__pycache__", ".cache"}  # made by tools for themselves, anywhere
IGNORED_PATHS = {".config/matplotlib"}

# As they are before a cell has run, which may put others in their places.
scandir, fstat, os_open, close, pread, pwrite, ftruncate, utime, replace, unlink, rmdir, makedirs, getpid = (
    os.scandir, os.fstat, os.open, os.close, os.pread, os.pwrite, os.ftruncate, os.utime, os.replace, os.unlink, os.rmdir,
    os.makedirs, os.getpid,
)  # fmt: skip
monotonic, time_ns = time.monotonic, time.time_ns


class Hurried(Exception):
    """There is no time for the rest."""


class Known:
    """A file as it was when it and the host's were the same."""

    __slots__ = ("signature", "host", "crc")

    def __init__(self, signature, host, crc=None):
        self.signature = signature
        self.host = host  # [size, modified] there
        self.crc = crc  # if it was so new that its time may not tell of another change


def signature(info):
    return (info.st_mtime_ns, info.st_size, info.st_ino)


class Keeper:
    """Keeps the folder root and the host's files the same."""

    def __init__(self, client, root):
        self._client = client
        self._root = root + "/"
        self._pid = getpid()
        self._lock = threading.Lock()
        self._known = {}  # path -> Known
        self._version = 0  # of the host's files, as far as it is known; 0 is none at all
        self._refused = {}  # path -> (signature, version, why)
        self._told = set()  # what a note has said already
        self._notes = []
        self.kept = False  # the host keeps files

    # Around a cell.

    def before(self, version):
        """Fetch what has changed on the host, which is at version."""
        self.kept = True
        if version != self._version:
            self._run(self._pull)

    def after(self, interrupted=False):
        """Send what has changed here; return what the model should know, or ''."""
        if getpid() != self._pid or not self.kept:
            return ""
        try:
            self._run(self._push, monotonic() + HURRY if interrupted else None)
        except KeyboardInterrupt:
            self._note("files not kept yet", "the rest goes with the next cell, for there was no time left")
        return self._take_notes()

    def _run(self, step, *args):
        """Take a step, which may fail: a cell that ran well has still run well."""
        self._client.guard.install()
        if not self._lock.acquire(timeout=HURRY):
            return  # a thread of the cell's is at it
        try:
            self._client.guard.arm()
            step(*args)
        except Hurried:
            self._note("files not kept yet", "the rest goes with the next cell, for there was no time left")
        except Exception as error:
            self._note("files not kept", f"{type(error).__name__}: {error}"[:300])
        finally:
            self._client.guard.disarm()
            self._lock.release()

    # For cells.

    def sync(self):
        """Send what has changed here now, and not at the cell's end."""
        if not self.kept:
            raise RuntimeError("files are not kept: mcp-bridge has no folder for them")
        if getpid() != self._pid:
            raise RuntimeError("only the cell's own process can do this, not a fork of it")
        with self._lock:
            self._push(None)

    def usage(self):
        """What the host keeps, as it says, and what it does not, with the reasons."""
        self.sync()
        reply = self._client.call("workspace/list", {"files": False})
        return reply, {path: why for path, (_, _, why) in sorted(self._refused.items())}

    # Notes.

    def _note(self, what, why, path=None):
        if (what, why, path) not in self._told:
            self._told.add((what, why, path))
            self._notes.append((what, why, path))

    def _take_notes(self):
        notes, self._notes = self._notes, []
        grouped = {}
        for what, why, path in notes:
            grouped.setdefault((what, why), []).append(path)
        texts = []
        for (what, why), paths in grouped.items():
            names = ", ".join(path for path in paths[:MAX_NAMED] if path)
            if len(paths) > MAX_NAMED:
                names += f" and {len(paths) - MAX_NAMED:,} more"
            texts.append(f"{what}: {names}{': ' if names else ''}{why}")
        return "; ".join(texts)

    # Looking.

    def _walk(self):
        """The files there are, path -> signature, links, and whether that is all."""
        found, links, whole = {}, [], True
        folders, entries = [("", 1)], 0
        while folders:
            prefix, depth = folders.pop()
            try:
                with scandir(self._root + prefix) as listing:
                    for entry in listing:
                        entries += 1
                        if entries > MAX_ENTRIES:
                            self._note("not all files are kept", f"there are more than {MAX_ENTRIES:,} in the workspace")
                            return found, links, False
                        name = entry.name
                        path = prefix + name
                        if name in IGNORED_NAMES or path in IGNORED_PATHS or name.startswith(PARTIAL):
                            continue
                        if entry.is_file(follow_symlinks=False):
                            found[path] = signature(entry.stat(follow_symlinks=False))
                        elif entry.is_dir(follow_symlinks=False):
                            if depth < MAX_DEPTH:
                                folders.append((path + "/", depth + 1))
                            else:
                                self._note("not kept", f"it is more than {MAX_DEPTH} folders deep", shown(path))
                        elif entry.is_symlink():
                            links.append(path)
            except FileNotFoundError:
                pass  # it goes away while we look
            except OSError as error:
                whole = False
                self._note("not kept", error.strerror, shown(prefix or "."))
        return found, links, whole

    # Sending.

    def _push(self, until):
        found, links, whole = self._walk()
        known = self._known
        for path in links:
            self._note("not kept", "links are not, only files", shown(path))
        if whole:
            for path in [path for path in self._refused if path not in found]:
                del self._refused[path]
            gone = [path for path in known if path not in found]
            for start in range(0, len(gone), 1000):
                batch = gone[start : start + 1000]
                self._changed(self._client.call("workspace/delete", {"files": [[path, *known[path].host] for path in batch]}))
                for path in batch:
                    del known[path]
        in_a_row, latest = 0, None
        for path, mark in found.items():
            before = known.get(path)
            if before is not None and before.signature == mark and before.crc is None:
                continue
            refused = self._refused.get(path)
            if refused is not None and refused[:2] == (mark, self._version):
                continue
            if in_a_row >= MAX_REFUSED:  # it would go on like this, thousands of times
                self._refuse(path, mark, latest)
                continue
            try:
                self._send(path, mark, before, until)
                self._refused.pop(path, None)
                in_a_row = 0
            except (RemoteError, UnicodeEncodeError, OSError) as error:
                why = "its name is not UTF-8" if isinstance(error, UnicodeEncodeError) else getattr(error, "strerror", None) or str(error)
                in_a_row, latest = in_a_row + 1 if why == latest else 1, why
                self._refuse(path, mark, why)

    def _refuse(self, path, mark, why):
        self._refused[path] = (mark, self._version, why)
        self._note("not kept", why, f"{shown(path)} ({size_text(mark[1])})")

    def _send(self, path, mark, before, until):
        modified, size, _ = mark
        path.encode()
        fd = os_open(self._root + path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            racy = time_ns() - modified < RACY
            if before is not None and before.signature == mark and self._crc(fd, size) == before.crc:
                before.crc = before.crc if racy else None
                return
            params = {"path": path, "size": size, "modified": modified, "offset": 0, "data": ""}
            if size > CHUNK:  # is there room for so much?
                self._client.call("workspace/put", params)
            crc = 0
            while True:
                if until is not None and monotonic() > until:
                    raise Hurried
                data = pread(fd, min(CHUNK, size - params["offset"]), params["offset"])
                crc = crc32(data, crc)
                last = params["offset"] + len(data) == size
                if not last and not data or signature(fstat(fd)) != mark:
                    return  # it changes while it is read: the next time
                params["data"] = b2a_base64(data, newline=False).decode()
                reply = self._client.call("workspace/put", params)
                if last:
                    break
                params["offset"] += len(data)
        finally:
            close(fd)
        self._changed(reply)
        self._known[path] = Known(mark, [reply["size"], reply["modified"]], crc if racy else None)

    def _crc(self, fd, size):
        crc = offset = 0
        while offset < size:
            data = pread(fd, CHUNK, offset)
            if not data:
                return None
            crc = crc32(data, crc)
            offset += len(data)
        return crc

    def _changed(self, reply):
        """Something of ours has made a new version: it is ours if nobody else's came before."""
        if reply["previous"] == self._version:
            self._version = reply["version"]

    # Fetching.

    def _pull(self):
        reply = self._client.call("workspace/list", {"files": True})
        found, _, whole = self._walk()
        known = self._known
        listed = set()
        complete = True
        for path, *host in reply["files"]:
            listed.add(path)
            mine, before = found.get(path), known.get(path)
            if before is not None and before.host == host:
                continue  # and if it is gone from here, that is for _push to tell
            if mine is not None:
                if before is None and (mine[1], mine[0]) == tuple(host):
                    known[path] = Known(mine, host)  # the Python process is new, the files are not
                    continue
                if (before is None or before.signature != mine) and mine[0] > host[1]:
                    continue  # changed here too, and later
            try:
                self._fetch(path, host)
            except (RemoteError, OSError) as error:
                complete = False
                self._note("not in the workspace of this sandbox", getattr(error, "strerror", None) or str(error), shown(path))
        if reply["whole"] and whole:
            for path in [path for path in known if path not in listed]:
                if found.get(path) == known.pop(path).signature:
                    self._remove(path)
        if complete:
            self._version = reply["version"]

    def _fetch(self, path, host):
        folder, slash, name = path.rpartition("/")
        makedirs(self._root + folder, exist_ok=True)
        partial = self._root + folder + slash + PARTIAL + str(self._pid)
        fd = os_open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        try:
            offset = 0
            while True:
                reply = self._client.call("workspace/get", {"path": path, "offset": offset})
                now = [reply["size"], reply["modified"]]
                if now != host and offset:  # somebody else is faster: begin again with the new one
                    host, offset = now, 0
                    ftruncate(fd, 0)
                    continue
                host = now
                offset += self._write(fd, a2b_base64(reply["data"]), offset)
                if offset >= host[0] or not reply["data"]:
                    break
            utime(fd, ns=(host[1], host[1]))
            mark = signature(fstat(fd))
            replace(partial, self._root + path)
        except BaseException:
            unlink(partial)
            raise
        finally:
            close(fd)
        self._known[path] = Known(mark, host)

    def _write(self, fd, data, offset):
        left = memoryview(data)
        while left:
            written = pwrite(fd, left, offset)
            left, offset = left[written:], offset + written
        return len(data)

    def _remove(self, path):
        """Another sandbox has deleted it."""
        try:
            unlink(self._root + path)
            while "/" in path:
                path = path.rpartition("/")[0]
                rmdir(self._root + path)
        except OSError:
            pass  # or the folder is not empty


def shown(path):
    """A name of a file that may have anything in it."""
    return path if path.isprintable() else ascii(path)


def size_text(size):
    for unit in ("bytes", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.3g} {unit}" if unit != "bytes" else f"{size} {unit}"
        size /= 1024
    return f"{size:,.4g} GiB"
