"""inspect.getsource() of classes that cells define: Python knows no file of theirs."""

import re


def find_classes(inspect, sources):
    """Have inspect look for classes of `__main__` among the cells."""
    import functools

    original = inspect.getfile

    @functools.wraps(original)
    def getfile(object):
        try:
            return original(object)
        except (OSError, TypeError):
            name = _file_of(object, sources) if isinstance(object, type) else None
            if name is None:
                raise
            return name

    inspect.getfile = getfile


def _file_of(cls, sources):
    """The name of the cell that defines cls, or None."""
    from .sources import filename

    if cls.__dict__.get("__module__") != "__main__":
        return None
    definition = re.compile(rf"^[ \t]*class[ \t]+{re.escape(cls.__name__)}\b", re.MULTILINE)
    line = cls.__dict__.get("__firstlineno__")
    for cell, text in reversed(sources.items()):
        if not definition.search(text):
            continue
        if line is None or _defined_at(text, line, cls.__name__):
            return filename(cell)
    return None


def _defined_at(text, line, name):
    """Whether a class of that name begins at that line, which may be a decorator's."""
    lines = text.splitlines()[line - 1 :]
    return any(re.match(rf"\s*class\s+{re.escape(name)}\b", each) for each in lines[:50]) if lines else False
