"""Many calls at once: tools.map."""

from .tool import Tool


def run(function, items, concurrency, return_exceptions, guard):
    """See Toolbox.map."""
    if concurrency < 1:
        raise ValueError("concurrency is at least 1")
    work = _map_tool if isinstance(function, Tool) else _map_function
    results = work(function, [_arguments(item) for item in items], concurrency, guard)
    if not return_exceptions:
        for result in results:
            if isinstance(result, _Failure):
                raise result.error
    return [r.error if isinstance(r, _Failure) else r for r in results]


class _Failure:
    """What a parallel call raised, in the place of its result."""

    def __init__(self, error):
        self.error = error


def _arguments(item):
    if isinstance(item, dict):
        return (), item
    return (item if isinstance(item, tuple) else (item,)), {}


def _map_tool(tool, items, concurrency, guard):
    """Calls in flight at once, from one thread: the host runs them in parallel."""
    with guard:  # an interrupt must not come between a call and its note
        return _map_shielded(tool, items, concurrency)


def _map_shielded(tool, items, concurrency):
    results = [None] * len(items)
    waiting = list(enumerate(items))[::-1]
    running = {}  # call -> index of its item
    try:
        while waiting or running:
            while waiting and len(running) < concurrency:
                index, (args, kwargs) = waiting.pop()
                try:
                    running[tool._start(args, kwargs)] = index
                except Exception as error:
                    results[index] = _Failure(error)
            for call in tool._client.wait_any(running) if running else ():
                index = running.pop(call)
                try:
                    results[index] = tool._finish(call)
                except Exception as error:
                    results[index] = _Failure(error)
    except BaseException:
        tool._client.abandon(running)
        raise
    return results


def _map_function(function, items, concurrency, guard):
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
                results[index] = _Failure(error)
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
    return results
