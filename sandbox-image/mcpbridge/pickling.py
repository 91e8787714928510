"""Pickles what cells have made, by value: functions and classes with their code.

The other end is unpickling.py. What can be imported is pickled by name, as always;
what a cell defined can not, and goes with all it is made of.
"""

import functools
import marshal
import pickle
import sys
import types

from . import unpickling

PROTOCOL = 5
_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: made by a class statement, most often
_ACCESSORS = (types.GetSetDescriptorType, types.MemberDescriptorType)
_GIVEN = ("__module__", "__slots__", "__orig_bases__")  # what a class needs as it is made
_DROPPED = ("__dict__", "__weakref__", "_abc_impl")  # what it gets as it is made
# Objects that are compared by identity and that pickle would copy.
_SENTINELS = {
    "dataclasses": (
        *("MISSING", "KW_ONLY", "_FIELD", "_FIELD_CLASSVAR", "_FIELD_INITVAR"),
        *("_HAS_DEFAULT_FACTORY", "_EMPTY_METADATA"),
    ),
}


class Pickler(pickle.Pickler):
    """Pickles one value after the other; what they share is pickled once.

    anchors are objects that the restored process has already, by name. The
    Unpickler needs ones of the same names. text is the code of the cells.
    """

    def __init__(self, file, anchors, text=""):
        super().__init__(file, PROTOCOL)
        self._file = file
        self._text = text
        self._modules = {}  # name -> _Vars
        self._put_anchors(anchors)

    def _put_anchors(self, anchors):
        """Pickle a stand-in for each, and take it for the object itself from now on."""
        anchors = {**anchors, **_sentinels()}
        stand_ins = [_Anchor(name) for name in anchors]
        self.dump(stand_ins)
        memo = self.memo.copy()
        for stand_in, thing in zip(stand_ins, anchors.values()):
            if id(thing) not in memo:  # one may have two names; the numbers must stay without gaps
                index, _ = memo.pop(id(stand_in))
                memo[id(thing)] = (index, thing)
        self.memo = memo

    def add(self, value):
        """Pickle value; return how many objects were known before, for the Unpickler.

        If that fails the pickler is as before.
        """
        begin = self._file.tell()
        mark = []
        self.dump((mark, mark))
        known = self._index_in(begin)
        boxed = [value]
        try:
            self.dump(boxed)
        except BaseException:
            memo = self.memo.copy()
            self.memo = {key: entry for key, entry in memo.items() if entry[0] < known}
            self._file.seek(begin)
            self._file.truncate()
            raise
        return known

    def _index_in(self, begin):
        """The number under which the first list in what was just written is known."""
        self._file.seek(begin)
        data = self._file.read()
        get = data[data.index(b"]\x94") + 2 :]  # after EMPTY_LIST, MEMOIZE: BINGET or LONG_BINGET
        return get[1] if get[:1] == b"h" else int.from_bytes(get[1:5], "little")

    def reducer_override(self, thing):
        kind = type(thing)
        reduce = _REDUCERS.get(kind)
        if reduce is not None:
            return reduce(self, thing)
        if issubclass(kind, type):
            return self._class(thing)
        if issubclass(kind, types.ModuleType):
            return self._module(thing)
        module = getattr(kind, "__module__", None)
        if isinstance(module, str) and module.startswith(__package__ + "."):
            return _own(thing)
        enum = sys.modules.get("enum")
        if enum is not None and issubclass(kind, enum.Enum) and not importable(kind):
            return _member(thing)
        return NotImplemented

    def _function(self, function):
        if importable(function):
            return NotImplemented
        if hasattr(function, "_clear_cache") and isinstance(getattr(function, "registry", None), types.MappingProxyType):
            kinds = dict(function.registry)
            return unpickling.dispatching, (kinds.pop(object),), kinds, None, None, unpickling.set_dispatching
        state = {
            name: getattr(function, name)
            for name in ("__qualname__", "__module__", "__doc__", "__defaults__", "__kwdefaults__")
        }
        if getattr(function, "__annotate__", None) is not None:  # Python 3.14: not evaluated yet
            state["__annotate__"] = function.__annotate__
        elif sys.version_info < (3, 14) and function.__annotations__:
            state["__annotations__"] = function.__annotations__
        if getattr(function, "__type_params__", ()):
            state["__type_params__"] = function.__type_params__
        arguments = function.__code__, self._globals(function), function.__name__, function.__closure__
        return unpickling.function, arguments, (state, function.__dict__), None, None, unpickling.set_function

    def _globals(self, function):
        """The dict of globals, or if it is a module's, what stands for it."""
        namespace = function.__globals__
        name = namespace.get("__name__")
        module = sys.modules.get(name) if isinstance(name, str) and name != "__main__" else None
        if module is None or getattr(module, "__dict__", None) is not namespace:
            return namespace
        return self._modules.setdefault(name, _Vars(name))

    def _code(self, code):
        return unpickling.code, (marshal.dumps(code),)

    def _cell(self, cell):
        try:
            contents = cell.cell_contents
        except ValueError:
            return unpickling.cell, ()
        if type(contents) is dict and "__annotate_func__" in contents:
            # The dict of a class, from Python 3.14 on: what evaluates annotations looks there.
            contents = {name: value for name, value in contents.items() if name not in _DROPPED}
        return unpickling.cell, (), (contents,), None, None, unpickling.set_cell

    def _accessor(self, descriptor):
        return unpickling.accessor, (descriptor.__objclass__, descriptor.__name__)

    def _method(self, method):
        return unpickling.method, (method.__func__, method.__self__)

    def _module(self, module):
        name = module.__name__
        if sys.modules.get(name) is not module:
            raise pickle.PicklingError("it is a module that was not imported")
        # After `import a.b` only a is bound, and has b only because that was imported.
        parts = [part for part in list(sys.modules) if part.startswith(name + ".") and part in self._text]
        return unpickling.package if parts else unpickling.module, (name, *parts)

    def _property(self, value):
        return property, (value.fget, value.fset, value.fdel, value.__doc__)

    def _wrapper(self, value):
        return type(value), (value.__func__,)

    def _mapping(self, value):
        return unpickling.mapping, (dict(value),)

    def _cached(self, value):
        if importable(value):
            return NotImplemented
        parameters = value.cache_parameters()
        arguments = value.__wrapped__, parameters["maxsize"], parameters["typed"]
        return unpickling.cached, arguments, value.__dict__, None, None, unpickling.set_dict

    def _cached_property(self, value):
        state = {"attrname": value.attrname, "__doc__": value.__doc__}
        return functools.cached_property, (value.func,), state

    def _class(self, cls):
        if importable(cls):
            return NotImplemented
        if not cls.__flags__ & _HEAP_TYPE:
            for name, thing in vars(types).items():
                if thing is cls:
                    return getattr, (types, name)
            return NotImplemented
        given, state = {"__qualname__": cls.__qualname__}, {}
        for name, value in type.__dict__["__dict__"].__get__(cls).items():
            if name in _GIVEN:
                given[name] = value
            elif name not in _DROPPED and not (isinstance(value, _ACCESSORS) and value.__objclass__ is cls):
                state[name] = value
        registered = []
        if "_abc" in sys.modules and "_abc_impl" in cls.__dict__:
            registered = [ref() for ref in sys.modules["_abc"]._get_dump(cls)[0]]
        arguments = type(cls), cls.__name__, cls.__bases__, given
        return unpickling.make_class, arguments, (state, registered), None, None, unpickling.set_class

    def _type_variable(self, value):
        if importable(value):
            return NotImplemented
        options = {}
        for name in ("covariant", "contravariant", "infer_variance"):
            if getattr(value, f"__{name}__", False):
                options[name] = True
        if getattr(value, "__bound__", None) is not None:
            options["bound"] = value.__bound__
        if getattr(value, "has_default", bool)():
            options["default"] = value.__default__
        constraints = getattr(value, "__constraints__", ())
        return unpickling.type_variable, (type(value), value.__name__, constraints, options, value.__module__)

    def _type_alias(self, value):
        if importable(value):
            return NotImplemented
        return unpickling.type_alias, (type(value), value.__name__, value.__value__, value.__type_params__)

    def _new_type(self, value):
        if importable(value):
            return NotImplemented
        return type(value), (value.__qualname__, value.__supertype__), {"__module__": value.__module__}


