"""Something to do once a module has been imported, by whom and whenever."""

import sys


class AfterImport:
    """A finder that finds what the others do, and acts when that has been loaded."""

    def __init__(self):
        self._actions = {}

    def add(self, name, action):
        """Call action(module) when the module of that name is there."""
        if name in sys.modules:
            action(sys.modules[name])
        else:
            self._actions[name] = action

    def find_spec(self, name, path=None, target=None):
        action = self._actions.get(name)
        if action is None:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            if finder is self or find is None:
                continue
            spec = find(name, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _Loader(spec.loader, action)
                return spec
        return None


class _Loader:
    def __init__(self, loader, action):
        self._loader = loader
        self._action = action

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        try:
            self._action(module)
        except Exception:
            pass  # the module is what it is without us

    def __getattr__(self, name):
        return getattr(self._loader, name)
