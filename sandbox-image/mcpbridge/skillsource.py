"""The source that makes a function or class again, elsewhere: with its imports,
its helpers and its constants."""

import __future__
import ast
import builtins
import linecache
import os
import re
import sys
import textwrap
import types

from . import provided

MAX_CONSTANT = 64_000  # characters of one constant
_MAX_PARTS = 200
_CELL = re.compile(r"<cell (\d+)>")

_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis))


class Source:
    """What was collected: the text, and what is told of it."""

    def __init__(self, name, text, signature, doc, cell):
        self.name = name
        self.text = text
        self.signature = signature  # "(a, b=1)"
        self.doc = doc
        self.cell = cell  # the number of the cell that defined it, or 0


def collect(thing):
    """The Source of a function or class.

    Raises TypeError for what cannot be kept; its text says what, and by whom it is used.
    """
    name = _name_of(thing)
    collector = _Collector()
    collector.add(name, thing, name, imported=False)
    text = collector.text()
    try:
        compile(text, f"<skill {name}>", "exec", dont_inherit=True)
    except SyntaxError as error:
        raise TypeError(f"{name} cannot be kept by itself: {error.msg}") from None
    return Source(name, text, signature_of(text, name), doc_of(text, name), _cell_of(thing))


def signature_of(text, name):
    """The parameters of the function or class of that name in a source, as text."""
    node = _definition(text, name)
    if isinstance(node, ast.ClassDef):
        init = [n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"]
        if not init:
            return "(...)" if node.decorator_list or node.bases else "()"
        node = init[-1]
        arguments = node.args.posonlyargs or node.args.args
        del arguments[:1]
    if node is None:
        return ""
    returns = f" -> {ast.unparse(node.returns)}" if getattr(node, "returns", None) is not None else ""
    return f"({ast.unparse(node.args)}){returns}"


def doc_of(text, name):
    """The docstring of what is called so in a source; of the source, if nothing is."""
    node = _definition(text, name)
    if isinstance(node, ast.Lambda):
        return ""
    return ast.get_docstring(node or ast.parse(text)) or ""


def _definition(text, name):
    found = None
    for node in ast.parse(text).body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and node.name == name:
            found = node
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
            if any(isinstance(target, ast.Name) and target.id == name for target in node.targets):
                found = node.value
    return found


def _name_of(thing):
    function = _unwrapped(thing)
    if not isinstance(function, (types.FunctionType, type)):
        raise TypeError(
            f"a skill is a function or a class, not {_article(thing)}"
            + (": save the function that it is a method of" if isinstance(thing, types.MethodType) else "")
        )
    if function.__name__ == "<lambda>":
        return _lambda_of(function)[0]
    return function.__name__


def _unwrapped(thing):
    for _ in range(100):
        if isinstance(thing, type):
            break
        inner = getattr(thing, "__wrapped__", None)
        if inner is None:
            break
        thing = inner
    return thing


def _cell_of(thing):
    function = _unwrapped(thing)
    if isinstance(function, type):
        function = next((f for f in vars(function).values() if isinstance(f, types.FunctionType)), None)
    known = _CELL.fullmatch(function.__code__.co_filename) if function is not None else None
    return int(known[1]) if known else 0


class _Collector:
    def __init__(self):
        self._imports = {}  # name → statement
        self._parts = {}  # name → source, what is used first
        self._things = {}  # name → the thing
        self._future = False

    def text(self):
        imports = ["from __future__ import annotations"] if self._future else []
        imports += self._imports.values()
        blocks = ["\n".join(imports)] if imports else []
        return "\n\n\n".join([*blocks, *self._parts.values()]) + "\n"

    def add(self, name, thing, user, imported=True):
        """Add what makes `name` be thing, which is used by user: an import where there is one."""
        if name in self._things:
            if self._things[name] is not thing:
                raise TypeError(f"two things that {user} needs are called {name!r}: rename one of them")
            return
        if len(self._things) == _MAX_PARTS:
            raise TypeError(f"more than {_MAX_PARTS} things are needed: make the skill smaller")
        self._things[name] = thing
        if provided.is_ours(name, thing):
            return
        statement = _import_of(name, thing) if imported else None
        if statement is not None:
            self._imports[name] = statement
            return
        function = _unwrapped(thing)
        if isinstance(function, types.FunctionType):
            self._add_function(name, function)
        elif isinstance(function, type):
            self._add_class(name, function)
        else:
            self._parts[name] = f"{name} = {_constant(thing, name, user, self._imports)}"

    def _add_function(self, name, function):
        self._future = self._future or bool(function.__code__.co_flags & __future__.annotations.compiler_flag)
        if function.__name__ == "<lambda>":
            own, source = _lambda_of(function)
            source = f"{own} = {source}"
        else:
            own, source = function.__name__, _function_source(function)
        free = {}
        for variable, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            try:
                free[variable] = cell.cell_contents
            except ValueError:
                pass  # not assigned yet
        self._add_names(source, own, free, function.__globals__)
        self._finish(name, own, source)

    def _add_class(self, name, cls):
        own, source = cls.__name__, _class_source(cls)
        functions = [f for f in vars(cls).values() if isinstance(f, types.FunctionType)]
        free = {}
        for function in functions:
            for variable, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
                if variable != "__class__":
                    free[variable] = cell.cell_contents
        module = sys.modules.get(cls.__module__)
        self._add_names(source, own, free, vars(module) if module is not None else {})
        self._finish(name, own, source)

    def _finish(self, name, own, source):
        self._parts[name] = source if name == own else f"{source}\n\n\n{name} = {own}"

    def _add_names(self, source, own, free, namespace):
        """Add what the source needs."""
        for used in _free_names(source, own):
            if used in free:
                self.add(used, free[used], own)
            elif used in namespace:
                self.add(used, namespace[used], own)
            elif used not in vars(builtins) and not provided.knows(used):
                raise TypeError(f"{own} uses {used!r}, which is not defined")


def _free_names(source, own):
    """The names that a definition takes from outside, in the order of their spelling."""
    import symtable

    found = set()

    def walk(table):
        for symbol in table.get_symbols():
            top = table.get_type() == "module"
            if symbol.is_referenced() and (symbol.is_global() or top and not symbol.is_assigned()):
                found.add(symbol.get_name())
            if symbol.is_declared_global():
                found.add(symbol.get_name())
        for child in table.get_children():
            walk(child)

    try:
        walk(symtable.symtable(source, "<skill>", "exec"))
    except SyntaxError as error:  # it was part of something larger
        raise TypeError(f"{own} cannot be kept by itself: {error.msg}") from None
    found.discard(own)
    return sorted(name for name in found if not (name.startswith("__") and name.endswith("__")))


def _import_of(name, thing):
    """The statement that imports thing as name, or None if there is none."""
    if isinstance(thing, types.ModuleType):
        module = thing.__name__
        if module == "__main__" or sys.modules.get(module) is not thing:
            raise TypeError(f"{name} is a module that cannot be imported")
        if module == name:
            return f"import {module}"
        package, _, last = module.rpartition(".")
        return f"from {package} import {last}" if package and last == name else f"import {module} as {name}"
    module = getattr(thing, "__module__", None)
    if not isinstance(module, str) or module in ("__main__", "builtins"):
        return None
    if module.startswith("skills."):
        skill = module[7:]
        if getattr(sys.modules.get(module), skill, None) is not thing:
            return None  # a part of a skill
        return f"from skills import {skill}" + (f" as {name}" if name != skill else "")
    own = getattr(thing, "__qualname__", None) or name
    for candidate in (own, name):
        if isinstance(candidate, str) and getattr(sys.modules.get(module), candidate, None) is thing:
            return f"from {module} import {candidate}" + (f" as {name}" if name != candidate else "")
    return None


def _constant(thing, name, user, imports):
    """An expression for a value, or TypeError."""
    if isinstance(thing, re.Pattern):
        imports.setdefault("re", "import re")
        flags = thing.flags & ~(re.UNICODE if isinstance(thing.pattern, str) else 0)
        return f"re.compile({thing.pattern!r}{f', {int(flags)}' if flags else ''})"
    if isinstance(thing, os.PathLike) and type(thing).__module__.startswith("pathlib"):
        imports.setdefault("pathlib", "import pathlib")
        return f"pathlib.Path({str(thing)!r})"
    if isinstance(thing, type) and thing.__module__ == "builtins" or isinstance(thing, types.BuiltinFunctionType):
        return thing.__name__
    if type(thing).__module__ == "mcpbridge.tool" and hasattr(thing, "server"):
        return f"tools[{thing.server!r}][{thing.name!r}]"
    text = _literal(thing, name, user, ())
    if len(text) > MAX_CONSTANT:
        raise TypeError(f"{user} uses {name!r}, which is too large to keep with it: pass it as an argument, or keep it in memory or in a file")
    return text


def _literal(value, name, user, outer):
    kind = type(value)
    if isinstance(value, _PLAIN):
        if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
            return f"float({str(value)!r})"
        if kind in _PLAIN or isinstance(value, (str, int, float)) and kind.__module__ == "__main__":
            return "..." if value is Ellipsis else repr(value)
    if any(value is v for v in outer) or len(outer) > 50:
        raise TypeError(f"{user} uses {name!r}, which contains itself, or goes too deep")
    inner = (*outer, value)
    if isinstance(value, dict) and (kind is dict or kind.__module__.startswith("mcpbridge.")):
        return "{" + ", ".join(f"{_literal(k, name, user, inner)}: {_literal(v, name, user, inner)}" for k, v in value.items()) + "}"
    if kind in (list, tuple, set, frozenset):
        parts = [_literal(v, name, user, inner) for v in value]
        if kind is list:
            return f"[{', '.join(parts)}]"
        if kind is tuple:
            return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
        if not parts:
            return f"{kind.__name__}()"
        return "{" + ", ".join(parts) + "}" if kind is set else "frozenset({" + ", ".join(parts) + "})"
    raise TypeError(
        f"{user} uses {name!r}, {_article(value)}, which cannot be kept with it: make it inside the function, or pass it as an argument"
    )


def _article(value):
    return f"an object of type {type(value).__name__}"


def _lines_of(filename, module=None):
    lines = linecache.getlines(filename, module)
    if not lines:
        raise TypeError(f"its source is not known: it was not defined in a cell or a file ({filename})")
    return lines


def _function_source(function):
    code = function.__code__
    lines = _lines_of(code.co_filename, function.__globals__)
    for node in ast.walk(ast.parse("".join(lines))):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == code.co_name:
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            if code.co_firstlineno in (first, node.lineno):
                return _cut(lines, first, node)
    raise TypeError(f"the source of {function.__name__} is not what it was when it was defined")


def _class_source(cls):
    """Of the cell that its methods are from, or the latest one that defines such a class."""
    files = [f.__code__.co_filename for f in vars(cls).values() if isinstance(f, types.FunctionType)]
    if cls.__module__ == "__main__":
        cells = [name for name in linecache.cache if _CELL.fullmatch(name)]
        cells.sort(key=lambda name: int(name[6:-1]), reverse=True)
        files = [name for name in files if name in cells] + cells  # of methods that others have put there
    elif cls.__module__.startswith("skills."):
        files = [f"<skill {cls.__module__[7:]}>"]
    elif hasattr(sys.modules.get(cls.__module__), "__file__"):
        files = [sys.modules[cls.__module__].__file__]
    for filename in dict.fromkeys(files):
        lines = linecache.getlines(filename)
        try:
            tree = ast.parse("".join(lines))
        except SyntaxError:
            continue
        found = [n for n in ast.walk(tree) if isinstance(n, ast.ClassDef) and n.name == cls.__name__]
        if found:
            node = found[-1]
            return _cut(lines, min([node.lineno, *(d.lineno for d in node.decorator_list)]), node)
    raise TypeError(f"the source of class {cls.__name__} is not known: it was not defined in a cell or a file")


def _cut(lines, first, node):
    if node.col_offset and lines[node.lineno - 1][: node.col_offset].strip():  # `if x: def …` or after a semicolon
        return ast.unparse(node)
    text = textwrap.dedent("".join(lines[first - 1 : node.end_lineno]))
    try:
        if len(ast.parse(text).body) == 1:
            return text.rstrip("\n")
    except SyntaxError:
        pass
    return ast.unparse(node)  # it shares a line with something else, or a string is less indented


def _lambda_of(function):
    """The name a lambda was given, and its source."""
    code = function.__code__
    found = []
    for node in ast.walk(ast.parse("".join(_lines_of(code.co_filename)))):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda) and node.lineno <= code.co_firstlineno <= node.end_lineno:
            found += [(target.id, ast.unparse(node.value)) for target in node.targets if isinstance(target, ast.Name)]
    if len(found) != 1:
        raise TypeError("a lambda has no name to be kept by: define it with def")
    return found[0]
