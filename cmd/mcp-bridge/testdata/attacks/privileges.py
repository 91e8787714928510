"""Attacks on the kernel: no privilege, and no way to one."""

import ctypes
import fcntl
import mmap
import os
import resource
import signal
import socket
import struct
import subprocess

from harness import (
    ATTACKS, BRIDGE, Denied, attack, child, first_open, libc, numbered, prctl, reach, status, syscall, writable,
)  # fmt: skip

# Becoming somebody else.


@attack(control=BRIDGE, seconds=20)
def setuid_programs():
    """Any program that runs as its owner."""
    for root, _, files in os.walk("/"):
        if root.startswith(("/proc", "/sys")):
            continue
        for name in files:
            path = os.path.join(root, name)
            if os.lstat(path).st_mode & 0o6000 and not os.statvfs(path).f_flag & os.ST_NOSUID:
                if status("NoNewPrivs") != ["1"]:
                    return path
    raise Denied("there is none that could")


def becomes(function, *ids):
    function(*ids)
    return f"{os.getresuid()} {os.getresgid()}"


def identity(name, function, *ids):
    @attack(name=name)
    def change():
        return becomes(function, *ids)

    change.__doc__ = f"{function.__name__}{ids}"


identity("setuid", os.setuid, 0)
identity("setgid", os.setgid, 0)
identity("setgroups", os.setgroups, [0, 4, 27])
identity("setresuid", os.setresuid, 0, 0, 0)
identity("setregid", os.setregid, 0, 0)


@attack()
def file_system_user():
    """setfsuid fails without saying so: look whether it did."""
    syscall("setfsuid", 1)
    if status("Uid")[3] != "1":
        raise Denied("it did nothing")
    return "the file system's user is 1"


@attack()
def set_capabilities():
    """capset to all."""
    header = struct.pack("Ii", 0x20080522, 0)
    syscall("capset", header, struct.pack("6I", *[0xFFFFFFFF] * 2, 0, *[0x1FF] * 2, 0))
    return "all"


@attack()
def ambient_capability():
    """An ambient one, which programs inherit."""
    header, data = struct.pack("Ii", 0x20080522, 0), struct.pack("6I", 1 << 21, 1 << 21, 1 << 21, 0, 0, 0)
    syscall("capset", header, data)
    return prctl(47, 2, 21)


@attack()
def bounding_capabilities():
    """What a program could yet get."""
    if not any(libc.prctl(23, n, 0, 0, 0) == 1 for n in range(41)):
        raise Denied("the bounding set is empty")
    return "some"


@attack()
def effective_capabilities():
    """What we have."""
    if not int(status("CapEff")[0], 16):
        raise Denied("none")
    return status("CapEff")[0]


@attack()
def secure_bits():
    """How users and capabilities go together."""
    return prctl(28, 1)


@attack()
def new_privileges():
    """Programs that get what their files say."""
    if prctl(39):
        raise Denied("no_new_privs is set, and cannot be taken back")
    return "they do"


# Namespaces.


def namespace(name, flag, what):
    @attack(name="unshare_" + name)
    def unshare():
        return reach("unshare", flag)

    unshare.__doc__ = what


namespace("user", 0x10000000, "All capabilities in a namespace of one's own, and with them most of the kernel.")
namespace("mount", 0x20000, "Mounts of one's own.")
namespace("net", 0x40000000, "A network of one's own.")
namespace("pid", 0x20000000, "To be PID 1.")
namespace("ipc", 0x8000000, "IPC.")
namespace("uts", 0x4000000, "Names.")
namespace("cgroup", 0x2000000, "Another view of control groups.")
namespace("time", 0x80, "Another time.")


def cloned(*args, name="clone"):
    pid = syscall(name, *args)
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0x40000000)
    return "a process in it"


@attack()
def clone_user():
    """The same by clone."""
    return cloned(0x10000000 | 17, 0, 0, 0, 0)


@attack()
def clone_all():
    """All at once."""
    return cloned(0x7E020000 | 17, 0, 0, 0, 0)


@attack()
def clone_high_bits():
    """With rubbish above the 32 bits that the kernel looks at."""
    return cloned((1 << 32) | 0x10000000 | 17, 0, 0, 0, 0)


@attack()
def clone3():
    """By the call whose flags no filter can see."""
    return cloned(struct.pack("8Q", 0x10000000, 0, 0, 0, 17, 0, 0, 0), 64, name="clone3")


