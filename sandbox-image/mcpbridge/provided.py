"""Names that cells use without importing them, made when a cell first mentions one.

Before a cell runs, its text is looked through for such names, so those that no
cell mentions cost nothing. The ones that people are to see are in the namespace
from the start, as placeholders. The others go into builtins, where dir() does
not list them and every name of the user's own goes first.
"""

import builtins
import sys

# name → module of ours; its function provide(client, name) makes the thing.
SHOWN = {"memory": "memory", "session": "session", "skills": "skills"}
HIDDEN = {
    "StateError": "kept",
    "SkillError": "skills",
    **dict.fromkeys(
        "mcp runtime mcp_servers LOADED_MCP_SERVERS MCPError discovered_servers list_servers list_servers_sync list_tools "
        "list_tools_sync describe_server list_loaded_server_metadata query_tool_docs query_tool_docs_sync search_tool_docs "
        "search_tool_docs_sync call_tool capability_summary save_tool save_memory load_memory get_memory delete_memory "
        "list_memories update_memory memory_exists get_memory_info".split(),
        "compat",
    ),
    **dict.fromkeys(
        "read_file write_file list_files delete_file search_tools get_tool_definition list_tool_categories save_skill "
        "load_skill list_skills tokenize_pii detokenize_pii sanitize_pii restore_pii filter_by_field summarize_list "
        "aggregate_stats format_output get_execution_stats".split(),
        "helpers",
    ),
}
# The same for all names that begin so, up to the first underscore.
PREFIXES = {"mcp_": "compat"}

# What ends a word, as a space. Beyond ASCII anything may be a letter: code has nothing
# else there outside of its strings and comments.
_ENDS = str.maketrans({chr(c): " " for c in range(128) if not (chr(c).isalnum() or chr(c) == "_")})


def _words(text):
    return set(text.translate(_ENDS).split())


def _mentioned(words, text):
    """The names of ours among words, which are those of text, with their modules."""
    for names in SHOWN, HIDDEN:
        for name in names.keys() & words:
            yield name, names[name]
    for prefix, module in PREFIXES.items():
        if prefix in text:
            for name in words:
                if name.startswith(prefix) and name not in SHOWN and name not in HIDDEN:
                    yield name, module


class Placeholder:
    """Stands in the namespace for what no cell has mentioned, for code that was not
    looked through: eval("memory.keys()")."""

    __slots__ = ("_make",)

    def __init__(self, make):
        self._make = make

    def __getattr__(self, name):
        return getattr(self._make(), name)

    def __getitem__(self, key):
        return self._make()[key]

    def __setitem__(self, key, value):
        self._make()[key] = value

    def __repr__(self):
        return repr(self._make())


class Provider:
    """Gives a namespace what its cells mention."""

    def __init__(self, client, namespace):
        self._client = client
        self._namespace = namespace
        self._made = {}
        self._ours = {**namespace}
        for name, module in SHOWN.items():
            namespace[name] = Placeholder(lambda name=name, module=module: self.make(name, module))

    def look_through(self, text):
        """Provide what a cell's text mentions, be it in a comment."""
        for name, module in _mentioned(_words(text), text):
            try:
                self._provide(name, module)
            except Exception:
                pass  # whoever uses the name learns that there is none

    def of_text(self, text):
        """What a module with that text gets, which is no cell: as look_through, in a dict."""
        words = _words(text)
        found = {name: self._ours[name] for name in self._ours.keys() & words}
        found.update((name, self.make(name, SHOWN[name])) for name in SHOWN.keys() & words - found.keys())
        self.look_through(text)
        return found

    def original(self, name):
        """What was in the namespace from the start."""
        return self._ours[name]

    def client(self):
        """The connection to the host."""
        return self._client

    def is_ours(self, name, thing):
        """Whether thing is what every cell finds under that name."""
        known = self._ours if name in self._ours else self._made
        return type(thing) is Placeholder or name in known and known[name] is thing

    def knows(self, name):
        """Whether every cell finds something under that name."""
        return name in self._ours or name in SHOWN or name in HIDDEN or name.partition("_")[0] + "_" in PREFIXES

    def _provide(self, name, module):
        if name in SHOWN:
            if type(self._namespace.get(name)) is Placeholder:
                self._namespace[name] = self.make(name, module)
        elif name not in builtins.__dict__:
            builtins.__dict__[name] = self.make(name, module)

    def make(self, name, module):
        """The thing of that name, made by module."""
        if name not in self._made:
            full = f"{__package__}.{module}"
            if full not in sys.modules:
                from importlib import import_module

                import_module(full)
            self._made[name] = sys.modules[full].provide(self._client, name)
        return self._made[name]


_provider = None


def install(client, namespace):
    """Provide for this namespace from now on."""
    global _provider
    _provider = Provider(client, namespace)


def look_through(text):
    """Provide what a cell's text mentions."""
    _provider.look_through(text)


def of_text(text):
    """See Provider."""
    return _provider.of_text(text)


def is_ours(name, thing):
    """See Provider."""
    return _provider.is_ours(name, thing)


def knows(name):
    """See Provider."""
    return _provider.knows(name)


def original(name):
    """See Provider."""
    return _provider.original(name)


def client():
    """See Provider."""
    return _provider.client()


def made(name):
    """The thing of a name that is SHOWN."""
    return _provider.make(name, SHOWN[name])
