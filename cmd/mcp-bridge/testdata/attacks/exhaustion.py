"""Attacks on what a machine has: processes, memory, files, time, and whoever reads.

Each runs in a sandbox of its own. The limit must hold: the sandbox goes on or is
replaced within seconds, the reply says why, and another session hardly notices.
"""

import ctypes
import io
import mmap
import os
import re
import resource
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import zipfile
import zlib

from harness import Denied, attack, libc


def until_refused(grow, most, what):
    """Call grow until it fails, most times at most."""
    for n in range(most):
        try:
            grow(n)
        except MemoryError:
            raise Denied(f"MemoryError after {n} {what}") from None
        except (OSError, RuntimeError) as e:
            raise Denied(f"{e} after {n} {what}") from None
    return f"{most} {what}"


@attack()
def fork_bomb():
    """Processes, as many as there are."""

    def fork(_):
        if os.fork() == 0:
            time.sleep(20)
            os._exit(0)

    return until_refused(fork, 3000, "processes")


@attack()
def fork_bomb_that_grows():
    """Each process makes others, without end: the deadline comes."""
    while True:
        try:
            os.fork()
        except OSError:
            pass


@attack()
def fork_bomb_of_shells():
    """The shell's classic."""
    subprocess.run(["bash", "-c", ":(){ :|:& };:; sleep 5"], stderr=subprocess.DEVNULL)
    raise Denied("the shell gave up")


@attack()
def zombies():
    """Processes that have ended, and are not waited for."""

    def fork(_):
        if os.fork() == 0:
            os._exit(0)

    return until_refused(fork, 3000, "zombies")


@attack()
def daemons():
    """Processes that leave everything: sessions of their own, orphans of PID 1."""

    def detach(_):
        pid = os.fork()
        if pid == 0:
            os.setsid()
            try:
                if os.fork() == 0:
                    time.sleep(60)
            finally:
                os._exit(0)
        os.waitpid(pid, 0)
        if not alive():
            raise OSError("no more processes")

    def alive():
        try:
            pid = os.fork()
        except OSError:
            return False
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)
        return True

    return until_refused(detach, 2000, "daemons")


@attack()
def threads():
    """Threads."""

    def start(_):
        threading.Thread(target=time.sleep, args=(20,), daemon=True).start()

    return until_refused(start, 3000, "threads")


@attack()
def spin():
    """All the processor there is, in several processes, past the deadline."""
    for _ in range(8):
        if os.fork() == 0:
            while True:
                pass
    while True:
        pass


@attack()
def memory():
    """Memory of this process."""
    kept = []
    return until_refused(lambda _: kept.append(bytearray(os.urandom(1 << 10)) * (8 << 10)), 400, "pieces of 8 MiB")


@attack()
def memory_of_children():
    """Memory of many processes, each within its own bound."""

    def hog(_):
        if os.fork() == 0:
            kept = b"x" * (40 << 20)
            time.sleep(20)
            os._exit(len(kept) & 0)

    until_refused(hog, 40, "processes of 40 MiB")
    time.sleep(3)
    raise Denied("some were killed")


@attack()
def memory_shared():
    """Shared memory, which no limit of a process counts."""
    kept = []

    def more(_):
        m = mmap.mmap(-1, 16 << 20)
        for at in range(0, len(m), 4096):
            m[at] = 1
        kept.append(m)

    return until_refused(more, 200, "pieces of 16 MiB")


@attack()
def memory_files():
    """Memory by memfd."""
    kept = []

    def more(n):
        fd = os.memfd_create(str(n))
        for _ in range(16):
            os.write(fd, b"x" * (1 << 20))
        kept.append(fd)

    return until_refused(more, 200, "pieces of 16 MiB")


@attack()
def memory_of_pipes():
    """Memory in pipes."""
    kept = []

    def more(_):
        r, w = os.pipe()
        os.set_blocking(w, False)
        try:
            import fcntl

            fcntl.fcntl(w, 1031, 1 << 20)  # F_SETPIPE_SZ
        except OSError:
            pass
        try:
            while True:
                os.write(w, b"x" * 65536)
        except BlockingIOError:
            pass
        kept.append((r, w))

    return until_refused(more, 2000, "pipes")


@attack()
def memory_of_sockets():
    """Memory in the buffers of sockets."""
    kept = []

    def more(_):
        a, b = socket.socketpair()
        a.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8 << 20)
        a.setblocking(False)
        try:
            while True:
                a.send(b"x" * 65536)
        except BlockingIOError:
            pass
        kept.append((a, b))

    return until_refused(more, 2000, "pairs of sockets")


@attack()
def descriptors_in_flight():
    """Descriptors parked in sockets, which count for nobody."""
    import array

    kept = [socket.socketpair()]
    fds = array.array("i", [os.open("/dev/null", os.O_RDONLY)] * 200)

    def more(_):
        try:
            kept[-1][0].setblocking(False)
            kept[-1][0].sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
        except BlockingIOError:
            kept.append(socket.socketpair())

    return until_refused(more, 20000, "messages of 200 descriptors")


@attack()
def descriptors():
    """Open files."""
    kept = []
    return until_refused(lambda _: kept.append(os.open("/dev/null", os.O_RDONLY)), 5000, "descriptors")


@attack()
def watches():
    """Watches on files, which the host counts per user."""
    fd = libc.inotify_init()

    def watch(n):
        path = f"/tmp/w{n % 4000}"
        os.makedirs(path, exist_ok=True)
        ctypes.set_errno(0)
        if libc.inotify_add_watch(fd, path.encode(), 0xFFF) < 0:
            raise OSError(ctypes.get_errno(), "inotify_add_watch")

    until_refused(watch, 3000, "watches")
    raise Denied("they are its own user's")


