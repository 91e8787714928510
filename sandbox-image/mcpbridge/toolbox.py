"""`tools`: every tool of every configured MCP server, as Python."""

from .asking import Request, method
from .errors import UnknownTool
from .listings import Hits, Listing, ServerInfo, hit_of
from .names import Namespace, alias, first, near, own
from .server import Server
from .tool import call

MANUAL = """\
tools: every tool of every MCP server configured on the host.

  tools.search("create an issue", limit=8)   ranked over all servers, loaded or not; typos are fine
  tools.servers()                            the servers: name, description, number of tools, state
  dir(tools.github), list(tools.github)      the tools of a server
  help(tools.github.create_issue)            signature, parameters, description; .doc("full") has the schema, too
  tools.github.create_issue(title="x")       call it: returns Python data, raises ToolError
  tools.github.create_issue.raw(title="x")   the same, but returns the whole CallToolResult
  await tools.github.create_issue.aio(…)     the same in async code; asyncio.gather runs them in parallel
  tools.map(tools.web.fetch, urls)           in parallel, results in order; return_exceptions=True keeps going
  tools.call("github", "create_issue", {…})  by name; tools["github"]["create-issue"] too
  tools.resources(), tools.read("file://…")  resources of servers; tools.prompts(), tools.prompt("github", "review", {…})

Errors are ToolError; ToolTimeout, ServerUnavailable, PolicyError and UnknownTool are kinds of it; wrong arguments are TypeError.
Dicts in results allow attributes: issue.title; use issue["items"] for keys that dict has as methods. Images are shown when they are a cell's last value.
`_` is the last value shown; out[n] is all that cell n printed, out[n].value its last value; `await` works at top level.
Only what a cell prints, and its last expression, reaches you: filter and join here."""


class Toolbox(Namespace):
    """The servers as attributes. See help(tools)."""

    __doc__ = MANUAL
    # discovery.ServerIdents keeps these names from servers.
    _public = ("acall", "amap", "call", "map", "prompt", "prompts", "read", "resources", "search", "servers")
    _methods = frozenset({*_public, "_client"})
    _as_of = None  # what client.changes() was when servers were looked for

    def __init__(self, client):
        self._client = client
        self._known = {}  # name -> Server

    @method
    def search(self, query, limit=8):
        """Tools that fit query, best first, over every configured server."""

        def finish(reply):
            return Hits([hit_of(self, hit) for hit in reply["hits"]], reply.get("note", ""))

        return Request(self._client, "tools/search", {"query": str(query), "limit": int(limit)}, finish)

    @method
    def servers(self):
        """The configured servers."""
        return Request(self._client, "servers/list", {}, lambda reply: Listing(map(ServerInfo, reply["servers"])))

    @method
    def call(self, server, tool=None, arguments=None):
        """Call a tool by the names of its server and itself, or by "server.tool"."""
        server, tool, arguments = _by_name(server, tool, arguments)
        return call(self._client, server, tool, arguments)

    async def acall(self, server, tool=None, arguments=None):
        """tools.call for async code, as tools.call.aio is."""
        return await self.call.aio(server, tool, arguments)

    @method
    def read(self, uri, server=None):
        """The contents of a resource: text, data if it is JSON, an Image, or bytes.

        Without a server it is the one that lists the resource, or a template that fits.
        """
        from . import others

        return others.read(self._client, uri, server)

    @method
    def resources(self, server=None):
        """The resources of a server, or of all: read one with tools.read(it)."""
        from . import others

        return others.listing(self, others.resources, server)

    @method
    def prompts(self, server=None):
        """The prompts of a server, or of all: call one to fill it in."""
        from . import others

        return others.listing(self, others.prompts, server)

    @method
    def prompt(self, server, name=None, arguments=None):
        """The messages of a prompt, by the names of its server and itself, or by "server.prompt"."""
        from . import others

        return others.prompt(self._client, *_by_name(server, name, arguments))

    def map(self, function, items, concurrency=32, return_exceptions=False):
        """function over items in parallel; results in order.

        An item that is a dict gives keyword arguments, a tuple positional ones,
        anything else the first one. At most concurrency run at once, and 64. The first
        failure is raised once all have ended, with the item in its text and all
        results in its .results, unless return_exceptions puts failures in their places.
        """
        from . import parallel

        return parallel.run(function, items, concurrency, return_exceptions, self._client.guard)

    def amap(self, function, items, concurrency=32, return_exceptions=False):
        """map for async code: `await tools.amap(…)` gives the list, `async for result in
        tools.amap(…)` each in order, as soon as it is there."""
        from . import parallel_async

        return parallel_async.Amap(function, items, concurrency, return_exceptions)

    def _find(self, name, keys):
        known, now = own(self, "_known"), self._client.changes()
        if own(self, "_as_of") != now:
            known.clear()
            self._as_of = now
        info = first([own(server, "_info") for server in known.values()], name, keys[:1])
        if info is None:
            servers = self.servers()
            info = first(servers, name, keys) or alias(servers, name)
            if info is None:
                raise UnknownTool(
                    f"no server {name!r}{near(name, [s.ident for s in servers])}; "
                    f"tools.servers() lists them, tools.search({name!r}) finds tools"
                )
        return known.setdefault(info.name, Server(self._client, info))

    def __dir__(self):
        return [*Toolbox._public, *(s.ident for s in self.servers())]

    def __iter__(self):
        return (Server(self._client, info) for info in self.servers())

    def __contains__(self, name):
        """Whether a server is configured, by name."""
        return any(name in (s.ident, s.name) for s in self.servers())

    def __repr__(self):
        return MANUAL

    def _help(self):
        return MANUAL


def _by_name(server, name, arguments):
    """What call and prompt take: (server, name, arguments), or ("server.name", arguments)."""
    if not isinstance(server, str):
        from .others import named

        server = named(server)
    if not isinstance(name, str) and "." in server:
        (server, name), arguments = server.split(".", 1), name if arguments is None else arguments
    if not isinstance(name, str):
        raise TypeError(f"say of which server, and what: {server!r} and a name, or {server + '.name'!r}")
    if not isinstance(arguments, dict) and arguments is not None:
        raise TypeError(f"arguments is a dict of names to values, not {type(arguments).__name__}")
    return server, name, arguments or {}