@attack()
def clone3_set_tid():
    """A pid of one's choice."""
    tids = ctypes.c_int(3999)
    return cloned(
        struct.pack("10Q", 0, 0, 0, 0, 17, 0, 0, 0, ctypes.addressof(tids), 1), 80, name="clone3"
    )


@attack()
def enter_namespaces():
    """setns to one's own, which needs the right to enter."""
    return first_open(
        lambda n=n: reach("setns", os.open(f"/proc/self/ns/{n}", os.O_RDONLY), 0) for n in ("net", "uts", "ipc", "mnt", "cgroup")
    )


@attack()
def enter_by_pidfd():
    """setns to all of a process's namespaces."""
    return reach("setns", os.pidfd_open(os.getppid()), 0x40000000 | 0x4000000)


# Other processes of one's own: what works on them works on whatever else is in reach.


@attack()
def trace_a_child():
    """PTRACE_SEIZE."""
    return reach("ptrace", 0x4206, child(), 0, 0)


@attack()
def be_traced():
    """PTRACE_TRACEME."""
    return reach("ptrace", 0, 0, 0, 0)


@attack()
def read_memory():
    """process_vm_readv."""
    return reach("process_vm_readv", child(), None, 0, None, 0, 0)


@attack()
def write_memory():
    """process_vm_writev."""
    return reach("process_vm_writev", child(), None, 0, None, 0, 0)


@attack()
def take_descriptor():
    """pidfd_getfd."""
    return reach("pidfd_getfd", os.pidfd_open(child()), 0, 0)


@attack()
def compare_processes():
    """kcmp tells how kernel objects lie in memory."""
    return reach("kcmp", os.getpid(), child(), 0, 0, 0)


@attack()
def advise_memory():
    """process_madvise."""
    return reach("process_madvise", os.pidfd_open(child()), None, 0, 20, 0)


@attack()
def reap_memory():
    """process_mrelease."""
    return reach("process_mrelease", os.pidfd_open(child()), 0, past=("EINVAL",))


@attack()
def limits_of_a_child():
    """prlimit of another process."""
    return reach("prlimit64", child(), 7, None, ctypes.create_string_buffer(16))


@attack()
def priority_of_a_child():
    """setpriority of another process."""
    pid = child()
    return os.setpriority(os.PRIO_PROCESS, pid, os.getpriority(os.PRIO_PROCESS, pid))


@attack()
def affinity_of_a_child():
    """sched_setaffinity of another process."""
    pid = child()
    return os.sched_setaffinity(pid, os.sched_getaffinity(pid))


@attack()
def pages_of_a_child():
    """move_pages."""
    return reach("move_pages", child(), 0, None, None, None, 0)


@attack()
def migrate_a_child():
    """migrate_pages."""
    return reach("migrate_pages", child(), 0, None, None)


# Parts of the kernel that a cell has no use for.


def part(name, call, *args, what, past=()):
    @attack(name=name)
    def use():
        return reach(call, *args, past=past)

    use.__doc__ = what


BUFFER = ctypes.create_string_buffer(4096)
PARAMS = ctypes.create_string_buffer(120)

