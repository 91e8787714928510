"""repr() of any value within a bound, and its shape where the bound cut it."""

_OPEN_CLOSE = {list: "[]", tuple: "()", set: "{}", frozenset: "{}", dict: "{}"}


_CUT = " …"  # at the end of a text that is not all


class _Full(Exception):
    """The bound is reached."""


def preview(value, limit):
    """{"text": at most limit characters of repr(value), "shape": set if it was cut}."""
    writer = _Writer(limit)
    shown = getattr(type(value), "__shown__", None)  # ours, for what says more alone than in a list
    try:
        if shown is not None:
            writer.text(shown(value))
        else:
            writer.value(value)
        return {"text": "".join(writer.parts)}
    except (_Full, RecursionError):
        text = "".join(writer.parts)
        return {"text": text[: max(0, limit - len(_CUT))] + _CUT, "shape": shape(value)}
    except Exception as error:  # it changed while it was read, or its class is odd
        return {"text": f"<{type(value).__name__} that cannot be shown: {type(error).__name__}>"}


class _Writer:
    def __init__(self, limit):
        self.parts = []
        self._left = limit
        self._open = set()  # ids of the containers being written

    def text(self, text):
        self.parts.append(text[: self._left])
        self._left -= len(text)
        if self._left < 0:
            raise _Full

    def value(self, value):
        kind = type(value)
        if kind in (str, bytes):
            # repr of a slice: never build what will not be shown
            self.text(repr(value[: self._left + 1]))
        elif isinstance(value, dict) and kind.__repr__ is dict.__repr__:
            self.container(value, self.items)
        elif kind in _OPEN_CLOSE:
            self.container(value, self.elements)
        else:
            self.text(safe_repr(value))

    def container(self, value, write):
        kind = dict if isinstance(value, dict) else type(value)
        opening, closing = _OPEN_CLOSE[kind]
        if id(value) in self._open:
            self.text(f"{opening}...{closing}")
            return
        self._open.add(id(value))
        if kind is frozenset or (kind is set and not value):
            self.text(kind.__name__ + "(")
            closing = closing + ")" if value else ")"
            opening = opening if value else ""
        self.text(opening)
        write(value)
        if kind is tuple and len(value) == 1:
            self.text(",")
        self.text(closing)
        self._open.discard(id(value))

    def elements(self, value):
        for i, item in enumerate(value):
            if i:
                self.text(", ")
            self.value(item)

    def items(self, value):
        for i, (key, item) in enumerate(value.items()):
            if i:
                self.text(", ")
            self.value(key)
            self.text(": ")
            self.value(item)


def safe_repr(value):
    """repr(value), or why there is none: showing a value must not fail a cell."""
    try:
        return repr(value)
    except Exception as error:
        return f"<{type(value).__name__} whose repr() raised {type(error).__name__}>"


def shape(value):
    """What value is, in a few words: `list of 10,000 dict: id, name`."""
    try:
        return _shape(value)
    except Exception:
        return type(value).__name__


def _shape(value):
    name = type(value).__name__
    if not hasattr(value, "__len__"):
        return name
    size = len(value)
    if isinstance(value, (str, bytes)):
        return f"{name} of {size:,} {'bytes' if isinstance(value, bytes) else 'characters'}"
    if isinstance(value, dict):
        return f"{name} of {size:,}{_names(value)}"
    if isinstance(value, (list, tuple)) and value:
        first = value[0]
        fields = _names(first) if isinstance(first, dict) else ""
        same = all(type(item) is type(first) for item in value[:100])
        kind = type(first).__name__ if same else "item"
        return f"{name} of {size:,} {kind}{fields}"
    return f"{name} of {size:,}"


def _names(mapping):
    names = [str(key)[:40] for _, key in zip(range(8), mapping)]
    more = ", …" if len(mapping) > len(names) else ""
    return f": {', '.join(names)}{more}" if names else ""
