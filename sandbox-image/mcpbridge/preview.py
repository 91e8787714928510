"""repr() of any value within a bound, laid out to be read; or head, tail and shape of it."""

import collections
import sys
import types

WIDTH = 100  # characters of a line, where a value can be broken
SMALL = 24  # so short a container shares its line with others
MOST = 1 << 20  # characters of any value: with it a report fits its frame


class Full(Exception):
    """The bound is reached."""


def preview(value, limit):
    """{"text": at most limit characters, of repr(value), "shape": set if it was cut}."""
    shown = _preview(value, min(limit, MOST))
    return {key: encodable(text) for key, text in shown.items()}


def encodable(text):
    """text, with escapes for what is in no encoding: lone surrogates."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def _preview(value, limit):
    reprs = Reprs()
    try:
        table = _table(value)
        if table is not None:
            return table(value, limit)
        text = layout(_Whole(limit, reprs).node(value, top=True))
        if len(text) <= limit:
            return {"text": text}
    except (Full, RecursionError, MemoryError):
        pass
    except Exception as error:  # it changed while it was read, or its class is odd
        return {"text": f"<{type(value).__name__} that cannot be shown: {type(error).__name__}>"}
    try:
        from . import brief

        return brief.brief(value, limit, reprs)
    except Exception as error:
        return {"text": f"<{type(value).__name__} that cannot be shown: {type(error).__name__}>", "shape": "value"}


def _table(value):
    """What shows a value of a package that we know, or None."""
    module = type(value).__module__
    if type(module) is str and module.partition(".")[0] in ("pandas", "numpy"):
        from . import tables

        return tables.find(value)
    return None


class Reprs:
    """repr() of objects, once each: it may take long, or print."""

    def __init__(self):
        self._known = {}  # id: (the object, so that it stays, its repr)

    def __call__(self, value):
        known = self._known.get(id(value))
        if known is None:
            known = self._known[id(value)] = (value, safe_repr(value))
        return known[1]


def safe_repr(value):
    """repr(value), or why there is none: showing a value must not fail a cell."""
    try:
        text = repr(value)
        return text if type(text) is str else str.__str__(text)
    except Exception as error:
        if type(value) is int:
            return f"<int of {value.bit_length():,} bits: more digits than Python writes before sys.set_int_max_str_digits(0)>"
        return f"<{type(value).__name__} whose repr() raised {type(error).__name__}>"


def text_of(value):
    """value if it is text or bytes that Python writes as a literal, or None."""
    kind = type(value)
    if kind in (str, bytes):
        return value
    if isinstance(value, str) and kind.__repr__ is str.__repr__:
        return str.__str__(value)
    return None


# Containers.


class Group:
    """A container to be laid out: its items are texts and groups."""

    __slots__ = ("open", "items", "close", "size")

    def __init__(self, opening, items, close):
        self.open, self.items, self.close = opening, items, close
        self.size = len(opening) + len(close) + sum(map(size_of, items)) + 2 * max(0, len(items) - 1)


def size_of(node):
    """How many characters node has in one line."""
    return len(node) if type(node) is str else node.size


def prefixed(prefix, node):
    """node behind the text prefix."""
    if type(node) is str:
        return prefix + node
    node.open = prefix + node.open
    node.size += len(prefix)
    return node


class Parts:
    """How a container is written: what encloses its items, and how to get at them.

    items() goes through them, backwards() from the end, if that is possible. They
    are pairs of a key and a value where there is a separator between them.
    """

    __slots__ = ("open", "close", "length", "items", "backwards", "separator")

    def __init__(self, opening, close, length, items, backwards=None, separator=None):
        self.open, self.close, self.length = opening, close, length
        self.items, self.backwards, self.separator = items, backwards, separator


def parts(value):
    """The Parts of a container that is written as Python itself would, or None."""
    kind = type(value)
    make = _KINDS.get(kind)
    if make is not None:
        return make(value)
    if isinstance(value, dict):
        return _dict(value) if kind.__repr__ is dict.__repr__ else None
    own_repr = kind.__repr__
    if isinstance(value, tuple):
        if hasattr(kind, "_fields") and getattr(own_repr, "__module__", None) == "collections":
            return _fields(value, kind.__name__, [(name, value[i]) for i, name in enumerate(kind._fields)])
        return None
    fields = getattr(kind, "__dataclass_fields__", None)
    wrapped = getattr(own_repr, "__wrapped__", None)
    if fields is not None and getattr(getattr(wrapped, "__code__", None), "co_filename", "") == "<string>":  # made by dataclasses
        return _fields(value, kind.__qualname__, [(f.name, getattr(value, f.name)) for f in fields.values() if _is_shown(f)])
    return None


def _is_shown(field):
    return field.repr and getattr(field._field_type, "name", "") == "_FIELD"


def _fields(_, name, pairs):
    return Parts(name + "(", ")", len(pairs), lambda: pairs, lambda: pairs[::-1], "=")


def _sequence(opening, close):
    def make(value):
        return Parts(opening, close, len(value), lambda: value, lambda: reversed(value))

    return make


def _tuple(value):
    return Parts("(", ",)" if len(value) == 1 else ")", len(value), lambda: value, lambda: reversed(value))


def _set(value):
    kind = type(value)
    if not value:
        return Parts(kind.__name__ + "(", ")", 0, lambda: ())
    opening, close = ("{", "}") if kind is set else (kind.__name__ + "({", "})")
    return Parts(opening, close, len(value), lambda: value)


def _dict(value, opening="{", close="}"):
    return Parts(opening, close, dict.__len__(value), lambda: dict.items(value), lambda: reversed(dict.items(value)), ": ")


def _named_dict(value):
    name = type(value).__name__
    return _dict(value, name + "({", "})") if value else Parts(name + "(", ")", 0, lambda: ())


def _counter(value):
    if len(value) > 10_000:
        return _named_dict(value)
    if not value:
        return Parts("Counter(", ")", 0, lambda: ())
    try:
        pairs = value.most_common()
    except TypeError:  # counts that have no order
        return _named_dict(value)
    return Parts("Counter({", "})", len(pairs), lambda: pairs, lambda: reversed(pairs), ": ")


def _deque(value):
    close = "])" if value.maxlen is None else f"], maxlen={value.maxlen})"
    return Parts("deque([", close, len(value), lambda: value, lambda: reversed(value))


def _view(value):
    return Parts(type(value).__name__ + "([", "])", len(value), lambda: value, lambda: reversed(value))


_KINDS = {
    list: _sequence("[", "]"),
    tuple: _tuple,
    set: _set,
    frozenset: _set,
    dict: _dict,
    collections.defaultdict: lambda v: _dict(v, f"defaultdict({safe_repr(v.default_factory)}, {{", "})"),
    collections.Counter: _counter,
    collections.deque: _deque,
    type({}.keys()): _view,
    type({}.values()): _view,
    type({}.items()): _view,
    types.SimpleNamespace: lambda v: _fields(v, "namespace", list(vars(v).items())),
}
if sys.version_info >= (3, 12):  # before, its repr is that of a list
    _KINDS[collections.OrderedDict] = _named_dict


# The whole of a value.


class _Whole:
    """Makes nodes of all that a value has, or raises Full."""

    def __init__(self, limit, reprs):
        self._left = limit
        self._reprs = reprs
        self._inside = set()  # ids of the containers being written

    def take(self, text):
        self._left -= len(text)
        if self._left < 0:
            raise Full
        return text

    def node(self, value, top=False):
        text = text_of(value)
        if text is not None:
            return self.take(repr(text[: self._left + 1]))  # of what is longer, no more is built than shows it
        if top:
            shown = getattr(type(value), "__shown__", None)  # ours, for what says more alone than in a list
            if shown is not None:
                return self.take(shown(value))
        how = parts(value)
        if how is None:
            return self.take(self._reprs(value))
        if id(value) in self._inside:
            return self.take(how.open + "..." + how.close.lstrip(","))
        self._inside.add(id(value))
        self.take(how.open + how.close)
        items = []
        for item in how.items():
            if how.separator is None:
                items.append(self.node(item))
            else:
                key = self.take(item[0]) if how.separator == "=" else flat(self.node(item[0]))
                items.append(prefixed(key + self.take(how.separator), self.node(item[1])))
            self._left -= 2
        self._left += 2 if items else 0
        self._inside.discard(id(value))
        return Group(how.open, items, how.close)


# Layout.


def flat(node):
    """node in one line."""
    if type(node) is str:
        return node
    pieces = []
    _flat(node, pieces)
    return "".join(pieces)


def _flat(node, pieces):
    if type(node) is str:
        pieces.append(node)
        return
    pieces.append(node.open)
    for i, item in enumerate(node.items):
        if i:
            pieces.append(", ")
        _flat(item, pieces)
    pieces.append(node.close)


def layout(node):
    """node in lines of WIDTH where it can be: a container's items go side by side,
    and containers in it on lines of their own. But for line breaks it is repr()."""
    pieces = []
    _lay(node, 0, 0, pieces)
    return "".join(pieces)


def _lay(node, indent, column, pieces):
    """Write node, of which the first line begins at column; return where the last ends."""
    if type(node) is str or column + node.size <= WIDTH:
        _flat(node, pieces)
        return column + size_of(node)
    indent += 1
    pieces.append(node.open)
    column += len(node.open)
    alone = False  # nothing may follow on this line
    for i, item in enumerate(node.items):
        size = size_of(item)
        large = type(item) is not str and size > SMALL
        if i:
            pieces.append(",")
            column += 1
            if alone or large or column + 1 + size >= WIDTH:
                pieces.append("\n" + " " * indent)
                column = indent
            else:
                pieces.append(" ")
                column += 1
        column = _lay(item, indent, column, pieces)
        alone = large
    pieces.append(node.close)
    return column + len(node.close)


def shape(value):
    """What value is, in a few words: `list of 10,000 dict: id, name`."""
    from . import brief

    return brief.shape(value)