class _Anchor:
    """In the pickle, in the place of what the restored process has already."""

    def __init__(self, name):
        self._name = name

    def __reduce__(self):
        return unpickling.anchor, (self._name,)


class _Vars:
    """In the pickle, in the place of a module's dict."""

    def __init__(self, name):
        self._name = name

    def __reduce__(self):
        return unpickling.module_vars, (self._name,)


_REDUCERS = {
    types.FunctionType: Pickler._function,
    types.CodeType: Pickler._code,
    types.CellType: Pickler._cell,
    types.MethodType: Pickler._method,
    types.ModuleType: Pickler._module,
    types.MappingProxyType: Pickler._mapping,
    types.GetSetDescriptorType: Pickler._accessor,
    types.MemberDescriptorType: Pickler._accessor,
    property: Pickler._property,
    classmethod: Pickler._wrapper,
    staticmethod: Pickler._wrapper,
    functools._lru_cache_wrapper: Pickler._cached,
    functools.cached_property: Pickler._cached_property,
    _Anchor: lambda _, stand_in: stand_in.__reduce__(),
    _Vars: lambda _, stand_in: stand_in.__reduce__(),
}


def prepare():
    """Learn the kinds of modules that cells have imported since."""
    typing = sys.modules.get("typing")
    if typing is not None:
        for name in ("TypeVar", "ParamSpec", "TypeVarTuple"):
            if hasattr(typing, name):
                _REDUCERS[getattr(typing, name)] = Pickler._type_variable
        if isinstance(typing.NewType, type):
            _REDUCERS[typing.NewType] = Pickler._new_type
        if hasattr(typing, "TypeAliasType"):
            _REDUCERS[typing.TypeAliasType] = Pickler._type_alias


