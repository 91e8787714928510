"""Attacks on the supervisor, PID 1 of the sandbox: same user, yet out of reach.

A control has a process there that is like any other. What a cell can do to the
Python process that it shares with the REPL is in cells.py.
"""

import ctypes
import os
import resource
import struct

from harness import BRIDGE, Denied, attack, child, first_open, prctl, reach, readable, writable

# Files of PID 1.


def reads(name, what):
    @attack(name="read_" + name.replace("/", "_"))
    def read():
        return f"{len(readable('/proc/1/' + name))} bytes"

    read.__doc__ = what


reads("maps", "Where its memory is.")
reads("smaps", "And how it is used.")
reads("environ", "Its environment.")
reads("auxv", "What the kernel gave it, with the address of the stack.")
reads("pagemap", "Its physical pages.")
reads("syscall", "What it waits in.")
reads("stack", "And where in the kernel.")
reads("io", "How much it reads and writes.")
reads("cmdline", "How it was started.")
reads("status", "Who it is.")
reads("stat", "What it does.")
reads("mountinfo", "Its mounts.")
reads("cgroup", "Its control group.")
reads("limits", "Its limits.")
reads("wchan", "What it waits for.")
reads("net/unix", "Its sockets.")
reads("timerslack_ns", "How exactly it is woken.")


def writes(name, what):
    @attack(name="write_" + name.replace("/", "_"))
    def write():
        return writable("/proc/1/" + name)

    write.__doc__ = what


writes("mem", "Its memory.")
writes("task/1/mem", "Its memory by way of its thread.")
writes("oom_score_adj", "That it dies first.")
writes("clear_refs", "The record of its pages.")
writes("coredump_filter", "What a core has in it.")
writes("uid_map", "Its users.")
writes("setgroups", "Its groups.")
writes("autogroup", "How it is scheduled.")


@attack()
def write_name():
    """Its name."""
    name = open("/proc/1/comm").read()
    with open("/proc/1/comm", "w") as f:
        f.write("attacked")
    if open("/proc/1/comm").read() == name:
        raise Denied("it keeps its name")
    return "changed"


@attack()
def write_label():
    """Its label. To open the file for writing is nothing yet."""
    with open("/proc/1/attr/current", "w") as f:
        f.write("unconfined")
    return "changed"


def follows(name, what):
    @attack(name="follow_" + name.replace("/", "_"))
    def follow():
        return os.readlink("/proc/1/" + name)

    follow.__doc__ = what


follows("exe", "Its program.")
follows("cwd", "Its directory.")
follows("root", "Its root.")
follows("ns/user", "Its namespaces.")
follows("ns/mnt", "Its mounts.")


@attack()
def read_memory():
    """Open its memory."""
    os.close(os.open("/proc/1/mem", os.O_RDONLY))
    return "opened"


@attack()
def list_descriptors():
    """Its descriptors."""
    return os.listdir("/proc/1/fd")


@attack()
def list_mapped_files():
    """Its mapped files."""
    return os.listdir("/proc/1/map_files")


@attack()
def list_threads():
    """Its threads."""
    return os.listdir("/proc/1/task")


@attack()
def forge_by_descriptor():
    """Open one of its descriptors, to write frames to the host in its name."""
    return first_open(lambda n=n: os.close(os.open(f"/proc/1/fd/{n}", os.O_WRONLY | os.O_NONBLOCK)) or n for n in range(16))


@attack()
def read_by_descriptor():
    """Or to read what the host says."""
    return first_open(lambda n=n: os.close(os.open(f"/proc/1/fd/{n}", os.O_RDONLY | os.O_NONBLOCK)) or n for n in range(16))


@attack()
def files_through_its_root():
    """The file system as it sees it."""
    return os.listdir("/proc/1/root/")


@attack()
def enter_its_namespaces():
    """setns to its namespaces."""
    return first_open(lambda n=n: reach("setns", os.open(f"/proc/1/ns/{n}", os.O_RDONLY), 0) for n in ("uts", "ipc", "net", "mnt"))


# System calls on PID 1.


def on_it(name, call, *args, what, past=()):
    @attack(name=name)
    def use():
        return reach(call, *args, past=past)

    use.__doc__ = what


BUFFER = ctypes.create_string_buffer(4096)
on_it("trace_attach", "ptrace", 0x4206, 1, 0, 0, what="PTRACE_SEIZE.")
on_it("vm_read", "process_vm_readv", 1, None, 0, None, 0, 0, what="Read its memory.")
on_it("vm_write", "process_vm_writev", 1, None, 0, None, 0, 0, what="Write it.")
on_it("compare", "kcmp", 1, os.getpid(), 0, 0, 0, what="Compare its descriptors with ours.")
on_it("limits", "prlimit64", 1, 7, None, BUFFER, what="Ask for its limits.")
on_it("real_time", "sched_setscheduler", 1, 3, struct.pack("i", 0), what="How it is scheduled.")
on_it("io_priority", "ioprio_set", 1, 1, 3 << 13, what="Its priority of I/O.")
on_it("pages", "move_pages", 1, 0, None, None, None, 0, what="Its pages.")
on_it("robust_list", "get_robust_list", 1, ctypes.byref(ctypes.c_long()), ctypes.byref(ctypes.c_long()), what="Its locks.")
on_it("perf", "perf_event_open", struct.pack("2IQ", 1, 64, 0).ljust(64, b"\0"), 1, -1, -1, 0, what="Count what it does.")
on_it("migrate", "migrate_pages", 1, 0, None, None, what="Move it in memory.")


@attack()
def set_limits():
    """Fewer descriptors than it has: it could not go on."""
    return resource.prlimit(1, resource.RLIMIT_NOFILE, resource.prlimit(1, resource.RLIMIT_NOFILE))


@attack()
def take_descriptor():
    """pidfd_getfd."""
    return first_open(lambda n=n: reach("pidfd_getfd", os.pidfd_open(1), n, 0) for n in range(16))


@attack()
def advise_memory():
    """Have its memory put away, again and again."""
    return reach("process_madvise", os.pidfd_open(1), None, 0, 21, 0)


@attack()
def reap_memory():
    """Have it reaped as if it were dying."""
    return reach("process_mrelease", os.pidfd_open(1), 0, past=("EINVAL",))


@attack()
def lower_priority():
    """Let it starve."""
    return os.setpriority(os.PRIO_PROCESS, 1, os.getpriority(os.PRIO_PROCESS, 1))


@attack()
def pin():
    """Nail it to one processor."""
    return os.sched_setaffinity(1, os.sched_getaffinity(1))


@attack()
def change_group():
    """Take it into another process group."""
    return os.setpgid(1, os.getpid())


@attack()
def share_core():
    """Share a core's threads with it."""
    return prctl(62, 2, 1, 0)


@attack(control=BRIDGE)
def be_init():
    """Adopt orphans in its place: they are to be killed with the cell all the same."""
    prctl(36, 1)
    os.kill(1, 0)
    raise Denied("of one's own children only")


@attack()
def wait_for_it():
    """Learn when it dies, or that it is there, through a pidfd. Only what a signal
    tells too: allowed, and of no use."""
    import select

    fd = os.pidfd_open(1)
    if select.select([fd], [], [], 0)[0]:
        return "it is dead"
    raise Denied("it lives")
