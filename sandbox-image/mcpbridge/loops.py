"""The event loop of top-level await, and asyncio.run() where one runs already."""

import contextvars
import sys
import threading

_CO_COROUTINE = 0x80  # inspect.CO_COROUTINE, without the cost of importing inspect
# What needs a running loop though it awaits nothing: the loop runs for these, too.
_NEEDS_LOOP = {"create_task", "ensure_future", "get_running_loop"}
_RUNS_LOOP = {"run_until_complete", "run_forever"}  # of its own, which cannot be within another
_FAREWELL = 2  # seconds for what was interrupted to run its finally blocks


class Loop:
    """One loop for all cells: tasks that a cell has started go on while later ones await."""

    def __init__(self, guard):
        self._guard = guard
        self._loop = None
        self._left = False  # by an exception that came in the middle of it
        self._context = contextvars.copy_context()  # of all cells, so that what they set lasts

    def wanted(self, code):
        """Whether code needs the loop."""
        if code.co_flags & _CO_COROUTINE:
            return True
        names = code.co_names
        if _NEEDS_LOOP.isdisjoint(names) or not _RUNS_LOOP.isdisjoint(names):
            return False
        return "asyncio" in sys.modules or "asyncio" in names

    def evaluate(self, evaluate, code, namespace):
        """evaluate(code, namespace), with the loop running if it is wanted."""
        if not self.wanted(code):
            return self._context.run(evaluate, code, namespace)
        import asyncio

        if self._loop is None or self._loop.is_closed():
            self._loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self._loop)
        task = None
        try:
            with self._guard:  # an interrupt here would leave a coroutine that nobody awaits
                if code.co_flags & _CO_COROUTINE:
                    coroutine = evaluate(code, namespace)
                else:
                    coroutine = _inside(evaluate, code, namespace)
                task = self._loop.create_task(coroutine, **self._task_options)
            return self._run(task)
        except BaseException:
            if task is not None:
                self._end(task)
            raise

    def _run(self, awaitable):
        if self._left:  # a stop of that time may still be to come, and would end this
            self._loop.call_soon(self._loop.stop)
            self._loop.run_forever()
            self._left = False
        try:
            return self._loop.run_until_complete(awaitable)
        except BaseException:
            self._left = True
            raise

    @property
    def _task_options(self):
        return {"context": self._context} if sys.version_info >= (3, 11) else {}

    def _end(self, task):
        """Let the finally blocks of a task run that was interrupted from outside."""
        import asyncio

        if not task.done():
            task.cancel()
            self._run(asyncio.wait([task], timeout=1))
        elif not task.cancelled():
            task.exception()  # it is told, and need not be logged as well


async def _inside(evaluate, code, namespace):
    return evaluate(code, namespace)


def let_run_nest(asyncio):
    """Have asyncio.run() work where a loop runs: on another one, in a thread that the
    caller waits for, as it would for any call that blocks."""
    import functools

    original = asyncio.run

    @functools.wraps(original)
    def run(main, **options):
        if asyncio._get_running_loop() is None:
            return original(main, **options)
        return _Beside(asyncio, original, main, options).wait()

    asyncio.run = run
    main = sys.modules["__main__"].__dict__
    for name in [name for name, value in main.items() if value is original]:
        main[name] = run


class _Beside:
    """asyncio.run() in a thread of its own."""

    def __init__(self, asyncio, run, main, options):
        self._asyncio = asyncio
        self._task = self._loop = self._value = self._error = None
        self._done = threading.Event()
        context = contextvars.copy_context()
        work = (self._work, run, main, options)
        self._thread = threading.Thread(target=context.run, args=work, name="asyncio.run", daemon=True)
        self._abandoned = False

    def _work(self, run, main, options):
        async def known():
            self._task, self._loop = self._asyncio.current_task(), self._asyncio.get_running_loop()
            if self._abandoned:
                self._task.cancel()
            return await main

        try:
            self._value = run(known(), **options)
        except BaseException as error:
            self._error = error
        finally:
            self._done.set()

    def wait(self):
        try:
            self._thread.start()
            self._done.wait()
        except BaseException:  # an interrupt
            self._abandoned = True
            if self._loop is not None and not self._done.is_set():
                self._loop.call_soon_threadsafe(self._task.cancel)
            if self._thread.ident is not None:
                self._done.wait(_FAREWELL)
            raise
        if self._error is not None:
            try:
                raise self._error
            finally:
                self._error = None  # it holds this frame
        return self._value