def _sentinels():
    return {
        f"{module}.{name}": getattr(sys.modules[module], name)
        for module, names in _SENTINELS.items()
        if module in sys.modules
        for name in names
        if hasattr(sys.modules[module], name)
    }


def importable(thing):
    """Whether another process finds thing by its name."""
    name = getattr(thing, "__module__", None)
    if name == "__main__" or not isinstance(name, str):
        return False
    found = sys.modules.get(name)
    for part in getattr(thing, "__qualname__", thing.__name__).split("."):
        found = getattr(found, part, None)
    return found is thing


def _own(thing):
    """An object of ours: a tool, search hits. Nothing of its own must be called for it,
    for an attribute may be a tool, and its name looked up at the host."""
    kind = type(thing)
    try:
        state = object.__getattribute__(thing, "__dict__")
    except AttributeError:
        state = None
    if issubclass(kind, dict):
        return unpickling.new, (kind,), state, None, iter(dict.items(thing)), unpickling.set_dict
    if issubclass(kind, list):
        return unpickling.new, (kind,), state, iter(list.__iter__(thing)), None, unpickling.set_dict
    if kind.__new__ is object.__new__ and not getattr(kind, "__slots__", ()):
        return unpickling.new, (kind,), state, None, None, unpickling.set_dict
    return NotImplemented


_PLAIN = {  # what a member of an Enum is, beside being a member
    int: int.__int__,
    str: str.__str__,
    float: float.__float__,
    bytes: lambda value: bytes.__getitem__(value, slice(None)),
    tuple: lambda value: tuple.__getitem__(value, slice(None)),
}


def _member(member):
    cls = type(member)
    kind = cls._member_type_
    if kind in _PLAIN:
        arguments = cls, kind, _PLAIN[kind](member)
    elif kind.__new__ is object.__new__:
        arguments = cls, object
    else:
        raise pickle.PicklingError(f"it is a member of an Enum of {kind.__name__}")
    return unpickling.member, arguments, member.__dict__, None, None, unpickling.set_dict
