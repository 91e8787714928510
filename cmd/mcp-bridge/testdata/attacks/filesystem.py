"""Attacks on files: nothing but the three tmpfs can be written, and nothing in them runs."""

import ctypes
import fcntl
import mmap
import os
import shutil
import socket
import stat
import struct
import subprocess
import sys
import tempfile

from harness import (
    ATTACKS, BRIDGE, CONTEXT, Denied, attack, creates, first_open, libc, numbered, prctl, reach, readable, status, syscall, writable,
)  # fmt: skip

# Writing where nothing is to be written.


@attack()
def create_in_root():
    """A file in /."""
    return creates("/attack")


@attack()
def create_in_usr():
    """A program on the PATH."""
    return creates("/usr/bin/attack")


@attack()
def create_in_etc():
    """What the dynamic linker loads into every program."""
    return creates("/etc/ld.so.preload")


@attack()
def create_startup_hook():
    """What every Python runs at its start."""
    return creates("/usr/lib/python3/dist-packages/sitecustomize.py" if os.path.isdir("/usr/lib/python3") else os.__file__ + ".pth")


@attack()
def create_in_var():
    """A directory in /var/tmp."""
    os.mkdir("/var/tmp/attack")
    os.rmdir("/var/tmp/attack")
    return "/var/tmp"


@attack()
def create_in_run():
    """A socket in /run, for others to meet."""
    return creates("/run/attack")


@attack()
def create_in_dev():
    """/dev is a tmpfs of the engine's, not of ours."""
    return creates("/dev/attack")


@attack()
def create_in_homes():
    """Somebody's home."""
    return first_open((lambda: creates("/root/attack"), lambda: creates("/home/attack")))


@attack()
def create_in_cgroup():
    """A control group of one's own, below ours."""

    def make(at):
        os.mkdir(at + "/attack")
        os.rmdir(at + "/attack")
        return at

    return first_open(lambda at=at: make(at) for at in cgroups())


@attack()
def append_to_passwd():
    """Add a user."""
    return writable("/etc/passwd")


@attack()
def replace_python():
    """The interpreter itself: ETXTBSY says that nothing but its running stands in the way."""
    return writable(os.path.realpath("/usr/bin/python3"), past=("ETXTBSY",))


@attack()
def overwrite_own_executable():
    """/proc/self/exe, by which a runtime's binary was once overwritten."""
    return writable("/proc/self/exe", past=("ETXTBSY",))


@attack()
def reopen_for_writing():
    """A file opened for reading, opened again through /proc/self/fd."""
    fd = os.open("/etc/hostname", os.O_RDONLY)
    return writable(f"/proc/self/fd/{fd}")


@attack()
def chmod_root():
    """The permissions of /."""
    os.chmod("/", 0o755)
    return "changed"


@attack()
def touch_usr():
    """The times of a directory."""
    os.utime("/usr")
    return "changed"


@attack()
def link_in_etc():
    """A hard link beside a file of root's."""
    os.link("/etc/passwd", "/etc/attack")
    os.unlink("/etc/attack")
    return "linked"


@attack()
def symlink_in_root():
    """A symbolic link in /."""
    os.symlink("/tmp", "/attack-link")
    os.unlink("/attack-link")
    return "linked"


@attack()
def rename_etc():
    """Exchange a file of the system's for another."""
    os.rename("/etc/hosts", "/etc/attack")
    os.rename("/etc/attack", "/etc/hosts")
    return "renamed"


@attack()
def unnamed_file_in_root():
    """O_TMPFILE makes a file without a name."""
    os.close(os.open("/usr", os.O_TMPFILE | os.O_WRONLY, 0o600))
    return "made"


@attack()
def shared_mapping():
    """Write to a page of a read-only file through a shared mapping."""
    with open("/etc/hosts", "r+b") as f:
        mmap.mmap(f.fileno(), 0)
    return "mapped for writing"


