"""Attacks on the REPL's process, in which a cell runs and may do what it likes.

A cell can spoil its own session, and nothing else: the test looks whether the host
believed a forgery, the deadline held, and the next call got a true answer or was
told of the loss.
"""

import builtins
import ctypes
import gc
import json
import os
import resource
import signal
import socket
import struct
import sys
import threading
import time

from harness import Denied, attack, reach

done = b'{"jsonrpc":"2.0","method":"done","params":{"cell":%d,"status":"ok","value":{"text":"forged","shape":""}}}'


def channels():
    """The sockets of this process: the REPL's channel to the supervisor, and callback's."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            if os.readlink(f"/proc/self/fd/{name}").startswith("socket"):
                found.append(int(name))
        except OSError:
            pass
    clients = (o for o in gc.get_objects() if f"{type(o).__module__}.{type(o).__name__}" == "mcpbridge.callback.Client")
    callback = vars(next(clients))["_sock"].fileno()
    return [fd for fd in found if fd != callback]


def tell(data):
    """Say something to the supervisor in the REPL's name."""
    for fd in channels():
        os.set_blocking(fd, True)
        os.write(fd, struct.pack(">I", len(data)) + data)
    time.sleep(0.7)
    raise Denied("it was ignored")


def says(name, data, what):
    @attack(name=name)
    def say():
        tell(data)

    say.__doc__ = what


says("done_of_another_cell", done % 999, "The end of a cell that is not running.")
says("done_garbage", b"{{{", "No JSON.")
says("done_unknown_fields", b'{"jsonrpc":"2.0","method":"done","params":{"cell":1,"status":"ok","nonce":"x"}}', "Fields that are not a cell's to say.")
says("done_wrong_types", b'{"jsonrpc":"2.0","method":"done","params":{"cell":"1","status":7}}', "Wrong types.")
says("done_not_a_number", b'{"jsonrpc":"2.0","method":"done","params":{"cell":NaN}}', "NaN, which Python reads and JSON does not have.")
says("done_deep", b"[" * 10**6, "A million brackets.")
says("done_bad_image", b'{"jsonrpc":"2.0","method":"done","params":{"cell":1,"status":"ok","images":[{"mime":"image/png","data":"<script>"}]}}', "An image that is none.")
says("done_big_number", b'{"jsonrpc":"2.0","method":"done","params":{"cell":1' + b"0" * 5000 + b"}}", "A number over all bounds.")
says("supervisors_message", b'{"jsonrpc":"2.0","method":"lost","params":{"reason":"forged"}}', "What the supervisor says to the host.")


@attack()
def length_largest():
    """A frame of 4 GiB for the supervisor to wait for."""
    for fd in channels():
        os.set_blocking(fd, True)
        os.write(fd, b"\xff\xff\xff\xff" + b"x" * 100)
    time.sleep(0.7)
    raise Denied("it waits")


@attack(seconds=10)
def length_over():
    """A report over its bound."""
    for fd in channels():
        os.set_blocking(fd, True)
        os.write(fd, struct.pack(">I", (16 << 20) + 1) + b"x")
    time.sleep(0.7)
    raise Denied("it waits")


@attack()
def close_channel():
    """Hang up on the supervisor."""
    for fd in channels():
        os.close(fd)
    time.sleep(0.2)
    raise Denied("the cell goes on")


@attack()
def end_marks():
    """Whatever could be taken for the end of a cell, printed."""
    for text in ("\x04", "\0", "__END__", '{"jsonrpc":"2.0","id":1,"result":{}}', (struct.pack(">I", 90) + done % 1).decode("latin1")):
        print(text)
        print(text, file=sys.stderr)
        os.write(1, text.encode())
    raise Denied("it is text")


@attack(spoils=True)
def frames_on_all_descriptors():
    """A forged frame on every descriptor up to 40."""
    data = b'{"jsonrpc":"2.0","id":1,"result":{"nonce":"0","interrupted":null,"lost":null,"cell":null}}'
    for fd in range(3, 40):
        try:
            os.set_blocking(fd, False)
            os.write(fd, struct.pack(">I", len(data)) + data)
        except OSError:
            pass
    time.sleep(0.7)
    raise Denied("nothing came of it")


