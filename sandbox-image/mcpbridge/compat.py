"""Names of mcp-server-code-execution-mode, for code that was written for it.

`mcp_github.create_issue(…)`, `mcp_servers["github"]`, and the functions of its
`mcp.runtime`. There every call was to be awaited. Here it can be: what is called
in async code is a coroutine; elsewhere it is the value. Results are those of
`tools`, which also answer for the envelope that they came in: result["content"].
"""

import re
import sys

from . import errors, kept, provided
from .names import first, near, snake
from .values import Record

ENVELOPE = ("content", "isError", "structuredContent", "_meta")


class MCPError(errors.ToolError, RuntimeError):
    """A call failed. It is a ToolError, too."""


MCPError.__module__ = "__main__"
_AS_MCP_ERROR = {kind: type(kind.__name__, (MCPError, kind), {"__module__": "__main__"}) for kind in errors.ALL[1:]}

_MANUAL = """\
Python runs here in one namespace that persists, and every tool of every server is at hand:
  tools.search("what you need")            find tools; runtime.search_tool_docs_sync("…") gives dicts
  tools.github.create_issue(title="x")     call one; await mcp_github.create_issue(title="x") does, too
  runtime.discovered_servers(detailed=True), runtime.list_tools_sync("github"), runtime.query_tool_docs_sync("github")
  skills.save(fn), save_tool(fn)           keep a function across sessions: from skills import fn
  memory["key"] = value, save_memory("key", value), load_memory("key")
help(tools), help(skills) and help(memory) say more."""


# To await or not.


def in_async_code():
    """Whether who calls us can await: in a task, or in a cell that has to do with asyncio."""
    events = sys.modules.get("asyncio.events")
    if events is not None and events._get_running_loop() is not None:
        return True
    import linecache

    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith("<cell ") and _ASYNC.search("".join(linecache.getlines(name))):
            return True
        frame = frame.f_back
    return False


_ASYNC = re.compile(r"\b(await|asyncio|async)\b")


def either(request):
    """The value of a Request; a coroutine of it in async code."""
    return _awaited(request) if in_async_code() else _waited(request)


def _waited(request):
    try:
        return request.wait()
    except errors.ToolError as error:
        raise as_mcp_error(error) from None


async def _awaited(request):
    try:
        return await request.awaited()
    except errors.ToolError as error:
        raise as_mcp_error(error) from None


def at_hand(make):
    """make(), or a coroutine of it in async code."""

    async def later():
        return make()

    return later() if in_async_code() else make()


def as_mcp_error(error):
    """The same error, as one that `except MCPError` catches."""
    made = _AS_MCP_ERROR.get(type(error), MCPError)(str(error), error.server, error.tool, error.result)
    made.kind = error.kind
    return made


# Results.


def dressed(value, reply):
    """value, which can also be asked for what is in the reply: result["content"]."""
    for kind, dress in ((dict, _Object), (str, _Text), (list, _List)):
        if isinstance(value, kind):
            value = dress(value)
            value._reply = reply
            break
    return value


class _Enveloped:
    """Takes the keys of the envelope for those that it has not."""

    def __getitem__(self, key):
        try:
            return super().__getitem__(key)
        except (KeyError, TypeError):
            if isinstance(key, str) and key in ENVELOPE:
                return self._reply.get(key, False if key == "isError" else None)
            raise

    def get(self, key, default=None):
        """What is under a key, or default."""
        try:
            return self[key]
        except (KeyError, TypeError, IndexError):
            return default


class _Object(_Enveloped, Record):
    __slots__ = ("_reply",)


class _Text(_Enveloped, str):
    pass


class _List(_Enveloped, list):
    pass


# Servers and tools.


class Proxies:
    """`mcp_servers`: the servers by name."""

    def __init__(self, toolbox):
        self._toolbox = toolbox

    def __getitem__(self, name):
        return Proxy(self._toolbox, info_of(self._toolbox, name, KeyError))

    def get(self, name, default=None):
        """The server of a name, or default."""
        try:
            return self[name]
        except KeyError:
            return default

    def __iter__(self):
        return iter([info.name for info in enabled(self._toolbox)])

    keys = __iter__

    def __len__(self):
        return len(enabled(self._toolbox))

    def __contains__(self, name):
        return self.get(name) is not None

    def values(self):
        """The servers."""
        return [Proxy(self._toolbox, info) for info in enabled(self._toolbox)]

    def items(self):
        """Names and servers."""
        return [(info.name, Proxy(self._toolbox, info)) for info in enabled(self._toolbox)]

    def __repr__(self):
        return f"<mcp_servers: {', '.join(self) or 'none'}>"


