"""Attacks on the network: there is none, of any family."""

import ctypes
import fcntl
import os
import socket
import struct
import subprocess
import urllib.request

from harness import BRIDGE, CONTEXT, Denied, attack, first_open, reach, writable

# The families a machine has without loading a module: loading some on the host is
# no part of a control.
BUILT_IN = {2, 10, 16, 17, 38, 40, 44}
KINDS = (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_RDM, socket.SOCK_SEQPACKET)
FAMILIES = (
    "unspec unix inet ax25 ipx appletalk netrom bridge atmpvc x25 inet6 rose decnet netbeui security key "
    "netlink packet ash econet atmsvc rds sna irda pppox wanpipe llc ib mpls can tipc bluetooth iucv rxrpc "
    "isdn phonet ieee802154 caif alg nfc vsock kcm qipcrtr smc xdp mctp"
).split()


def make(family, kind, protocol=0):
    socket.socket(family, kind, protocol).close()
    return f"a socket of family {family}, kind {kind}, protocol {protocol}"


def declare(number, name):
    @attack(control=number in BUILT_IN, name=f"family_{number:02d}_{name}")
    def any_kind():
        return first_open(
            (lambda kind=kind, protocol=protocol: make(number, kind, protocol)) for kind in KINDS for protocol in (0, 2)
        )


for number, name in enumerate(FAMILIES):
    if number != socket.AF_UNIX:
        declare(number, name)


@attack()
def raw_ip():
    """Write whole IP packets."""
    return make(socket.AF_INET, socket.SOCK_RAW, 255)


@attack()
def raw_icmp():
    """A raw socket for ICMP."""
    return make(socket.AF_INET, socket.SOCK_RAW, 1)


@attack()
def ping():
    """The socket that an ordinary user may send pings by."""
    return make(socket.AF_INET, socket.SOCK_DGRAM, 1)


@attack()
def packet_capture():
    """Listen to all that passes the loopback interface."""
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    s.bind(("lo", 0))
    return "captures packets"


@attack()
def mptcp():
    """Multipath TCP, a stack of its own."""
    return make(socket.AF_INET, socket.SOCK_STREAM, 262)


@attack()
def udp_lite():
    """UDP-Lite, which few filters know."""
    return make(socket.AF_INET, socket.SOCK_DGRAM, 136)


@attack(control=BRIDGE)
def sctp():
    """SCTP, which loads a module."""
    return make(socket.AF_INET, socket.SOCK_SEQPACKET, 132)


def netlink(protocol):
    s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol)
    s.bind((0, 0))
    return f"netlink protocol {protocol}"


@attack()
def netlink_route():
    """Ask the kernel for its interfaces over netlink."""
    s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
    s.settimeout(1)
    s.send(struct.pack("=IHHIIB15x", 32, 18, 0x301, 1, 0, 0))
    return f"{len(s.recv(65536))} bytes on interfaces"


@attack()
def netlink_netfilter():
    """Netfilter's door, through which nf_tables was broken into again and again."""
    return netlink(12)


@attack()
def netlink_uevent():
    """Events of devices."""
    return netlink(15)


@attack()
def netlink_audit():
    """The audit log."""
    return netlink(9)


@attack()
def netlink_generic():
    """Generic netlink: wireguard, taskstats, nl80211."""
    return netlink(16)


@attack()
def netlink_sock_diag():
    """Everybody's sockets."""
    return netlink(4)


@attack()
def netlink_crypto():
    """The kernel's ciphers."""
    return netlink(21)


@attack()
def inet_socketpair():
    """socketpair() of another family than unix must not be a way round socket()."""
    try:
        socket.socketpair(socket.AF_INET, socket.SOCK_STREAM)
    except OSError as e:
        if e.errno == 95:  # the family was looked up, and has no pairs
            return "reached: EOPNOTSUPP"
        raise


@attack()
def host_tcp():
    """The host's loopback over TCP, where the test listens."""
    return banner(socket.create_connection(("127.0.0.1", CONTEXT["tcp"]), 1))