@attack()
def unlink_by_descriptor():
    """Remove relative to a directory's descriptor."""
    fd = os.open("/etc", os.O_RDONLY | os.O_DIRECTORY)
    os.mkdir("attack", dir_fd=fd)
    os.rmdir("attack", dir_fd=fd)
    return "made and removed"


# The kernel's settings.


def setting(path, what):
    @attack(name="set_" + path.strip("/").replace("/", "_").replace(".", "_"))
    def opens():
        return writable(path)

    opens.__doc__ = what


setting("/proc/sys/kernel/core_pattern", "A program that the host runs as root when something crashes.")
setting("/proc/sys/kernel/modprobe", "A program that the host runs as root when a module is missing.")
setting("/proc/sys/vm/drop_caches", "A setting of the machine.")
setting("/proc/sys/fs/protected_symlinks", "A guard of the machine.")
setting("/proc/sys/net/ipv4/ip_forward", "A setting of the network namespace.")
setting("/proc/sys/kernel/hostname", "A setting of the UTS namespace.")
setting("/proc/sys/kernel/shmmax", "A setting of the IPC namespace.")
setting("/proc/sys/user/max_user_namespaces", "A setting of the user namespace.")
setting("/proc/sys/kernel/ns_last_pid", "The next pid of the pid namespace.")
setting("/proc/sys/kernel/randomize_va_space", "Where programs are put in memory.")
setting("/proc/sysrq-trigger", "Reboot, crash, kill everything.")
setting("/proc/irq/default_smp_affinity", "Where interrupts go.")
setting("/proc/mtrr", "What of memory is cached.")
setting("/sys/kernel/uevent_helper", "A program that the host runs as root when a device comes.")
setting("/sys/power/state", "Sleep.")
setting("/sys/class/net/lo/mtu", "A setting of an interface.")
setting("/sys/devices/system/cpu/cpu0/uevent", "A false event.")
setting("/sys/module/kernel/parameters/panic", "A parameter of a module.")
setting("/sys/kernel/mm/ksm/run", "Merging of equal pages of all processes.")
setting("/sys/fs/cgroup/release_agent", "A program that the host runs as root when a control group empties.")


@attack()
def release_agent():
    """The same in whichever hierarchy has it."""
    return first_open(lambda at=at: writable(at + "/release_agent") for at in cgroups())


@attack()
def raise_own_limits():
    """The limits of our own control group."""
    names = ("memory.limit_in_bytes", "memory.max", "pids.max", "cpu.cfs_quota_us", "cpu.max")
    return first_open(lambda p=p: writable(p) for at in cgroups() for p in (f"{at}/{name}" for name in names))


@attack()
def leave_control_group():
    """Move to another one."""
    return first_open(lambda at=at: writable(at + "/cgroup.procs") for at in cgroups())


@attack()
def freeze_control_group():
    """Stop all that is in one."""
    names = ("freezer.state", "cgroup.freeze", "cgroup.kill")
    return first_open(lambda p=p: writable(p) for at in cgroups() for p in (f"{at}/{name}" for name in names))


@attack()
def allow_devices():
    """The list of devices that the group may use."""
    return first_open(lambda at=at: writable(at + "/devices.allow") for at in cgroups())


def cgroups():
    at = "/sys/fs/cgroup"
    return [at, *(os.path.join(at, name) for name in sorted(os.listdir(at)) if os.path.isdir(os.path.join(at, name)))]


@attack()
def map_other_users():
    """One's own user namespace's map of users."""
    with open("/proc/self/uid_map", "w") as f:
        f.write("0 1000 1\n")
    return "mapped"


@attack()
def safe_from_the_oom_killer():
    """Let others be killed when memory runs out."""
    try:
        with open("/proc/self/oom_score_adj", "w") as f:
            f.write("-1000")
    except PermissionError as e:
        raise Denied(f"{e.strerror}") from None
    return "oom_score_adj is -1000"


# What the kernel tells.


def told(path, what):
    @attack(name="read_" + path.strip("/").replace("/", "_").replace(".", "_"))
    def reads():
        return f"{len(readable(path))} bytes"

    reads.__doc__ = what


