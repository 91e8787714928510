"""PID 1 of the sandbox: the guard between the host and the REPL process.

It owns the link to the host. It forks the REPL, passes cells to
it and its output on, enforces deadlines, reaps every child, and tells the host
the truth when the REPL dies. It ends, and the container with it, when the host
closes the connection. It never runs code of the user's: what comes from the
REPL is data, checked and bounded.

Control protocol, host to supervisor:
    execute (request)   {nonce, cell, timeout, grace, and for the REPL: repl.PARAMS}
    interrupt           {cell}
    clock               {cell, running}: false stops the cell's time until true comes;
                        an interrupt ends that, and its grace period always counts
    resync              {marker}: after `lost`, write marker to the callback connection
    start               {}: after resync, start a new REPL
supervisor to host:
    hello               {protocol, python}
    output              {text, cell?}: what was written to stdout and stderr, in order;
                        with cell, by a thread of that cell, which may have ended
    lost                {reason}: the REPL is gone and all variables with it
    response to execute {nonce, interrupted, lost, cell: what the REPL said, or null}
"""

import codecs
import ctypes
import gc
import json
import math
import os
import re
import resource
import select
import signal
import socket
import sys
import time

from . import links, repl, streams, wire

PROTOCOL = 1
OWN_PARAMS = {"nonce", "timeout", "grace"}  # of execute: what is not for the REPL
READ_SIZE = 1 << 16
MAX_REPL_FRAME = 16 << 20  # what the REPL may say about one cell; a third of a frame, for escapes
HIGH_WATER = 1 << 20  # stop reading output while the host is this far behind
PR_SET_DUMPABLE = 4
FIRST_NUDGE = 0.25  # seconds from an interrupt to its repetition, if Python has not noticed it
NEXT_TRY = 0.01  # seconds to leave the place where Python could not raise


def main(transport, settings):
    """Connect to the host and serve it until it hangs up. Does not return."""
    report = links.report(transport)  # while this process is open to itself
    harden()
    limit_memory(settings.get("data_limit"))
    Supervisor(links.open_link(transport, report), settings).run()


def harden():
    """Close this process to code of the same uid: no ptrace, no /proc/1/mem or fd."""
    set_dumpable(0)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)


def limit_memory(limit):
    """Let a monstrous report raise MemoryError here before it calls the OOM killer.

    The REPL sets its own limit, up to the hard one.
    """
    if limit:
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (limit // 2, hard))


def set_dumpable(value):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_DUMPABLE, value, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_DUMPABLE)")


class Cell:
    """The cell that is running: what the host asked for, and its deadlines."""

    def __init__(self, request_id, params):
        self.id = request_id
        self.nonce = params["nonce"]
        self.number = params["cell"]
        self.grace = params["grace"]
        self.interrupted = None  # "timeout" or "cancel", once a SIGINT was sent
        self.next_step = time.monotonic() + params["timeout"]  # interrupt, later kill
        self.left = None  # seconds to next_step, while the clock stands still
        self.nudge = None  # when to send the SIGINT again, and the pause after that
        self.pause = FIRST_NUDGE

    def set_clock(self, running):
        """Stop the time to the interrupt, or let it go on."""
        if running and self.left is not None:
            self.next_step = time.monotonic() + self.left
            self.left = None
        elif not running and self.left is None and not self.interrupted:
            self.left = self.next_step - time.monotonic()
            self.next_step = math.inf

    def due(self):
        """When something is to be done about it."""
        return self.next_step if self.nudge is None else min(self.next_step, self.nudge)


