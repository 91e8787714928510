"""What to write instead, for errors that come from other notebooks' habits.

Imported when a cell has failed, not before.
"""

import builtins
import errno
import re
import sys

from . import lasting, provided
from .errors import ToolError


def of_error(error, code):
    """A hint for who wrote code, which has raised error, or None."""
    if isinstance(error, SyntaxError):
        return _of_syntax(error, code)
    message = str(error)
    if isinstance(error, EOFError) and (message == "EOF when reading a line" or "getpass" in code):
        return "nobody can answer input() here: stdin is empty. Put the value into the code."
    if isinstance(error, RuntimeError) and ("event loop" in message):
        return "top-level `await` works in a cell: write `await main()` in place of asyncio.run() or create_task() alone."
    if isinstance(error, ModuleNotFoundError) and error.name and ("." not in error.name or error.name.startswith("IPython.")):
        return _of_module(error.name)
    if isinstance(error, NameError) and getattr(error, "name", None):
        return _of_name(error.name)
    if isinstance(error, MemoryError):
        return _of_memory()
    if isinstance(error, OSError) and error.errno == errno.EFBIG:
        return _of_size()
    if isinstance(error, PermissionError) and _is_not_executable(error.filename):
        return f"programs in this folder cannot be run as such: name what runs it, as in `subprocess.run([\"bash\", {error.filename!r}])`."
    if not isinstance(error, ToolError) and _NO_NETWORK.search(message[-2000:]):
        return 'the sandbox has no network, and trying again does not help. Ask a tool that has: `tools.search("fetch a URL")`.'
    return None


_NO_NETWORK = re.compile(
    "name resolution|Name or service not known|No address associated with hostname|Failed to resolve|"
    "Address family not supported by protocol|Network is (?:unreachable|down)"
)


def _of_memory():
    import resource

    limit = resource.getrlimit(resource.RLIMIT_DATA)[0]
    most = f"Python may use {limit >> 20:,} MiB" if limit != resource.RLIM_INFINITY else "the sandbox's memory is limited"
    return most + " here, all variables together: work in pieces, and `del` what is no longer needed."


def _of_size():
    import resource

    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    most = f"{limit >> 20:,} MiB" if limit != resource.RLIM_INFINITY else "that"
    return f"no file may be larger than {most} here: write several smaller ones, or compress it."


def _is_not_executable(path):
    """Whether a program could be read but not run, as it is on a file system for data."""
    import os

    return isinstance(path, str) and os.path.isfile(path) and os.access(path, os.R_OK) and bool(os.statvfs(path).f_flag & os.ST_NOEXEC)


def _of_module(name):
    if name.partition(".")[0] == "IPython":
        return "this is plain Python, without IPython. `display(x)` is there without an import; a text is shown by print()."
    if provided.knows(name) and (name in sys.modules["__main__"].__dict__ or name in builtins.__dict__):
        return f"`{name}` is already there: leave the import out."
    return f"{name} is not in the sandbox's image, and pip cannot get it: there is no network."


def _of_name(name):
    if name in _NO_NAMES:
        return f"this is plain Python, without IPython's `{name}`{_NO_NAMES[name]}."
    if match := re.fullmatch(r"_(i?)([1-9]\d*)", name):
        return f"write `{'In' if match[1] else 'Out'}[{match[2]}]`."
    if name in lasting.lost:
        return f"`{name}` was not restored with the session ({lasting.lost[name]}): make it anew."
    return None


_NO_NAMES = {
    "get_ipython": "",
    "clear_output": ": what is printed stays",
    **dict.fromkeys(("Markdown", "Latex"), ": print the text"),
    **dict.fromkeys(("_i", "_ii", "_iii"), ": write `In[-2]` for the code of the cell before"),
}


def _of_syntax(error, code):
    if not str(error.filename).startswith("<cell "):
        return None  # of a file, or of ast.parse() in the cell
    lines = code.splitlines()
    number = error.lineno or 0
    line = lines[number - 1].strip() if 0 < number <= len(lines) else ""
    if line.startswith(">>>"):
        return "leave out the prompts `>>>` and `...`, and what was printed: the code is all there is to send."
    if line.startswith("```"):
        return "leave out the ``` fence: the code is all there is to send."
    if match := re.match(r"(?:([\w.,\s]+?)\s*=\s*)?!!?(.*)", line):
        return _of_shell(match[1], match[2].strip())
    if match := re.match(r"%%(\w+)\s*(.*)", line):
        return _of_cell_magic(match[1], match[2].strip(), "\n".join(lines[number:]))
    if match := re.match(r"(?:[\w.,\s]+?\s*=\s*)?%(\w+)\s*(.*)", line):
        return _of_magic(match[1], match[2].strip())
    if match := re.match(r"(?:pip3?|conda|uv) +(?:pip +)?install\b", line):
        return _NO_PIP
    if match := re.match(r"\?{1,2}([\w.]+)$|([\w.]+)(\?{1,2})$", line):
        name = match[1] or match[2]
        if "??" in line and not _is_of_ours(name):
            return f"write `import inspect; print(inspect.getsource({name}))`; this is plain Python, without IPython's `??`."
        return f"write `help({name})`; this is plain Python, without IPython's `{'??' if '??' in line else '?'}`."
    return None