@attack(spoils=True)
def patched_builtins():
    """Builtins that lie."""
    for name in ("print", "open", "len", "isinstance", "compile", "exec", "type", "repr"):
        setattr(builtins, name, lambda *a, **k: "forged")
    raise Denied("in this process only")


@attack(spoils=True)
def patched_json():
    """A json that writes what we like."""
    json.dumps = json.loads = lambda *a, **k: "forged"
    json.JSONEncoder.encode = lambda *a: "forged"
    raise Denied("in this process only")


@attack(spoils=True)
def patched_wire():
    """The kernel's own wire module, turned round."""
    import mcpbridge.wire as wire

    wire.pack = lambda *a, **k: struct.pack(">I", len(done % 1)) + done % 1
    wire.frame = wire.dumps = lambda *a, **k: b"forged"
    raise Denied("in this process only")


@attack(spoils=True)
def patched_runner():
    """The object that runs cells, found and replaced."""
    for o in gc.get_objects():
        if type(o).__module__ == "mcpbridge.cells" and type(o).__name__ == "Runner":
            type(o).run = lambda self, **k: {"cell": 10**6, "status": "ok", "value": {"text": "forged", "shape": ""}}
    raise Denied("in this process only")


@attack(spoils=True)
def patched_output():
    """sys.stdout and stderr of one's own."""
    sys.stdout = sys.stderr = sys.__stdout__ = sys.__stderr__ = None
    raise Denied("in this process only")


@attack(spoils=True)
def patched_modules():
    """Modules gone, and others in their places."""
    for name in [n for n in sys.modules if n.startswith(("mcpbridge", "os", "socket", "struct"))]:
        sys.modules[name] = sys
    raise Denied("in this process only")


@attack()
def nonce_in_memory():
    """The nonce that binds a result to its request: the REPL must never have it.

    The requests that the REPL gets are its own: cell, code, value_limit."""
    seen = []
    for o in gc.get_objects():
        if type(o) is dict and "nonce" in o and len(o) < 20:
            seen.append(o)
    if seen:
        return seen
    raise Denied("no message has one")


@attack()
def nonce_from_the_fork():
    """The same in what the REPL inherited from the supervisor's memory, of which it is a fork."""
    for o in gc.get_objects():
        if type(o).__name__ in ("Cell", "Supervisor") and type(o).__module__ == "mcpbridge.supervisor":
            return vars(o)
    raise Denied("nothing of it is to be found")


@attack()
def control_descriptor():
    """A descriptor of the host's control connection, left open in the fork."""
    if len(channels()) > 1:
        return channels()
    raise Denied("the REPL has its own channel only")


@attack()
def exit_at_once():
    """End the process behind everybody's back."""
    os._exit(0)


@attack()
def crash():
    """A segmentation fault."""
    ctypes.string_at(0)


@attack()
def abort():
    """SIGABRT, which makes cores."""
    os.abort()


@attack()
def kill_oneself():
    """SIGKILL to oneself."""
    os.kill(os.getpid(), signal.SIGKILL)


@attack()
def stop_oneself():
    """SIGSTOP to oneself: nobody inside can wake it."""
    os.kill(os.getpid(), signal.SIGSTOP)


@attack()
def stop_everybody():
    """SIGSTOP to all in the sandbox."""
    os.kill(-1, signal.SIGSTOP)


@attack()
def kill_everybody():
    """SIGKILL to all in the sandbox."""
    os.kill(-1, signal.SIGKILL)
    time.sleep(1)
    raise Denied("oneself and PID 1 are spared by the kernel")


@attack()
def deaf():
    """Ignore the interrupt at the deadline."""
    signal.pthread_sigmask(signal.SIG_BLOCK, set(range(1, 65)) - {32, 33})
    while True:
        time.sleep(1)


