"""Makes again what pickling.py took apart: the functions that its pickles call."""

import functools
import marshal
import pickle
import sys
import types

_anchors = {}  # name -> object: what this process has already
_made = []  # the classes that make_class made
_same = []  # not empty if code of this very Python is read


class Unpickler(pickle.Unpickler):
    """Reads what a Pickler wrote, one value after the other."""

    def value(self):
        """The next value."""
        self.load()  # the mark
        return self.load()[0]


class Resumed(pickle._Unpickler):
    """An Unpickler that goes on behind a value that could not be read. It is in Python,
    for the memo of one in C cannot be set."""

    def __init__(self, file, reader, known, following):
        """reader has failed; the objects that it was to make have numbers from known
        to following."""
        super().__init__(file)
        memo = reader.memo.copy()
        self.memo = {number: memo[number] if number < known else None for number in range(following)}

    value = Unpickler.value


def begin(reader, anchors, same_python):
    """Read what stands for anchors."""
    _anchors.clear()
    _anchors.update(anchors)
    _made.clear()
    _same[:] = [True] * same_python
    reader.load()


def anchor(name):
    module, _, attribute = name.rpartition(".")
    if module:
        __import__(module)
        return getattr(sys.modules[module], attribute, None)
    return _anchors.get(name)


def module(name):
    import importlib

    return importlib.import_module(name)


def package(name, *parts):
    for part in parts:
        try:
            module(part)
        except Exception:
            pass  # most often it was only mentioned, and is there all the same
    return module(name)


def module_vars(name):
    return vars(module(name))


def code(data):
    if not _same:
        raise ImportError("it was defined in another version of Python: define it again")
    return marshal.loads(data)


def function(code, namespace, name, closure):
    return types.FunctionType(code, namespace, name, None, closure)


def set_function(function, state):
    attributes, namespace = state
    for name, value in attributes.items():
        setattr(function, name, value)
    function.__dict__.update(namespace)


def cell():
    return types.CellType()


def set_cell(cell, contents):
    cell.cell_contents = contents[0]


def accessor(cls, name):
    return cls.__dict__[name]


def method(function, instance):
    return types.MethodType(function, instance)


def mapping(items):
    return types.MappingProxyType(items)


def cached(function, maxsize, typed):
    return functools.lru_cache(maxsize, typed)(function)


def dispatching(function):
    return functools.singledispatch(function)


def set_dispatching(function, kinds):
    for kind, implementation in kinds.items():
        function.register(kind, implementation)


def new(kind):
    return kind.__new__(kind)


def set_dict(thing, state):
    object.__getattribute__(thing, "__dict__").update(state)


def member(cls, kind, *value):
    return kind.__new__(cls, *value)


def make_class(meta, name, bases, given):
    """A class with nothing in it. Nothing that a cell defined runs for it: what that
    has done is in the pickle as well."""
    maker = next(kind for kind in meta.__mro__ if _makes(kind))
    hooks = [cls for base in bases for cls in base.__mro__ if cls in _made and "__init_subclass__" in cls.__dict__]
    hooks = [(cls, cls.__dict__["__init_subclass__"]) for cls in dict.fromkeys(hooks)]
    for cls, _ in hooks:
        type.__delattr__(cls, "__init_subclass__")
    try:
        cls = maker.__new__(meta, name, bases, dict(given))
    finally:
        for owner, hook in hooks:
            type.__setattr__(owner, "__init_subclass__", hook)
    _made.append(cls)
    return cls


def _makes(kind):
    """Whether a metaclass does what no attribute can. type does, and those written in C."""
    return isinstance(kind.__dict__.get("__new__"), types.BuiltinFunctionType) or kind.__qualname__ == "ABCMeta"


def set_class(cls, state):
    attributes, registered = state
    for name, value in attributes.items():
        type.__setattr__(cls, name, value)
    for kind in registered:
        type(cls).register(cls, kind)


def type_variable(kind, name, constraints, options, module):
    variable = kind(name, *constraints, **options)
    try:
        variable.__module__ = module
    except AttributeError:
        pass  # it is taken from the caller there
    return variable


def type_alias(kind, name, value, parameters):
    return kind(name, value, type_params=parameters)
