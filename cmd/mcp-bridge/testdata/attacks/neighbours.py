"""Attacks on another session's sandbox: its processes, files, sockets and names.

The test has settle() run in the other session, and tells where it lives. A control
has both in one container.
"""

import ctypes
import fcntl
import os
import signal
import socket
import struct
import subprocess
import sys

from harness import BRIDGE, CONTEXT, Denied, attack, first_open, reach

CANARY = "canary-" + "of-the-neighbour"
ABSTRACT = "\0mcp-bridge-attack-neighbour"
COMMAND = [sys.executable, "-c", "import time; time.sleep(300)"]
kept = []


def settle():
    """Leave something to be found: files, sockets, a process, a lock. Returns its pid."""
    for at in ("/tmp", "/workspace", "/dev/shm"):
        if os.path.isdir(at):
            with open(at + "/neighbour", "w") as f:
                f.write(CANARY)
            os.chmod(at + "/neighbour", 0o644)
    stream, datagram = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    stream.bind(ABSTRACT)
    stream.listen()
    datagram.bind(ABSTRACT + "-datagram")
    path = socket.socket(socket.AF_UNIX)
    if not os.path.exists("/tmp/neighbour.socket"):
        path.bind("/tmp/neighbour.socket")
    path.listen()
    fifo = "/tmp/neighbour.fifo"
    if not os.path.exists(fifo):
        os.mkfifo(fifo, 0o666)
    kept.extend((stream, datagram, path, os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)))
    locked = open("/tmp/neighbour", "r+")
    fcntl.lockf(locked, fcntl.LOCK_EX)
    process = subprocess.Popen(COMMAND, env={"CANARY": CANARY})
    kept.extend((locked, process))
    return process.pid


def unharmed():
    """What the neighbour sees of it all."""
    process = next(k for k in kept if isinstance(k, subprocess.Popen))
    return process.poll() is None and open("/tmp/neighbour").read() == CANARY and os.path.exists("/dev/shm/neighbour")


def theirs():
    """Pids that could be the neighbour's: as it sees them, and as the host does."""
    return [pid for pid in (CONTEXT["neighbour"], *CONTEXT.get("host_pids", ())) if pid not in (os.getpid(), os.getppid())]


def is_it(pid):
    """Whether the process of that number, in this sandbox's numbering, is the neighbour's."""
    return CANARY.encode() in open(f"/proc/{pid}/environ", "rb").read()


@attack()
def environment():
    """Its environment, by its number."""
    return first_open(lambda p=p: is_it(p) and f"process {p}" or refuse() for p in theirs())


def refuse():
    raise Denied("another process of that number")


@attack()
def any_process():
    """Its process, among all that are listed."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if is_it(pid):
                return f"process {pid}"
        except OSError:
            pass
    raise Denied("it is not listed")


@attack()
def command_lines():
    """Its command line."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if b"import time; time.sleep(300)" in open(f"/proc/{pid}/cmdline", "rb").read():
                return f"process {pid}"
        except OSError:
            pass
    raise Denied("it is not listed")


def others(ask):
    """Numbers of processes that ask() knows of, beyond this sandbox's own few."""
    known = []
    for pid in theirs():
        try:
            ask(pid)
            known.append(pid)
        except OSError as e:
            refused = e
    mine = {int(p) for p in os.listdir("/proc") if p.isdigit()} if CONTEXT.get("bridge") else set()
    known = [pid for pid in known if pid not in mine]
    if not known:
        raise refused
    return known


def oracle(name, ask, what):
    @attack(name=name)
    def asks():
        return others(ask)

    asks.__doc__ = what


oracle("signal_it", lambda pid: os.kill(pid, 0), "Signal it.")
oracle("group_of_it", os.getpgid, "Ask for its group.")
oracle("session_of_it", os.getsid, "Ask for its session.")
oracle("affinity_of_it", os.sched_getaffinity, "Ask for its processors.")
oracle("schedule_of_it", os.sched_getscheduler, "Ask how it is scheduled.")
oracle("priority_of_it", lambda pid: os.getpriority(os.PRIO_PROCESS, pid), "Ask for its priority.")
oracle("pidfd_of_it", os.pidfd_open, "Open it.")
oracle("limits_of_it", lambda pid: reach("prlimit64", pid, 7, None, ctypes.create_string_buffer(16)), "Ask for its limits.")
oracle("trace_it", lambda pid: reach("ptrace", 0x4206, pid, 0, 0), "Trace it.")
oracle("memory_of_it", lambda pid: reach("process_vm_readv", pid, None, 0, None, 0, 0), "Read its memory.")
oracle("clock_of_it", lambda pid: cpu_clock(pid), "Read its processor's time.")


