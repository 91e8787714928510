"""The arguments of a call, as the tool's own parameters: or a TypeError that helps."""

from .names import near, snake


def bind(doc, called, args, kwargs):
    """Positional and keyword arguments by the names that the tool knows.

    doc: {params, signature, open}; called: what the call is called in errors.
    """
    params = doc["params"]

    def wrong(problem):
        return TypeError(f"{called} {problem}. Signature: {doc['signature']}")

    if len(args) > len(params):
        if doc.get("open") and not params:
            raise wrong("takes its arguments by name")
        raise wrong(f"takes {len(params)} argument{'' if len(params) == 1 else 's'}, got {len(args)}")
    arguments = {p["name"]: value for p, value in zip(params, args)}
    for key, value in kwargs.items():
        found = _named(params, key)
        if len(found) > 1:
            raise wrong(f"has no parameter {key!r}; it may be {' or '.join(p['ident'] for p in found)}")
        if not found and not doc.get("open"):
            raise wrong(f"has no parameter {key!r}{near(key, (p['ident'] for p in params))}")
        name = found[0]["name"] if found else key
        if name in arguments:
            raise wrong(f"got {key!r} twice")
        arguments[name] = value
    missing = [p["ident"] for p in params if p["required"] and p["name"] not in arguments]
    if missing:
        raise wrong(f"misses {', '.join(map(repr, missing))}")
    return arguments


def _named(params, key):
    """The parameters that key may mean: by name, by identifier, by an alias."""
    for names in (lambda p: (p["name"],), lambda p: (p["ident"],), lambda p: (snake(p["ident"]), *(p.get("aliases") or ()))):
        found = [p for p in params if key in names(p)]
        if found:
            return found
    return []