part("key_add", "add_key", b"user", b"attack", b"x", 1, -2, what="Keys are not in a namespace.")
part("key_request", "request_key", b"user", b"attack-nothing", None, 0, what="Ask for a key.", past=("ENOKEY",))
part("key_control", "keyctl", 0, -3, 0, what="The session's keyring.")
part("key_join", "keyctl", 1, b"_attack", what="A session of another name.")
part("bpf_map", "bpf", 0, struct.pack("5I", 2, 4, 4, 1, 0).ljust(48, b"\0"), 48, what="eBPF maps.")
part("bpf_program", "bpf", 5, b"\0" * 48, 48, what="eBPF programs.", past=("EINVAL", "E2BIG"))
part("bpf_objects", "bpf", 11, struct.pack("2I", 0, 0).ljust(48, b"\0"), 48, what="Everybody's eBPF programs.", past=("ENOENT",))
part("perf", "perf_event_open", struct.pack("2IQ", 1, 64, 0).ljust(64, b"\0"), 0, -1, -1, 0, what="Performance counters.")
part("page_faults", "userfaultfd", 0o4000, what="Handle page faults: what makes races winnable.")
part("page_faults_of_users", "userfaultfd", 0o4001, what="The unprivileged half of it.")
part("ring_setup", "io_uring_setup", 1, PARAMS, what="io_uring, by which system calls pass no filter.")
part("ring_enter", "io_uring_enter", -1, 0, 0, 0, 0, 0, what="A ring that is there.", past=("EBADF", "EOPNOTSUPP", "EINVAL"))
part("aio", "io_setup", 1, ctypes.byref(ctypes.c_long()), what="The older asynchronous I/O.")
part("secret_memory", "memfd_secret", 0, what="Memory that the host's tools cannot see.")
part("module_load", "init_module", None, 0, b"", what="A kernel module.", past=("EFAULT", "ENOEXEC", "EINVAL"))
part("module_load_file", "finit_module", -1, b"", 0, what="One in a file.", past=("EBADF",))
part("module_unload", "delete_module", b"attack_nonexistent", 0, what="Take one away.", past=("ENOENT",))
part("kexec", "kexec_load", 0, 0, None, -1, what="Another kernel.", past=("EINVAL",))
part("kexec_file", "kexec_file_load", -1, -1, 0, None, -1, what="One in a file.", past=("EINVAL", "EBADF"))
part("reboot", "reboot", 1, 2, 3, None, what="Reboot; the magic numbers are wrong.", past=("EINVAL",))
part("clock_set", "clock_settime", 0, struct.pack("2q", 0, -1), what="The time; this one is none.", past=("EINVAL",))
part("time_of_day", "settimeofday", struct.pack("2q", 0, -1), None, what="The older call.", past=("EINVAL",))
part("clock_adjust", "adjtimex", struct.pack("Iq", 0, 0).ljust(208, b"\0"), what="The clock's speed.")
part("clock_adjust_new", "clock_adjtime", 0, struct.pack("Iq", 0, 0).ljust(208, b"\0"), what="The same by the newer call.")
part("io_rights", "iopl", 3, what="The machine's ports.")
part("io_port", "ioperm", 0x80, 1, 1, what="One of them.")
part("segments", "modify_ldt", 0, BUFFER, 100, what="Segments of one's own.")
part("personality", "personality", 0x40000, what="No address randomisation, which programs inherit.")
part("log_read", "syslog", 3, BUFFER, 100, what="The kernel's log.")
part("log_size", "syslog", 10, None, 0, what="How much there is of it.")
part("host_name", "sethostname", os.uname().nodename.encode(), len(os.uname().nodename), what="The host's name, as it is.")
part("domain_name", "setdomainname", b"(none)", 6, what="And its domain's, as it is.")
part("hang_up", "vhangup", what="Hang up the terminal.")
part("file_systems", "sysfs", 3, what="A call that nobody needs.")
part("file_system_statistics", "ustat", 0, BUFFER, what="And another.", past=("EINVAL",))
part("cookie", "lookup_dcookie", 0, BUFFER, 10, what="Gone from the kernel, or not.", past=("EINVAL",))
part("remap", "remap_file_pages", 0, 0, 0, 0, 0, what="Odd mappings.", past=("EINVAL",))
part("memory_policy", "mbind", 0, 0, 0, None, 0, 0, what="Where memory lies.", past=("EINVAL",))
part("memory_policy_default", "set_mempolicy", 0, None, 0, what="For all of it.")
part("lock_memory", "mlockall", 1, what="Keep memory from being swapped.")
part("shared_memory", "shmget", 0, 4096, 0o1600, what="System V shared memory outlives its processes.")
part("semaphores", "semget", 0, 1, 0o1600, what="System V semaphores.")
part("message_queue", "msgget", 0, 0o1600, what="System V messages.")
part("posix_queue", "mq_open", b"attack", 0o102, 0o600, None, what="POSIX messages.")
part("watch_files", "fanotify_init", 0, 0, what="Watch a whole file system.")
part("watch_unprivileged", "fanotify_init", 0x200, 0, what="The unprivileged half of it.")
part("priority_idle", "ioprio_set", 1, 0, 3 << 13, what="Priorities of I/O.")
part("real_time", "sched_setscheduler", 0, 1, struct.pack("i", 1), what="Before everybody else.")
part("deadline", "sched_setattr", 0, struct.pack("IIQiIQQQ", 48, 6, 0, 0, 0, 10**6, 10**7, 10**7), 0, what="Or by a deadline.")
part("filter_by_seccomp", "seccomp", 1, 0, b"", what="A filter of one's own, with a listener.", past=("EFAULT", "EINVAL"))
part("filter_sizes", "seccomp", 3, 0, BUFFER, what="What it would need.")


