"""The client of the callback channel: requests to the host, from any thread or task.

Whoever waits for an answer reads the socket, and hands others theirs: one
thread at a time is the reader, the next one takes over when it leaves. So the
common case, one blocking call, costs no thread switch.
"""

import collections
import os
import re
import select
import threading
import time

from . import values, wire

_READ_SIZE = 1 << 18
_LOOK_AGAIN = 50  # milliseconds
# Seconds for which the reader looks for an answer before it sleeps. A warm server
# answers in less, and to sleep and be woken can take as long again.
_PATIENCE = 0.0005


class RemoteError(Exception):
    """The host refused or failed a request. `kind`, `hint` and `code` say more."""

    def __init__(self, message, kind="", hint="", code=0):
        super().__init__(message)
        self.kind = kind
        self.hint = hint
        self.code = code


class _Call:
    """A request that waits for its answer."""

    __slots__ = ("id", "done", "message", "event", "future", "loop")

    def __init__(self, id):
        self.id = id
        self.done = False
        self.message = None
        self.event = None  # of a thread that waits while another reads
        self.future = None  # of a task, with its loop
        self.loop = None

    def result(self):
        error = self.message.get("error")
        if error is None:
            return self.message.get("result")
        data = error.get("data") or {}
        raise RemoteError(error.get("message", ""), data.get("kind", ""), data.get("hint", ""), error.get("code", 0))