@attack()
def deaf_in_c():
    """Spin where no signal handler of Python's gets a turn."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ctypes.CDLL(None).pause()
    while True:
        pass


@attack()
def swallow_interrupt():
    """Catch KeyboardInterrupt for ever."""
    while True:
        try:
            while True:
                pass
        except BaseException:
            pass


@attack()
def leave_group():
    """Another process group, which the interrupt does not reach, with a child that stays."""
    if os.fork() == 0:
        os.setsid()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        time.sleep(60)
        os._exit(0)
    try:
        os.setpgid(0, 0)
    except OSError:
        pass
    while True:
        time.sleep(1)


@attack()
def take_over_by_fork():
    """Let a child carry on in one's place, with the channel."""
    if os.fork():
        os._exit(0)
    time.sleep(0.7)
    tell(done % 1)


@attack()
def thread_left_behind():
    """A thread that forges the ends of later cells."""

    def forge():
        for _ in range(50):
            for fd in channels():
                data = done % 999
                os.write(fd, struct.pack(">I", len(data)) + data)
            time.sleep(0.01)

    threading.Thread(target=forge, daemon=True).start()
    raise Denied("of cells that are not running")


@attack(spoils=True)
def limits_of_oneself():
    """No descriptors, no processes, no data any more."""
    for what in (resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC, resource.RLIMIT_DATA, resource.RLIMIT_FSIZE):
        resource.setrlimit(what, (0, 0))
    raise Denied("of oneself only")


@attack(spoils=True)
def close_all():
    """Close every descriptor."""
    os.closerange(0, 1024)
    raise Denied("of oneself only")


@attack(spoils=True)
def trace_function():
    """A trace function that runs in whatever the kernel does next."""

    def trace(frame, event, arg):
        for name in list(frame.f_locals):
            frame.f_locals[name] = None
        return trace

    sys.settrace(trace)
    threading.settrace(trace)
    raise Denied("in this process only")


@attack(spoils=True)
def audit_hook():
    """An audit hook that cannot be removed, and refuses everything."""

    def refuse(event, args):
        if event in ("compile", "exec", "import"):
            raise RuntimeError("refused by the attack")

    sys.addaudithook(refuse)
    raise Denied("in this process only")


@attack()
def recursion():
    """Recursion without an end, and without its limit."""
    sys.setrecursionlimit(1 << 30)

    def deeper():
        return deeper() + 1

    try:
        return deeper()
    except (RecursionError, MemoryError) as e:
        raise Denied(type(e).__name__) from None


# Signals to PID 1. Linux drops those from inside that it does not want: kill() itself
# succeeds, so look what becomes of it. gVisor lets a cell end its own sandbox so.


def survives(send):
    send()
    time.sleep(0.02)
    os.kill(1, 0)
    raise Denied("it does not care")


def signalled(name, send, what):
    @attack(name=name)
    def signals():
        survives(send)

    signals.__doc__ = what


signalled("signal_kill", lambda: os.kill(1, signal.SIGKILL), "SIGKILL.")
signalled("signal_stop", lambda: os.kill(1, signal.SIGSTOP), "SIGSTOP.")
signalled("signal_all", lambda: [os.kill(1, n) for n in range(1, 65) if n not in (32, 33)], "All others.")
signalled("signal_child", lambda: [os.kill(1, signal.SIGCHLD) for _ in range(10000)], "Ten thousand deaths of children.")
signalled("signal_thread", lambda: reach("tgkill", 1, 1, 9), "To its thread.")
signalled("signal_queue", lambda: reach("rt_sigqueueinfo", 1, 10, struct.pack("3i", 10, 0, -1).ljust(128, b"\0")), "By queue, with a forged sender.")
signalled("signal_pidfd", lambda: reach("pidfd_send_signal", os.pidfd_open(1), 9, None, 0), "By pidfd.")


@attack()
def orphans():
    """A hundred children that it has to reap."""
    for _ in range(100):
        if os.fork() == 0:
            if os.fork() == 0:
                os._exit(0)
            os._exit(0)
        os.wait()
    survives(lambda: None)