told("/proc/kcore", "The machine's memory.")
told("/proc/keys", "Keys of the user.")
told("/proc/key-users", "Who has keys.")
told("/proc/config.gz", "How the kernel was built.")
told("/proc/interrupts", "When others type or send: a side channel.")
told("/proc/diskstats", "What the host's disks do.")
told("/proc/swaps", "Where the host swaps to.")
told("/proc/timer_list", "Timers of all processes, with their names.")
told("/proc/slabinfo", "What the kernel holds, for exploits to be tuned by.")
told("/proc/vmallocinfo", "Addresses in the kernel.")
told("/proc/pagetypeinfo", "How its memory lies.")
told("/proc/kpageflags", "Which pages are what.")
told("/proc/pressure/cpu", "How busy the host is, to the microsecond.")
told("/sys/kernel/notes", "Which kernel exactly.")


@attack()
def kernel_addresses():
    """Symbols with their addresses."""
    if any(line.split()[0].strip("0") for line in open("/proc/kallsyms")):
        return "addresses"
    raise Denied("no addresses")


@attack()
def physical_addresses():
    """Where physical memory lies, and which physical page one's own is on (rowhammer)."""
    if any(not line.lstrip().startswith("00000000-00000000") for line in open("/proc/iomem")):
        return "addresses"
    raise Denied("no addresses")


@attack()
def page_frames():
    """Physical frames of one's own pages."""
    with open("/proc/self/pagemap", "rb") as f:
        page = id(f) // mmap.PAGESIZE
        f.seek(page * 8)
        frame = struct.unpack("Q", f.read(8))[0] & ((1 << 55) - 1)
    if not frame:
        raise Denied("frame numbers are zero")
    return f"frame {frame}"


@attack()
def kernel_log():
    """Open the kernel's log as a file."""
    return first_open(lambda p=p: os.open(p, os.O_RDONLY | os.O_NONBLOCK) and p for p in ("/proc/kmsg", "/dev/kmsg"))


def directory(path, what):
    @attack(name="list_" + path.strip("/").replace("/", "_"))
    def lists():
        names = os.listdir(path)
        if not names:
            raise Denied("it is empty")
        return f"{len(names)} entries"

    lists.__doc__ = what


directory("/sys/firmware", "The firmware's tables.")
directory("/sys/kernel/debug", "debugfs.")
directory("/sys/kernel/mm", "How memory is managed.")
directory("/sys/block", "The host's disks.")
directory("/sys/dev/block", "And again.")
directory("/sys/fs/cgroup", "Control groups, with what they count.")
directory("/proc/acpi", "Power.")


# Devices.


def device(names, what, flags=os.O_RDONLY):
    @attack(name="device_" + names[0].strip("/").replace("/", "_"))
    def opens():
        return first_open(lambda n=n: os.close(os.open("/dev/" + n, flags | os.O_NONBLOCK | os.O_NOCTTY)) or n for n in names)

    opens.__doc__ = what


device(["mem", "kmem", "port"], "Memory and ports.")
device(["vda", "sda", "nvme0n1", "xvda", "dm-0"], "The host's disk.")
device(["loop-control", "loop0"], "Loop devices, to mount images by.")
device(["fuse"], "A file system in user space.", os.O_RDWR)
device(["kvm"], "Virtual machines.")
device(["snapshot", "cpu/0/msr", "cpu_dma_latency", "hwrng", "btrfs-control"], "Other devices of the machine.")
device(["tty1", "vcs", "console", "ttyS0"], "The console, with what is typed there.")
device(["uinput", "input/event0", "vga_arbiter", "fb0", "dri/card0"], "Keyboards and screens.")


def node(mode, major, minor):
    """Make a device's node in each place that can be written, and open it."""

    def make(at):
        path = os.path.join(at, f"node-{mode}-{minor}")
        os.mknod(path, mode | 0o600, os.makedev(major, minor))
        try:
            os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
        finally:
            os.unlink(path)
        return path

    return first_open(lambda at=at: make(at) for at in ("/tmp", "/dev/shm", "/dev"))


