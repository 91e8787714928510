"""A server: its tools by name, its resources and prompts."""

from .errors import ToolError, UnknownTool
from .names import Namespace, alias, first, near, own
from .asking import Request, method
from .tool import Tool


class Server(Namespace):
    """A server's tools as attributes; iterating gives the tools."""

    _as_of = None  # what client.changes() was when it was asked for tools

    def __init__(self, client, info):
        self._client = client
        self._info = info
        self._tools = None  # a list, once it was asked for

    def __iter__(self):
        client, tools = own(self, "_client"), own(self, "_tools")
        now = client.changes()
        if tools is None or own(self, "_as_of") != now:
            info = own(self, "_info")
            ask = Request(client, "tools/list", {"server": info.name}, lambda reply: reply["tools"], info.name)
            self._tools = tools = [Tool(client, info, doc) for doc in ask.wait()]
            self._as_of = now
        return iter(tools)

    # What a server has beside tools: as an attribute only where no tool is called that.

    @method
    def resources(self):
        """The resources of this server: read one with tools.read(it)."""
        return _others().resources(own(self, "_client"), own(self, "_info").name)

    @method
    def templates(self):
        """The forms of URIs that this server reads beside its resources()."""
        return _others().templates(own(self, "_client"), own(self, "_info").name)

    @method
    def prompts(self):
        """The prompts of this server: call one to fill it in."""
        return _others().prompts(own(self, "_client"), own(self, "_info").name)

    @method
    def read(self, uri):
        """The contents of a resource of this server."""
        return _others().read(own(self, "_client"), uri, own(self, "_info").name)

    @method
    def prompt(self, name, /, **arguments):
        """The messages of a prompt, filled in."""
        return _others().prompt(own(self, "_client"), own(self, "_info").name, name, arguments)

    @property
    def doc(self):
        """What help() prints."""
        from .docs import Doc

        return Doc(Server._help(self))

    def _find(self, name, keys):
        tools = list(self)
        tool = first(tools, name, keys)
        if tool is None and name in _BESIDE:
            return own(self, name)
        tool = tool or alias(tools, name)
        if tool is None:
            close = near(name, dir(self))
            self._tools = None  # the server may have new tools when asked again
            info = own(self, "_info")
            raise UnknownTool(
                f"server {info.name!r} has no tool {name!r}{close}; dir(tools.{info.ident}) lists its tools"
            )
        return tool

    def __dir__(self):
        try:
            return [tool.ident for tool in self]
        except ToolError:
            return []

    def __contains__(self, name):
        """By name, or as the tool itself."""
        return any(name is tool or name in (tool.ident, tool.name) for tool in self)

    def __len__(self):
        return sum(1 for _ in self)  # list() would ask for the length

    def __bool__(self):
        return True

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
        self._tools = None  # the host learns what tools return
        info = own(self, "_info")
        head = f"server {info.name}: {info.description or 'no description'}"
        return "\n".join([head, *(f"  {tool!r}" for tool in self)])


def _others():
    from . import others  # few cells need it

    return others


_BESIDE = frozenset({"resources", "templates", "prompts", "read", "prompt", "doc"})