class Client:
    """Sends requests and matches answers. guard: see interrupts.Guard."""

    _of_process = None

    def __init__(self, sock, guard):
        sock.setblocking(False)
        self._sock = sock
        self.guard = guard  # what follows runs shielded by it, but for the waiting
        self._pid = os.getpid()
        self._decoder = wire.Decoder()
        self._lock = threading.RLock()  # over the four below; never held while waiting
        self._dropped = collections.deque()  # calls to be abandoned with the next request
        self._last_id = 0
        self._pending = {}
        self._outgoing = bytearray()
        self._waiting = []
        self._reader = _Baton()  # held by the thread that waits for the socket
        self._patience = _PATIENCE if len(os.sched_getaffinity(0)) > 1 else 0
        self._watchers = {}  # event loop -> how many of its tasks wait
        self._changes = time.time_ns()  # another number in each process, and after each change
        Client._of_process = self

    def __reduce__(self):
        """What holds a client can be pickled: it gets the client of the process it is loaded in."""
        return _client_of_process, ()

    def call(self, method, params):
        """Send a request and wait for its result. Raises RemoteError."""
        with self.guard:
            call = self._submit(method, params)
            try:
                self._flush()
                self._wait([call])
            except BaseException:
                self.abandon([call])
                raise
        return call.result()

    def start(self, method, params):
        """Send a request without waiting for its answer: see wait_any.

        An interrupt between the two would leave it running: shield both with guard.
        """
        with self.guard:
            call = self._submit(method, params)
            try:
                self._flush()
            except BaseException:
                self.abandon([call])
                raise
        return call

    def wait_any(self, calls):
        """Wait until one of the started calls is answered; return those that are.

        If the wait is interrupted, all of them are abandoned.
        """
        with self.guard:
            try:
                self._wait(calls)
            except BaseException:
                self.abandon(calls)
                raise
        return [call for call in calls if call.done]

    def changes(self):
        """A number that is another one when the host has said that servers or tools have changed."""
        if os.getpid() != self._pid or self._interrupted():
            return self._changes
        with self.guard:
            if self._reader.take():  # else that thread reads
                try:
                    self._read()
                except ConnectionError:
                    pass  # who asks the host hears of it
                finally:
                    self._reader.release()
                    self._promote()
        return self._changes

    def abandon(self, calls):
        """Tell the host that nobody waits for these any more."""
        self._dropped.extend(calls)
        if self._interrupted():
            return  # a task was collected there
        with self.guard:
            self._promote()  # the one that leaves may just have been made the reader
            with self._lock:
                self._drop()
            self._flush()

    def _drop(self):
        while self._dropped:
            call = self._dropped.popleft()
            if self._pending.pop(call.id, None) is not None:
                self._outgoing += wire.pack("cancel", {"id": call.id})

    def _interrupted(self):
        """Whether this runs in the middle of another call of this thread: in a finalizer
        or a signal handler, which come between any two steps."""
        return self._lock._is_owned() or self._reader.mine()

    async def acall(self, method, params):
        """call() for a task: others run while it waits."""
        import asyncio

        loop = asyncio.get_running_loop()
        future = loop.create_future()
        call = None
        self._watch(loop)
        try:
            with self.guard:
                call = self._submit(method, params, loop, future)
                self._flush()
            await future
        except BaseException:
            if call is not None:
                self.abandon([call])
            raise
        finally:
            self._unwatch(loop)
        return call.result()

    # Sending.

    def _submit(self, method, params, loop=None, future=None):
        if os.getpid() != self._pid:
            raise RuntimeError("tools can be called from the cell's own process only, not from a fork of it")
        if self._interrupted():
            raise RuntimeError("no tool can be called here: a finalizer or a signal handler has come in the middle of another call")
        with self._lock:
            self._last_id += 1
            call = _Call(self._last_id)
        call.loop, call.future = loop, future
        data = wire.pack(method, params, call.id)
        with self._lock:
            self._drop()
            self._pending[call.id] = call
            self._outgoing += data
        return call

    def _flush(self):
        while self._outgoing:
            with self._lock:
                try:
                    sent = self._sock.send(self._outgoing)
                    del self._outgoing[:sent]
                except BlockingIOError:
                    pass
            if self._outgoing:
                self._make_room()

    def _make_room(self):
        """Wait until the host takes more. Read meanwhile: it may be waiting for that."""
        if self._reader.take():
            try:
                self._poll(select.POLLIN | select.POLLOUT)
                self._read()
            finally:
                self._reader.release()
                self._promote()
        else:  # another thread reads; look again soon, for it may stop
            self._poll(select.POLLOUT, _LOOK_AGAIN)

    # Receiving.

    def _wait(self, calls):
        while not any(call.done for call in calls):
            if self._reader.take():
                try:
                    until = time.monotonic() + self._patience
                    while not any(call.done for call in calls):
                        if time.monotonic() >= until:
                            self._poll(select.POLLIN)
                        self._read()
                finally:
                    self._reader.release()
                    self._promote()
            else:
                self._follow(calls)

    def _follow(self, calls):
        """Another thread reads: sleep until it has an answer of ours, or leaves."""
        event = threading.Event()
        for call in calls:
            call.event = event
        with self._lock:
            self._waiting.append(event)
        try:
            if self._reader.taken and not any(call.done for call in calls):
                self.guard.interruptible(event.wait)
        finally:
            with self._lock:
                self._waiting.remove(event)

    def _promote(self):
        """Wake a follower, which then reads."""
        with self._lock:
            for event in self._waiting:
                if not event.is_set():
                    event.set()
                    return

    def _poll(self, events, timeout=None):
        poller = select.poll()
        poller.register(self._sock.fileno(), events)
        self.guard.interruptible(poller.poll, timeout)

    def _read(self):
        """Take in what has arrived. Never blocks."""
        with self._lock:
            try:
                data = self._sock.recv(_READ_SIZE)
            except BlockingIOError:
                return
            if not data:
                raise ConnectionError("the host has closed the connection")
            for payload in self._decoder.feed(data):
                self._dispatch(payload)

    def _dispatch(self, payload):
        try:
            message = values.parse(payload)
        except (ValueError, RecursionError, MemoryError) as error:
            message = _unreadable(payload, error)
        if message.get("method") == "changed":
            self._changes += 1
        call = self._pending.pop(message.get("id"), None)
        if call is None:
            return  # abandoned meanwhile
        call.message = message
        call.done = True
        if call.future is not None:
            try:
                call.loop.call_soon_threadsafe(_resolve, call.future)
            except RuntimeError:
                pass  # the loop is closed: nobody waits
        elif call.event is not None:
            call.event.set()

    def _watch(self, loop):
        self._watchers[loop] = self._watchers.get(loop, 0) + 1
        if self._watchers[loop] == 1:
            loop.add_reader(self._sock.fileno(), self._on_readable)

    def _unwatch(self, loop):
        self._watchers[loop] -= 1
        if not self._watchers[loop]:
            del self._watchers[loop]
            loop.remove_reader(self._sock.fileno())

    def _on_readable(self):
        with self.guard:
            if self._reader.take():  # else that thread will read
                try:
                    self._read()
                finally:
                    self._reader.release()
                    self._promote()


class _Baton:
    """What the one thread holds that reads."""

    def __init__(self):
        self._lock = threading.RLock()  # that knows its thread, from the moment it is held
        self.mine = self._lock._is_owned
        self.taken = False  # a moment late, which costs a look more

    def take(self):
        """Try to take it, without waiting; returns whether it worked."""
        if not self._lock.acquire(blocking=False):
            return False
        self.taken = True
        return True

    def release(self):
        self.taken = False
        self._lock.release()


def _client_of_process():
    if Client._of_process is None:
        raise RuntimeError("tools are to be had in the cell's own process only")
    return Client._of_process


def _unreadable(payload, error):
    """In the place of an answer that cannot be parsed: an error for who waits for it."""
    known = re.match(rb'{"jsonrpc":"2.0","id":(\d+),', payload)
    text = f"the answer cannot be read: {type(error).__name__}: {error}"
    return {"id": int(known[1]) if known else None, "error": {"message": text}}


def _resolve(future):
    if not future.done():
        future.set_result(None)