def _is_of_ours(name):
    """Whether a name is of a thing of the SDK's, which has no source to show."""
    first, _, more = name.partition(".")
    thing = sys.modules["__main__"].__dict__.get(first)
    return type(thing).__module__.startswith("mcpbridge.") or first == "tools"


_NO_PIP = "packages cannot be installed: the sandbox has no network. What is there: `help('modules')`."


def _of_shell(target, command):
    if re.match(r"(?:python3? -m )?(?:pip3?|conda|uv)\b.*\binstall\b", command):
        return _NO_PIP
    if target:
        instead = f"import subprocess; {target} = subprocess.run({command!r}, shell=True, capture_output=True, text=True).stdout.splitlines()"
    else:
        instead = f"import subprocess; subprocess.run({command!r}, shell=True)"
    return f"this is plain Python, without IPython's `!`: write `{instead}`."


def _of_magic(name, rest):
    if name in ("pip", "conda", "uv"):
        return _NO_PIP
    if name in ("time", "timeit"):
        rest, number = _without_options(rest)
        return _instead("%" + name, _MAGICS[name].format(rest=rest or "…", text=repr(rest or "…"), number=number))
    if name in ("env", "set_env"):
        return _instead("%" + name, _of_environ(rest))
    return _instead("%" + name, _MAGICS.get(name, "").format(rest=rest or "…", text=repr(rest or "…")))


def _of_cell_magic(name, rest, body):
    """Of one for all lines below it, which are the body."""
    if name in ("pip", "conda", "uv"):
        return _NO_PIP
    if name == "time":
        return _instead("%%time", "import time; began = time.perf_counter()") + (
            " before the code, and `print(time.perf_counter() - began)` after it."
        )
    if name == "capture":
        return "this is plain Python, without IPython's `%%capture`: leave it out; `out[n]` is what cell n printed."
    text = repr(body) if body and len(body) <= 200 else "'''…'''"
    if name == "timeit":
        text = repr(rest) if rest and not body else text
        return _instead("%%timeit", _MAGICS["timeit"].format(text=text, number=_without_options(rest)[1]))
    if name == "writefile":
        return _instead("%%writefile", f"open({rest or '…'!r}, 'w').write({text})")
    if name in ("bash", "sh", "script"):
        return _instead("%%" + name, f"import subprocess; subprocess.run({text}, shell=True)")
    return _instead("%%" + name, "")


def _instead(magic, code):
    hint = f"this is plain Python, without IPython's `{magic}`"
    return hint + (f": write `{code}`" if code else "") + ("" if magic == "%%time" else ".")


def _without_options(rest):
    """What %timeit is to time, and how often."""
    number = re.search(r"(?:^|\s)-n\s*(\d+)", rest)
    match = re.match(r"(?:-[nr]\s*\d+\s*|-[a-z]+\s*)*", rest)
    return rest[match.end() :], number[1] if number else "1000"


def _of_environ(rest):
    name, given, value = rest.partition("=") if "=" in rest else rest.partition(" ")
    if not name:
        return "import os; os.environ"
    return f"import os; os.environ[{name.strip()!r}]" + (f" = {value.strip()!r}" if given else "")


_TIME = "import time; began = time.perf_counter(); {rest}; print(time.perf_counter() - began)"
_SHELL = "import subprocess; subprocess.run({text}, shell=True)"
_MAGICS = {
    "time": _TIME,
    "timeit": "import timeit; timeit.timeit({text}, globals=globals(), number={number})",
    "cd": "import os; os.chdir({text})",
    "pwd": "import os; os.getcwd()",
    "ls": "import os; os.listdir()",
    "cat": "print(open({text}).read())",
    "run": "import runpy; runpy.run_path({text}, run_name='__main__')",
    "load": "print(open({text}).read())",
    "who": "dir()",
    "whos": "dir()",
    "bash": _SHELL,
    "sh": _SHELL,
    "sx": _SHELL,
    "matplotlib": "import matplotlib.pyplot as plt",
    "history": "print(*In, sep='\\n')",
    "hist": "print(*In, sep='\\n')",
    "reset": "session.reset()",
}
