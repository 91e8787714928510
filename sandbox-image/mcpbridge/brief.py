"""What is shown of a value that is too large: its shape, and some of it from both ends."""

from .preview import Group, layout, parts, prefixed, size_of, text_of

LEAST = 1000  # characters for a value, unless the limit is less
FIRST = 10  # containers from the start of a container
LAST = 2  # items from its end
DEEPEST = 6  # containers in containers


def brief(value, limit, reprs):
    """{"text", "shape"} of a value whose repr has more than limit characters.

    Text is what a cell has asked for, and gets all the room there is; of data a
    tenth of it is enough to know how to go on.
    """
    what = shape(value)
    text = text_of(value)
    if text is not None:
        return {"text": _ends(text, limit), "shape": what}
    shown = getattr(type(value), "__shown__", None)
    if shown is not None:
        return {"text": cut(shown(value), limit), "shape": what}
    room = min(limit, max(LEAST, limit // 10))
    if parts(value) is None:
        text = reprs(value)
        return {"text": cut(text, room), "shape": what + f" whose repr has {len(text):,} characters"}
    return {"text": layout(_Some(reprs).node(value, room, 0))[:limit], "shape": what}


def _ends(value, limit):
    """repr() of both ends of a long string."""
    room = max(0, limit - 60)
    head = _fitting(value, room * 2 // 3, False)
    tail = _fitting(value, room - room * 2 // 3, True)
    unit = "bytes" if type(value) is bytes else "characters"
    return f"{head!r}\n[… {len(value) - len(head) - len(tail):,} more {unit} …]\n{tail!r}"


def _fitting(value, room, last):
    """As much of an end of value as has a repr of about room characters."""
    size = room
    while size:
        piece = value[-size:] if last else value[:size]
        written = len(repr(piece)) - 2
        if written <= room + 8:
            return piece
        size = max(size * room // written - 1, 0)
    return value[:0]


def cut(text, limit):
    """text, without its middle if it has more than limit characters."""
    if len(text) <= limit:
        return text
    room = max(0, limit - 40)
    head = room * 2 // 3
    tail = room - head
    return f"{text[:head]} [… {len(text) - room:,} characters …] {text[len(text) - tail:]}"


class _Some:
    """Makes nodes of some of what a value has."""

    def __init__(self, reprs):
        self._reprs = reprs

    def node(self, value, room, depth):
        text = text_of(value)
        if text is not None:
            return self._string(text, room)
        how = parts(value)
        if how is None:
            return self._object(value, room)
        if not how.length:
            return how.open + how.close
        if depth >= DEEPEST or room < 24:
            return f"{how.open}… {how.length:,} …{how.close.lstrip(',')}"
        return self._container(how, room, depth)

    def _string(self, value, room):
        if len(value) <= room:
            text = repr(value)
            if len(text) <= room + 2:
                return text
        piece = _fitting(value, max(8, room - 24), False)
        return f"{piece!r}… ({len(value):,} {'bytes' if type(value) is bytes else 'characters'})"

    def _object(self, value, room):
        if type(value).__module__.partition(".")[0] in ("pandas", "numpy"):
            return f"<{shape(value)}>"
        text = self._reprs(value)
        if len(text) <= room:
            return text
        return f"{text[: max(8, room - 24)]}… ({len(text):,} characters)"

    def _container(self, how, room, depth):
        share = max(24, room // min(5, how.length))
        left = room
        large = 0
        head, tail = [], []
        source = iter(how.items())
        for item in source:
            node = self._item(item, how, min(share, left), depth)
            left -= size_of(node) + 2
            head.append(node)
            large += type(node) is not str
            if left < room // 3 or large == FIRST:
                break
        rest = how.length - len(head)
        if rest > 0 and how.backwards is not None:
            for item, _ in zip(how.backwards(), range(min(LAST, rest))):
                node = self._item(item, how, min(share, left), depth)
                left -= size_of(node) + 2
                if left < 0 and tail:
                    break
                tail.insert(0, node)
            rest -= len(tail)
        if rest > 0:
            head.append(f"… {rest:,} more …")
        return Group(how.open, head + tail, how.close)

    def _item(self, item, how, room, depth):
        if how.separator is None:
            return self.node(item, room, depth + 1)
        key = item[0] if how.separator == "=" else self.node(item[0], room // 2, DEEPEST)
        return prefixed(key + how.separator, self.node(item[1], room - len(key), depth + 1))


def shape(value):
    """What value is, in a few words: `list of 10,000 dict: id, name`."""
    try:
        return _shape(value)
    except Exception:
        return type(value).__name__


def _shape(value):
    name = type(value).__name__
    if type(value).__module__.partition(".")[0] in ("pandas", "numpy"):
        from . import tables

        known = tables.shape(value)
        if known is not None:
            return known
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
