"""What of CPython and its standard library must work in a sandbox."""

import asyncio
import bz2
import code
import concurrent.futures
import ctypes
import faulthandler
import fcntl
import gc
import gzip
import hashlib
import io
import locale
import lzma
import mmap
import multiprocessing
import os
import pathlib
import platform
import pty
import resource
import secrets
import select
import shutil
import signal
import socket
import sqlite3
import ssl
import subprocess
import sys
import tarfile
import tempfile
import termios
import threading
import time
import tracemalloc
import uuid
import zipfile
import zoneinfo
from multiprocessing import shared_memory


def sqlite_with_a_journal():
    with tempfile.TemporaryDirectory() as d:
        c = sqlite3.connect(d + "/x.db")
        c.execute("pragma journal_mode=wal")
        c.execute("create table t(a)")
        c.executemany("insert into t values(?)", [(i,) for i in range(1000)])
        c.commit()
        assert c.execute("select sum(a) from t").fetchone()[0] == 499500
        c.close()


def process_pool():
    with multiprocessing.get_context("fork").Pool(2) as p:
        assert p.map(abs, [-1, 2]) == [1, 2]


def queues_locks_and_managers():
    fork = multiprocessing.get_context("fork")
    q = fork.Queue()
    q.put(1)
    assert q.get(timeout=5) == 1
    fork.Lock()
    fork.Semaphore()
    with fork.Manager() as m:
        m.dict()["a"] = 1


def shared_memory_segment():
    s = shared_memory.SharedMemory(create=True, size=4096)
    s.buf[0] = 1
    s.close()
    s.unlink()


def subprocesses():
    run = subprocess.run([sys.executable, "-c", "print(1)"], capture_output=True, text=True, timeout=20)
    assert run.stdout == "1\n", run
    run = subprocess.run("echo a | tr a b", shell=True, capture_output=True, text=True, timeout=20)
    assert run.stdout == "b\n", run
    pid = os.posix_spawn("/bin/true", ["true"], {})
    assert os.waitpid(pid, 0)[1] == 0


def threads():
    with concurrent.futures.ThreadPoolExecutor(8) as e:
        assert sum(e.map(lambda x: x * x, range(100))) == 328350
    t = threading.Thread(target=time.sleep, args=(0.001,))
    t.start()
    t.join()


def asynchronous():
    async def main():
        assert await asyncio.gather(*[asyncio.sleep(0.001, i) for i in range(10)]) == list(range(10))
        pipe = asyncio.subprocess.PIPE
        p = await asyncio.create_subprocess_exec(sys.executable, "-c", "print(2)", stdout=pipe)
        assert (await p.communicate())[0] == b"2\n"
        await asyncio.to_thread(time.sleep, 0.001)

        async def echo(reader, writer):
            writer.write(await reader.readline())
            await writer.drain()
            writer.close()

        with tempfile.TemporaryDirectory() as d:
            server = await asyncio.start_unix_server(echo, d + "/s")
            reader, writer = await asyncio.open_unix_connection(d + "/s")
            writer.write(b"hi\n")
            assert await reader.readline() == b"hi\n"
            writer.close()
            server.close()

    asyncio.run(main())


def memory_maps():
    m = mmap.mmap(-1, 1 << 20)
    m[:4] = b"abcd"
    m.close()
    with tempfile.TemporaryFile() as f:
        f.truncate(4096)
        m = mmap.mmap(f.fileno(), 4096)
        m[0] = 1
        m.flush()
        m.close()


