"""Attacks on what the host knows and a cell must not: looks for canaries wherever it can.

The canaries come in two halves, for the search to be no find itself.
"""

import base64
import os
import re
import stat
import urllib.parse

from harness import BRIDGE, CONTEXT, Denied, attack, first_open, status


def forms(value):
    """A value as it may be written down."""
    data = value.encode()
    yield data
    yield data[::-1]
    yield data.hex().encode()
    yield data.hex().upper().encode()
    yield urllib.parse.quote(value, safe="").encode()
    for offset in range(3):  # base64 of it anywhere in a longer text
        coded = base64.b64encode(b"\0" * offset + data)
        yield coded[4 if offset else 0 : -4]
    yield "".join(f"\\u{ord(c):04x}" for c in value).encode()


def canaries():
    return [form for halves in CONTEXT["canaries"] for form in forms(halves[0] + halves[1])]


def found_in(data):
    return [form for form in canaries() if form in data]


def look(paths):
    """Raises Denied if there are no canaries in these files; how many could be read."""
    count = 0
    for path in paths:
        try:
            if not stat.S_ISREG(os.stat(path).st_mode):
                continue
            with open(path, "rb") as f:
                data = f.read(32 << 20)
        except OSError:
            continue
        count += 1
        if found_in(data):
            return path
    raise Denied(f"not in {count} files")


@attack()
def environment():
    """The environment."""
    if any(found_in(value) for value in os.environb.values()):
        return "a canary"
    raise Denied(f"not in {sorted(os.environ)}")


@attack()
def environments_of_others():
    """The environments of all processes."""
    return look(f"/proc/{pid}/environ" for pid in os.listdir("/proc") if pid.isdigit())


@attack()
def proxy_settings():
    """Proxies, with passwords in them, which engines pass on unasked."""
    found = [name for name in os.environ if "proxy" in name.lower()]
    if not found:
        raise Denied("none")
    return found


@attack()
def files():
    """Files outside the system's own."""

    def walk():
        for root, dirs, names in os.walk("/"):
            if root in ("/proc", "/sys", "/usr"):
                dirs.clear()
                continue
            yield from (os.path.join(root, name) for name in names)

    return look(walk())


@attack(control=BRIDGE, seconds=15)
def files_of_the_system():
    """The system's own."""

    def walk():
        for root, _, names in os.walk("/usr"):
            yield from (os.path.join(root, name) for name in names if not name.endswith((".so", ".mo")))

    return look(walk())


@attack(control=BRIDGE)
def own_process():
    """What /proc tells of this process."""
    return look("/proc/self/" + name for name in os.listdir("/proc/self") if name not in ("mem", "pagemap"))


@attack(control=BRIDGE)
def rest_of_proc():
    """And of the machine."""
    skipped = ("kcore", "kmsg", "sysrq-trigger", "kpagecount", "kpageflags", "kpagecgroup")
    return look("/proc/" + name for name in os.listdir("/proc") if not name.isdigit() and name not in skipped)


@attack(control=BRIDGE)
def own_memory():
    """The memory of the REPL, where the kernel may have left something. No canary is
    in one piece here: the last letter stands in brackets."""
    patterns = []
    for first, second in CONTEXT["canaries"]:
        patterns.append(re.compile(re.escape(first.encode()) + re.escape(second[:-1].encode()) + b"[" + second[-1:].encode() + b"]"))
    with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as memory:
        for line in maps:
            match = re.match(r"([0-9a-f]+)-([0-9a-f]+) rw", line)
            if not match:
                continue
            start, end = int(match[1], 16), int(match[2], 16)
            try:
                memory.seek(start)
                data = memory.read(min(end - start, 64 << 20))
            except OSError:
                continue
            if any(pattern.search(data) for pattern in patterns):
                return line
    raise Denied("not there")


@attack()
def name_of_the_host():
    """The host's name."""
    where = {os.uname().nodename, open("/proc/sys/kernel/hostname").read().strip(), open("/etc/hostname").read().strip()}
    if CONTEXT["hostname"] in where:
        return CONTEXT["hostname"]
    raise Denied(str(where))


@attack()
def identity_of_the_machine():
    """Ids that follow a machine."""

    def read(path):
        text = open(path).read().strip()
        if not text:
            raise Denied("empty")
        return text

    paths = ("/etc/machine-id", "/var/lib/dbus/machine-id", "/sys/class/dmi/id/product_uuid", "/sys/class/net/eth0/address")
    return first_open(lambda p=p: read(p) for p in paths)


@attack()
def users():
    """The host's users."""
    ids = {line.split(":")[0]: int(line.split(":")[2]) for line in open("/etc/passwd")}
    names = [name for name, uid in ids.items() if 1000 <= uid < 60000 and uid != os.getuid()] + os.listdir("/home")
    if not names:
        raise Denied("none")
    return names


@attack()
def passwords():
    """The password file."""
    return len(open("/etc/shadow").read())


@attack()
def homes():
    """Homes, with keys and configuration in them."""
    return first_open(lambda p=p: os.listdir(p) for p in CONTEXT["homes"] + ["/root"])


@attack(control=BRIDGE)
def configuration():
    """The definitions of servers, by the path they have on the host."""
    return first_open(lambda p=p: os.listdir(p) for p in CONTEXT["paths"])


@attack(control=BRIDGE)
def path_of_the_program():
    """Paths of the host: the binary, its directory, its configuration."""
    for name in ("cmdline", "mountinfo", "environ", "maps"):
        text = open(f"/proc/self/{name}").read()
        for path in CONTEXT["paths"]:
            if path in text:
                return f"{path} in /proc/self/{name}"
    raise Denied("none")


@attack()
def mounted_secrets():
    """Secrets that engines mount."""
    return first_open(lambda p=p: os.listdir(p) for p in ("/run/secrets", "/var/run/secrets/kubernetes.io", "/root/.ssh", "/root/.docker"))


@attack()
def resolver():
    """Where the host asks for names, which tells in which network it is."""
    text = open("/etc/resolv.conf").read()
    if "nameserver" not in text:
        raise Denied("no servers")
    return text[:60]


@attack()
def started_by():
    """Who the parent is: nobody outside."""
    if os.path.exists(f"/proc/{CONTEXT['bridge_pid']}/cmdline"):
        cmdline = open(f"/proc/{CONTEXT['bridge_pid']}/cmdline", "rb").read()
        if b"mcp-bridge" in cmdline and b"run" in cmdline.split(b"\0"):
            return cmdline
    raise Denied("not seen")


@attack()
def groups():
    """Groups left from the host."""
    if set(os.getgroups()) - {os.getgid()} or 0 in (os.getgid(), os.getegid()):
        return os.getgroups()
    raise Denied(str(os.getgroups()))