@attack()
def queues():
    """Timers, each of which the kernel keeps a signal for."""

    def timer(_):
        ctypes.set_errno(0)
        if libc.timer_create(1, None, ctypes.byref(ctypes.c_void_p())):
            raise OSError(ctypes.get_errno(), "timer_create")

    until_refused(timer, 50000, "timers")
    raise Denied("memory of the sandbox's own")


def fill(at):
    def write():
        size = 0
        try:
            with open(at + "/filled", "wb", 0) as f:
                while size < 1 << 30:
                    size += f.write(b"x" * (1 << 20))
        except OSError as e:
            raise Denied(f"{e.strerror} after {size >> 20} MiB") from None
        return f"{size >> 20} MiB"

    write.__doc__ = f"Bytes in {at}."
    return write


def crowd(at):
    def make():
        for n in range(17):  # ballast, so that it does not take long
            os.write(os.memfd_create(str(n)), bytes(10 << 20))
        return until_refused(lambda n: os.close(os.open(f"{at}/{n}", os.O_CREAT | os.O_WRONLY)), 2_000_000, f"files in {at}")

    make.__doc__ = f"Files in {at}."
    return make


for place in ("/tmp", "/workspace", "/dev/shm"):
    for name, kind in (("bytes", fill), ("files", crowd)):
        function = kind(place)
        function.__module__ = __name__
        attack(seconds=8, name=f"{name}_in{place.replace('/', '_')}")(function)


@attack()
def sparse_file():
    """A file of 16 TiB that has nothing in it."""
    with open("/tmp/sparse", "wb") as f:
        f.truncate(16 << 40)
    return "made"


@attack()
def deep_directories():
    """Directories in directories, which walks of the host would follow."""
    os.chdir("/tmp")

    def deeper(_):
        os.mkdir("d" * 200)
        os.chdir("d" * 200)

    until_refused(deeper, 5000, "levels")
    os.chdir("/workspace")
    raise Denied("nobody outside walks there")


@attack()
def print_for_ever():
    """Output without an end."""
    while True:
        print("x" * 10000)


@attack()
def print_from_children():
    """Output without an end of several processes, past the deadline."""
    for _ in range(4):
        subprocess.Popen([sys.executable, "-c", "while True: print('x' * 40)"])
    time.sleep(30)


@attack(shown=True)
def huge_text():
    """A value of 100 MiB."""
    return "x" * (100 << 20)


@attack(shown=True)
def huge_number():
    """A value of ten million digits."""
    sys.set_int_max_str_digits(0)
    return str(1 << 33_000_000)


@attack(shown=True)
def huge_exception():
    """An exception with a text of 50 MiB."""
    raise Exception("x" * (50 << 20))


@attack(shown=True)
def huge_notes():
    """An exception with many causes."""
    e = None
    for n in range(20000):
        new = ValueError(n)
        new.__cause__ = e
        e = new
    raise e


@attack()
def endless_repr():
    """A value whose repr never ends."""

    class Endless:
        def __repr__(self):
            while True:
                pass

    return f"{Endless()!r}"


@attack()
def recursive_value():
    """A value nested a hundred thousand deep."""
    value = []
    for _ in range(10**5):
        value = [value]
    try:
        return repr(value)
    except RecursionError:
        raise Denied("RecursionError") from None


@attack()
def regular_expression():
    """An expression that takes for ever, in C."""
    return re.match("(a+)+$", "a" * 60 + "b")


@attack()
def zip_bomb():
    """A small archive of much."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as z:
        z.writestr("x", b"\0" * (100 << 20))
    kept = []
    return until_refused(lambda _: kept.append(zipfile.ZipFile(data).read("x")), 50, "times 100 MiB")


@attack()
def compile_bomb():
    """Source that is small and compiles to much."""
    return until_refused(lambda _: compile("(1 << 400_000_000) and " + "-" * 10000 + "1", "x", "eval"), 20, "programs")


@attack()
def big_arguments():
    """A program with arguments of as much as there may be."""
    return until_refused(lambda n: subprocess.run([sys.executable, "-c", "", *["x" * 100_000] * (n + 1)]), 2000, "times 100 kB of arguments")


@attack()
def callback_flood():
    """Calls of tools as fast as they go, past the deadline."""
    import __main__

    while True:
        __main__.tools.special.same(value=1)


@attack()
def callback_flood_of_threads():
    """The same from many threads."""
    import __main__

    def flood():
        while True:
            __main__.tools.special.same(value="x" * 1000)

    for _ in range(20):
        threading.Thread(target=flood, daemon=True).start()
    time.sleep(30)


@attack()
def search_flood():
    """Searches, which the host computes."""
    import __main__

    while True:
        __main__.tools.search("x" * 100, limit=100)


@attack()
def big_calls():
    """Large arguments and results, which the host holds."""
    import __main__

    while True:
        __main__.tools.special.same(value="x" * (16 << 20))


@attack()
def sync_storm():
    """fsync and locks without an end."""
    with open("/tmp/sync", "wb", 0) as f:
        while True:
            f.write(b"x")
            os.fsync(f.fileno())
            f.seek(0)


@attack()
def signals_to_the_supervisor():
    """Signals to PID 1 as fast as they go."""
    while True:
        os.kill(1, signal.SIGCHLD)


@attack()
def deaths_for_the_supervisor():
    """Deaths that it has to see to."""
    while True:
        pid = os.fork()
        if pid == 0:
            if os.fork() == 0:
                os._exit(0)
            os._exit(0)
        os.waitpid(pid, 0)
