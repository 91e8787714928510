"""Running one cell: compile, execute, show the last expression, report."""

import ast
import linecache
import signal
import sys

from . import tracebacks

_FLAGS = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
# What else a request to run a cell may bring: name → function(namespace, value),
# called before the cell.
EXTRAS = {}

_CO_COROUTINE = 0x80  # inspect.CO_COROUTINE, without the cost of importing inspect


class Runner:
    """Runs cells in one namespace. Not for concurrent use."""

    def __init__(self, namespace, outputs, guard):
        self._namespace = namespace
        self._display = namespace["display"]
        self._outputs = outputs
        self._guard = guard
        self._loop = None
        self.cell = 0  # the number of the latest one

    def run(self, cell, code, value_limit, **extras):
        """Run code as cell number `cell`; return the report for the host."""
        try:
            for name, value in extras.items():
                EXTRAS[name](self._namespace, value)
            return self._run(cell, code, value_limit)
        except KeyboardInterrupt as late:  # it came while the report was made
            self._guard.disarm()
            return {"cell": cell, "status": "error", "error": tracebacks.describe(late)}

    def _run(self, cell, code, value_limit):
        self.cell = cell
        report = {"cell": cell, "status": "ok"}
        signal.signal(signal.SIGINT, self._guard.on_sigint)  # a cell may have replaced it
        self._display.begin(value_limit)
        try:
            self._guard.arm()
            try:
                value = self._execute(cell, code)
            except KeyboardInterrupt:
                raise  # there is no time for figures
            except BaseException:
                self._display.end()
                raise
            self._display.end()
            self._show(value, cell, report)
        except SystemExit as exit_:
            report.update(status="exit", exit=exit_status(exit_.code))
        except BaseException as error:
            self._guard.disarm()
            report.update(status="error", error=tracebacks.describe(error))
            if isinstance(error, KeyboardInterrupt):
                forget_orphans()
        finally:
            self._guard.disarm()
        self._display.report(report)
        return report

    def _execute(self, cell, code):
        code = code.removeprefix("\ufeff")  # a file's byte order mark
        filename = f"<cell {cell}>"
        linecache.cache[filename] = (len(code), None, code.splitlines(keepends=True), filename)
        body, last = split(ast.parse(code, filename, "exec"))
        if body.body:
            self._evaluate(compile(body, filename, "exec", _FLAGS, dont_inherit=True))
        if last is not None:
            return self._evaluate(compile(last, filename, "eval", _FLAGS, dont_inherit=True))
        return None

    def _evaluate(self, code):
        if code.co_flags & _CO_COROUTINE:
            return self._await(code)
        return eval(code, self._namespace)

    def _await(self, code):
        import asyncio

        if self._loop is None or self._loop.is_closed():
            self._loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self._loop)
        task = None
        try:
            with self._guard:  # an interrupt here would leave a coroutine that nobody awaits
                task = self._loop.create_task(eval(code, self._namespace))
            return self._loop.run_until_complete(task)
        except BaseException:
            if task is not None and not task.done():  # interrupted from outside: let its finally blocks run
                task.cancel()
                self._loop.run_until_complete(asyncio.wait([task], timeout=1))
            raise

    def _show(self, value, cell, report):
        """Put the last expression's value where `_` and the host find it."""
        if value is not None:
            self._namespace["_"] = value
            self._outputs.keep(cell, value)
            self._display.value(value, report)


def split(module):
    """The statements of a cell, and its last expression if it ends with one."""
    last = None
    if module.body and isinstance(module.body[-1], ast.Expr):
        last = ast.Expression(module.body.pop().value)
    return module, last


def forget_orphans():
    """Undo what is left of an import that was interrupted.

    Python takes the package out of sys.modules and leaves its parts there; when it
    is imported again they are not bound to it, and asyncio, for one, then fails for
    good.
    """
    for name in sorted(sys.modules):  # a package comes before its parts
        package = name.rpartition(".")[0]
        if package and package not in sys.modules:
            del sys.modules[name]


def exit_status(code):
    """What a process that called sys.exit(code) would end with; a message goes to stderr."""
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    try:
        print(code, file=sys.stderr)
    except Exception:
        pass  # it has no text, or stderr is gone
    return 1
