"""`tools`: every tool of every configured MCP server, as Python."""

from . import calls
from .listings import Hit, Hits, Listing, ServerInfo
from .names import Namespace, first, missing, near, own
from .server import Server

MANUAL = """\
tools: every tool of every MCP server configured on the host.

  tools.search("create an issue", limit=8)   ranked over all servers, loaded or not; typos are fine
  tools.servers()                            the servers: name, description, number of tools, state
  dir(tools.github), list(tools.github)      the tools of a server
  help(tools.github.create_issue)            signature, parameters, description
  tools.github.create_issue(title="x")       call it: returns Python data, raises ToolError
  await tools.github.create_issue.aio(…)     the same in async code; asyncio.gather runs them in parallel
  tools.map(tools.web.fetch, urls)           in parallel, results in order; return_exceptions=True keeps going
  tools.call("github", "create_issue", {…})  by name; tools["github"]["create-issue"] too

Dicts in results allow attributes: issue.title. Images are shown when they are a cell's last value.
`_` is the last value shown; out[n] is all that cell n printed, out[n].value its last value; `await` works at top level.
Only what a cell prints, and its last expression, reaches you: filter and join here."""


class Toolbox(Namespace):
    """The servers as attributes. See help(tools)."""

    __doc__ = MANUAL
    _methods = frozenset({"call", "map", "search", "servers", "_client"})

    def __init__(self, client):
        self._client = client
        self._known = {}  # name -> Server

    def search(self, query, limit=8):
        """Tools that fit query, best first, over every configured server."""
        reply = calls.ask(self._client, "tools/search", {"query": str(query), "limit": int(limit)})
        hits = [Hit(self, hit) for hit in reply["hits"]]
        return Hits(hits, reply.get("note", ""))

    def servers(self):
        """The configured servers."""
        reply = calls.ask(self._client, "servers/list", {})
        return Listing(ServerInfo(s) for s in reply["servers"])

    def call(self, server, tool=None, arguments=None):
        """Call a tool by the names of its server and itself, or by "server.tool"."""
        if not isinstance(tool, str) and "." in server:
            (server, tool), arguments = server.split(".", 1), tool if arguments is None else arguments
        if not isinstance(arguments, dict) and arguments is not None:
            raise TypeError(f"arguments is a dict of names to values, not {type(arguments).__name__}")
        return calls.call_tool(self._client, server, tool, arguments or {})

    def map(self, function, items, concurrency=8, return_exceptions=False):
        """function over items in parallel; results in order.

        An item that is a dict gives keyword arguments, a tuple positional ones,
        anything else the first one. The first failure is raised once all that
        started have ended, unless return_exceptions puts it in its place.
        """
        from . import parallel

        return parallel.run(function, items, concurrency, return_exceptions, self._client.guard)

    def _find(self, name, keys):
        known = own(self, "_known")
        info = first([own(server, "_info") for server in known.values()], name, keys[:1])
        if info is None:
            servers = self.servers()
            info = first(servers, name, keys)
            if info is None:
                raise missing(
                    f"no server {name!r}{near(name, [s.ident for s in servers])}; "
                    f"tools.servers() lists them, tools.search({name!r}) finds tools"
                )
        return known.setdefault(info.name, Server(self._client, info))

    def __dir__(self):
        return ["call", "map", "search", "servers", *(s.ident for s in self.servers())]

    def __iter__(self):
        return (Server(self._client, info) for info in self.servers())

    def __repr__(self):
        return MANUAL

    def _help(self):
        return MANUAL
