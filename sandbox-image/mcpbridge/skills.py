"""`skills`: functions and classes that are kept across sessions."""

import keyword
import sys
import time
import types

from . import kept, provided
from .listings import Hit, Listing
from .names import near
from .values import Record

MANUAL = """\
skills: functions and classes kept across sessions, with their imports and helpers.

  skills.save(fn, description="…", tags=["…"])   keep it; saving again makes a new version
  skills.fn(…), from skills import fn            use it, in any session; it is loaded when it is first used
  skills, skills.list(tag="…")                   what there is; tools.search finds skills, too
  skills.source(name), skills.info(name)         its source; who saved it, when
  skills.history(name), skills.restore(name, 2)  earlier versions
  skills.delete(name)                            for good, with its history

A skill sees the modules, helpers and plain constants that it used where it was saved, and tools, memory, …
It is code that some session has saved, not necessarily this one: skills.source(name) shows what it does."""

MAX_SOURCE = 100_000  # characters
MAX_VERSIONS = 20
MAX_RECORD = 400_000  # characters, with all versions
_MAX_DESCRIPTION = 2_000
_PARTS = ("source", "signature", "description", "tags", "cell", "session", "saved_at")  # of a version


class SkillError(ImportError):
    """A skill could not be loaded."""


SkillError.__module__ = "__main__"


