"""`workspace`: the folder of files that are kept across sessions, as a path."""

import pathlib
import sys

from . import files, values
from .keeping import shown, size_text

_Path = type(pathlib.Path())  # PosixPath; before 3.12 Path itself has no subclasses


class Usage(values.Record):
    """What is kept."""

    __slots__ = ()

    def __repr__(self):
        if not self["kept"]:
            return "files are not kept: mcp-bridge has no folder for them"
        text = (
            f"{self['files']:,} of {self['max_files']:,} files, "
            f"{size_text(self['bytes'])} of {size_text(self['max_bytes'])} kept across sessions"
        )
        for path, why in self["not_kept"].items():
            text += f"\nnot kept: {shown(path)}: {why}"
        return text


_HELP = """workspace: the folder of files that are kept across sessions; also the current folder

  (workspace / "a.csv").write_text("…")   it is a pathlib.Path; open("a.csv") works as well
  workspace.usage()                       how much is kept, and what is not and why
  workspace.quota                         the most bytes that are kept
  workspace.sync()                        keep now what has changed, as is done after each cell

Kept are plain files: no links, no empty folders, no caches. Of two sessions that
write the same file, the last one counts. Python modules in it can be imported."""


class Workspace(_Path):
    """Files here are kept when the sandbox goes, and appear in every session.

    A pathlib.Path: (workspace / "a.csv").write_text(...). It is the current folder,
    too. They are kept at the end of each cell. Of two sessions that write the same
    file, the last one counts. Kept are plain files: no links, no empty folders, no
    caches (__pycache__, .cache).
    """

    __slots__ = ()

    if sys.version_info >= (3, 12):

        def with_segments(self, *segments):
            return pathlib.Path(*segments)  # what is below it is a path like any other

    else:

        @classmethod
        def _from_parsed_parts(cls, *parts):
            return _Path._from_parsed_parts(*parts)

    @property
    def quota(self):
        """The most bytes that are kept, or None if files are not."""
        return self.usage().get("max_bytes")

    def usage(self):
        """How much of the quota is used, and what is not kept and why."""
        if not files.current.keeper().kept:
            return Usage(kept=False)
        reply, refused = files.current.keeper().usage()
        return Usage(kept=True, **{k: reply[k] for k in ("files", "max_files", "bytes", "max_bytes")}, not_kept=refused)

    def _help(self):
        return _HELP

    def sync(self):
        """Keep now what has changed, as is done at the end of each cell."""
        files.current.keeper().sync()


def provide(client, name):
    """The `workspace` of cells."""
    return Workspace(files.current.root)
