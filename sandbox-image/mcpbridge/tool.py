"""A tool: its signature, and calls of it."""

from . import calls, errors, values
from .callback import RemoteError
from .names import near


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
        return calls.call_tool(self._client, self.server, self.name, self._bind(args, kwargs))

    async def aio(self, /, *args, **kwargs):
        """The call for async code."""
        params = calls.params(self.server, self.name, self._bind(args, kwargs))
        try:
            reply = await self._client.acall("tools/call", params)
        except RemoteError as error:
            raise errors.of_host(error, self.server, self.name) from None
        return values.unwrap(reply, self.server, self.name)

    def _start(self, args, kwargs):
        params = calls.params(self.server, self.name, self._bind(args, kwargs))
        return self._client.start("tools/call", params)

    def _finish(self, call):
        try:
            reply = call.result()
        except RemoteError as error:
            raise errors.of_host(error, self.server, self.name) from None
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
                raise TypeError(self._usage(f"has no parameter {key!r}{near(key, known)}"))
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


class _Literal(str):
    """A default value as the signature shows it."""

    __repr__ = str.__str__
