"""Many calls at once in async code: tools.amap."""

import asyncio
import contextvars
import functools
import inspect
from asyncio import CancelledError
from concurrent.futures import ThreadPoolExecutor

from .asking import Askable
from .parallel import Failure, Results, arguments, checked, explained, unless_failed


class Amap:
    """tools.amap(...): `await` it for the list, or `async for` result in it, in order, as they come."""

    def __init__(self, function, items, concurrency, return_exceptions):
        self._function = function
        self._items = list(items)
        self._concurrency = checked(concurrency)
        self._return_exceptions = return_exceptions

    def __await__(self):
        return self._all().__await__()

    async def _all(self):
        results = Results([None] * len(self._items))
        failed = []
        async with _Workers(self._function, self._items, self._concurrency) as futures:
            for index, future in enumerate(futures):
                outcome = await future
                if isinstance(outcome, Failure):
                    failed.append(index)
                    outcome = outcome.error
                results[index] = outcome
        results.failed = failed
        return list(results) if self._return_exceptions else unless_failed(results, self._items)

    async def __aiter__(self):
        async with _Workers(self._function, self._items, self._concurrency) as futures:
            for index, future in enumerate(futures):
                outcome = await future
                if isinstance(outcome, Failure):
                    outcome = outcome.error
                    if not self._return_exceptions:
                        raise explained(outcome, index, self._items)
                yield outcome

    def __repr__(self):
        return f"<{len(self._items)} calls that have not begun: await it, or use it in async for>"


class _Workers:
    """Tasks that call a function for items, and a future for each of these. All have ended on leaving."""

    def __init__(self, function, items, concurrency):
        self._function = function
        self._items = items
        self._concurrency = concurrency
        self._leaving = False
        self._threads = None

    async def __aenter__(self):
        loop = asyncio.get_running_loop()
        self._futures = [loop.create_future() for _ in self._items]
        todo = iter(list(enumerate(map(arguments, self._items))))
        self._tasks = [loop.create_task(self._work(todo)) for _ in range(min(self._concurrency, len(self._items)))]
        return self._futures

    async def _work(self, todo):
        for index, (args, kwargs) in todo:
            outcome = None
            try:
                outcome = await self._call(args, kwargs)
            except BaseException as error:
                outcome = Failure(error)
                if self._leaving or not isinstance(error, (Exception, CancelledError)):
                    raise
            finally:
                if not self._futures[index].done():
                    self._futures[index].set_result(outcome)

    async def _call(self, args, kwargs):
        if isinstance(self._function, Askable):
            return await self._function.aio(*args, **kwargs)
        if inspect.iscoroutinefunction(self._function):
            return await self._function(*args, **kwargs)
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self._concurrency)
        run = functools.partial(contextvars.copy_context().run, self._function, *args, **kwargs)
        result = await asyncio.get_running_loop().run_in_executor(self._threads, run)
        return await result if inspect.isawaitable(result) else result

    async def __aexit__(self, *_):
        self._leaving = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