class Proxy:
    """A server: its tools are its attributes."""

    def __init__(self, toolbox, info):
        self._toolbox = toolbox
        self._info = info

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        tool = tool_of(self._toolbox, self._info, name)
        if tool is None and name == "list_tools":
            return lambda: at_hand(lambda: raw_tools(self._toolbox, self._info.name))
        if tool is None:
            raise AttributeError(
                f"server {self._info.name!r} has no tool {name!r}{near(name, dir(self))}", name="", obj=None
            )
        return Call(tool)

    def __dir__(self):
        return [tool.ident for tool in self._toolbox[self._info.name]]

    def __repr__(self):
        return f"<server {self._info.name}: help(tools.{self._info.ident}) lists its tools>"


class NamedLater(Proxy):
    """`mcp_x`: the server is looked for when it is used, and not when it is mentioned."""

    def __init__(self, toolbox, name):
        self._toolbox = toolbox
        self._name = name

    @property
    def _info(self):
        found = find_info(self._toolbox, self._name.removeprefix("mcp_"))
        if found is None:
            names = ["mcp_" + info.ident for info in enabled(self._toolbox)]
            raise NameError(f"name {self._name!r} is not defined: no server is called so{near(self._name, names)}")
        return found


class Call:
    """A tool: a call of it can be awaited."""

    def __init__(self, tool):
        self._tool = tool
        self.__name__ = tool.ident
        self.__qualname__ = tool.__qualname__
        self.__doc__ = tool.__doc__

    def __call__(self, /, *args, **kwargs):
        request = self._tool._request(*args, **kwargs)
        value_of = request._finish
        request._finish = lambda reply: dressed(value_of(reply), reply)
        return either(request)

    @property
    def __signature__(self):
        return self._tool.__signature__

    def __repr__(self):
        return repr(self._tool)

    def _help(self):
        return self._tool._help()


def enabled(toolbox):
    """What is known of the servers that can be used."""
    return [info for info in toolbox.servers() if info.state != "disabled"]


def find_info(toolbox, name):
    """What is known of a server, by any of its names; or None."""
    return by_any_name(enabled(toolbox), name, ("name", "ident"))


def info_of(toolbox, name, kind=MCPError):
    """The same; an error of that kind if there is none."""
    found = find_info(toolbox, name) if isinstance(name, str) else None
    if found is None:
        raise kind(f"Server {name!r} is not available{near(name, [info.name for info in enabled(toolbox)])}")
    return found


def tool_of(toolbox, info, name):
    """A tool of a server, by any of its names; or None."""
    return by_any_name(list(toolbox[info.name]), name, ("ident", "name"))


def by_any_name(things, name, keys):
    """The first thing with that name under one of keys, or as an alias, or as the
    ancestor's; or None."""
    found = first(things, name, keys)
    for matches in (
        lambda thing: name in thing.aliases or snake(thing.ident) == name,
        lambda thing: lowered(thing.name) == name,
    ):
        if found is None:
            found = next((thing for thing in things if matches(thing)), None)
    return found


def lowered(name):
    """What the ancestor made of a name."""
    ident = re.sub(r"[^a-z0-9_]+", "_", name.lower()).strip("_") or "_"
    return "_" + ident if ident[0].isdigit() else ident


# mcp.runtime.


def raw_tools(toolbox, server):
    """The tools of a server as the protocol describes them."""
    info = info_of(toolbox, server)
    return [
        {"name": tool.name, "description": tool.__doc__, "inputSchema": schema(tool)} for tool in toolbox[info.name]
    ]


def schema(tool):
    """A JSON Schema of a tool's arguments."""
    properties = {}
    for param in tool._doc["params"]:
        about = {"type": _JSON_TYPES[param["type"].partition("[")[0]]} if param["type"].partition("[")[0] in _JSON_TYPES else {}
        if param.get("description"):
            about["description"] = param["description"]
        properties[param["name"]] = about
    required = [param["name"] for param in tool._doc["params"] if param["required"]]
    return {"type": "object", "properties": properties, **({"required": required} if required else {})}


_JSON_TYPES = {"str": "string", "int": "integer", "float": "number", "bool": "boolean", "list": "array", "dict": "object"}