class Skills(types.ModuleType):
    """Functions and classes kept across sessions. See help(skills)."""

    def __init__(self, client):
        super().__init__("skills", MANUAL)
        self.__path__ = []
        self._area = kept.Area(client, "skills")
        self._loaded = {}  # name → (version of the entry, the thing)
        self._failed = {}  # name → (version of the entry, why)
        self._heads = {}  # name → (stamp, record)

    # Keeping.

    def save(self, fn, name=None, description=None, tags=None, code=None):
        """Keep a function or class, or source code under a name. Returns what skills.info does.

        The description is the docstring's if there is none; tags stay if there are none."""
        if isinstance(fn, str):
            name, source = (fn, code) if code is not None else (name, fn)
            part = _of_code(name, source)
        else:
            from . import skillsource

            found = skillsource.collect(fn)
            text = found.text if name in (None, found.name) else f"{found.text}\n\n{name} = {found.name}\n"
            name = found.name if name is None else name
            part = {"source": text, "signature": found.signature, "description": found.doc, "cell": found.cell}
        _check_name(name)
        if len(part["source"]) > MAX_SOURCE:
            raise ValueError(f"the source of {name} has {len(part['source']):,} characters, more than {MAX_SOURCE:,}")
        if description is not None:
            part["description"] = str(description)
        part["description"] = part["description"].strip()[:_MAX_DESCRIPTION]
        if tags is not None:
            part["tags"] = [str(tag) for tag in ([tags] if isinstance(tags, str) else tags)]
        return self._keep(name, part)

    def restore(self, name, version):
        """Make an earlier version the current one again, as a new version."""
        record = self._record(name)
        old = next((v for v in _versions(record) if v["version"] == version), None)
        if old is None:
            known = ", ".join(str(v["version"]) for v in _versions(record))
            raise LookupError(f"skill {name!r} has no version {version!r}: there are {known}")
        return self._keep(name, {key: old[key] for key in ("source", "signature", "description", "tags", "cell")})

    def delete(self, name):
        """Delete a skill, with its history."""
        if not self._area.delete(kept.checked_key(name, "a skill's name")):
            raise self._no_skill(name, LookupError)
        for known in (self._loaded, self._failed, self._heads):
            known.pop(name, None)
        sys.modules.pop(f"skills.{name}", None)

    # Looking.

    def list(self, tag=None):
        """The skills, without loading any; those of a tag."""
        infos = (self._info(entry) for entry in self._area.list())
        return Listing(info for info in infos if tag is None or tag in info.tags)

    def info(self, name):
        """Name, signature, description, tags, version, saved_at, session, cell, problem."""
        return _Info(self._describe(name, *self._entry(name)))

    def source(self, name, version=None):
        """The source of a skill."""
        record = self._record(name)
        for kept_version in _versions(record):
            if version in (None, kept_version["version"]):
                return _Text(kept_version["source"])
        raise LookupError(f"skill {name!r} has no version {version!r}")

    def history(self, name):
        """The versions of a skill that are kept, latest first."""
        return Listing(_Version(v) for v in _versions(self._record(name)))

    def __getitem__(self, name):
        return self._load(name, LookupError)

    def __getattr__(self, name):
        if name.startswith("_") or not name.isidentifier():
            raise AttributeError(f"skills has no attribute {name!r}")
        return self._load(name, AttributeError)

    def __contains__(self, name):
        return isinstance(name, str) and bool(name) and self._area.get(name).text is not None

    def __iter__(self):
        return iter([entry["key"] for entry in self._area.list()])

    def __len__(self):
        return len(self._area.list())

    def __dir__(self):
        try:
            return [*_METHODS, *self]
        except Exception:
            return list(_METHODS)

    def __repr__(self):
        found = self.list()
        return repr(found) if found else "no skills yet: skills.save(fn) keeps a function across sessions; help(skills)"

    def _help(self):
        return f"{MANUAL}\n\n{self!r}"

    # Inside.

    def _entry(self, name):
        """The entry and the record of a skill."""
        entry = self._area.get(kept.checked_key(name, "a skill's name"))
        if entry.text is None:
            raise self._no_skill(name, LookupError)
        try:
            record = kept.from_json(entry.text)
            record["session"] = entry.session  # whose the host says it is
            _versions(record)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise SkillError(f"skill {name!r} is damaged: save it again, or skills.delete({name!r})") from None
        return entry, record

    def _record(self, name):
        return self._entry(name)[1]

    def _no_skill(self, name, kind):
        close = near(name, list(self))
        error = kind(f"no skill {name!r}{close}; skills.list() lists them")
        if kind is AttributeError:
            error.name = error.obj = None  # a traceback would look for names like it
        return error

    def _keep(self, name, part):
        def make(entry):
            record = {"version": 0, "created_at": time.time(), "tags": [], "history": []}
            if entry.text is not None:
                try:
                    old = kept.from_json(entry.text)
                    if all(old[key] == part[key] for key in part if key != "cell"):
                        return entry.text  # nothing new
                    record = {
                        "version": old["version"],
                        "created_at": old["created_at"],
                        "tags": old["tags"],
                        "history": [{"version": old["version"], **{key: old[key] for key in _PARTS}, "session": entry.session}, *old["history"]],
                    }
                except (ValueError, KeyError, TypeError):
                    pass  # damaged: this is the first version
            record = {**record, **part, "version": record["version"] + 1, "session": "", "saved_at": time.time()}
            del record["history"][MAX_VERSIONS - 1 :]
            text = kept.to_json(record)
            while len(text) > MAX_RECORD and record["history"]:
                record["history"].pop()
                text = kept.to_json(record)
            return text

        self._area.change(name, make)
        return self.info(name)

    def _info(self, listed):
        """What list() shows of an entry. It never fails, and runs no code of the skill."""
        name = listed["key"]
        try:
            stamp, entry, record = self._heads.get(name) or (None, None, None)
            if stamp != listed["stamp"]:
                entry, record = self._entry(name)
                self._heads[name] = listed["stamp"], entry, record
            return _Info(self._describe(name, entry, record))
        except Exception as error:
            return _Info(name=name, signature="(...)", description="", tags=[], version=0, saved_at=0, session="", cell=0, problem=str(error))

    def _describe(self, name, entry, record):
        about = {key: record[key] for key in ("signature", "description", "tags", "version", "saved_at", "cell")}
        failed = self._failed.get(name)
        problem = failed[1] if failed and failed[0] == entry.version else _problem(record["source"])
        return {"name": name, **about, "session": entry.session, "problem": problem}

    def _load(self, name, kind):
        """The function or class of a name; its current version."""
        try:
            entry, record = self._entry(name)
        except LookupError:
            raise self._no_skill(name, kind) from None
        known = self._loaded.get(name)
        if known is None or known[0] != entry.version:
            try:
                known = entry.version, self._run(name, record["source"])
            except Exception as error:
                why = f"{type(error).__name__}: {error}"
                self._failed[name] = entry.version, why
                by = f", saved by session {entry.session!r}" if entry.session else ""
                text = f"skill {name!r} (version {record['version']}{by}) cannot be loaded: {why}"
                raise SkillError(f"{text}\nskills.source({name!r}) shows it, skills.history({name!r}) earlier versions.") from error
            self._loaded[name] = known
        return known[1]

    def _run(self, name, source):
        """Run a skill's source in a module of its own."""
        import linecache

        filename = f"<skill {name}>"
        code = compile(source, filename, "exec", dont_inherit=True)
        module = types.ModuleType(f"skills.{name}")
        vars(module).update(provided.of_text(source))
        linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
        before = sys.modules.get(module.__name__)
        sys.modules[module.__name__] = module
        try:
            exec(code, vars(module))
        except BaseException:
            if before is None:
                del sys.modules[module.__name__]
            else:
                sys.modules[module.__name__] = before
            raise
        return vars(module).get(name, module)


