"""multiprocessing by spawn and forkserver, for what is defined in cells.

A child that is not forked begins with an empty `__main__`: Python would fill it
by running the program's file again, and there is none. So along with what
multiprocessing tells each child goes a description of `__main__`: functions and
classes as their text in the cells, the rest of what these name by pickle.
Imported when a cell imports multiprocessing.spawn, not before.
"""

import ast
import contextlib
import marshal
import os
import pickle
import sys
import types

LIMIT = 64 << 20  # bytes of the values that go along
CALLERS = ("mcpbridge.toolbox", "mcpbridge.server", "mcpbridge.tool")  # modules of what calls the host


def send_definitions(spawn, texts):
    """Have each child that spawn prepares get the definitions of the cells."""
    original = spawn.get_preparation_data
    parsed = {}  # cell → its definitions

    def get_preparation_data(name):
        data = original(name)
        if name != "ignore" and not data.keys() & {"init_main_from_name", "init_main_from_path"}:
            data["mcpbridge"] = _Definitions(texts, parsed)
        return data

    spawn.get_preparation_data = get_preparation_data


class _Definitions:
    """Is pickled as a call that makes `__main__` in the process that unpickles it."""

    def __init__(self, texts, parsed):
        self._texts = texts
        self._parsed = parsed

    def __reduce__(self):  # now a lock or a queue of multiprocessing's can be pickled
        with _descriptors_of_its_own():
            payload = pickle.dumps(describe(self._texts, self._parsed))
        return exec, (_CHILD, {"payload": payload})


@contextlib.contextmanager
def _descriptors_of_its_own():
    """A queue may be a global of a cell and an argument too. They are two objects in
    the child, and if the descriptors were the same, one would close those of the other."""
    from multiprocessing import util
    from multiprocessing.context import get_spawning_popen

    popen = get_spawning_popen()
    if getattr(popen, "method", None) != "spawn":
        yield  # by forkserver they are sent, which makes them others
        return
    copies = []

    def duplicate(fd):
        copies.append(os.dup(fd))
        popen._fds.append(copies[-1])
        return copies[-1]

    popen.duplicate_for_child = duplicate
    try:
        yield
    finally:
        del popen.duplicate_for_child
        if copies:
            util.Finalize(popen, util.close_fds, copies)


def describe(texts, parsed):
    """What a child needs to make a `__main__` like this one."""
    namespace = sys.modules["__main__"].__dict__
    for cell in [cell for cell in parsed if cell not in dict(texts.items())]:
        del parsed[cell]
    found = {}  # name → (cell, statement), the latest
    for cell, text in texts.items():
        if cell not in parsed:
            parsed[cell] = _definitions(text, texts.flags)
        for definition in parsed[cell]:
            found[definition.name] = (cell, definition)
    chosen = [entry for name, entry in found.items() if _is_defined_here(namespace.get(name))]
    chosen.sort(key=lambda entry: (entry[0], entry[1].line))
    names = set().union(*(definition.names for _, definition in chosen))
    defined = {definition.name for _, definition in chosen}
    for name, value in namespace.items():
        if name not in defined and _is_plain(value):
            names |= {name, *_names(value.__code__)}
    return {
        "sys_path": sys.path,
        "flags": texts.flags,
        "definitions": [(f"<cell {cell}>", d.name, d.line, d.text) for cell, d in chosen],
        **_values(namespace, names - defined),
    }


class _Definition:
    """A def or class statement of a cell."""

    def __init__(self, statement, lines):
        self.name = statement.name
        self.line = min([statement.lineno, *(d.lineno for d in statement.decorator_list)])
        self.text = "\n".join(lines[self.line - 1 : statement.end_lineno])
        self.names = set(_names(compile(ast.Module([statement], []), "<cell>", "exec", dont_inherit=True)))


