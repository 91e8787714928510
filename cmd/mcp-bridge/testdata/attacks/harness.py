"""What the attacks share: how one is declared, run and judged.

An attack is a function without arguments that does its worst. What comes of it
is told by how it ends. If it returns, the way is open, and what it returns says
where to. It is denied if it raises an OSError (the kernel says no, or who answers
in its place), if it raises Denied (it has seen for itself that nothing came of
it), or if its process is killed. Anything else is a broken attack: it proves
nothing, and the table fails.

The same files run in a cell and, to show that the attacks are worth denying, in a
privileged container. Nothing here does harm where it succeeds: what could is
asked for with arguments that the kernel refuses after it has let the caller in.
"""

import ctypes
import errno
import os
import platform
import select
import signal
import time

CONTEXT = {}  # what the test tells the attacker: see attack_test.go
ATTACKS = {}  # subject -> name -> Attack

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long

EVERYWHERE, BRIDGE = True, False


class Denied(Exception):
    """Nothing came of the attack, and this is how one can tell."""


class Attack:
    def __init__(self, function, control, seconds, shown, spoils):
        self.function = function
        self.control = control
        self.seconds = seconds
        self.shown = shown
        self.spoils = spoils


def attack(control=EVERYWHERE, seconds=4, name=None, shown=False, spoils=False):
    """Declares an attack.

    With control=BRIDGE it makes no sense without the bridge. One that is shown
    returns something to be too much for whoever shows it. One that spoils its
    Python process leaves nothing to run cells in, and so is ended a moment later.
    """

    def declare(function):
        subject = function.__module__
        ATTACKS.setdefault(subject, {})[name or function.__name__] = Attack(function, control, seconds, shown, spoils)
        return function

    return declare


def run(subject, names=None):
    """Run the attacks of a subject, each in a process of its own; their outcomes by name."""
    chosen = ATTACKS[subject] if names is None else {name: ATTACKS[subject][name] for name in names}
    return {name: judge(each) for name, each in chosen.items()}


def judge(each):
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            os.close(read)
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, 1)  # what programs print is nothing to the point
            os.dup2(null, 2)
            os.write(write, outcome(each.function).encode(errors="replace")[:300])
        finally:
            os._exit(0)
    os.close(write)
    said = b""
    if select.select([read], [], [], each.seconds)[0]:
        said = os.read(read, 4096)
    else:
        said = b"broken: no end within %d s" % each.seconds
    os.close(read)
    if not said:  # the process ended without a word
        _, status = os.waitpid(pid, 0)
        if os.WIFSIGNALED(status):
            return "denied: " + signal.Signals(os.WTERMSIG(status)).name
        return f"broken: status {status}"
    try:
        os.killpg(pid, signal.SIGKILL)
    except OSError:
        pass
    os.waitpid(pid, 0)
    return said.decode(errors="replace")


def live(subject, name):
    """Run an attack in this very process. Whoever sees the reply judges it."""
    each = ATTACKS[subject][name]
    if each.shown:
        return each.function()
    if each.spoils and os.fork() == 0:
        time.sleep(0.7)
        os.kill(os.getppid(), signal.SIGKILL)
        os._exit(0)
    said = outcome(each.function)
    os.write(1, said[:300].encode(errors="replace") + b"\n")  # whatever has become of print


def outcome(function):
    try:
        return "open: " + str(function())
    except Denied as e:
        return f"denied: {e}"
    except OSError as e:
        return "denied: " + errno.errorcode.get(e.errno, repr(e))
    except (KeyboardInterrupt, MemoryError):
        raise
    except RuntimeError as e:
        return f"{'denied' if 'new thread' in str(e) else 'broken'}: {e}"
    except BaseException as e:
        return f"broken: {type(e).__name__}: {e}"


# Means of attack.

