"""A tool: its signature, and calls of it."""

from . import binding, values
from .asking import Askable, Request


def call(client, server, tool, arguments):
    """The Request that calls a tool."""
    params = {"server": server, "tool": tool, "arguments": arguments}
    return Request(client, "tools/call", params, lambda reply: values.unwrap(reply, server, tool), server, tool)


class Tool(Askable):
    """A tool. Call it; help() and .doc tell its parameters."""

    def __init__(self, client, server, doc):
        self._client = client
        self._doc = doc
        self.server = server.name
        self.name = doc["name"]
        self.ident = doc["ident"]
        self.aliases = doc.get("aliases") or ()
        self.__name__ = doc["ident"]
        self.__qualname__ = f"tools.{server.ident}.{doc['ident']}"
        self.__doc__ = doc.get("description") or ""

    def _request(self, /, *args, **kwargs):
        return call(self._client, self.server, self.name, binding.bind(self._doc, self.__qualname__, args, kwargs))

    @property
    def __signature__(self):
        from .signatures import signature

        return signature(self._doc)

    @property
    def doc(self):
        """What help() prints; .doc("full") adds the schema, examples and the shape of results."""
        from . import docs

        return docs.of_tool(self)

    def __repr__(self):
        description = (self._doc.get("description") or "").strip().split("\n")[0]
        return f"{self._doc['signature']}   {description}".rstrip()

    def _help(self):
        from . import docs

        return docs.text(self)