@attack()
def make_null():
    """A harmless character device."""
    return node(stat.S_IFCHR, 1, 3)


@attack()
def make_memory():
    """/dev/mem by another name."""
    return node(stat.S_IFCHR, 1, 1)


@attack()
def make_disk():
    """The disk that / is on by another name."""
    return node(stat.S_IFBLK, 254, 0)


@attack()
def make_whiteout():
    """Character device 0:0, which the kernel itself lets anybody make."""
    os.mknod("/tmp/whiteout", stat.S_IFCHR | 0o600, os.makedev(0, 0))
    os.unlink("/tmp/whiteout")
    return "made"


# Mounts.


def apart():
    """A mount namespace of its own where one can have it: a control must not spoil itself."""
    if libc.unshare(0x20000) == 0:
        libc.mount(b"none", b"/", None, 0x44000, None)  # MS_REC | MS_PRIVATE
    os.makedirs("/tmp/at", exist_ok=True)


def mounts(kind, source=b"none", at=b"/tmp/at", flags=0, data=None):
    apart()
    ctypes.set_errno(0)
    if libc.mount(source, at, kind, flags, data):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return f"mounted {kind or flags}"


def file_system(kind, what, data=None):
    @attack(name="mount_" + kind.decode())
    def mount_it():
        return mounts(kind, data=data)

    mount_it.__doc__ = what


file_system(b"tmpfs", "A tmpfs without a bound, and without noexec.")
file_system(b"proc", "/proc without its masks.")
file_system(b"sysfs", "/sys without its masks.")
file_system(b"cgroup2", "Control groups, writable.")
file_system(b"devtmpfs", "All devices of the host.")
file_system(b"devpts", "Terminals.")
file_system(b"mqueue", "Message queues.")
file_system(b"debugfs", "The kernel's inside.")
file_system(b"overlay", "A layer that can be written over /.", b"lowerdir=/etc:/usr")


@attack()
def mount_disk():
    """The host's disk."""
    return first_open(
        lambda d=d: mounts(b"ext4", source=d, flags=1) for d in (b"/dev/vda", b"/dev/sda", b"/dev/root", b"/dev/nonexistent")
    )


@attack()
def remount_root():
    """Make / writable."""
    return mounts(None, at=b"/", flags=32 | 4096)  # MS_REMOUNT | MS_BIND


@attack()
def remount_sys():
    """Make /proc/sys writable."""
    return mounts(None, at=b"/proc", flags=32 | 4096)


@attack()
def remount_exec():
    """Take noexec from /tmp."""
    return mounts(None, at=b"/dev/shm", flags=32 | 4096)


@attack()
def bind():
    """Show a directory elsewhere."""
    return mounts(None, source=b"/etc", flags=4096)


@attack()
def move():
    """Move a mount away, and with it what it hides."""
    apart()
    return reach("mount", b"/dev/shm", b"/tmp/at", None, 8192, None)


@attack()
def propagate():
    """Let mounts be seen outside."""
    return mounts(None, at=b"/", flags=1 << 20)  # MS_SHARED


@attack()
def unmask():
    """Unmount what hides something."""
    apart()
    return reach("umount2", b"/dev/shm", 2)


@attack()
def new_mount_api():
    """fsopen, the first step of mounting without mount()."""
    return reach("fsopen", b"tmpfs", 0)


@attack()
def configure_mount():
    """fsconfig on something else."""
    return reach("fsconfig", 0, 0, None, None, 0, past=("EINVAL", "EBADF", "EOPNOTSUPP"))


@attack()
def make_mount():
    """fsmount on something else."""
    return reach("fsmount", 0, 0, 0, past=("EINVAL", "EBADF"))


@attack()
def pick_mount():
    """fspick, to change a mount that is there."""
    return reach("fspick", -100, b"/", 0)


