"""JSON of a value, if it is JSON and not too long."""

import json

DEEPEST = 100
LONGEST = 1 << 12  # bits of an integer: not every reader takes numbers of a thousand digits


class _Not(Exception):
    """The value is not JSON, or too long."""


def encode(value, limit):
    """value as JSON of at most limit characters, or None."""
    try:
        text = json.dumps(_plain(value, [limit], 0), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        text.encode()
    except (_Not, ValueError, RecursionError):
        return None
    return text if len(text) <= limit else None


def _plain(value, left, depth):
    """value in the types of JSON, without building more than is left."""
    left[0] -= 1
    if left[0] < 0 or depth > DEEPEST:
        raise _Not
    if value is None or value is True or value is False:
        return value
    if isinstance(value, str):
        left[0] -= str.__len__(value)
        if left[0] < 0:
            raise _Not
        return str.__str__(value)
    if type(value) is int and value.bit_length() <= LONGEST or type(value) is float:
        return value
    if isinstance(value, dict):
        if not set(map(type, value)) <= {str}:  # JSON would make text of it
            raise _Not
        return {_plain(key, left, 0): _plain(item, left, depth + 1) for key, item in dict.items(value)}
    if type(value) in (list, tuple):
        return [_plain(item, left, depth + 1) for item in value]
    raise _Not