def _names(code):
    """The global names in code and what is nested in it; attributes, too."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _definitions(text, flags):
    try:
        flags |= ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        body = compile(text, "<cell>", "exec", flags, dont_inherit=True).body
        lines = text.splitlines()
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        return [_Definition(statement, lines) for statement in body if isinstance(statement, kinds)]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []  # the cell did not run


def _is_defined_here(value):
    """Whether value may be what a def or class statement has made, decorated or not."""
    try:
        return value.__module__ == "__main__" or type(value).__module__ not in ("builtins", "__main__")
    except Exception:
        return False


def _values(namespace, names):
    """What names stand for: modules, values as pickles, functions as code, and what cannot go."""
    from multiprocessing.reduction import ForkingPickler

    told = {"modules": {}, "values": {}, "functions": {}, "missing": {}}
    left = LIMIT
    for name in sorted(names & namespace.keys()):
        value = namespace[name]
        if isinstance(value, types.ModuleType):
            told["modules"][name] = value.__name__
            continue
        if type(value).__module__ in CALLERS:
            told["missing"][name] = "it works in the cell's own process only"
            continue
        try:
            kind = "functions" if _is_plain(value) else "values"
            data = bytes(_function(value) if kind == "functions" else ForkingPickler.dumps(value))
            if len(data) > left:
                raise ValueError(f"it is too large ({len(data):,} bytes; {LIMIT:,} can be sent)")
            left -= len(data)
            told[kind][name] = data
        except Exception as error:
            told["missing"][name] = f"{type(error).__name__}: {error}"
    return told


def _is_plain(value):
    """Whether value is a function that pickle would not find by its name."""
    return type(value) is types.FunctionType and value.__module__ == "__main__" and value.__closure__ is None


def _function(function):
    return marshal.dumps((function.__code__, function.__name__, pickle.dumps((function.__defaults__, function.__kwdefaults__))))


# Runs in the child, which has nothing of ours, before multiprocessing goes on there.
_CHILD = '''
def rebuild(payload):
    import importlib, linecache, marshal, pickle, sys, types
    from multiprocessing import spawn

    told = pickle.loads(payload)
    sys.path[:] = told["sys_path"]
    main = types.ModuleType("__main__")
    spawn.old_main_modules.append(sys.modules["__main__"])
    sys.modules["__main__"] = sys.modules["__mp_main__"] = main
    names = main.__dict__

    class Missing:
        def __init__(self, name, why):
            self.__dict__["text"] = f"{name!r} of the cells is not there in another process: {why}"

        def fail(self, *_, **__):
            raise RuntimeError(self.text)

        __call__ = __iter__ = __len__ = __getitem__ = __add__ = __radd__ = __mul__ = __rmul__ = __enter__ = __exit__ = fail

        def __getattr__(self, name):
            if name.startswith("__"):
                raise AttributeError(name)
            raise RuntimeError(self.text)

    def attempt(name, make):
        try:
            names[name] = make()
            return True
        except Exception as error:
            names[name] = Missing(name, f"{type(error).__name__}: {error}")
            return False

    def function(data):
        code, name, defaults = marshal.loads(data)
        made = types.FunctionType(code, names, name)
        made.__defaults__, made.__kwdefaults__ = pickle.loads(defaults)
        return made

    def define(file, name, line, text):
        lines = linecache.cache.get(file, (0, None, [], file))[2]
        lines += ["\\\\n"] * (line - 1 - len(lines)) + [each + "\\\\n" for each in text.split("\\\\n")]
        linecache.cache[file] = (len(lines), None, lines, file)
        exec(compile("\\\\n" * (line - 1) + text, file, "exec", told["flags"], dont_inherit=True), names)
        return names[name]

    for name, why in told["missing"].items():
        names[name] = Missing(name, why)
    for name, module in told["modules"].items():
        attempt(name, lambda: importlib.import_module(module))
    for name, data in told["functions"].items():
        attempt(name, lambda: function(data))
    late = [(name, data) for name, data in told["values"].items() if not attempt(name, lambda: pickle.loads(data))]
    for file, name, line, text in told["definitions"]:
        attempt(name, lambda: define(file, name, line, text))
        late = [(name, data) for name, data in late if not attempt(name, lambda: pickle.loads(data))]

rebuild(payload)
'''.replace("\\\\", "\\")