@attack()
def copy_mount_tree():
    """open_tree copies mounts."""
    return reach("open_tree", -100, b"/", 1)


@attack()
def open_tree_with_attributes():
    """The newest of the family."""
    return reach("open_tree_attr", -100, b"/", 1, None, 0)


@attack()
def move_mount():
    """move_mount onto nothing."""
    return reach("move_mount", -1, b"", -1, b"", 0x44, past=("EBADF",))


@attack()
def change_mount():
    """mount_setattr, which changes whole trees."""
    apart()
    return reach("mount_setattr", -100, b"/", 0, struct.pack("4Q", 0, 0, 0, 0), 32)


@attack()
def list_mounts():
    """Mounts, with their paths on the host."""
    return reach("listmount", struct.pack("IIQQQ", 24, 0, 0xFFFFFFFFFFFFFFFF, 0, 0)[:24], ctypes.create_string_buffer(800), 100, 0)


@attack()
def ask_mount():
    """statmount."""
    return reach("statmount", struct.pack("IIQQ", 24, 0, 1, 2), ctypes.create_string_buffer(800), 800, 0, past=("ENOENT", "EPERM"))


@attack()
def pivot_root():
    """Another root."""
    return reach("pivot_root", b"/tmp", b"/tmp", past=("EBUSY", "EINVAL"))


@attack()
def chroot():
    """A root of one's own, the way out of many a jail."""
    return reach("chroot", b"/tmp")


@attack()
def swap_on():
    """Swap to a file."""
    return reach("swapon", b"/nonexistent", 0, past=("ENOENT",))


@attack()
def swap_off():
    """Stop the host's swap."""
    return reach("swapoff", b"/nonexistent", past=("ENOENT",))


@attack()
def quota():
    """Quotas of the host's disks."""
    return reach("quotactl", 0x800002 << 8, b"/nonexistent", 0, None, past=("ENOENT", "ENODEV", "EINVAL", "ENOTBLK"))


@attack()
def quota_by_descriptor():
    """The same on an open file."""
    return reach("quotactl_fd", -1, 0x800002 << 8, 0, None, past=("EBADF",))


@attack()
def account():
    """Process accounting to a file of one's choice."""
    return reach("acct", b"/nonexistent", past=("ENOENT",))


@attack()
def thaw():
    """Ask a file system to thaw that is not frozen: who may that, may freeze it."""
    fd = os.open("/", os.O_RDONLY)
    try:
        return fcntl.ioctl(fd, 0xC0045878, 0)  # FITHAW
    except OSError as e:
        if e.errno == 22:
            return "reached: EINVAL"
        raise


# Ways out by descriptors, links and handles.


@attack()
def file_by_handle():
    """open_by_handle_at, which walked out of containers once ("shocker")."""
    handle = struct.pack("Ii8s", 8, 1, struct.pack("Q", 2))
    fd = os.open("/", os.O_RDONLY)
    return reach("open_by_handle_at", fd, handle, 0, past=("ESTALE", "EINVAL", "EOPNOTSUPP"))


@attack()
def name_to_handle():
    """And how one gets a handle."""
    handle = ctypes.create_string_buffer(struct.pack("Ii", 128, 0), 136)
    return reach("name_to_handle_at", -100, b"/etc/hosts", handle, ctypes.byref(ctypes.c_int()), 0, past=("EOPNOTSUPP", "EOVERFLOW"))


@attack(control=BRIDGE)
def leaked_descriptors():
    """A directory that the runtime forgot to close leads to the host's files."""
    for name in os.listdir("/proc/self/fd"):
        try:
            if stat.S_ISDIR(os.fstat(int(name)).st_mode):
                to = os.readlink(f"/proc/self/fd/{name}")
                if not to.startswith("/proc"):
                    return to
        except OSError:
            pass
    raise Denied("no descriptor is a directory")


