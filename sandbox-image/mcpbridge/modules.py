"""Modules that cells can import and that are no files: `skills`, `mcp`, …

They are made when they are first imported. A file or a package of that name that
Python finds by itself goes first.
"""

import sys

# name → module of ours; its function fill(module) fills it. What is registered goes first.
OURS = {"skills": "skills", "user_tools": "skills", "mcp": "compat", "mcp.runtime": "compat", "mcp.servers": "compat"}
_OUR_PACKAGES = {"mcp": None, "mcp.servers": "compat"}  # the same for any module below a package

_makers = {}  # name → function(module) that fills it
_packages = {}  # name → function(module) that fills any module below it


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
    sys.meta_path.append(Finder())


class Finder:
    """Finds the registered modules, and loads them."""

    def find_spec(self, name, path=None, target=None):
        """The spec of a registered module, or None."""
        if _maker(name) is None:
            return None
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
