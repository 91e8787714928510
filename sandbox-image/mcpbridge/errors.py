"""What a cell catches when the host, or a server, refuses or fails."""


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
