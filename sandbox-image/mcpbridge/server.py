"""A server: its tools by name."""

from . import calls
from .errors import ToolError
from .names import Namespace, first, missing, near, own
from .tool import Tool


class Server(Namespace):
    """A server's tools as attributes; iterating gives the tools."""

    def __init__(self, client, info):
        self._client = client
        self._info = info
        self._tools = None  # a list, once it was asked for

    def __iter__(self):
        if own(self, "_tools") is None:
            client, info = own(self, "_client"), own(self, "_info")
            reply = calls.ask(client, "tools/list", {"server": info.name})
            self._tools = [Tool(client, info, doc) for doc in reply["tools"]]
        return iter(own(self, "_tools"))

    def _find(self, name, keys):
        tool = first(list(self), name, keys)
        if tool is None:
            close = near(name, dir(self))
            self._tools = None  # the server may have new tools when asked again
            info = own(self, "_info")
            raise missing(
                f"server {info.name!r} has no tool {name!r}{close}; dir(tools.{info.ident}) lists its tools"
            )
        return tool

    def __dir__(self):
        try:
            return [tool.ident for tool in self]
        except ToolError:
            return []

    def __len__(self):
        return sum(1 for _ in self)  # list() would ask for the length

    def __repr__(self):
        info = own(self, "_info")
        try:
            return f"<server {info.name}, {len(self)} tools: help(tools.{info.ident}) lists them>"
        except ToolError as error:
            return f"<server {info.name}: {error}>"

    def __shown__(self):
        try:
            return Server._help(self)
        except ToolError:
            return repr(self)

    def _help(self):
        info = own(self, "_info")
        head = f"server {info.name}: {info.description or 'no description'}"
        return "\n".join([head, *(f"  {tool!r}" for tool in self)])