class Runtime:
    """The functions of `mcp.runtime`."""

    def __init__(self, client):
        self._client = client
        self._toolbox = provided.original("tools")

    @property
    def _memory(self):
        return provided.made("memory")

    def discovered_servers(self, detailed=False):
        """The names of the configured servers; with descriptions if detailed."""
        servers = enabled(self._toolbox)
        if detailed:
            return tuple({"name": info.name, "description": info.description} for info in servers)
        return tuple(info.name for info in servers)

    def list_servers(self):
        """The names of the servers."""
        return at_hand(self.list_servers_sync)

    def list_servers_sync(self):
        """The names of the servers."""
        return tuple(sorted(info.name for info in enabled(self._toolbox)))

    def list_tools(self, server):
        """The tools of a server, with their schemas."""
        return at_hand(lambda: raw_tools(self._toolbox, server))

    def list_tools_sync(self, server=None):
        """The tools of a server: name, alias, description, input_schema."""
        if server is None:
            raise MCPError("list_tools_sync(server) requires a server name")
        return self.describe_server(server)["tools"]

    def describe_server(self, name):
        """A server: name, alias, tools, cwd."""
        info = info_of(self._toolbox, name)
        try:
            tools = tuple(
                {"name": tool.name, "alias": tool.ident, "description": tool.__doc__, "input_schema": schema(tool)}
                for tool in self._toolbox[info.name]
            )
        except errors.ToolError as error:
            raise as_mcp_error(error) from None
        return {"name": info.name, "alias": info.ident, "tools": tools, "cwd": None}

    def list_loaded_server_metadata(self):
        """describe_server of all servers; those that fail have no tools."""
        found = []
        for info in enabled(self._toolbox):
            try:
                found.append(self.describe_server(info.name))
            except MCPError:
                found.append({"name": info.name, "alias": info.ident, "tools": (), "cwd": None})
        return tuple(found)

    def query_tool_docs(self, server, tool=None, detail="summary"):
        """The documentation of a server's tools, or of one."""
        return at_hand(lambda: self._query(server, tool, detail))

    def query_tool_docs_sync(self, server, tool=None, detail="summary"):
        """The documentation of a server's tools, or of one; a list in any case."""
        found = self._query(server, tool, detail)
        return found if tool is None else [found]

    def search_tool_docs(self, query, *, limit=5, detail="summary"):
        """The documentation of the tools that fit query best."""
        return at_hand(lambda: self.search_tool_docs_sync(query, limit=limit, detail=detail))

    def search_tool_docs_sync(self, query, *, limit=5, detail="summary"):
        """The documentation of the tools that fit query best."""
        hits = self._toolbox.search(query, max(1, min(20, int(limit))))
        docs = []
        for hit in hits:
            if hit.tool and hit.server != "skills":
                docs.append(self._query(hit.server, hit.tool, detail))
        return docs

    def call_tool(self, server, tool, arguments=None):
        """Call a tool: the CallToolResult of the protocol, even one that says isError."""
        from .tool import call

        info = info_of(self._toolbox, server)
        known = tool_of(self._toolbox, info, tool)
        return either(call(self._client, info.name, known.name if known else tool, arguments or {}).raw())

    def capability_summary(self):
        """What there is."""
        return _MANUAL

    def save_tool(self, func):
        """Keep a function across sessions: from skills import it."""
        info = provided.made("skills").save(func)
        return f"Tool {info.name!r} saved (version {info.version}). Use it in any session: from skills import {info.name}"

    def save_memory(self, key, value, *, metadata=None):
        """Keep a JSON value across sessions. Metadata that is not given stays."""
        self._memory.set(key, value, **(metadata or {}))
        return f"Memory {key!r} saved."

    def load_memory(self, key, *, default=None):
        """The value that is kept, or default."""
        return self._memory.get(key, default)

    get_memory = load_memory

    def delete_memory(self, key):
        """Delete a value; says whether there was one."""
        try:
            del self._memory[key]
        except KeyError:
            return f"Memory {key!r} not found."
        return f"Memory {key!r} deleted."

    def list_memories(self):
        """What is kept: dicts with key, metadata, created_at, updated_at."""
        found = []
        for key in self._memory:
            try:
                info = self._memory.info(key)
            except KeyError:
                continue  # deleted meanwhile
            except kept.StateError as error:
                found.append(Record(key=key, error=str(error)))
                continue
            found.append(Record((name, info[name]) for name in ("key", "metadata", "created_at", "updated_at")))
        return found

    def update_memory(self, key, updater):
        """Replace a value by updater(value), or of None if there is none; returns the new one."""
        return self._memory.change(key, updater)

    def memory_exists(self, key):
        """Whether there is a value."""
        return key in self._memory

    def get_memory_info(self, key):
        """A value with its metadata and times, or None if there is none."""
        try:
            info = self._memory.info(key)
            return Record(
                key=key, value=self._memory[key], metadata=info.metadata, created_at=info.created_at, updated_at=info.updated_at
            )
        except KeyError:
            return None


    def _query(self, server, tool, detail):
        """One doc if there is a tool, else a list."""
        info = info_of(self._toolbox, server)
        full = str(detail).lower() == "full"
        if tool is None:
            try:
                return [_doc_of(info, known, full) for known in self._toolbox[info.name]]
            except errors.ToolError as error:
                raise as_mcp_error(error) from None
        if not isinstance(tool, str):
            raise MCPError("'tool' must be a string when provided")
        known = tool_of(self._toolbox, info, tool)
        if known is None:
            raise MCPError(f"Tool {tool!r} not found for server {server}")
        return _doc_of(info, known, full)


