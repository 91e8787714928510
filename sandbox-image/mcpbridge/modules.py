"""Modules that cells can import and that are no files: `skills`, `mcp`, …

They are made when they are first imported. A file or a package of that name that
Python finds by itself goes first, but for what is in the workspace: a folder of
data there may well be called `skills`.
"""

import sys

# name → module of ours; its function fill(module) fills it. What is registered goes first.
OURS = {"skills": "skills", "user_tools": "skills", "mcp": "compat", "mcp.runtime": "compat", "mcp.servers": "compat"}
_OUR_PACKAGES = {"mcp": None, "mcp.servers": "compat"}  # the same for any module below a package

_makers = {}  # name → function(module) that fills it
_packages = {}  # name → function(module) that fills any module below it
_workspace = None  # our entry in sys.path


def register(name, fill, below=None):
    """Make a module importable: fill(module) sets what is in it, or raises ImportError.

    With below, it is a package, and any module in it is filled by below(module).
    Both are called once, at the first import.
    """
    _makers[name] = fill
    if below is not None:
        _packages[name] = below


def install():
    """Have import find the registered modules."""
    sys.meta_path.insert(0, Finder())


def find_in(workspace):
    """Have import find modules in the workspace, too, after all others: a file there
    is never taken for one of Python's own."""
    global _workspace
    _workspace = workspace
    sys.path.append(workspace)


class Finder:
    """Finds the registered modules, and loads them."""

    def find_spec(self, name, path=None, target=None):
        """The spec of a registered module, or None."""
        if _maker(name) is None:
            return None
        if path is None:
            path = [entry for entry in sys.path if entry is not _workspace]
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            if type(finder) is not Finder and find is not None and (spec := find(name, path)) is not None:
                return spec
        spec = type(sys.__spec__)(name, self, origin="mcp-bridge", is_package=name in _packages or name in _OUR_PACKAGES)
        return spec

    def create_module(self, spec):
        """None: a module as any other will do."""

    def exec_module(self, module):
        """Fill it."""
        _maker(module.__name__)(module)


def _maker(name):
    if name in _makers:
        return _makers[name]
    parent = name.rpartition(".")[0]
    if parent in _packages:
        return _packages[parent]
    return _fill_by_ours if name in OURS or _OUR_PACKAGES.get(parent) else None


def _fill_by_ours(module):
    from importlib import import_module

    name = module.__name__
    ours = OURS.get(name) or _OUR_PACKAGES[name.rpartition(".")[0]]
    import_module(f"{__package__}.{ours}").fill(module)