@attack(control=BRIDGE)
def above_the_root():
    """.. from wherever one is, in the hope that one is not below the root."""
    fd = os.open(".", os.O_RDONLY)
    for _ in range(64):
        fd = os.open("..", os.O_RDONLY, dir_fd=fd)
    if os.path.samestat(os.fstat(fd), os.stat("/")):
        raise Denied("it ends at /")
    return os.listdir(fd)


@attack(control=BRIDGE)
def above_a_bind_mount():
    """.. from inside what is mounted from the host."""
    fd = os.open("/run/mcp-bridge/files", os.O_RDONLY)
    above = os.open("..", os.O_RDONLY, dir_fd=fd)
    if set(os.listdir(above)) <= {"files", "socket"}:
        raise Denied("it ends at the mount")
    return os.listdir(above)


@attack()
def roots_of_others():
    """/proc/N/root and cwd of all processes but one's own and its children."""
    mine = os.stat("/")
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if pid in (str(os.getpid()), str(os.getppid())):
            continue
        if os.listdir(f"/proc/{pid}/root/"):
            return f"/proc/{pid}/root"
    raise Denied(f"there are none ({mine.st_dev})")


@attack()
def read_shadow():
    """Through a symbolic link in the workspace."""
    link = tempfile.mktemp()
    os.symlink("/etc/shadow", link)
    return len(readable(link))


@attack()
def hard_link_out():
    """A file of root's linked into /tmp, to survive there or be changed."""
    link = "/dev/shm/linked"
    os.link("/etc/hosts", "/etc/linked") if os.geteuid() == 0 else os.link("/etc/hosts", link)
    os.unlink("/etc/linked")
    return "linked"


@attack()
def link_to_a_program():
    """A magic link: linkat of an open descriptor."""
    fd = os.open(PROGRAM, os.O_RDONLY)
    os.link(f"/proc/self/fd/{fd}", "/usr/bin/attack-link", follow_symlinks=True)
    os.unlink("/usr/bin/attack-link")
    return "linked"


@attack()
def copy_range_into_root():
    """copy_file_range into a file opened for reading."""
    source = os.memfd_create("source")
    os.write(source, b"x")
    target = os.open("/etc/hosts", os.O_RDWR)
    return target and "opened"


@attack()
def dirty_pipe():
    """splice a page of a read-only file into a pipe: what Dirty Pipe began with."""
    r, w = os.pipe()
    fd = os.open("/etc/hosts", os.O_RDONLY)
    return reach("splice", fd, None, w, None, 1, 0)


@attack()
def tee_pipes():
    """tee shares the pages of pipes."""
    r, w = os.pipe()
    r2, w2 = os.pipe()
    os.write(w, b"x")
    return reach("tee", r, w2, 1, 0)


@attack()
def gift_pages():
    """vmsplice gives pages to a pipe."""
    r, w = os.pipe()
    return reach("vmsplice", w, None, 0, 0)


@attack()
def page_cache_of_others():
    """Which pages of a shared file are in memory tells what others run."""
    fd = os.open(PROGRAM, os.O_RDONLY)
    return reach("cachestat", fd, struct.pack("QQ", 0, 4096), ctypes.create_string_buffer(40), 0)


@attack()
def page_cache_by_mincore():
    """The same by the older call."""
    with open(PROGRAM, "rb") as f:
        mapped = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)
        libc.mmap.restype = ctypes.c_void_p
        address = libc.mmap(None, ctypes.c_size_t(4096), 1, 1, f.fileno(), ctypes.c_long(0))
        return reach("mincore", ctypes.c_void_p(address), 4096, ctypes.create_string_buffer(4)) and f"{len(mapped)} bytes"


# Attributes.


@attack()
def own_as_root():
    """Give a file of one's own to root."""
    path = tempfile.mkstemp()[1]
    os.chown(path, 1, 1)
    return "given away"


@attack()
def file_capability():
    """A capability on a file of one's own."""
    fd, path = tempfile.mkstemp()
    os.setxattr(path, "security.capability", struct.pack("<5I", 0x2000001, 0xFFFFFFFF, 0, 0, 0))
    return "set"


