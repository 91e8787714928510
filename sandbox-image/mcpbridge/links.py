"""How the supervisor is joined to the host: two streams, control and callback.

A link hands what comes on control to the supervisor, and sends what it is
given. It lends the REPL a socket for its callbacks, a new one for every REPL or
the same, and takes care that nothing of one REPL reaches the next.

The last argument of the command line names it: `socket:PATH`, a unix socket to
connect to twice; `fd:CONTROL,CALLBACK`, inherited descriptors; `stdio`, see mux.
"""

import os
import select
import socket

from . import mux, wire

READ_SIZE = 1 << 16

# What a host that cannot look wants to know of PID 1; see runtime.Report.
REPORT_FILES = (
    ("status", "uid_map", "gid_map", "mountinfo", "limits", "net/dev", "environ", "cgroup", "version")
    + tuple("ns/" + kind for kind in ("cgroup", "ipc", "mnt", "net", "pid", "user", "uts"))
)  # fmt: skip


def report(transport):
    """The first frame over fd and stdio: what the kernel says of this process."""
    if transport.startswith("socket:"):
        return b""
    found = {}
    for name in REPORT_FILES:
        path = "/proc/version" if name == "version" else "/proc/self/" + name
        try:
            if name.startswith("ns/"):
                found[name] = os.readlink(path)
            else:
                with open(path, encoding="utf-8", errors="surrogateescape") as file:
                    found[name] = file.read()
        except OSError:
            pass
    return wire.frame(wire.dumps(found))


def open_link(transport, first):
    """The link that the engine asks for. first is sent on control before all else."""
    kind, _, where = transport.partition(":")
    if kind == "socket":
        return Sockets(connect(where), connect(where), first)
    if kind == "fd":
        return Sockets(*map(inherited, where.split(",")), first)
    if transport == "stdio":
        return mux.Mux(*take_stdio(), first)
    raise SystemExit(f"unknown transport {transport!r}")


def connect(path):
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(path)
    return connection


def inherited(number):
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, fileno=int(number))
    connection.set_inheritable(False)
    return connection


def take_stdio():
    """Descriptors of stdin and stdout that no cell will see; in their places nothing of the host's.

    What is printed by mistake goes the way of stderr.
    """
    ends = os.dup(0), os.dup(1)  # close-on-exec
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    return ends


class Sockets:
    """A connection for each stream. The REPL inherits the second."""

    def __init__(self, control, callback, first):
        self.control = control
        self.callback = callback
        self.outgoing = bytearray(first)

    def attach(self, supervisor):
        self.supervisor = supervisor
        self.control.setblocking(False)
        self.callback.setblocking(False)
        supervisor.watch(self.control.fileno(), self.on_control)

    def on_control(self, events):
        if events & select.POLLOUT:
            self.flush()
        if not events & ~select.POLLOUT:
            return
        try:
            data = self.control.recv(READ_SIZE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.supervisor.end()
        self.supervisor.receive(data)

    def send(self, data):
        self.outgoing += data
        self.flush()

    def flush(self):
        """Send what the host takes now; the rest when it takes more."""
        try:
            sent = self.control.send(self.outgoing)
            del self.outgoing[:sent]
        except BlockingIOError:
            pass
        except OSError:
            self.supervisor.end()
        events = select.POLLIN | (select.POLLOUT if self.outgoing else 0)
        self.supervisor.poller.modify(self.control.fileno(), events)
        self.supervisor.on_backlog(len(self.outgoing))

    # The callback stream, from REPL to REPL.

    def lend(self):
        """A REPL is about to be forked: its socket."""
        self.drain()
        self.supervisor.unwatch(self.callback.fileno())
        return self.callback

    def close_in_child(self):
        """In the fork: keep nothing but what was lent."""
        self.control.close()

    def take_back(self):
        """The REPL is gone. What the host sends it is read away from now on."""
        self.supervisor.watch(self.callback.fileno(), lambda _: self.drain())

    def mark(self, marker):
        """Tell the host where the callbacks of a REPL that is gone end."""
        self.callback.setblocking(True)  # the host is reading
        try:
            self.callback.sendall(marker)
        except OSError:
            self.supervisor.end()
        self.callback.setblocking(False)

    def drain(self):
        try:
            while True:
                if not self.callback.recv(READ_SIZE):
                    self.supervisor.end()
        except BlockingIOError:
            pass
        except OSError:
            self.supervisor.end()
