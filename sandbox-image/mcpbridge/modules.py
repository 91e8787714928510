"""Modules that cells can import and that are no files: `skills`, `mcp`, …

They are made when they are first imported. A file or a package of that name that
Python finds by itself goes first.
"""

import sys

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
        parent = name.rpartition(".")[0]
        if name not in _makers and parent not in _packages:
            return None
        spec = type(sys.__spec__)(name, self, origin="mcp-bridge", is_package=name in _packages)
        return spec

    def create_module(self, spec):
        """None: a module as any other will do."""

    def exec_module(self, module):
        """Fill it."""
        name = module.__name__
        fill = _makers.get(name) or _packages[name.rpartition(".")[0]]
        fill(module)
