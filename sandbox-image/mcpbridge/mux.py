"""Both streams over stdin and stdout, for hosts that no socket reaches.

A frame is one byte of kind and four bytes of number N, big-endian:

    0x01, 0x02  data on control, on callback: N bytes follow, at most 65536
    0x11, 0x12  credit for control, for callback: N more bytes may be sent
    0x21, 0x22  end of control, of callback from this side

Each side may at first send 1 MiB on each; the other grants more as it consumes.
So a host that does not read output still gets callbacks. The Go end is
runtime/internal/mux.

The REPL has one end of a socket pair for its callbacks; what comes out of the
other is passed on here.
"""

import os
import select
import socket
import struct

READ_SIZE = 1 << 16
MAX_DATA = 1 << 16
WINDOW = 1 << 20
GRANT = WINDOW // 4  # what is consumed is told the host in pieces of this size
RELAY_HIGH_WATER = 1 << 18  # stop reading the REPL's callbacks while the host is this far behind

DATA, CREDIT, END = 0x00, 0x10, 0x20
_HEADER = struct.Struct(">BI")


class Channel:
    """One stream: what waits to be sent on it, and who may send how much."""

    def __init__(self, number, first=b""):
        self.number = number
        self.outgoing = bytearray(first)
        self.credit = WINDOW  # what the host takes from us
        self.consumed = 0  # what we have taken, and not told the host yet
        self.ended = self.told = False  # nothing more follows; the host knows

    def frames(self):
        """What can be said now: the grant that is due, and a piece of data."""
        out = b""
        if self.consumed >= GRANT:
            out += _HEADER.pack(CREDIT | self.number, self.consumed)
            self.consumed = 0
        size = min(len(self.outgoing), self.credit, MAX_DATA)
        if size:
            out += _HEADER.pack(DATA | self.number, size) + self.outgoing[:size]
            del self.outgoing[:size]
            self.credit -= size
        if self.ended and not self.outgoing and not self.told:
            out += _HEADER.pack(END | self.number, 0)
            self.told = True
        return out


class Mux:
    """The link over two descriptors; see links for what a link does."""

    def __init__(self, incoming, outgoing, first):
        self.read_fd, self.write_fd = incoming, outgoing
        self.control = Channel(1, first)
        self.callback = Channel(2)
        self.unparsed = bytearray()
        self.unsent = bytearray()  # frames, of each channel a piece
        self.near = self.far = None  # the pair: ours, and the one that is lent
        self.to_repl = bytearray()  # at most WINDOW, by credit
        self.host_ended = False  # on callback
        self.writing = False  # write_fd is watched for room

    def attach(self, supervisor):
        self.supervisor = supervisor
        os.set_blocking(self.read_fd, False)
        os.set_blocking(self.write_fd, False)
        supervisor.watch(self.read_fd, self.on_readable)
        supervisor.watch(self.write_fd, self.on_writable, 0)  # nothing but its end

    # The host.

    def on_readable(self, _):
        try:
            data = os.read(self.read_fd, READ_SIZE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.supervisor.end()
        self.unparsed += data
        self.parse()
        self.flush()

    def parse(self):
        start = 0
        while len(self.unparsed) - start >= _HEADER.size:
            kind, number = _HEADER.unpack_from(self.unparsed, start)
            channel = {1: self.control, 2: self.callback}.get(kind & 0x0F)
            body = number if kind & 0xF0 == DATA else 0
            if channel is None or kind & 0xF0 not in (DATA, CREDIT, END) or body > MAX_DATA:
                self.supervisor.end()  # not our host: nothing it says can be trusted
            if len(self.unparsed) - start < _HEADER.size + body:
                break
            start += _HEADER.size
            self.on_frame(channel, kind & 0xF0, number, bytes(self.unparsed[start : start + body]))
            start += body
        del self.unparsed[:start]

    def on_frame(self, channel, operation, number, data):
        if operation == CREDIT:
            channel.credit += number
        elif channel is self.control:
            if operation == END:
                self.supervisor.end()
            channel.consumed += len(data)
            self.supervisor.receive(data)
        elif self.near is None:  # for a REPL that is gone
            if operation == END:
                self.supervisor.end()
            channel.consumed += len(data)
        else:
            self.host_ended = operation == END
            self.to_repl += data
            self.feed_repl()

    def send(self, data):
        self.control.outgoing += data
        self.flush()

    def on_writable(self, events):
        if events & ~select.POLLOUT:
            self.supervisor.end()
        self.flush()

    def flush(self):
        """Send what the host takes now, the channels in turns; the rest when it takes more."""
        try:
            while True:
                if not self.unsent:
                    self.unsent += self.control.frames() + self.callback.frames()
                if not self.unsent:
                    break
                sent = os.write(self.write_fd, self.unsent)
                del self.unsent[:sent]
        except BlockingIOError:
            pass
        except OSError:
            self.supervisor.end()
        if bool(self.unsent) != self.writing:
            self.writing = bool(self.unsent)
            self.supervisor.poller.modify(self.write_fd, select.POLLOUT if self.writing else 0)
        self.watch_repl()
        self.supervisor.on_backlog(len(self.control.outgoing))

    # The callback stream, from REPL to REPL.

    def lend(self):
        self.near, self.far = socket.socketpair()
        self.near.setblocking(False)
        self.far.setblocking(False)
        self.supervisor.watch(self.near.fileno(), self.on_repl)
        return self.far

    def close_in_child(self):
        os.close(self.read_fd)
        os.close(self.write_fd)
        self.near.close()

    def on_repl(self, events):
        if events & select.POLLOUT:
            self.feed_repl()
        if events & ~select.POLLOUT:
            self.read_repl()
        self.flush()

    def read_repl(self):
        """Take one piece of callbacks; report whether there was any."""
        try:
            data = self.near.recv(READ_SIZE)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        self.callback.outgoing += data
        if not data:  # a cell has shut it: the host sees what it would see of a socket
            self.supervisor.unwatch(self.near.fileno())
            self.end_callback()
        return bool(data)

    def feed_repl(self):
        try:
            sent = self.near.send(self.to_repl)
        except BlockingIOError:
            return
        except OSError:  # nobody will ever read it
            sent = len(self.to_repl)
        del self.to_repl[:sent]
        self.callback.consumed += sent
        if self.host_ended and not self.to_repl:
            self.near.shutdown(socket.SHUT_WR)

    def watch_repl(self):
        """Look for what can be passed on just now."""
        if self.near is None or self.near.fileno() not in self.supervisor.handlers:
            return
        behind = len(self.callback.outgoing) > RELAY_HIGH_WATER
        events = (0 if behind else select.POLLIN) | (select.POLLOUT if self.to_repl else 0)
        self.supervisor.poller.modify(self.near.fileno(), events)

    def end_callback(self):
        if not self.callback.ended:
            self.callback.ended = True
            self.flush()

    def take_back(self):
        while not self.callback.ended and self.read_repl():  # bounded by the socket's buffer
            pass
        self.supervisor.unwatch(self.near.fileno())
        self.near.close()
        self.far.close()
        self.near = self.far = None
        self.callback.consumed += len(self.to_repl)
        self.to_repl.clear()
        self.flush()

    def mark(self, marker):
        if self.callback.ended:
            self.supervisor.end()
        self.callback.outgoing += marker
        self.flush()