class Supervisor:
    def __init__(self, link, settings):
        self.link = link
        self.settings = settings
        self.decoder = wire.Decoder()
        self.cell = None
        self.repl = None  # a Child, or None between `lost` and `start`
        self.kill_reason = None
        self.lost_reason = None
        self.handlers = {}
        self.poller = select.poll()
        link.attach(self)
        self.watch_children()

    # The loop.

    def run(self):
        self.notify("hello", {"protocol": PROTOCOL, "python": sys.version.split()[0]})
        gc.freeze()
        self.start_repl()
        while True:
            self.step()

    def step(self):
        for fd, events in self.poller.poll(self.poll_timeout()):
            handler = self.handlers.get(fd)
            if handler is not None:  # an earlier event of this round may have dropped it
                handler(events)
        if self.cell is not None and time.monotonic() >= self.cell.due():
            self.escalate()

    def poll_timeout(self):
        if self.cell is None or self.cell.due() == math.inf:
            return None
        return max(0, (self.cell.due() - time.monotonic()) * 1000) + 1

    def watch(self, fd, handler, events=select.POLLIN):
        self.handlers[fd] = handler
        self.poller.register(fd, events)

    def unwatch(self, fd):
        if self.handlers.pop(fd, None):
            self.poller.unregister(fd)

    def watch_children(self):
        self.wakeup = read, write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # a handler, so that the fd is written
        self.watch(read, lambda _: self.on_child_signal(read))

    # The host.

    def receive(self, data):
        """What the host says on control."""
        for payload in self.decoder.feed(data):
            message = json.loads(payload)
            getattr(self, "do_" + message["method"])(message.get("id"), message.get("params"))

    def do_execute(self, request_id, params):
        if self.cell is not None:
            self.send({"id": request_id, "error": {"code": -32000, "message": "the kernel is busy"}})
            return
        unknown = params.keys() - OWN_PARAMS - repl.PARAMS
        if unknown:
            message = f"execute has no parameter {min(unknown)!r}"
            self.send({"id": request_id, "error": {"code": -32602, "message": message}})
            return
        self.cell = Cell(request_id, params)
        if self.repl is None:  # it died as the cell was sent
            self.respond(None, lost=self.lost_reason)
            return
        self.repl.send(wire.pack("run", {k: v for k, v in params.items() if k not in OWN_PARAMS}))

    def do_interrupt(self, _, params):
        cell = self.cell
        if cell is not None and cell.number == params["cell"] and not cell.interrupted:
            self.interrupt("cancel")

    def do_clock(self, _, params):
        if self.cell is not None and self.cell.number == params["cell"]:
            self.cell.set_clock(params["running"])

    def do_resync(self, _, params):
        self.link.mark(bytes.fromhex(params["marker"]))

    def do_start(self, _, params):
        self.start_repl()

    def notify(self, method, params):
        self.send({"method": method, "params": params})

    def send(self, message):
        self.link.send(wire.frame(wire.dumps({"jsonrpc": "2.0", **message})))

    def on_backlog(self, size):
        """So much waits to be sent to the host."""
        if self.repl is not None:
            self.repl.pause(size > HIGH_WATER)

    def end(self):
        """The host has gone, so the container goes."""
        if self.repl is not None:
            self.repl.kill()  # it may not lead its group yet
        kill_everything(self.repl)
        os._exit(0)

    # The REPL.

    def start_repl(self):
        self.kill_reason = None
        self.repl = Child(self)

    def on_noticed(self, payload):
        """The REPL says that the interrupt has reached its Python code."""
        if self.cell is not None and payload.get("cell") == self.cell.number:
            self.cell.nudge = None

    def on_swallowed(self, payload):
        """The REPL says that the interrupt came where Python cannot raise."""
        cell = self.cell
        if cell is not None and payload.get("cell") == cell.number and cell.interrupted:
            cell.nudge = time.monotonic() + NEXT_TRY

    def on_done(self, payload):
        """The REPL says that its cell has ended. payload is checked JSON."""
        if self.cell is not None and payload.get("cell") == self.cell.number:
            self.repl.drain()
            self.respond(payload)

    def respond(self, payload, lost=None):
        cell = self.cell
        result = {"nonce": cell.nonce, "interrupted": cell.interrupted, "lost": lost, "cell": payload}
        self.send({"id": cell.id, "result": result})
        self.cell = None  # last: if there is no memory for this report, there is for `lost`

    def escalate(self):
        """The running cell's time is up: ask, then kill."""
        if time.monotonic() < self.cell.next_step:
            self.nudge()
        elif self.cell.interrupted:
            self.kill_reason = "it ignored the interrupt"
            self.repl.kill()
            self.cell.next_step, self.cell.nudge = time.monotonic() + 3600, None
        else:
            self.interrupt("timeout")

    def interrupt(self, why):
        self.cell.interrupted = why
        self.cell.left = None
        self.cell.next_step = time.monotonic() + self.cell.grace
        self.cell.nudge = time.monotonic() + self.cell.pause
        self.repl.interrupt()

    def nudge(self):
        """Send the SIGINT again: one that comes just before a system call that blocks
        is noticed by Python when that call returns, and not before."""
        self.cell.pause *= 2
        self.cell.nudge = time.monotonic() + self.cell.pause
        self.repl.nudge()

    def on_child_signal(self, wakeup):
        try:
            os.read(wakeup, 4096)
        except BlockingIOError:
            pass
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if self.repl is not None and pid == self.repl.pid:
                self.on_repl_death(status)

    def on_repl_death(self, status):
        child, self.repl = self.repl, None
        kill_everything(child)
        child.drain()
        child.close()
        reason = self.lost_reason = self.kill_reason or describe(status)
        self.link.take_back()
        self.notify("lost", {"reason": reason})
        if self.cell is not None:
            self.respond(None, lost=reason)