def signals_and_timers():
    hit = []
    signal.signal(signal.SIGALRM, lambda *_: hit.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    time.sleep(0.1)
    assert hit
    signal.signal(signal.SIGINT, signal.default_int_handler)


def file_operations():
    d = pathlib.Path(tempfile.mkdtemp())
    (d / "a").write_text("x")
    (d / "b").symlink_to("a")
    os.link(d / "a", d / "c")
    os.rename(d / "c", d / "e")
    os.chmod(d / "a", 0o600)
    os.utime(d / "a")
    shutil.copytree(d, str(d) + "2", symlinks=True)
    shutil.copy2(d / "a", d / "g")
    assert len(list(d.rglob("*"))) == 4
    shutil.disk_usage(d)
    os.truncate(d / "a", 10)
    with open(d / "a", "r+") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        fcntl.lockf(f, fcntl.LOCK_EX)
    os.mkfifo(d / "f")
    with open(d / "x", "wb") as f:
        f.write(b"1" * 100000)
        f.flush()
        os.fsync(f.fileno())
        os.posix_fallocate(f.fileno(), 0, 4096)
    with open(d / "x", "rb") as f, open(d / "y", "wb") as g:
        os.sendfile(g.fileno(), f.fileno(), 0, 1000)
        os.copy_file_range(f.fileno(), g.fileno(), 100)
    shutil.rmtree(d)
    shutil.rmtree(str(d) + "2")
    os.umask(0o22)


def archives():
    zipfile.ZipFile(io.BytesIO(), "w").close()
    with tempfile.TemporaryDirectory() as d:
        path = pathlib.Path(d, "f")
        path.write_text("x")
        with tarfile.open(d + "/t.tar.gz", "w:gz") as t:
            t.add(path, "f")
        with tarfile.open(d + "/t.tar.gz") as t:
            t.extractall(d + "/out")
    gzip.compress(b"a"), bz2.compress(b"a"), lzma.compress(b"a")


def polling():
    r, w = os.pipe()
    e = select.epoll()
    e.register(r, select.EPOLLIN)
    os.write(w, b"x")
    assert e.poll(1)
    select.select([r], [], [], 0)
    a, b = socket.socketpair()
    socket.send_fds(a, [b"f"], [0])
    socket.recv_fds(b, 10, 1)
    a.shutdown(socket.SHUT_RDWR)


def terminals():
    m, s = pty.openpty()
    os.write(s, b"x")
    assert os.read(m, 1) == b"x"
    termios.tcsetattr(s, termios.TCSANOW, termios.tcgetattr(s))
    assert os.isatty(s) and not os.isatty(os.open("/dev/null", os.O_RDONLY))


def system_calls_of_os():
    os.sched_getaffinity(0), os.cpu_count(), os.getloadavg(), os.times(), os.getgroups(), os.uname()
    resource.getrusage(0)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.nice(1)
    os.eventfd(0), os.pidfd_open(os.getpid()), os.memfd_create("a")
    uuid.uuid1(), uuid.uuid4()
    zoneinfo.ZoneInfo("UTC")
    locale.setlocale(locale.LC_ALL, "")
    assert ctypes.CDLL(None).getpid() == os.getpid()
    ssl.create_default_context()


def interpreters_and_hashes():
    code.InteractiveInterpreter().runsource("a = 1 + 1")
    faulthandler.enable(open("/dev/null", "w"))
    tracemalloc.start()
    tracemalloc.stop()
    gc.collect()
    hashlib.scrypt(b"a", salt=b"b", n=2, r=1, p=1)
    secrets.token_hex()
    platform.platform()


def spawned_processes():
    """Children that are new interpreters, which find their code by import; not so easily from stdin."""
    for method in ("spawn", "forkserver"):
        code = f"import multiprocessing as m; p = m.get_context('{method}').Process(target=print, args=(1,)); p.start(); p.join(20); print(p.exitcode)"
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
        assert run.stdout.split() == ["1", "0"], run


def no_internet():
    try:
        socket.create_connection(("127.0.0.1", 1))
    except OSError as e:
        gvisor = "gvisor" in open("/proc/version").read()  # whose filters know no such error
        assert ("not permitted" if gvisor else "not supported") in str(e), e
    else:
        raise AssertionError("connected")


failed = False
for name, check in list(globals().items()):
    if getattr(check, "__module__", "") == "__main__" and callable(check):
        try:
            check()
        except Exception as e:
            failed = True
            print(f"{name}: {type(e).__name__}: {e}")
if not failed:
    print("all passed")
