"""Documentation of tools, at three lengths."""

from .callback import RemoteError
from .errors import of_host

_UNKNOWN_METHOD = -32601  # JSON-RPC's: a host that does not describe


class Doc(str):
    """Text that shows as it is. Call it for more or less: .doc("brief"), ("signature"), ("full")."""

    _tool = None

    def __repr__(self):
        return str(self)

    def __call__(self, level="full"):
        if self._tool is None:
            return self
        try:
            write = _LEVELS[level]
        except (KeyError, TypeError):
            raise ValueError(f"the levels of documentation are {', '.join(_LEVELS)}, not {level!r}") from None
        return Doc(write(self._tool))


def of_tool(tool):
    doc = Doc(text(tool))
    doc._tool = tool
    return doc


def text(tool):
    """Signature, description, parameters; with what the host has learned since the tool was listed."""
    return _now(tool, "help", _text)


def _text(tool):
    doc = tool._doc
    lines = [doc["signature"], ""]
    if doc.get("description"):
        lines += [doc["description"].strip(), ""]
    for p in doc["params"]:
        need = "required" if p["required"] else "optional"
        if not p["required"] and p.get("default"):
            need = f"default {p['default']}"
        lines.append(f"  {p['ident']}: {p['type']} ({need})  {p.get('description') or ''}".rstrip())
    return "\n".join(lines).rstrip()


def _now(tool, detail, otherwise):
    try:
        return _ask(tool, detail)
    except RemoteError:
        return otherwise(tool)


def _full(tool):
    """All of it, schema, examples and the shape of results included: only the host knows that."""
    try:
        return _ask(tool, "full")
    except RemoteError as error:
        if error.code == _UNKNOWN_METHOD:
            return text(tool)
        raise of_host(error, tool.server, tool.name) from None


def _ask(tool, detail):
    return tool._client.call("tools/describe", {"server": tool.server, "tool": tool.name, "detail": detail})["doc"]


_LEVELS = {
    "brief": lambda tool: _now(tool, "brief", repr),
    "signature": lambda tool: _now(tool, "signature", lambda tool: tool._doc["signature"]),
    "full": _full,
}