class Child:
    """A REPL process, its pipes and its channel."""

    def __init__(self, supervisor):
        self.supervisor = supervisor
        self.decoder = wire.Decoder(MAX_REPL_FRAME)
        self.channel, channel = socket.socketpair()
        callback = supervisor.link.lend()
        # One pipe for stdout and stderr: what is read is in the order in which
        # it was written, by whatever process.
        self.output, output = os.pipe()
        self.text = codecs.getincrementaldecoder("utf-8")("replace")
        mark = streams.new_mark()
        self.labels = streams.Labels(mark)
        self.pid = os.fork()
        if self.pid == 0:
            self.channel.close()
            os.close(self.output)
            become_repl(supervisor, channel, callback, output, mark)
        channel.close()
        os.close(output)
        self.channel.setblocking(False)
        self.outgoing = bytearray()
        self.paused = False
        supervisor.watch(self.channel.fileno(), self.on_channel)
        os.set_blocking(self.output, False)
        supervisor.watch(self.output, lambda _: self.read_output())

    def send(self, data):
        self.outgoing += data
        self.flush()

    def flush(self):
        try:
            sent = self.channel.send(self.outgoing)
            del self.outgoing[:sent]
        except BlockingIOError:
            pass
        except OSError:
            self.outgoing.clear()  # it is dying; SIGCHLD follows
        if self.channel.fileno() in self.supervisor.handlers:
            events = select.POLLIN | (select.POLLOUT if self.outgoing else 0)
            self.supervisor.poller.modify(self.channel.fileno(), events)

    def on_channel(self, events):
        if events & select.POLLOUT:
            self.flush()
        if not events & ~select.POLLOUT:
            return
        try:
            data = self.channel.recv(READ_SIZE)
        except BlockingIOError:
            return
        except OSError:  # it died before it had read what was sent
            data = b""
        try:
            for payload in self.decoder.feed(data):
                method, params = parse_report(payload)
                getattr(self.supervisor, "on_" + method)(params)
        except (ValueError, RecursionError, MemoryError, wire.ProtocolError):
            self.supervisor.kill_reason = "a cell wrote to the kernel's own channel"
            self.supervisor.unwatch(self.channel.fileno())
            self.kill()
            return
        if not data:  # it is dying, or the deadline will see to it: how is worth telling
            self.supervisor.unwatch(self.channel.fileno())

    def read_output(self):
        """Pass on one piece of output; report whether there was any."""
        try:
            data = os.read(self.output, READ_SIZE)
        except BlockingIOError:
            return False
        if not data:
            self.supervisor.unwatch(self.output)
        for cell, piece in self.labels.feed(data):
            self.pass_on(piece, cell)
        if not data:
            self.pass_on(self.labels.rest(), final=True)
        return bool(data)

    def pass_on(self, data, cell=None, final=False):
        """Tell the host what was printed; the thread of a cell prints whole characters."""
        text = self.text.decode(data, final) if cell is None else data.decode(errors="replace")
        if text:
            self.supervisor.notify("output", {"text": text} if cell is None else {"text": text, "cell": cell})

    def drain(self):
        """Pass on the output that is in the pipe now; bounded by its size."""
        for _ in range(64):
            if not self.read_output():
                self.pass_on(self.labels.rest(), final=True)  # half a character is none
                break

    def pause(self, paused):
        """Stop or resume reading output, for the host's sake."""
        if paused == self.paused:
            return
        self.paused = paused
        if self.output in self.supervisor.handlers:
            self.supervisor.poller.modify(self.output, 0 if paused else select.POLLIN)

    def interrupt(self):
        """SIGINT to the REPL and its children, as a terminal's Ctrl-C would."""
        send_signal(os.killpg, self.pid, signal.SIGINT)

    def nudge(self):
        send_signal(os.kill, self.pid, signal.SIGINT)

    def kill(self):
        send_signal(os.kill, self.pid, signal.SIGKILL)

    def close(self):
        self.supervisor.unwatch(self.output)
        os.close(self.output)
        self.supervisor.unwatch(self.channel.fileno())
        self.channel.close()


