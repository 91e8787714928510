"""`tools`: every tool of every configured MCP server, as Python."""

from . import values
from .callback import RemoteError
from .values import ToolError

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


_own = object.__getattribute__  # what an instance of these classes has itself


class _Namespace:
    """Things by name: x.name takes identifiers first, x["name"] the names they really have.

    Whatever is not Python's own, or listed in _methods, is looked for among the
    things: what the SDK calls its internals cannot hide any of them.
    """

    _methods = frozenset()

    def __getattribute__(self, name):
        # __x__ is asked for by Python itself; no identifier of a thing looks like that.
        python = name.startswith("__") and name.endswith("__") and not name.endswith("___")
        if python or name in type(self)._methods:
            return _own(self, name)
        return type(self)._find(self, name, ("ident", "name"))

    def __getitem__(self, name):
        return type(self)._find(self, name, ("name", "ident"))


def _first(things, name, keys):
    """The first thing with that name under the first key that has one, or None."""
    for key in keys:
        for thing in things:
            if getattr(thing, key) == name:
                return thing
    return None


class Toolbox(_Namespace):
    """The servers as attributes. See help(tools)."""

    __doc__ = MANUAL
    _methods = frozenset({"call", "map", "search", "servers", "_client"})

    def __init__(self, client):
        self._client = client
        self._known = {}  # name -> Server

    def search(self, query, limit=8):
        """Tools that fit query, best first, over every configured server."""
        reply = _ask(self._client, "tools/search", {"query": str(query), "limit": int(limit)})
        hits = [Hit(self, hit) for hit in reply["hits"]]
        return Hits(hits, reply.get("note", ""))

    def servers(self):
        """The configured servers."""
        reply = _ask(self._client, "servers/list", {})
        return Listing(ServerInfo(s) for s in reply["servers"])

    def call(self, server, tool=None, arguments=None):
        """Call a tool by the names of its server and itself, or by "server.tool"."""
        if not isinstance(tool, str) and "." in server:
            (server, tool), arguments = server.split(".", 1), tool if arguments is None else arguments
        if not isinstance(arguments, dict) and arguments is not None:
            raise TypeError(f"arguments is a dict of names to values, not {type(arguments).__name__}")
        return call_tool(self._client, server, tool, arguments or {})

    def map(self, function, items, concurrency=8, return_exceptions=False):
        """function over items in parallel; results in order.

        An item that is a dict gives keyword arguments, a tuple positional ones,
        anything else the first one. The first failure is raised once all that
        started have ended, unless return_exceptions puts it in its place.
        """
        if concurrency < 1:
            raise ValueError("concurrency is at least 1")
        run = _map_tool if isinstance(function, Tool) else _map_function
        results = run(function, [_arguments(item) for item in items], concurrency, self._client.guard)
        if not return_exceptions:
            for result in results:
                if isinstance(result, _Failure):
                    raise result.error
        return [r.error if isinstance(r, _Failure) else r for r in results]

    def _find(self, name, keys):
        known = _own(self, "_known")
        info = _first([_own(server, "_info") for server in known.values()], name, keys[:1])
        if info is None:
            servers = self.servers()
            info = _first(servers, name, keys)
            if info is None:
                raise _missing(
                    f"no server {name!r}{_near(name, [s.ident for s in servers])}; "
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


class Server(_Namespace):
    """A server's tools as attributes; iterating gives the tools."""

    def __init__(self, client, info):
        self._client = client
        self._info = info
        self._tools = None  # a list, once it was asked for

    def __iter__(self):
        if _own(self, "_tools") is None:
            client, info = _own(self, "_client"), _own(self, "_info")
            reply = _ask(client, "tools/list", {"server": info.name})
            self._tools = [Tool(client, info, doc) for doc in reply["tools"]]
        return iter(_own(self, "_tools"))

    def _find(self, name, keys):
        tool = _first(list(self), name, keys)
        if tool is None:
            close = _near(name, dir(self))
            self._tools = None  # the server may have new tools when asked again
            info = _own(self, "_info")
            raise _missing(
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
        info = _own(self, "_info")
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
        info = _own(self, "_info")
        head = f"server {info.name}: {info.description or 'no description'}"
        return "\n".join([head, *(f"  {tool!r}" for tool in self)])


class Tool:
    """A tool. Call it; help() tells its parameters."""

    def __init__(self, client, server, doc):
        self._client = client
        self._doc = doc
        self._server = server
        self.server = server.name
        self.name = doc["name"]
        self.ident = doc["ident"]
        self.__name__ = doc["ident"]
        self.__qualname__ = f"tools.{server.ident}.{doc['ident']}"
        self.__doc__ = doc.get("description") or ""

    @property
    def __signature__(self):
        import inspect

        kinds = inspect.Parameter
        return inspect.Signature(
            [
                kinds(
                    p["ident"],
                    kinds.POSITIONAL_OR_KEYWORD,
                    default=kinds.empty if p["required"] else _Literal(p.get("default") or "None"),
                    annotation=p["type"],
                )
                for p in self._doc["params"]  # required ones come first
            ]
        )

    def __call__(self, /, *args, **kwargs):
        return call_tool(self._client, self.server, self.name, self._bind(args, kwargs))

    async def aio(self, /, *args, **kwargs):
        """The call for async code."""
        params = _call_params(self.server, self.name, self._bind(args, kwargs))
        try:
            reply = await self._client.acall("tools/call", params)
        except RemoteError as error:
            raise _tool_error(error, self.server, self.name) from None
        return values.unwrap(reply, self.server, self.name)

    def _start(self, args, kwargs):
        params = _call_params(self.server, self.name, self._bind(args, kwargs))
        return self._client.start("tools/call", params)

    def _finish(self, call):
        try:
            reply = call.result()
        except RemoteError as error:
            raise _tool_error(error, self.server, self.name) from None
        return values.unwrap(reply, self.server, self.name)

    def _bind(self, args, kwargs):
        """Positional and keyword arguments as the tool's own parameter names."""
        params = self._doc["params"]
        if len(args) > len(params):
            raise TypeError(self._usage(f"takes {len(params)} arguments, got {len(args)}"))
        arguments = {p["name"]: value for p, value in zip(params, args)}
        known = {p["name"]: p["name"] for p in params} | {p["ident"]: p["name"] for p in params}
        for key, value in kwargs.items():
            if key not in known and not self._doc.get("open"):
                raise TypeError(self._usage(f"has no parameter {key!r}{_near(key, known)}"))
            name = known.get(key, key)
            if name in arguments:
                raise TypeError(self._usage(f"got {key!r} twice"))
            arguments[name] = value
        missing = [p["ident"] for p in params if p["required"] and p["name"] not in arguments]
        if missing:
            raise TypeError(self._usage(f"misses {', '.join(map(repr, missing))}"))
        return arguments

    def _usage(self, problem):
        return f"{self.__qualname__} {problem}. Signature: {self._doc['signature']}"

    def __repr__(self):
        description = (self._doc.get("description") or "").strip().split("\n")[0]
        return f"{self._doc['signature']}   {description}".rstrip()

    def _help(self):
        lines = [self._doc["signature"], ""]
        if self._doc.get("description"):
            lines += [self._doc["description"].strip(), ""]
        for p in self._doc["params"]:
            need = "required" if p["required"] else "optional"
            if not p["required"] and p.get("default"):
                need = f"default {p['default']}"
            lines.append(f"  {p['ident']}: {p['type']} ({need})  {p.get('description') or ''}".rstrip())
        return "\n".join(lines)


class Hit:
    """A tool that a search found. Call it, or read .server .tool .signature .description .score"""

    def __init__(self, toolbox, hit):
        self._toolbox = toolbox
        self.server = hit["server"]
        self.tool = hit["tool"]
        self.signature = hit["signature"]
        self.description = hit["description"]
        self.score = hit["score"]

    def __call__(self, /, *args, **kwargs):
        if not self.tool:
            raise TypeError(f"this hit is a server: list its tools with dir(tools[{self.server!r}])")
        return self._toolbox[self.server][self.tool](*args, **kwargs)

    def __repr__(self):
        return f"{self.signature}   {self.description}".rstrip()

    def _help(self):
        return self._toolbox[self.server][self.tool]._help() if self.tool else repr(self)


class ServerInfo(values.Record):
    """A configured server; prints as one line."""

    __slots__ = ()

    def __repr__(self):
        count = "tools not listed yet" if self.tools is None else f"tools: {self.tools}"
        trouble = f": {self.error}" if self.get("error") else ""
        about = f"   {self.description}" if self.description else ""
        return f"{self.ident} ({count}; {self.state}{trouble}){about}"


class Listing(list):
    """A list that prints one item a line."""

    def __add__(self, other):
        return Listing([*self, *other])

    def __repr__(self):
        return "\n".join(map(repr, self)) or "(none)"


class Hits(Listing):
    """Search hits, best first. `note` says what could not be searched or matched."""

    def __init__(self, hits, note):
        super().__init__(hits)
        self.note = note

    def __repr__(self):
        lines = [super().__repr__()] if self else ["no tool found"]
        return "\n".join([*lines, self.note] if self.note else lines)


class _Literal(str):
    """A default value as the signature shows it."""

    __repr__ = str.__str__


class _Failure:
    """What a parallel call raised, in the place of its result."""

    def __init__(self, error):
        self.error = error


def call_tool(client, server, tool, arguments):
    """Call a tool and return its value, or raise ToolError."""
    try:
        reply = client.call("tools/call", _call_params(server, tool, arguments))
    except RemoteError as error:
        raise _tool_error(error, server, tool) from None
    return values.unwrap(reply, server, tool)


def _call_params(server, tool, arguments):
    return {"server": server, "tool": tool, "arguments": arguments}


def _tool_error(error, server, tool):
    text = f"{error}\nHint: {error.hint}" if error.hint else str(error)
    return ToolError(text, server, tool)


def _ask(client, method, params):
    """A request about tools rather than to one."""
    try:
        return client.call(method, params)
    except RemoteError as error:
        raise _tool_error(error, None, None) from None


def _arguments(item):
    if isinstance(item, dict):
        return (), item
    return (item if isinstance(item, tuple) else (item,)), {}


def _map_tool(tool, items, concurrency, guard):
    """Calls in flight at once, from one thread: the host runs them in parallel."""
    with guard:  # an interrupt must not come between a call and its note
        return _map_shielded(tool, items, concurrency)


def _map_shielded(tool, items, concurrency):
    results = [None] * len(items)
    waiting = list(enumerate(items))[::-1]
    running = {}  # call -> index of its item
    try:
        while waiting or running:
            while waiting and len(running) < concurrency:
                index, (args, kwargs) = waiting.pop()
                try:
                    running[tool._start(args, kwargs)] = index
                except Exception as error:
                    results[index] = _Failure(error)
            for call in tool._client.wait_any(running) if running else ():
                index = running.pop(call)
                try:
                    results[index] = tool._finish(call)
                except Exception as error:
                    results[index] = _Failure(error)
    except BaseException:
        tool._client.abandon(running)
        raise
    return results


def _map_function(function, items, concurrency, guard):
    """In threads, each of which takes the next item until there is none.

    An interrupt reaches the main thread only: no further item is begun.
    """
    import queue
    import threading

    results = [None] * len(items)
    todo, done = queue.SimpleQueue(), queue.SimpleQueue()

    def work():
        while True:
            try:
                index, (args, kwargs) = todo.get_nowait()
            except queue.Empty:
                return
            try:
                results[index] = function(*args, **kwargs)
            except BaseException as error:
                results[index] = _Failure(error)
            done.put(None)

    with guard:
        for item in enumerate(items):
            todo.put(item)
        try:
            for _ in range(min(concurrency, len(items))):
                threading.Thread(target=work, daemon=True).start()
            for _ in items:
                guard.interruptible(done.get)
        except BaseException:
            while not todo.empty():
                try:
                    todo.get_nowait()
                except queue.Empty:
                    break
            raise
    return results


def _missing(text):
    """An AttributeError without its object: a traceback would ask dir() of it, and so
    the host, for names like the missing one."""
    return AttributeError(text, name="", obj=None)


def _near(name, names):
    import difflib

    close = difflib.get_close_matches(name, list(names), 3)
    return f" (did you mean {' or '.join(close)}?)" if close else ""
