"""Frames: a 4-byte big-endian length, then one JSON-RPC 2.0 object in UTF-8.

The Go end is ../wire; both replay the vectors in ../testdata/wire.
"""

import json
import struct

MAX_FRAME = 64 << 20

_HEADER = struct.Struct(">I")
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
_encode_ascii = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


loads = json.loads


class ProtocolError(Exception):
    """The peer sent something that is not a frame."""


class FrameTooLarge(ValueError):
    """A message does not fit into one frame; nothing was sent."""


def dumps(value):
    """value as JSON in UTF-8 bytes; lone surrogates become escapes."""
    try:
        return _encode(value).encode()
    except UnicodeEncodeError:
        return _encode_ascii(value).encode()


def frame(payload):
    """payload, the bytes of one JSON object, with its header."""
    if len(payload) > MAX_FRAME:
        raise FrameTooLarge(
            f"message of {len(payload):,} bytes is too large: one frame carries {MAX_FRAME:,}"
        )
    return _HEADER.pack(len(payload)) + payload


def pack(method=None, params=None, id=None):
    """A request (with id) or notification as a frame."""
    message = {"jsonrpc": "2.0"}
    if id is not None:
        message["id"] = id
    message["method"] = method
    if params is not None:
        message["params"] = params
    return frame(dumps(message))


class Decoder:
    """Cuts a byte stream into the payloads of its frames."""

    def __init__(self, limit=MAX_FRAME):
        self._limit = limit
        self._buffer = bytearray()

    def feed(self, data):
        """Take data in; return the payloads it completes, oldest first."""
        buffer = self._buffer
        buffer += data
        payloads = []
        start, end = 0, len(buffer)
        while end - start >= 4:
            (size,) = _HEADER.unpack_from(buffer, start)
            if not 0 < size <= self._limit:
                raise ProtocolError(f"frame of {size} bytes (allowed are 1 to {self._limit})")
            if end - start - 4 < size:
                break
            payloads.append(bytes(buffer[start + 4 : start + 4 + size]))
            start += 4 + size
        if start:
            del buffer[:start]
        return payloads