@attack()
def no_filter():
    """Whether there is a filter at all."""
    if status("Seccomp") != ["0"]:
        raise Denied(f"seccomp mode {status('Seccomp')[0]}")
    return "none"


@attack()
def filter_away():
    """Take the filter back."""
    prctl(22, 0)
    return "taken"


@attack()
def filter_over():
    """A filter that allows everything, on top: the strictest must count."""
    prctl(38, 1)
    code = struct.pack("HBBI", 6, 0, 0, 0x7FFF0000)
    buffer = ctypes.create_string_buffer(code, 8)
    program = ctypes.create_string_buffer(struct.pack("H6xQ", 1, ctypes.addressof(buffer)))
    prctl(22, 2, ctypes.addressof(program))
    socket.socket(socket.AF_INET).close()
    return "and sockets open again"


@attack()
def filter_by_thread():
    """A thread made before or after a filter might have none."""
    import threading

    found = []

    def try_it():
        try:
            socket.socket(socket.AF_INET).close()
            found.append("open")
        except OSError as e:
            found.append(e)

    thread = threading.Thread(target=try_it)
    thread.start()
    thread.join()
    if found[0] != "open":
        raise found[0]
    return "a thread has no filter"


@attack()
def filter_by_program():
    """A program run anew might have none."""
    done = subprocess.run(["bash", "-c", "exec 3<>/dev/udp/127.0.0.1/9"], capture_output=True)
    if done.returncode:
        raise Denied(done.stderr.decode().strip().rpartition(": ")[2])
    return "a program has no filter"


def machine_code(code):
    """Run machine code; the result in eax."""
    memory = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    memory.write(code)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    result = ctypes.CFUNCTYPE(ctypes.c_int)(address)()
    if result < 0:
        raise OSError(-result, os.strerror(-result))
    return result