_METHODS = ("delete", "history", "info", "list", "restore", "save", "source")


class SkillHit(Hit):
    """A skill that a search found. Call it, or read .tool .signature .description .score"""

    def __init__(self, toolbox, hit):
        super().__init__(toolbox, hit)
        self.server = "skills"

    def _found(self):
        return provided.made("skills")[self.tool]

    def __call__(self, /, *args, **kwargs):
        return self._found()(*args, **kwargs)

    @property
    def doc(self):
        return self._found().__doc__ or ""

    def _help(self):
        return f"{self!r}\n\n{provided.made('skills').source(self.tool)}"


class _Info(Record):
    __slots__ = ()

    def __repr__(self):
        first = self.description.split("\n")[0]
        tags = f" [{', '.join(self.tags)}]" if self.tags else ""
        by = f", session {self.session}" if self.session else ""
        line = f"skills.{self.name}{self.signature}   {first}{tags} (v{self.version}, {_day(self.saved_at)}{by})"
        return f"{line}  BROKEN: {self.problem}" if self.problem else line


class _Version(Record):
    __slots__ = ()

    def __repr__(self):
        by = f", session {self.session}" if self.session else ""
        cell = f", cell {self.cell}" if self.cell else ""
        first = self.description.split("\n")[0]
        return f"v{self.version}  {_day(self.saved_at)}{by}{cell}  {self.signature}  {first}".rstrip()


class _Text(str):
    """Text that shows as it is."""

    def __repr__(self):
        return str(self)


def provide(client, name):
    """The skills of this sandbox's user, or the error that loading one raises."""
    return SkillError if name == "SkillError" else Skills(client)


def fill(module):
    """`import skills`: the same object that cells have."""
    sys.modules[module.__name__] = provided.made("skills")


def _versions(record):
    """All versions in a record, latest first."""
    current = Record((key, record[key]) for key in _PARTS)
    return [Record(version=record["version"], **current), *record["history"]]


def _of_code(name, source):
    if not isinstance(source, str):
        raise TypeError(f"the code of a skill is a str, not {type(source).__name__}")
    _check_name(name)
    signature, doc = "", ""
    try:
        from . import skillsource

        signature, doc = skillsource.signature_of(source, name), skillsource.doc_of(source, name)
    except SyntaxError as error:
        raise ValueError(f"the code of skill {name!r} is no Python: {error.msg} (line {error.lineno})") from None
    return {"source": source, "signature": signature, "description": doc, "cell": 0}


def _check_name(name):
    if not isinstance(name, str):
        raise TypeError(f"a skill's name is a str, not {type(name).__name__}: skills.save(code, name='…')")
    plain = name.isascii() and name.isidentifier() and len(name) <= 64 and not name.startswith("_")
    if not plain or keyword.iskeyword(name):
        raise ValueError(f"{name!r} is no name for a skill: a Python name of letters, digits and _, at most 64, the first a letter")
    if name in _METHODS:
        raise ValueError(f"skills.{name} is a method of skills: give the skill another name, skills.save(fn, name='…')")


def _problem(source):
    """What would keep a source from being loaded, as far as that is known without doing it; or ''."""
    import ast
    from importlib.util import find_spec

    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return f"{type(error).__name__}: {error}"
    needed = []
    for node in tree.body:
        if isinstance(node, ast.Import):
            needed += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            needed.append(node.module)
    for name in needed:
        top = name.partition(".")[0]
        try:
            known = top in sys.modules or find_spec(top) is not None
        except (ImportError, ValueError):
            known = False
        if not known:
            return f"module {top!r} is not installed here"
    return ""


def _day(seconds):
    return time.strftime("%Y-%m-%d", time.gmtime(seconds))
