"""What a cell may change and the next one, or we, cannot do without."""

import builtins
import operator
import sys

_builtins = builtins.__dict__
_all, _map, _is = all, map, operator.is_  # whatever a cell makes of these names
_LEAST_DEPTH = 1000  # what our own code, and what it calls of Python's, gets along with


class Exit:
    """exit() and quit(): end the cell. Python's own would close stdin, too."""

    def __init__(self, name):
        self._name = name

    def __call__(self, code=None):
        raise SystemExit(code)

    def __repr__(self):
        return f"{self._name}() ends the cell; variables are kept"


def no_debugger(*_args, **_kwargs):
    """breakpoint() and pdb.set_trace(): with an empty stdin pdb would end the cell."""
    raise RuntimeError("nobody can type commands for pdb here: stdin is empty. Print what you want to see.")


class World:
    """Puts right what is wrong before a cell, and keeps a cell's changes from our own code."""

    def __init__(self, namespace):
        builtins.exit, builtins.quit = Exit("exit"), Exit("quit")
        sys.breakpointhook = no_debugger
        self._main = sys.modules["__main__"]
        self._namespace = namespace
        self._names = dict(namespace)
        self._ours = dict(_builtins)
        self._values = tuple(self._ours.values())
        self._theirs = {}  # builtins that cells have replaced
        self._lent = False

    def repair(self):
        """Before a cell: it finds the names that are missing."""
        namespace = self._namespace
        for name, value in self._names.items():
            if name not in namespace:
                namespace[name] = value
        namespace["__builtins__"] = builtins
        namespace.pop("__warningregistry__", None)  # it knows lines, and not of which cell
        sys.modules["__main__"] = self._main

    def lend(self):
        """While a cell's code runs it has the builtins that it, or an earlier one, has made."""
        self._lent = True
        if self._theirs:
            _builtins.update(self._theirs)

    def take(self):
        """Python's own builtins again, and a stack to stand on. Can be repeated.

        Until then this uses no builtin itself. One that has been deleted is back for good.
        """
        if not self._lent:
            return
        if self._theirs or not _all(_map(_is, _map(_builtins.get, self._ours), self._values)):
            self._take_back()
        if sys.getrecursionlimit() < _LEAST_DEPTH:
            sys.setrecursionlimit(_LEAST_DEPTH)
        self._lent = False

    def _take_back(self):
        theirs = {}
        for name, value in self._ours.items():
            if name not in _builtins:
                _builtins[name] = value
            elif _builtins[name] is not value:
                theirs[name] = _builtins[name]
                self._theirs[name] = theirs[name]  # if an interrupt comes now, it is not forgotten
                _builtins[name] = value
        self._theirs = theirs