@attack()
def host_tcp6():
    """The same over IPv6."""
    return banner(socket.create_connection(("::1", CONTEXT["tcp6"]), 1))


@attack()
def host_by_any_address():
    """0.0.0.0 is this host too."""
    return banner(socket.create_connection(("0.0.0.0", CONTEXT["tcp"]), 1))


@attack()
def host_non_blocking():
    """connect() without waiting: what counts is whether a packet leaves."""
    s = socket.socket()
    s.setblocking(False)
    code = s.connect_ex(("127.0.0.1", CONTEXT["tcp"]))
    if code not in (0, 115):
        raise OSError(code, os.strerror(code))
    s.setblocking(True)
    s.settimeout(1)
    return banner(s)


@attack()
def host_udp():
    """The host's loopback over UDP."""
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(1)
    s.sendto(b"hello", ("127.0.0.1", CONTEXT["udp"]))
    return s.recv(100)


@attack()
def host_abstract():
    """An abstract unix socket of the host: no file system stands between."""
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(1)
    s.connect("\0" + CONTEXT["abstract"])
    return banner(s)


@attack()
def host_abstract_datagram():
    """The same without a connection."""
    s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    return s.sendto(b"hello", "\0" + CONTEXT["abstract_datagram"])


@attack()
def host_path_socket():
    """A socket of the host's by its path."""
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(1)
    s.connect(CONTEXT["path_socket"])
    return banner(s)


def banner(s):
    with s:
        s.settimeout(1)
        data = s.recv(100)
    if data != CONTEXT["banner"].encode():
        raise Denied(f"somebody else answers: {data!r}")
    return "the host's listener answers"


@attack(control=BRIDGE)
def engine_sockets():
    """The sockets of engines and init, wherever they may be shown."""
    return first_open(
        lambda path=path: socket.socket(socket.AF_UNIX).connect(path) or path
        for path in (
            "/run/podman/podman.sock", "/var/run/docker.sock", "/run/containerd/containerd.sock", "/run/crio/crio.sock",
            "/run/systemd/private", "/run/systemd/notify", "/run/dbus/system_bus_socket", "/dev/log",
        )
    )  # fmt: skip


@attack(control=BRIDGE, seconds=20)
def sockets_anywhere():
    """Any socket file that answers."""
    for root, _, files in os.walk("/"):
        if root.startswith(("/proc", "/sys", "/usr")):
            continue
        for name in files:
            path = os.path.join(root, name)
            try:
                socket.socket(socket.AF_UNIX).connect(path)
                return path
            except OSError:
                pass
    raise Denied("no file is a socket that answers")


@attack(control=BRIDGE)
def resolve_name():
    """DNS as programs use it. The name exists nowhere."""
    try:
        return socket.getaddrinfo("attack.invalid", 80)
    except socket.gaierror as e:
        raise Denied(f"getaddrinfo: {e.args[0]}") from None


@attack(control=BRIDGE)
def resolve_by_program():
    """DNS in another process and through NSS."""
    done = subprocess.run(["getent", "hosts", "attack.invalid"], capture_output=True, timeout=3)
    if done.returncode:
        raise Denied(f"getent ends with {done.returncode}")
    return done.stdout


@attack()
def dns_packet():
    """A DNS query by hand, to a resolver on the host's loopback."""
    query = b"\x12\x34\x01\x00\x00\x01\0\0\0\0\0\0\x06attack\x07invalid\0\0\x01\0\x01"
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(1)
    s.connect(("127.0.0.1", CONTEXT["udp"]))
    s.send(query)
    return s.recv(512)


@attack()
def http_library():
    """urllib, to the host's loopback."""
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{CONTEXT['tcp']}/", timeout=1)
    except urllib.error.URLError as e:
        if isinstance(e.reason, OSError):
            raise e.reason from None
        raise
    except Exception as e:
        return f"something answered: {type(e).__name__}"  # the listener speaks no HTTP