@attack()
def system_call_of_32_bit():
    """int 0x80: other numbers for the same calls, which a filter may not know. getpid."""
    return machine_code(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")


@attack()
def socket_of_32_bit():
    """The same for socketcall(SOCKET), which hides its arguments in memory."""
    # mov eax, 102; mov ebx, 1; xor ecx, ecx; int 0x80; ret, with rbx kept.
    try:
        return machine_code(b"\x53\xb8\x66\x00\x00\x00\xbb\x01\x00\x00\x00\x31\xc9\xcd\x80\x5b\xc3")
    except OSError as e:
        if e.errno == 14:  # it went for the arguments
            return "reached: EFAULT"
        raise


@attack()
def system_call_of_x32():
    """The x32 numbers: getpid."""
    return numbered(0x40000000 | 39)


@attack()
def socket_of_x32():
    """socket by its x32 number."""
    return numbered(0x40000000 | 41, 2, 1, 0)


@attack()
def system_call_with_high_bits():
    """Rubbish above the 32 bits of a number: the kernel cuts it off, a filter may not."""
    return numbered((1 << 32) | 272, 0x10000000)


@attack()
def family_with_high_bits():
    """The same in the family of a socket: the kernel looks at 32 bits only."""
    return numbered(41, (1 << 32) | 2, 1, 0)


@attack()
def unix_with_high_bits():
    """And rubbish that makes another family look like unix."""
    return numbered(41, (1 << 32) | 16, 3, 0)


@attack()
def unknown_call():
    """A call that no kernel has yet: default deny."""
    return numbered(999)


# Terminals.


def terminal(number, data=b"x"):
    """An ioctl of terminals on what is none: ENOTTY means that it got there."""
    r, _ = os.pipe()
    ctypes.set_errno(0)
    if libc.ioctl(r, ctypes.c_ulong(number), data) == -1:
        code = ctypes.get_errno()
        if code in (25, 5):
            return "reached"
        raise OSError(code, os.strerror(code))
    return "done"


@attack()
def type_for_others():
    """TIOCSTI types into a terminal."""
    return terminal(0x5412)


@attack()
def type_for_others_with_high_bits():
    """The same with rubbish above the 32 bits that the kernel looks at."""
    return terminal((1 << 32) | 0x5412)


@attack()
def paste_for_others():
    """TIOCLINUX pastes on a console."""
    return terminal(0x541C, b"\x03")


@attack()
def redirect_console():
    """TIOCCONS takes the console's output."""
    return terminal(0x541D)


@attack()
def line_discipline():
    """TIOCSETD: a driver that turns a terminal into something else."""
    return terminal(0x5423, struct.pack("i", 0))


# Memory.


@attack()
def huge_pages():
    """Pages of 2 MiB, which the host has few of: none are reserved, and none come of it."""
    libc.mmap.restype = ctypes.c_void_p
    address = libc.mmap(None, ctypes.c_size_t(2 << 20), 3, 0x40022, -1, ctypes.c_long(0))
    if address in (None, ctypes.c_void_p(-1).value):
        raise OSError(ctypes.get_errno() or 12, "mmap")
    return "mapped"


@attack()
def merge_memory():
    """Merging with equal pages of others: what they hold shows in how long a write takes."""
    memory = mmap.mmap(-1, 1 << 20)
    memory.madvise(12)  # MADV_MERGEABLE
    return "merged, if the host merges"


@attack()
def merge_all_memory():
    """The same for a whole process."""
    return prctl(67, 1)


@attack()
def null_page():
    """Memory at address 0, where the kernel's errors point."""
    libc.mmap.restype = ctypes.c_void_p
    ctypes.set_errno(0)
    address = libc.mmap(ctypes.c_void_p(0), ctypes.c_size_t(4096), 3, 0x32, -1, ctypes.c_long(0))
    if address == ctypes.c_void_p(-1).value:
        raise OSError(ctypes.get_errno(), "mmap")
    return "mapped"


@attack()
def own_executable_link():
    """PR_SET_MM: let /proc/self/exe be another program."""
    return prctl(35, 13, -1 & (2**64 - 1))


@attack()
def core_sharing():
    """Share a processor core's threads with another process."""
    return prctl(62, 2, os.getppid(), 0)


@attack()
def machine_checks():
    """How the kernel treats broken memory."""
    return prctl(33, 1, 1, 2) or "changed"


# Limits.


@attack()
def raise_hard_limit():
    """More open files than the hard limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard + 1, hard + 1))
    except ValueError as e:
        raise Denied(str(e)) from None
    return hard + 1


@attack()
def core_files():
    """Core files, which the host's handler would get."""
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (1 << 20, 1 << 20))
    except ValueError as e:
        raise Denied(str(e)) from None
    return "allowed"


@attack()
def be_nicer_to_oneself():
    """A priority above the others'."""
    os.setpriority(os.PRIO_PROCESS, 0, -20)
    return os.getpriority(os.PRIO_PROCESS, 0)


@attack()
def memory_locked():
    """Lock memory over the limit."""
    memory = mmap.mmap(-1, 1 << 20)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    ctypes.set_errno(0)
    if libc.mlock(ctypes.c_void_p(address), ctypes.c_size_t(1 << 20)):
        raise OSError(ctypes.get_errno(), "mlock")
    return "locked"


@attack()
def wake_the_machine():
    """A timer that wakes a sleeping host."""
    ctypes.set_errno(0)
    fd = libc.timerfd_create(9, 0)  # CLOCK_BOOTTIME_ALARM
    if fd < 0:
        raise OSError(ctypes.get_errno(), "timerfd_create")
    return "made"


@attack()
def lease():
    """A lease on a file holds up whoever else opens it."""
    fd = os.open("/etc/hosts", os.O_RDONLY)
    fcntl.fcntl(fd, 1024, fcntl.F_RDLCK)
    return "taken"


@attack()
def signal_any_group():
    """Signals by queue to a process outside."""
    return reach("rt_sigqueueinfo", 1 << 21, 0, struct.pack("3i", 0, 0, -1).ljust(128, b"\0"))


# What must go on working.


def threads_work():
    """Threads are made by clone, which the filter looks at."""
    import threading

    done = []
    threads = [threading.Thread(target=done.append, args=(n,)) for n in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return sorted(done)


def programs_work():
    """Programs, pipes and signals."""
    import sys

    p = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(10)"])
    p.send_signal(signal.SIGTERM)
    return p.wait(), subprocess.run([sys.executable, "-c", "print(6 * 7)"], capture_output=True, text=True).stdout.strip()