SYSCALLS = {  # x86-64; from 424 on the numbers are those of every machine
    "ptrace": 101, "syslog": 103, "setfsuid": 122, "personality": 135, "sysfs": 139, "ustat": 136,
    "sched_setparam": 142, "sched_setscheduler": 144, "vhangup": 153, "modify_ldt": 154, "pivot_root": 155, "adjtimex": 159,
    "chroot": 161, "acct": 163, "settimeofday": 164, "mount": 165, "umount2": 166, "swapon": 167,
    "swapoff": 168, "reboot": 169, "sethostname": 170, "setdomainname": 171, "iopl": 172, "ioperm": 173,
    "init_module": 175, "delete_module": 176, "quotactl": 179, "setxattr": 188, "io_setup": 206,
    "lookup_dcookie": 212, "remap_file_pages": 216, "clock_settime": 227, "mbind": 237,
    "set_mempolicy": 238, "mq_open": 240, "kexec_load": 246, "add_key": 248, "request_key": 249,
    "keyctl": 250, "ioprio_set": 251, "migrate_pages": 256, "unshare": 272, "get_robust_list": 274,
    "splice": 275, "tee": 276, "vmsplice": 278, "move_pages": 279, "rt_tgsigqueueinfo": 297,
    "perf_event_open": 298, "fanotify_init": 300, "name_to_handle_at": 303, "open_by_handle_at": 304,
    "clock_adjtime": 305, "setns": 308, "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312,
    "finit_module": 313, "sched_setattr": 314, "seccomp": 317, "kexec_file_load": 320, "bpf": 321,
    "userfaultfd": 323, "execveat": 322, "clone": 56, "semget": 64, "shmget": 29, "msgget": 68,
    "mincore": 27, "capset": 126, "mlockall": 151, "tgkill": 234, "rt_sigqueueinfo": 129, "prlimit64": 302,
    "process_mrelease": 448, "pidfd_send_signal": 424, "io_uring_setup": 425, "io_uring_enter": 426,
    "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433,
    "pidfd_open": 434, "clone3": 435, "pidfd_getfd": 438, "process_madvise": 440, "mount_setattr": 442,
    "quotactl_fd": 443, "memfd_secret": 447, "cachestat": 451, "statmount": 457, "listmount": 458,
    "setxattrat": 463, "open_tree_attr": 467, "file_setattr": 469,
}  # fmt: skip


def syscall(name, *args):
    """Make a system call. Raises OSError."""
    if platform.machine() != "x86_64" and SYSCALLS[name] < 424:
        raise RuntimeError("these are the numbers of x86-64")
    return numbered(SYSCALLS[name], *args)


def numbered(number, *args):
    ctypes.set_errno(0)
    given = [ctypes.c_long(a) if isinstance(a, int) else a for a in args]
    result = libc.syscall(ctypes.c_long(number), *given)
    if result == -1:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def reach(name, *args, past=()):
    """Make a system call. An errno in past is one that only who is let in gets to see."""
    try:
        return f"{name} = {syscall(name, *args)}"
    except OSError as e:
        code = errno.errorcode.get(e.errno)
        if code in past:
            return f"{name} reached: {code}"
        raise


def prctl(option, *args):
    ctypes.set_errno(0)
    result = libc.prctl(option, *[ctypes.c_ulong(a) for a in (*args, 0, 0, 0, 0)[:4]])
    if result == -1:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def child(seconds=3):
    """A process of ours to try things on: it sleeps, and dies with the attack."""
    pid = os.fork()
    if pid == 0:
        time.sleep(seconds)
        os._exit(0)
    return pid


def writable(path, past=()):
    """Open path for writing and write nothing."""
    try:
        os.close(os.open(path, os.O_WRONLY))
    except OSError as e:
        if errno.errorcode.get(e.errno) not in past:
            raise
    return f"{path} can be written"


def readable(path, size=4096):
    """The first bytes of path, or Denied if there are none."""
    with open(path, "rb") as file:
        data = file.read(size)
    if not data:
        raise Denied(f"{path} is empty")
    return data


def creates(path):
    """Make a file and remove it."""
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    os.unlink(path)
    return f"{path} was made"


def first_open(attempts):
    """What the first of several tries yields that succeeds; else the last refusal."""
    refused = Denied("nothing to try it on")
    for attempt in attempts:
        try:
            return attempt()
        except (OSError, Denied) as e:
            refused = e
    raise refused


def status(key):
    for line in open("/proc/self/status"):
        if line.startswith(key + ":"):
            return line.split(":", 1)[1].split()
    raise Denied(f"no {key} in /proc/self/status")
