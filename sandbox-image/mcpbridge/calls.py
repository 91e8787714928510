"""Requests to the host about tools, and calls of them."""

from . import errors, values
from .callback import RemoteError


def call_tool(client, server, tool, arguments):
    """Call a tool and return its value, or raise ToolError."""
    try:
        reply = client.call("tools/call", params(server, tool, arguments))
    except RemoteError as error:
        raise errors.of_host(error, server, tool) from None
    return values.unwrap(reply, server, tool)


def params(server, tool, arguments):
    return {"server": server, "tool": tool, "arguments": arguments}


def ask(client, method, params):
    """A request about tools rather than to one."""
    try:
        return client.call(method, params)
    except RemoteError as error:
        raise errors.of_host(error, None, None) from None
