"""What searching and listing find."""

from . import values
from .asking import Askable


class Hit(Askable):
    """A tool that a search found. Call it, or read .server .tool .signature .description .score .doc"""

    def __init__(self, toolbox, hit):
        self._toolbox = toolbox
        self.server = hit["server"]
        self.tool = hit["tool"]
        self.signature = hit["signature"]
        self.description = hit["description"]
        self.score = hit["score"]

    def _found(self):
        if not self.tool:
            raise TypeError(f"this hit is a server: list its tools with dir(tools[{self.server!r}])")
        return self._toolbox[self.server][self.tool]

    def _request(self, /, *args, **kwargs):
        return self._found()._request(*args, **kwargs)

    @property
    def doc(self):
        return self._found().doc

    def __repr__(self):
        return f"{self.signature}   {self.description}".rstrip()

    def _help(self):
        return self._found()._help() if self.tool else repr(self)


def hit_of(toolbox, found):
    """The hit for what the host has found: a tool, or a skill."""
    if found["server"] == "@skills":
        from .skills import SkillHit

        return SkillHit(toolbox, found)
    return Hit(toolbox, found)


class ServerInfo(values.Record):
    """A configured server; prints as one line."""

    __slots__ = ()

    @property
    def aliases(self):
        return self.get("aliases") or ()

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
        if not self and self.note.startswith("no tool matches"):  # that says it already
            return self.note
        lines = [super().__repr__()] if self else ["no tool found"]
        return "\n".join([*lines, self.note] if self.note else lines)
