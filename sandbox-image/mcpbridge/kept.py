"""What the host keeps for cells: areas of texts by key, and values as JSON."""

import json

from .callback import RemoteError
from .values import parse

KEY_BYTES = 512
_DEPTH = 100  # of lists and objects in each other
_TRIES = 100  # to change what others change, too


class StateError(RuntimeError):
    """Something could not be kept, or read. kind: "full", "busy", "unavailable", …"""

    def __init__(self, message, kind=""):
        super().__init__(message)
        self.kind = kind


StateError.__module__ = "__main__"  # where cells see it: tracebacks then name it plainly


class Entry:
    """What an area has under a key. text is None if that is nothing."""

    __slots__ = ("text", "version", "session", "time")

    def __init__(self, reply):
        self.text = reply["value"]
        self.version = reply["version"]
        self.session = reply.get("session", "")
        self.time = reply.get("time", 0)


class Area:
    """A part of what the host keeps."""

    def __init__(self, client, name):
        self._client = client
        self._name = name

    def get(self, key):
        """The Entry of a key."""
        return Entry(self._ask("get", key=key))

    def put(self, key, text, expect=None):
        """Set the text of a key, if expect is None or its version. Returns the new version."""
        params = {"key": key, "value": text}
        if expect is not None:
            params["expect"] = expect
        return self._ask("put", **params)["version"]

    def delete(self, key):
        """Whether there was something to delete."""
        return self._ask("delete", key=key)["deleted"]

    def list(self):
        """What there is: records with key, size and stamp, sorted by key."""
        return sorted(self._ask("list")["entries"], key=lambda entry: entry["key"])

    def change(self, key, make):
        """Set a text to make(Entry), or delete it if that is None.

        If another session writes meanwhile, make is called again.
        """
        for _ in range(_TRIES):
            try:
                entry = self.get(key)
            except StateError as error:
                if error.kind != "damaged":
                    raise
                entry = Entry({"value": None, "version": ""})
            text = make(entry)
            try:
                if text is not None:
                    return self.put(key, text, entry.version)
                if entry.text is not None:
                    self._ask("delete", key=key, expect=entry.version)
                return None
            except StateError as error:
                if error.kind != "conflict":
                    raise
        raise StateError(f"{key!r} is being changed by others all the time: try again", "busy")

    def _ask(self, what, **params):
        try:
            return self._client.call("state/" + what, {"area": self._name, **params})
        except RemoteError as error:
            text = f"{error}\nHint: {error.hint}" if error.hint else str(error)
            raise StateError(text, error.kind) from None


def provide(client, name):
    """The error, for cells to catch."""
    return StateError


def checked_key(key, what="a key"):
    """The key, if it can be one."""
    if not isinstance(key, str):
        raise TypeError(f"{what} is a str, not {type(key).__name__}")
    if not key:
        raise ValueError(f"{what} is not empty")
    try:
        size = len(key.encode())
    except UnicodeEncodeError:
        raise ValueError(f"{what} is valid Unicode: {key!r} is not") from None
    if size > KEY_BYTES:
        raise ValueError(f"{what} has at most {KEY_BYTES} bytes in UTF-8, not {size:,}")
    return str(key)


def check(value, name):
    """Raise TypeError if value is no JSON: its text tells which part, of name."""
    _check(value, [name], ())


def to_json(value):
    """value, which was checked, as JSON."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def from_json(text):
    """The value, with objects as Records."""
    return parse(text)


def _check(value, path, outer):
    if value is None or isinstance(value, (bool, int, str)):
        return
    if isinstance(value, float):
        if value - value != 0:
            raise TypeError(f"{''.join(path)} is {value!r}: JSON has no such number; None may do")
        return
    if not isinstance(value, (dict, list, tuple)):
        raise TypeError(
            f"{''.join(path)} is of type {type(value).__name__}: only JSON is kept (dict, list, str, int, float, bool, None); "
            "keep what it takes to make it again"
        )
    if len(outer) == _DEPTH or any(value is v for v in outer):
        problem = "contains itself" if len(outer) < _DEPTH else f"is nested more than {_DEPTH} deep"
        raise TypeError(f"{''.join(path[:9])} {problem}: that is no JSON to keep")
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise TypeError(f"{''.join(path)} has the key {key!r} of type {type(key).__name__}: keys in JSON are str")
            _check(item, [*path, f"[{key!r}]"], (*outer, value))
    else:
        for index, item in enumerate(value):
            _check(item, [*path, f"[{index}]"], (*outer, value))
