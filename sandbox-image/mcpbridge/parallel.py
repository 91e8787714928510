"""Many calls at once: tools.map."""

from .asking import Askable

LIMIT = 64  # at once: the host runs no more for one sandbox, the rest would wait there


def checked(concurrency):
    if not isinstance(concurrency, int) or concurrency < 1:
        raise ValueError(f"concurrency is a number of at least 1, not {concurrency!r}")
    return min(concurrency, LIMIT)


def run(function, items, concurrency, return_exceptions, guard):
    """See Toolbox.map."""
    concurrency = checked(concurrency)
    items = list(items)
    prepared = [arguments(item) for item in items]
    if isinstance(function, Askable):
        results = _ask(function, prepared, concurrency, guard)
    else:
        results = _in_threads(function, prepared, concurrency, guard)
    return list(results) if return_exceptions else unless_failed(results, items)


def requests(asked, concurrency=LIMIT):
    """Requests at once: their values, or what they raised, in order."""
    if not asked:
        return []
    client = asked[0]._client
    with client.guard:
        return _opened(_in_flight(client, [lambda r=r: r for r in asked], concurrency))


class Failure:
    """What a call raised, in the place of its result, which may be an exception itself."""

    __slots__ = ("error",)

    def __init__(self, error):
        self.error = error


class Results(list):
    """Results in order; what failed is there as its exception. `failed` has the indices of those."""

    failed = ()


def _opened(results):
    opened = Results(r.error if isinstance(r, Failure) else r for r in results)
    opened.failed = [i for i, r in enumerate(results) if isinstance(r, Failure)]
    return opened


def unless_failed(results, items):
    """results, or the first error among them, which knows its item and all results."""
    if not results.failed:
        return list(results)
    index = results.failed[0]
    raise explained(results[index], index, items, results)


def explained(error, index, items, results=None):
    item = repr(items[index])
    item = item if len(item) <= 100 else item[:100] + "…"
    note = f"(item {index} of {len(items)}: {item}"
    if results is not None:
        done = len(items) - len(results.failed)
        note += f"; {done} succeeded, {len(results.failed)} failed: see .results of this error, or return_exceptions=True"
    known = None if results is None else list(results)
    _attach(error, note + ")", index=index, item=items[index], results=known)
    return error


def _attach(error, note, **attributes):
    from .errors import ToolError

    try:
        if note and hasattr(error, "add_note"):  # Python 3.11
            error.add_note(note)
        elif note and isinstance(error, ToolError):
            error.args = (f"{error}\n{note}",)
        for name, value in attributes.items():
            setattr(error, name, value)
    except Exception:
        pass  # an exception of the user's that takes no more


def arguments(item):
    if isinstance(item, dict):
        return (), item
    return (item if isinstance(item, tuple) else (item,)), {}


def _ask(asked, items, concurrency, guard):
    """Calls in flight at once, from one thread: the host runs them in parallel."""
    if not items:
        return Results()
    prepare = [lambda args=args, kwargs=kwargs: asked._request(*args, **kwargs) for args, kwargs in items]
    with guard:  # an interrupt must not come between a call and its note
        return _opened(_in_flight(None, prepare, concurrency))


def _in_flight(client, prepare, concurrency):
    results = [None] * len(prepare)
    waiting = list(enumerate(prepare))[::-1]
    running = {}  # call -> index of its item, Request
    try:
        while waiting or running:
            while waiting and len(running) < concurrency:
                index, make = waiting.pop()
                try:
                    request = make()
                    client = client or request._client
                    running[request.start()] = index, request
                except Exception as error:
                    results[index] = Failure(error)
            for call in client.wait_any(running) if running else ():
                index, request = running.pop(call)
                try:
                    results[index] = request.finished(call)
                except Exception as error:
                    results[index] = Failure(error)
    except BaseException as interrupt:
        if running:
            client.abandon(running)
        _attach(interrupt, "", results=results)
        raise
    return results


def _in_threads(function, items, concurrency, guard):
    """In threads, each of which takes the next item until there is none.

    An interrupt reaches the main thread only: no further item is begun.
    """
    import queue
    import threading

    results = [None] * len(items)
    todo, done = queue.SimpleQueue(), queue.SimpleQueue()

    def work():
        while True:
            try:
                index, (args, kwargs) = todo.get_nowait()
            except queue.Empty:
                return
            try:
                results[index] = function(*args, **kwargs)
            except BaseException as error:
                results[index] = Failure(error)
            done.put(None)

    with guard:
        for item in enumerate(items):
            todo.put(item)
        try:
            for _ in range(min(concurrency, len(items))):
                threading.Thread(target=work, daemon=True).start()
            for _ in items:
                guard.interruptible(done.get)
        except BaseException:
            while not todo.empty():
                try:
                    todo.get_nowait()
                except queue.Empty:
                    break
            raise
    return _opened(results)
