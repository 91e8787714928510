"""The host's end of the stdio transport, for tests. It shares no code with the kernel's end."""

import collections
import socket
import threading

WINDOW = 1 << 20


class Host:
    """Both streams of a process, over its stdin and stdout."""

    def __init__(self, stdin, stdout):
        self.stdin, self.stdout = stdin, stdout
        self.sending = threading.Lock()
        self.streams = [Stream(self, 1), Stream(self, 2)]
        threading.Thread(target=self.receive, daemon=True).start()

    def send(self, kind, number, data=b""):
        frame = bytes([kind]) + number.to_bytes(4, "big") + data
        with self.sending:
            if self.stdin.closed:
                raise BrokenPipeError
            while frame:
                frame = frame[self.stdin.write(frame) :]

    def read(self, size):
        data = b""
        while len(data) < size:
            piece = self.stdout.read(size - len(data))
            if not piece:
                raise EOFError
            data += piece
        return data

    def receive(self):
        try:
            while True:
                header = self.read(5)
                kind, number = header[0], int.from_bytes(header[1:], "big")
                stream = self.streams[(kind & 15) - 1]
                data = self.read(number) if kind < 16 else None
                with stream.changed:
                    if kind & 0xF0 == 0x10:
                        stream.credit += number
                    else:
                        assert kind & 0xF0 in (0, 0x20), header
                        stream.expected -= number
                        assert stream.expected >= 0, "more than it was granted"
                        stream.arrived.append(data)
                    stream.changed.notify_all()
        except EOFError:
            for stream in self.streams:
                with stream.changed:
                    stream.credit = 0
                    stream.ended = True
                    stream.arrived.append(None)
                    stream.changed.notify_all()
            self.stdout.close()


class Stream:
    """What a test uses of a socket. What it does not read stays unread."""

    def __init__(self, host, number):
        self.host, self.number = host, number
        self.changed = threading.Condition()
        self.credit = self.expected = WINDOW
        self.arrived = collections.deque()  # None: its end
        self.ended = self.closed = False
        self.sock, self.near = socket.socketpair()  # for recv with its timeout
        self.near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
        threading.Thread(target=self.deliver, daemon=True).start()

    def deliver(self):
        while True:
            with self.changed:
                self.changed.wait_for(lambda: self.arrived)
                data = self.arrived.popleft()
            try:
                if data is None:
                    break
                self.near.sendall(data)
                with self.changed:
                    self.expected += len(data)
                self.host.send(0x10 | self.number, len(data))
            except OSError:
                break
        self.near.close()

    def sendall(self, data):
        """Returns when the frames are on their way: what is sent later is later."""
        data = memoryview(data)
        while data:
            with self.changed:
                self.changed.wait_for(lambda: self.credit or self.ended)
                if self.ended:
                    raise BrokenPipeError
                piece, data = data[: min(self.credit, 1 << 16)], data[min(self.credit, 1 << 16) :]
                self.credit -= len(piece)
            self.host.send(self.number, len(piece), piece)

    def recv(self, size):
        return self.sock.recv(size)

    def settimeout(self, seconds):
        self.sock.settimeout(seconds)

    def shutdown(self, how):
        self.sock.shutdown(how)

    def close(self):
        self.sock.close()
        if self.closed:
            return
        self.closed = True
        try:
            self.host.send(0x20 | self.number, 0)
        except OSError:
            pass  # it has gone
        if all(stream.closed for stream in self.host.streams):
            with self.host.sending:
                self.host.stdin.close()
