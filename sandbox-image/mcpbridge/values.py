"""What a tool call returns, as Python values."""

import base64
import json

from .errors import ToolError, shown


class Record(dict):
    """A JSON object: a dict whose keys can be read as attributes too. What dict itself
    has comes first: record["items"] is the key, record.items the method."""

    __slots__ = ()

    def copy(self):
        return type(self)(self)

    def __or__(self, other):
        return type(self)({**self, **other}) if isinstance(other, dict) else NotImplemented

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            keys = ", ".join(map(str, list(self)[:20]))
            raise AttributeError(f"no key {name!r} here; the keys are: {keys}") from None

    def __dir__(self):
        return [*super().__dir__(), *(k for k in self if isinstance(k, str) and k.isidentifier())]


class Media:
    """Bytes with a MIME type, from a content block."""

    def __init__(self, data, mime_type):
        self.data = data
        self.mime_type = mime_type

    def __repr__(self):
        return f"<{type(self).__name__} {self.mime_type}, {len(self.data):,} bytes>"

    def save(self, path):
        """Write the bytes to path; return path."""
        with open(path, "wb") as file:
            file.write(self.data)
        return path


class Image(Media):
    """An image. Left as a cell's last expression, the model sees it."""


class Audio(Media):
    """Sound."""


def parse(payload):
    """JSON with objects as Records."""
    return json.loads(payload, object_hook=Record)


class _Malformed(Exception):
    """A result is not what the protocol says; the text says where."""


def unwrap(result, server, tool):
    """The Python value of a CallToolResult, or ToolError if it says isError, or is none."""
    try:
        blocks = [_block(_checked(b, dict, "a content block")) for b in _member(result, "content", list, [])]
    except _Malformed as error:
        message = f"tool {tool!r} of server {server!r} answered with a malformed result: {error}"
        raise ToolError(message, server, tool, result) from None
    if result.get("isError"):
        texts = [b for b in blocks if isinstance(b, str)]
        message = shown("\n".join(texts)) or "the tool reported an error without saying which"
        raise ToolError(message, server, tool, result)
    structured = result.get("structuredContent")
    if structured is not None and not any(isinstance(b, Media) for b in blocks):
        return structured
    if not blocks:
        return None
    return _parsed(blocks[0]) if len(blocks) == 1 else [_parsed(b) for b in blocks]


_KINDS = {dict: "an object", list: "a list", str: "a string"}


def _checked(value, kind, what):
    if not isinstance(value, kind):
        raise _Malformed(f"{what} is not {_KINDS[kind]} but {type(value).__name__}")
    return value


def _member(block, key, kind, default):
    """block[key], of that kind; default if it is absent or null."""
    value = _checked(block, dict, "the result").get(key)
    return default if value is None else _checked(value, kind, key)


def _parsed(block):
    """Text that is a JSON object or array as what it says; the rest as it is.

    Bare numbers and words stay text: "007" and "1e5" are more often names.
    """
    return _json(block) if isinstance(block, str) and block.lstrip()[:1] in ("{", "[") else block


def _block(block):
    """A content block as a Python value; an unknown kind stays as it came."""
    kind = block.get("type")
    if kind == "text":
        return _member(block, "text", str, "")
    if kind in ("image", "audio"):
        data = _decoded(_member(block, "data", str, ""))
        return (Image if kind == "image" else Audio)(data, _member(block, "mimeType", str, ""))
    if kind == "resource":
        return _content(_member(block, "resource", dict, {}), block)
    return block


def _content(resource, otherwise):
    """The text or bytes of a resource; text that says it is JSON as what it says."""
    mime = _member(resource, "mimeType", str, "")
    text = _member(resource, "text", str, None)
    if text is not None:
        return _json(text) if mime.split(";")[0].strip().endswith(("/json", "+json")) else text
    blob = _member(resource, "blob", str, None)
    if blob is None:
        return otherwise
    data = _decoded(blob)
    kind = {"image": Image, "audio": Audio}.get(mime.split("/")[0])
    return kind(data, mime) if kind else data


def _json(text):
    try:
        return parse(text)
    except (ValueError, RecursionError):
        return text


def contents(result, server, uri):
    """The Python value of a ReadResourceResult: of one content itself, of several a list."""
    try:
        found = [_content(_checked(c, dict, "a content"), c) for c in _member(result, "contents", list, [])]
    except _Malformed as error:
        message = f"resource {uri!r}{_of(server)} is malformed: {error}"
        raise ToolError(message, server, None, result) from None
    return found[0] if len(found) == 1 else found


def messages(result, server, name):
    """The messages of a GetPromptResult as Records of role and content, a Python value."""
    found = []
    try:
        for message in _member(result, "messages", list, []):
            role = _member(_checked(message, dict, "a message"), "role", str, "")
            found.append(Record(role=role, content=_block(_member(message, "content", dict, {}))))
    except _Malformed as error:
        raise ToolError(f"prompt {name!r}{_of(server)} is malformed: {error}", server, name, result) from None
    return found


def _of(server):
    return f" of server {server!r}" if server else ""


def data_of(result):
    """The structured content of a CallToolResult, or the JSON that its text is; else None."""
    if not isinstance(result, dict):
        return None
    if result.get("structuredContent") is not None:
        return result["structuredContent"]
    content = result.get("content")
    for block in content if isinstance(content, list) else ():
        text = block.get("text") if isinstance(block, dict) else None
        found = _parsed(text) if isinstance(text, str) else None
        if isinstance(found, (dict, list)):
            return found
    return None


def _decoded(data):
    try:
        return base64.b64decode("".join(data.split()), validate=True)  # some servers break lines
    except ValueError:
        raise _Malformed("data is not base64") from None
