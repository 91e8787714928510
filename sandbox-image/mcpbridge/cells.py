"""Running one cell: compile, execute, show the last expression, report."""

import ast
import re
import sys

from . import loops, sources, tracebacks

# What else a request to run a cell may bring: name → function(namespace, value),
# called before the cell, without value if the request brings none.
EXTRAS = {}

_FLAGS = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT

# Evaluates a cell's code. Its file is none of ours, for a warning that blames the
# caller of a cell, and is not taken for a cell's.
_evaluate = eval(compile("lambda code, namespace: eval(code, namespace)", "<cell>", "eval"), {"__name__": "<cell>"})


class Runner:
    """Runs cells in one namespace. Not for concurrent use.

    sources has their text, world repairs what they break, threads is told which runs."""

    def __init__(self, namespace, outputs, guard, sources, world, threads):
        self._namespace = namespace
        self._display = namespace["display"]
        self._outputs = outputs
        self._guard = guard
        self._sources = sources
        self._world = world
        self._threads = threads
        self._loop = loops.Loop(guard)
        self._shown = []  # what _, __ and ___ are, if we have set them
        self.cell = 0  # the number of the latest one

    def run(self, cell, code, value_limit, mode="compact", **extras):
        """Run code as cell number `cell`; return the report for the host."""
        self._display.begin(value_limit, mode)
        try:
            for name, bind in EXTRAS.items():
                bind(self._namespace, *([extras[name]] if name in extras else []))
            return self._run(cell, code)
        except KeyboardInterrupt as late:  # it came while the report was made
            self._guard.disarm()
            return {"cell": cell, "status": "error", "error": tracebacks.describe(late)}
        finally:
            self._threads.running = None

    def _run(self, cell, code):
        self.cell = self._outputs.cell = self._threads.running = cell
        report = {"cell": cell, "status": "ok"}
        code = code.removeprefix("\ufeff")  # a file's byte order mark
        self._sources.add(cell, code)
        self._world.repair()
        self._guard.install()
        try:
            self._guard.arm()
            try:
                value = self._execute(cell, code)
            except KeyboardInterrupt:
                self._guard.disarm()
                self._world.take()  # if the interrupt has kept it from that
                self._display.end_quickly()
                raise
            except BaseException:
                self._display.end()
                raise
            self._display.end()
            self._show(value, cell, report)
        except SystemExit as exit_:
            report.update(status="exit", exit=exit_status(exit_.code))
        except BaseException as error:
            self._guard.disarm()
            self._world.take()  # if an interrupt has kept it from that
            report.update(status="error", error=self._describe(error, code))
            if isinstance(error, KeyboardInterrupt):
                forget_orphans()
        finally:
            self._guard.disarm()
        self._display.report(report)
        return report

    def _execute(self, cell, code):
        filename = sources.filename(cell)
        try:
            tree = self._parse(code, filename)
        except IndentationError as error:
            code, tree = self._parse_indented(cell, code, filename, error)
        body, last = split(tree)
        shown = last is not None and not ends_in_semicolon(code, last)
        value = block = None
        if body.body:
            block = self._compile(body, filename, "exec")
            self._sources.flags |= future_flags(body)
            self._evaluate(block)
        if last is not None:
            value = self._evaluate(self._compile(ast.Expression(last.value), filename, "eval"))
            if not shown:
                return None
        if value is None and block is not None and "result" in block.co_names:
            from . import results

            if results.is_meant(body, last):
                return self._namespace.get(results.NAME)
        return value

    def _parse(self, code, filename):
        return compile(code, filename, "exec", ast.PyCF_ONLY_AST | _FLAGS | self._sources.flags, dont_inherit=True)

    def _parse_indented(self, cell, code, filename, error):
        """A cell that is indented as a whole, as if cut out of a larger text."""
        import textwrap

        first = next((line for line in code.splitlines() if line.strip()), "")
        dedented = textwrap.dedent(code)
        if not first[:1].isspace() or dedented == code:
            raise error
        tree = self._parse(dedented, filename)
        self._sources.replace(cell, dedented)
        return dedented, tree

    def _compile(self, tree, filename, mode):
        return compile(tree, filename, mode, _FLAGS | self._sources.flags, dont_inherit=True)

    def _evaluate(self, code):
        try:
            self._world.lend()
            return self._loop.evaluate(_evaluate, code, self._namespace)
        finally:
            self._world.take()

    def _describe(self, error, code):
        self._sources.restore()
        if isinstance(error, MemoryError):
            self._outputs.forget()
        described = tracebacks.describe(error)
        hint = tracebacks.hint(error, code)
        if hint:
            described["traceback"] += f"\nHint: {hint}"
        return described

    def _show(self, value, cell, report):
        """Put the last expression's value where `_` and the host find it."""
        if value is not None:
            self._remember(value)
            self._outputs.keep(cell, value)
            self._display.value(value, report)

    def _remember(self, value):
        """Set _, __ and ___, but no function of a cell's own: gettext's is called _."""
        own = self._namespace.get("_")
        if callable(own) and not any(own is shown for shown in self._shown):
            return
        self._shown = [value, *self._shown[:2]]
        for name, shown in zip(("_", "__", "___"), self._shown):
            self._namespace[name] = shown


def split(module):
    """The statements of a cell, and its last one if that is an expression."""
    last = None
    if module.body and isinstance(module.body[-1], ast.Expr):
        last = module.body.pop()
    return module, last


def ends_in_semicolon(code, statement):
    """Whether there is a semicolon behind the last statement, which hides its value."""
    lines = re.split("\r\n|\r|\n", code)[statement.end_lineno - 1 :]
    rest = lines[0].encode()[statement.end_col_offset :] if lines else b""
    return rest.lstrip(b" \t\f").startswith(b";")


def future_flags(module):
    """The compiler's flags for what the module imports from __future__."""
    flags = 0
    for statement in module.body:
        if isinstance(statement, ast.ImportFrom) and statement.module == "__future__" and not statement.level:
            import __future__

            for alias in statement.names:
                flags |= getattr(getattr(__future__, alias.name, None), "compiler_flag", 0)
    return flags


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
