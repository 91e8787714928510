"""Things by name, and what to say when there is none of a name."""

import re

from . import errors

own = object.__getattribute__  # what an instance has itself


class Namespace:
    """Things by name: x.name takes identifiers first, x["name"] the names they really have.

    Whatever is not Python's own, or listed in _methods, is looked for among the
    things: what the SDK calls its internals cannot hide any of them.
    """

    _methods = frozenset()

    def __getattribute__(self, name):
        # __x__ is asked for by Python itself; no identifier of a thing looks like that.
        python = name.startswith("__") and name.endswith("__") and not name.endswith("___")
        if python or name in type(self)._methods:
            return own(self, name)
        return type(self)._find(self, name, ("ident", "name"))

    def __getitem__(self, name):
        return type(self)._find(self, name, ("name", "ident"))


def first(things, name, keys):
    """The first thing with that name under the first key that has one, or None."""
    for key in keys:
        for thing in things:
            if getattr(thing, key) == name:
                return thing
    return None


_WORDS = re.compile("(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def snake(ident):
    """The snake_case of camelCase: what most Python code would call it."""
    return _WORDS.sub("_", ident).lower()


def alias(things, name):
    """The one thing with name as an alias, or None."""
    if not isinstance(name, str):
        return None
    found = [thing for thing in things if name in thing.aliases or snake(thing.ident) == name]
    if len(found) > 1:
        raise errors.UnknownTool(f"{name!r} may be {' or '.join(thing.ident for thing in found)}: say which")
    return found[0] if found else None


def near(name, names):
    import difflib

    names = list(names)
    close = difflib.get_close_matches(str(name), names, 3)
    if not close:  # fooBar for foo_bar, Foo-Bar for foo_bar
        plain = {"".join(filter(str.isalnum, n)).lower(): n for n in names}
        found = difflib.get_close_matches("".join(filter(str.isalnum, str(name))).lower(), plain, 3)
        close = [plain[n] for n in found]
    return f" (did you mean {' or '.join(close)}?)" if close else ""