@attack()
def user_attribute():
    """An extended attribute, a place to hide things that no quota counts."""
    fd, path = tempfile.mkstemp(dir="/dev/shm")
    os.setxattr(path, "user.attack", b"x")
    return "set"


@attack()
def overlay_attribute():
    """trusted.overlay.*, by which layers are joined."""
    fd, path = tempfile.mkstemp()
    os.setxattr(path, "trusted.overlay.opaque", b"y")
    return "set"


@attack()
def attribute_by_the_new_call():
    """setxattrat: a newer name for an older thing is what filters forget."""
    fd, path = tempfile.mkstemp(dir="/dev/shm")
    args = struct.pack("QII", 0, 0, 0)
    return reach("setxattrat", -100, path.encode(), 0, b"user.a", args, 16)


@attack()
def immutable():
    """Make a file that nobody can remove."""
    fd = os.open("/dev/shm/immutable", os.O_CREAT | os.O_RDWR)
    try:
        return fcntl.ioctl(fd, 0x40086602, struct.pack("l", 0))  # FS_IOC_SETFLAGS, none
    finally:
        os.unlink("/dev/shm/immutable")


@attack()
def attributes_by_the_new_call():
    """The same by file_setattr."""
    return reach("file_setattr", -100, b"/dev/shm", None, 0, 0, past=("EINVAL", "EFAULT"))


# Running what was written.


# A small program where there is one; gVisor shows nothing of the host's but Python.
PROGRAM = next(p for p in ("/usr/bin/true", os.path.realpath(sys.executable)) if os.path.exists(p))


def program_in(at):
    path = os.path.join(at, f"program-{os.getpid()}")
    shutil.copy(PROGRAM, path)
    os.chmod(path, 0o755)
    try:
        done = subprocess.run([path, "-c", ""])
        return f"{path} ran: {done.returncode}"
    finally:
        os.unlink(path)


@attack()
def run_from_tmp():
    """A program of one's own in /tmp."""
    return program_in("/tmp")


@attack(control=BRIDGE)
def run_from_workspace():
    """In the workspace."""
    return program_in("/workspace")


@attack(control=BRIDGE)
def run_from_shm():
    """In /dev/shm: Podman itself mounts it noexec, so the control says nothing."""
    return program_in("/dev/shm")


@attack()
def run_from_mqueue_or_dev():
    """In whatever else is mounted."""
    return first_open(lambda at=at: program_in(at) for at in ("/dev/mqueue", "/run", "/var/tmp"))


@attack()
def run_by_the_linker():
    """The dynamic linker as the program, and the program as its file."""
    path = f"/tmp/linked-{os.getpid()}"
    shutil.copy(PROGRAM, path)
    linker = "/lib64/ld-linux-x86-64.so.2"
    done = subprocess.run([linker, path, "-c", ""], capture_output=True)
    os.unlink(path)
    if done.returncode:
        raise Denied(done.stderr.decode().strip()[-80:])
    return "it ran"


@attack()
def map_as_code():
    """Map a written file executable: a library of one's own."""
    fd, _ = tempfile.mkstemp(dir="/tmp")
    os.write(fd, b"\xc3" * 4096)
    mmap.mmap(fd, 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
    return "mapped"


@attack()
def load_a_library():
    """A C extension written to the workspace."""
    source = next(p for p in libraries() if p.endswith(".so") or ".so." in p)
    path = "/tmp/attack.so"
    shutil.copy(source, path)
    ctypes.CDLL(path)
    return "loaded"


def libraries():
    for line in open("/proc/self/maps"):
        path = line.split()[-1]
        if path.startswith("/") and ".so" in path and "ld-linux" not in path and "libc.so" not in path:
            yield path


@attack()
def setuid_copy():
    """A setuid copy of a program, run by another user, would be of its owner."""
    path = f"/tmp/setuid-{os.getpid()}"
    shutil.copy(PROGRAM, path)
    os.chmod(path, 0o4755)
    flags = os.statvfs("/tmp").f_flag
    os.unlink(path)
    if flags & os.ST_NOSUID or status("NoNewPrivs") == ["1"]:
        raise Denied("nosuid, or no new privileges")
    return "it would have been"


@attack()
def unnamed_program():
    """A program in a file without a name, on a tmpfs."""
    fd = os.open("/tmp", os.O_TMPFILE | os.O_RDWR, 0o700)
    with open(PROGRAM, "rb") as f:
        os.write(fd, f.read())
    again = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY)
    os.close(fd)
    done = subprocess.run([f"/proc/self/fd/{again}", "-c", ""], pass_fds=(again,))
    return f"it ran: {done.returncode}"