def _doc_of(info, tool, full):
    doc = {"server": info.name, "serverAlias": info.ident, "tool": tool.name, "toolAlias": tool.ident}
    if tool.__doc__:
        doc["description"] = tool.__doc__
    if full:
        doc["inputSchema"] = schema(tool)
    return doc


FUNCTIONS = tuple(name for name in vars(Runtime) if not name.startswith("_"))


def provide(client, name):
    """What a cell finds under a name without importing it."""
    if name == "MCPError":
        return MCPError
    if name in ("runtime", "mcp"):
        import importlib

        runtime = importlib.import_module("mcp.runtime")
        importlib.import_module("mcp.servers")
        return runtime if name == "runtime" else sys.modules["mcp"]
    if name == "mcp_servers":
        return Proxies(provided.original("tools"))
    if name == "LOADED_MCP_SERVERS":
        return Runtime(client).list_servers_sync()
    if name.startswith("mcp_"):
        return NamedLater(provided.original("tools"), name)
    return getattr(Runtime(client), name)


def fill(module):
    """The modules: mcp, mcp.runtime, mcp.servers, and mcp.servers.x for each server."""
    name = module.__name__
    if name == "mcp":
        module.__getattr__ = _submodule
    elif name == "mcp.runtime":
        runtime = Runtime(provided.client())
        vars(module).update({function: getattr(runtime, function) for function in FUNCTIONS}, MCPError=MCPError)
        module.__doc__ = _MANUAL
        module.__all__ = [*FUNCTIONS, "MCPError"]
    elif name == "mcp.servers":
        toolbox = provided.original("tools")
        module.__dir__ = lambda: [info.ident for info in enabled(toolbox)]
        module.__getattr__ = _server_module
        module.__all__ = []
    else:
        _fill_server(module, name.rpartition(".")[2])


def _submodule(name):
    if name not in ("runtime", "servers"):
        raise AttributeError(f"module 'mcp' has no attribute {name!r}")
    import importlib

    return importlib.import_module("mcp." + name)


def _server_module(name):
    import importlib

    if name.startswith("__"):
        raise AttributeError(f"module 'mcp.servers' has no attribute {name!r}")
    try:
        return importlib.import_module("mcp.servers." + name)
    except ModuleNotFoundError as error:
        raise AttributeError(str(error)) from None


def _fill_server(module, name):
    toolbox = provided.original("tools")
    info = find_info(toolbox, name)
    if info is None:
        close = near(name, [info.ident for info in enabled(toolbox)])
        raise ModuleNotFoundError(f"No module named {module.__name__!r}: no server is called so{close}", name=module.__name__)
    tools = list(toolbox[info.name])
    for tool in tools:
        for alias in (lowered(tool.name), tool.ident):
            vars(module)[alias] = Call(tool)
    described = Runtime(provided.client()).describe_server(info.name)
    vars(module).update(
        TOOLS=described["tools"],
        TOOL_MAP={tool.ident: tool.name for tool in tools},
        __all__=[tool.ident for tool in tools],
        __doc__=f"Tools of the server {info.name}. {info.description}".strip(),
    )