@attack()
def shell_tcp():
    """bash's own /dev/tcp."""
    done = subprocess.run(
        ["bash", "-c", f"exec 3<>/dev/tcp/127.0.0.1/{CONTEXT['tcp']} && head -c 5 <&3"], capture_output=True, timeout=3
    )
    if done.returncode:
        raise Denied(done.stderr.decode().strip().rpartition(": ")[2])
    return done.stdout


@attack()
def listen():
    """Listen on the loopback interface."""
    return socket.create_server(("127.0.0.1", 0)).getsockname()


@attack()
def interfaces():
    """An interface besides lo, by ioctl on a unix socket: the filter cannot see its family."""
    s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    buffer = ctypes.create_string_buffer(4096)
    request = struct.pack("iP", 4096, ctypes.addressof(buffer))
    size = struct.unpack("iP", fcntl.ioctl(s, 0x8912, request))[0]  # SIOCGIFCONF
    return f"{size} bytes on interfaces"


@attack()
def interface_flags():
    """Ask for an interface's flags by ioctl."""
    s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    return fcntl.ioctl(s, 0x8913, b"lo".ljust(40, b"\0"))[16:18]  # SIOCGIFFLAGS


@attack(control=BRIDGE)
def interface_down():
    """Change an interface by ioctl."""
    s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    return fcntl.ioctl(s, 0x8914, b"lo".ljust(40, b"\0"))  # SIOCSIFFLAGS


@attack()
def other_interfaces():
    """An interface that leads somewhere, as the kernel lists them."""
    found = [line.split(":")[0].strip() for line in open("/proc/net/dev") if ":" in line]
    if set(found) <= {"lo"}:
        raise Denied(f"interfaces: {found}")
    return found


@attack()
def interfaces_in_sys():
    """Or as sysfs does."""
    found = set(os.listdir("/sys/class/net")) - {"lo", "bonding_masters"}
    if not found:
        raise Denied("no interfaces")
    return found


@attack()
def a_route():
    """A route to anywhere."""
    routes = open("/proc/net/route").readlines()[1:]
    if not routes:
        raise Denied("no routes")
    return len(routes)


@attack()
def sockets_of_the_host():
    """The host's listeners in /proc/net/tcp."""
    port = f":{CONTEXT['tcp']:04X} "
    if port not in open("/proc/net/tcp").read():
        raise Denied("they are not there")
    return port


@attack()
def abstract_names_of_the_host():
    """The host's abstract names in /proc/net/unix."""
    if CONTEXT["abstract"] not in open("/proc/net/unix").read():
        raise Denied("they are not there")
    return CONTEXT["abstract"]


@attack()
def tun_device():
    """A tunnel of one's own."""
    return writable("/dev/net/tun")


@attack()
def vhost():
    """The kernel's own virtual network devices."""
    return first_open(lambda d=d: writable("/dev/" + d) for d in ("vhost-net", "vhost-vsock", "vsock", "ppp"))


@attack()
def socket_mark():
    """Mark packets, for the host's routing to be fooled: needs CAP_NET_ADMIN."""
    socket.socket(socket.AF_UNIX).setsockopt(socket.SOL_SOCKET, 36, 1)
    return "SO_MARK"


@attack()
def buffer_force():
    """A socket buffer over the machine's limit: needs CAP_NET_ADMIN."""
    socket.socket(socket.AF_UNIX).setsockopt(socket.SOL_SOCKET, 33, 1 << 20)
    return "SO_RCVBUFFORCE"


@attack()
def forged_credentials():
    """Pass for root at the other end of a unix socket."""
    a, b = socket.socketpair()
    b.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    me = (os.getpid(), 0, 0)
    a.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_CREDENTIALS, struct.pack("3i", *me))])
    return b.recvmsg(1, 100)[1]


@attack(control=BRIDGE)
def network_of_the_host():
    """Enter the network namespace of PID 1, or of any process seen."""
    return first_open(lambda p=p: reach("setns", os.open(f"/proc/{p}/ns/net", os.O_RDONLY), 0x40000000) for p in (1, 2))


def socketpair_works():
    """Not an attack: a pair of unix sockets must go on working."""
    a, b = socket.socketpair()
    a.send(b"through")
    return b.recv(100).decode()
