"""Resources and prompts of upstream servers."""

from . import values
from .errors import ToolError
from .listings import Listing
from .asking import Askable, Request


class _Described(values.Record):
    """What a server lists; prints as one line."""

    __slots__ = ()
    _id = ""

    def __repr__(self):
        mime = f" ({self['mimeType']})" if self.get("mimeType") else ""
        about = "   ".join(str(text) for text in (self.get("title") or self.get("name"), self.get("description")) if text)
        return f"{self[self._id]}{mime}   {about}".rstrip()


class Resource(_Described):
    """A resource: tools.read(it) gives its contents."""

    __slots__ = ()
    _id = "uri"


class Template(_Described):
    """A form of URIs that a server reads."""

    __slots__ = ()
    _id = "uriTemplate"


class Found(Listing):
    """Resources or prompts. `note` says what is missing."""

    def __init__(self, things, note=""):
        super().__init__(things)
        self.note = note

    def __repr__(self):
        return "\n".join(filter(None, [super().__repr__(), self.note]))


def resources(client, server):
    return _listing(client, "resources/list", server, lambda thing: Resource(thing, server=server))


def templates(client, server):
    return _listing(client, "resources/templates", server, lambda thing: Template(thing, server=server))


def prompts(client, server):
    return _listing(client, "prompts/list", server, lambda thing: Prompt(client, server, thing))


def _listing(client, method, server, make):
    def finish(reply):
        return Found([make(thing) for thing in reply["items"]], reply.get("note", ""))

    return Request(client, method, {"server": server}, finish, server)


def listing(toolbox, kind, server):
    """The Request for resources or prompts, kind, of a server; of all of them if it is None."""
    client = toolbox._client
    if server is not None:
        return kind(client, named(server))
    return Everywhere(toolbox.servers, lambda name: _brief(kind(client, name)))


def _brief(request):
    """The request, which does not wait for a server that has just failed to start."""
    request._ask[1]["brief"] = True
    return request


class Everywhere:
    """The same list of every server that has one: to be waited for like a Request."""

    def __init__(self, servers, ask):
        self._servers = servers
        self._ask = ask

    def wait(self):
        from . import parallel

        names = _enabled(self._servers())
        return _joined(names, parallel.requests([self._ask(name) for name in names]))

    async def awaited(self):
        from . import parallel_async

        names = _enabled(await self._servers.aio())
        asked = [self._ask(name) for name in names]
        return _joined(names, await parallel_async.Amap(_awaited, asked, 64, True))

    def raw(self):
        raise TypeError("the raw answer is of one server: name it")


async def _awaited(request):
    return await request.awaited()


def _enabled(servers):
    return [info.name for info in servers if info.state != "disabled"]


def _joined(names, lists):
    """One list, with a note on the servers that failed: one that has none of these things has not."""
    found, notes = Found([]), []
    for name, part in zip(names, lists):
        if isinstance(part, Found):
            found.extend(part)
            notes.append(part.note)
        elif not isinstance(part, ToolError):
            raise part
        elif part.kind != "unsupported":
            text = str(part).split("\n")[0].removesuffix("; its last output was:")
            notes.append(f"({name}: {text})")
    found.note = "\n".join(filter(None, notes))
    return found


def read(client, uri, server=None):
    """The Request for the contents of a resource. uri: of it, or the resource itself."""
    if isinstance(uri, dict):
        uri, server = uri.get("uri"), server or uri.get("server")
    if not isinstance(uri, str):
        raise TypeError(f"a resource is given by its URI, not {type(uri).__name__}")
    params = {"uri": uri, "server": named(server) or ""}
    return Request(client, "resources/read", params, lambda reply: values.contents(reply, server, uri), server)


def named(server):
    """The name of a server that is given by name, or as tools.github."""
    if server is None or isinstance(server, str):
        return server
    from .names import own

    try:
        return own(server, "_info").name
    except AttributeError:
        raise TypeError(f"a server is given by its name, not {type(server).__name__}") from None


def prompt(client, server, name, arguments):
    """The Request for the messages of a prompt."""
    filled = {str(key): _text(value) for key, value in arguments.items() if value is not None}
    params = {"server": server, "name": name, "arguments": filled}
    return Request(client, "prompts/get", params, lambda reply: Messages(reply, server, name), server, name)


def _text(value):
    """Arguments of prompts are strings; others are written as JSON."""
    if isinstance(value, str):
        return value
    import json

    return json.dumps(value)


class Prompt(Askable):
    """A prompt. Call it with its arguments: it gives the messages."""

    def __init__(self, client, server, thing):
        self._client = client
        self._about = thing
        self.server = server
        self.name = thing["name"]
        self.description = next((text for key in ("description", "title") if isinstance(text := thing.get(key), str)), "")
        params = _parameters(thing.get("arguments"))
        shown = ", ".join(p["ident"] + ": str" + ("" if p["required"] else " = None") for p in params)
        self._doc = {"params": params, "signature": f"{server}.{self.name}({shown})"}
        self.__name__ = self.name

    @property
    def arguments(self):
        """Its parameters, as the server describes them."""
        return self._about.get("arguments")

    def _request(self, /, *args, **kwargs):
        from .binding import bind

        return prompt(self._client, self.server, self.name, bind(self._doc, f"prompt {self.name}", args, kwargs))

    def __repr__(self):
        return f"{self._doc['signature']}   {self.description.strip().split(chr(10))[0]}".rstrip()

    def _help(self):
        lines = [self._doc["signature"], "", self.description.strip(), ""]
        lines += [f"  {p['ident']}  {p['description']}".rstrip() for p in self._doc["params"]]
        return "\n".join(lines).rstrip()


def _parameters(arguments):
    """The parameters of a prompt, of what a server says they are: required ones first."""
    params = []
    for argument in arguments if isinstance(arguments, list) else ():
        name = argument.get("name") if isinstance(argument, dict) else None
        if isinstance(name, str) and name:
            about = argument.get("description")
            params.append(
                {"name": name, "ident": _ident(name), "type": "str", "required": argument.get("required") is True, "description": about if isinstance(about, str) else ""}
            )
    return sorted(params, key=lambda p: not p["required"])


def _ident(name):
    """What Python code can call a parameter of that name."""
    import keyword

    ident = "".join(c if c == "_" or c.isalnum() else "_" for c in name)
    if not ident.isidentifier():
        ident = "_" + ident
    return ident + "_" if keyword.iskeyword(ident) else ident


class Messages(list):
    """The messages of a prompt: Records of role and content. `text` is all their text."""

    def __init__(self, reply, server, name):
        super().__init__(values.messages(reply, server, name))
        self.description = reply.get("description") if isinstance(reply.get("description"), str) else ""

    @property
    def text(self):
        return "\n\n".join(m.content for m in self if isinstance(m.content, str))

    def __repr__(self):
        return "\n\n".join(f"{m.role}: {m.content if isinstance(m.content, str) else repr(m.content)}" for m in self) or "(no messages)"