def become_repl(supervisor, channel, callback, output, mark):
    """In the forked child: turn into the REPL process. Does not return."""
    try:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        os.setsid()
        os.dup2(output, 1)
        os.dup2(output, 2)
        supervisor.link.close_in_child()
        for fd in (output, *supervisor.wakeup):
            os.close(fd)
        set_dumpable(1)
        repl.main(channel, callback, supervisor.settings, mark)
    finally:
        os._exit(70)


def parse_report(payload):
    """What the REPL says, as method and params, or ValueError: nothing in it is trusted."""
    message = json.loads(payload, parse_constant=reject_constant)
    if not isinstance(message, dict) or message.get("method") not in ("done", "noticed", "swallowed"):
        raise ValueError("not a report")
    return message["method"], checked(message.get("params"), REPORT)


def checked(value, form):
    """value if it is what the host expects, which kills the sandbox otherwise."""
    if isinstance(form, dict):
        if type(value) is not dict or not value.keys() <= form.keys():
            raise ValueError("unknown fields")
        return {key: checked(item, form[key]) for key, item in value.items()}
    if isinstance(form, list):
        if type(value) is not list:
            raise ValueError("not a list")
        return [checked(item, form[0]) for item in value]
    if not form(value):
        raise ValueError("a value of the wrong kind")
    return value


def is_text(value):
    return type(value) is str


def is_number(value):
    return type(value) is int and abs(value) < 1 << 53


def is_base64(value):
    return type(value) is str and len(value) % 4 == 0 and bool(BASE64.fullmatch(value))


# The fields of a report on a cell.
REPORT = {
    "cell": is_number,
    "status": is_text,
    "value": {"text": is_text, "shape": is_text, "json": is_text},
    "images": [{"mime": is_text, "data": is_base64, "note": is_text}],
    "notes": [is_text],
    "error": {"type": is_text, "message": is_text, "traceback": is_text},
    "exit": is_number,
    "note": is_text,
}
BASE64 = re.compile("[A-Za-z0-9+/]*={0,2}")


def reject_constant(name):
    raise ValueError(f"{name} is not JSON")


def kill_everything(child):
    """SIGKILL to every process but this one, and reap them."""
    if os.getpid() == 1:
        send_signal(os.kill, -1, signal.SIGKILL)  # spares PID 1
    elif child is not None:  # only in tests, outside a container
        send_signal(os.killpg, child.pid, signal.SIGKILL)
    try:
        while os.waitpid(-1, 0):
            pass
    except ChildProcessError:
        pass


def send_signal(send, target, number):
    try:
        send(target, number)
    except ProcessLookupError:
        pass


def describe(status):
    """Why the REPL ended, for the model."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number == signal.SIGKILL:
            return "it was killed (SIGKILL; most often the memory limit)"
        return f"it was killed by signal {number} ({signal.strsignal(number)})"
    return f"it exited with status {os.WEXITSTATUS(status)}"