def cpu_clock(pid):
    import time

    return time.clock_gettime((~pid << 3) | 2)


@attack(control=BRIDGE)
def kill_everybody():
    """A signal to every process in reach. One that is ignored: it reaches all there are."""
    signal.signal(signal.SIGWINCH, signal.SIG_IGN)
    os.kill(-1, signal.SIGWINCH)
    os.kill(0, signal.SIGWINCH)
    raise Denied("one's own only: see what the neighbour says afterwards")


@attack(control=BRIDGE)
def processes_of_its_user():
    """Priorities of all processes of its user, in whatever namespace."""
    uid = CONTEXT["neighbour_uid"]
    if uid == os.getuid():
        return "it has the same user"
    return os.setpriority(os.PRIO_USER, uid, 19)


@attack()
def same_user():
    """A user that it shares would share its limits and its keys."""
    if CONTEXT["neighbour_uid"] != os.getuid():
        raise Denied("it has another user")
    return os.getuid()


def file_at(path):
    @attack(name="file_in" + os.path.dirname(path).replace("/", "_"), control=path != "/workspace/neighbour")
    def read():
        return open(path).read()

    read.__doc__ = f"What it keeps in {path}."


for path in ("/tmp/neighbour", "/workspace/neighbour", "/dev/shm/neighbour"):
    file_at(path)


@attack()
def abstract_name():
    """Its socket without a file."""
    s = socket.socket(socket.AF_UNIX)
    s.connect(ABSTRACT)
    return "connected"


@attack()
def abstract_datagram():
    """And the other one."""
    return socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"x", ABSTRACT + "-datagram")


@attack()
def occupy_abstract_name():
    """Take the name away from it."""
    s = socket.socket(socket.AF_UNIX)
    try:
        s.bind(ABSTRACT)
    except OSError as e:
        if e.errno == 98:
            return "it is in use: the names are one"
        raise
    raise Denied("the names are apart")


@attack()
def path_socket():
    """Its socket in /tmp."""
    s = socket.socket(socket.AF_UNIX)
    s.connect("/tmp/neighbour.socket")
    return "connected"


@attack()
def fifo():
    """Its FIFO in /tmp."""
    fd = os.open("/tmp/neighbour.fifo", os.O_WRONLY | os.O_NONBLOCK)
    return os.write(fd, b"x")


@attack()
def sockets_listed():
    """Its sockets in /proc/net/unix."""
    if ABSTRACT[1:] not in open("/proc/net/unix").read():
        raise Denied("not listed")
    return ABSTRACT[1:]


@attack()
def locks_listed():
    """Its locks in /proc/locks."""
    lines = open("/proc/locks").readlines()
    inode = CONTEXT["neighbour_inode"]
    if not any(line.split()[-3].endswith(f":{inode}") for line in lines if len(line.split()) >= 8):
        raise Denied("not listed")
    return inode


@attack()
def shared_segment():
    """System V shared memory that it may have, by its key."""
    return reach("shmget", 0x4D4350, 4096, 0o1666)


@attack()
def queue_listed():
    """Its queues."""
    return reach("mq_open", b"neighbour", 0o102, 0o666, None)


@attack(control=BRIDGE)
def sandbox_directory():
    """Where the host keeps what belongs to it."""
    return first_open(lambda p=p: os.listdir(p) for p in CONTEXT["neighbour_paths"])


@attack()
def name_of_it():
    """Its host name, to be told from this one's: all are the same."""
    if "neighbour" in os.uname().nodename or os.uname().nodename == CONTEXT["hostname"]:
        return os.uname().nodename
    raise Denied(os.uname().nodename)


@attack()
def watch_its_files():
    """Watch its file by inotify."""
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.inotify_init()
    if libc.inotify_add_watch(fd, b"/tmp/neighbour", 2) < 0:
        raise OSError(ctypes.get_errno(), "inotify_add_watch")
    return "watching"