@attack()
def execveat():
    """Run an open file by the call that needs no path."""
    fd = os.open(PROGRAM, os.O_RDONLY)
    return reach("execveat", fd, b"", 1, None, 0x1000, past=("EFAULT", "EINVAL"))  # 1 is no address


@attack()
def program_in_memory():
    """A program in a memfd. This runs everywhere: noexec is no promise, and a cell may
    compute what it likes. It gains nothing by it: the filter and the namespaces stay."""
    fd = os.memfd_create("program", 0)
    with open(PROGRAM, "rb") as f:
        os.write(fd, f.read())
    again = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY)
    os.close(fd)
    done = subprocess.run([f"/proc/self/fd/{again}", "-c", ""], pass_fds=(again,))
    return f"it ran: {done.returncode}"


# What the engine has put in for the bridge.

FILES = "/run/mcp-bridge/files"
SOCKETS = "/run/mcp-bridge/socket"


def ours(name, what, function):
    function.__module__, function.__doc__ = __name__, what
    attack(control=BRIDGE, name=name)(function)


ours("kernel_append", "Change the program that is PID 1.", lambda: writable(kernel()))
ours("kernel_remove", "Remove it.", lambda: os.unlink(kernel()))
ours("kernel_chmod", "Its permissions.", lambda: os.chmod(kernel(), 0o777))
ours("kernel_rename", "Put another in its place.", lambda: os.rename(os.path.dirname(kernel()), "/tmp/moved"))
ours("kernel_create", "A module that shadows another.", lambda: creates(os.path.dirname(kernel()) + "/json.py"))
ours("kernel_cache", "Bytecode that is believed.", lambda: os.mkdir(os.path.dirname(kernel()) + "/__pycache__"))
ours("kernel_run", "Run it as a program of its own.", lambda: os.execv(kernel(), ["x"]))
ours("socket_connect", "A second way in to the host.", lambda: socket.socket(1).connect(SOCKETS + "/s"))
ours("socket_bind", "Listen where the host would connect.", lambda: socket.socket(1).bind(SOCKETS + "/s"))
ours("socket_replace", "A link in its place.", lambda: os.symlink("/tmp/s", SOCKETS + "/s"))
ours("socket_list", "What else lies there.", lambda: os.listdir(SOCKETS))
ours("socket_chmod", "Its directory's permissions.", lambda: os.chmod(SOCKETS, 0o777))
ours("hosts_file", "A file that the engine writes for the container.", lambda: writable("/etc/hosts"))
ours("container_environment", "And one it marks it by.", lambda: writable("/run/.containerenv"))


def kernel():
    """The file of the program that is PID 1."""
    import mcpbridge.wire

    if not os.path.exists(mcpbridge.wire.__file__):
        raise Denied("the program came over its stream and is in no file")
    return mcpbridge.wire.__file__


# What must go on working.


def fifo_works():
    """A FIFO in the workspace."""
    os.mkfifo("fifo")
    os.unlink("fifo")
    return "made"


def files_work():
    """Files, directories and links in the workspace."""
    os.makedirs("a/b")
    with open("a/b/c", "w") as f:
        f.write("x")
    os.symlink("b/c", "a/d")
    os.link("a/b/c", "a/e")
    text = open("a/d").read() + open("a/e").read()
    shutil.rmtree("a")
    return text
