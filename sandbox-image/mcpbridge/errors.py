"""What a cell catches when the host, or a server, refuses or fails."""


import re

_LONGEST = 20_000  # characters of what a server says of a failure

# Escape sequences of terminals, and what is not seen, or changes what is.
_UNSEEN = (
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]?|[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[ -~])|\x9b[0-?]*[ -/]*[@-~]?"
    "|[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u2800\u3164\ud800-\udfff\ue000-\uf8ff\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U0010ffff]"
)


def shown(text):
    """What a server says of a failure, fit to be shown. It is whole in ToolError.result."""
    text = re.sub(_UNSEEN, "", text[: 2 * _LONGEST])
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


class ToolError(Exception):
    """A call failed. The text is what the server said, or what the bridge has to say.

    `server` and `tool` name whose call it was. If the server answered, `result`
    is its raw answer, `content` its content blocks, and `data` its structured
    content, or the JSON in its text; else they are None, [] and None.
    """

    server = tool = result = None
    kind = ""  # what the bridge calls it

    def __init__(self, message, server=None, tool=None, result=None):
        super().__init__(message)
        self.server = server
        self.tool = tool
        self.result = result

    @property
    def content(self):
        content = self.result.get("content") if isinstance(self.result, dict) else None
        return content if isinstance(content, list) else []

    @property
    def data(self):
        from . import values

        return values.data_of(self.result)

    def __repr__(self):
        whose = ".".join(name for name in (self.server, self.tool) if isinstance(name, str))
        return f"{type(self).__name__}({str(self)!r}{', ' if whose else ''}{whose})"


class ToolTimeout(ToolError, TimeoutError):
    """A server did not answer in time."""


class ServerUnavailable(ToolError, ConnectionError):
    """A server did not start, or ended during the call."""


class PolicyError(ToolError, PermissionError):
    """The user's policy does not allow the call."""


class UnknownTool(ToolError, AttributeError, TypeError):
    """There is no such server or tool: as an attribute, and as a thing to call."""

    kind = "unknown_tool"

    def __init__(self, message, server=None, tool=None, result=None):
        super().__init__(message, server, tool, result)
        # Not left unset: a traceback would ask dir() of the object, and so the host,
        # for names like the missing one.
        self.name, self.obj = "", None


ALL = (ToolError, ToolTimeout, ServerUnavailable, PolicyError, UnknownTool)
for _kind in ALL:
    _kind.__module__ = "__main__"  # where cells see it: tracebacks then name it plainly

# Which error a kind of proxy.Error is; ToolError if it is not here.
_OF_KIND = {
    "timeout": ToolTimeout,
    "server_failed": ServerUnavailable,
    "policy": PolicyError,
    "unknown_server": UnknownTool,
    "unknown_tool": UnknownTool,
}


def of_host(error, server, tool):
    """What a cell gets for a RemoteError."""
    text = f"{error}\nHint: {error.hint}" if error.hint else str(error)
    if error.kind == "invalid":
        return TypeError(text)
    made = _OF_KIND.get(error.kind, ToolError)(text, server, tool)
    made.kind = error.kind
    return made
