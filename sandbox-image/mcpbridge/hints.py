"""What to write instead, for errors that come from other notebooks' habits.

Imported when a cell has failed, not before.
"""

import builtins
import re
import sys

from . import provided


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
    if isinstance(error, NameError) and error.name:
        return _of_name(error.name)
    return None


def _of_module(name):
    if name.partition(".")[0] == "IPython":
        return "this is plain Python, without IPython. `display(x)` is there without an import; a text is shown by print()."
    if provided.knows(name) and (name in sys.modules["__main__"].__dict__ or name in builtins.__dict__):
        return f"`{name}` is already there: leave the import out."
    return f"{name} is not in the sandbox's image, and pip cannot get it: there is no network. A file {name}.py in the workspace can be imported."


def _of_name(name):
    if name in _NO_NAMES:
        return f"this is plain Python, without IPython's `{name}`{_NO_NAMES[name]}."
    if match := re.fullmatch(r"_(i?)([1-9]\d*)", name):
        return f"write `{'In' if match[1] else 'Out'}[{match[2]}]`."
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
    if line.startswith("```"):
        return "leave out the ``` fence: the code is all there is to send."
    if match := re.match(r"(?:([\w.,\s]+?)\s*=\s*)?!!?(.*)", line):
        return _of_shell(match[1], match[2].strip())
    if match := re.match(r"(?:[\w.,\s]+?\s*=\s*)?%%?(\w+)\s*(.*)", line):
        return _of_magic(match[1], match[2].strip())
    if match := re.match(r"(?:pip3?|conda|uv) +(?:pip +)?install\b", line):
        return _NO_PIP
    if match := re.match(r"\?{1,2}([\w.]+)$|([\w.]+)(\?{1,2})$", line):
        name = match[1] or match[2]
        if "??" in line:
            return f"write `import inspect; print(inspect.getsource({name}))`; this is plain Python, without IPython's `??`."
        return f"write `help({name})`; this is plain Python, without IPython's `?`."
    return None


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
    rest = rest or "…"  # the cell, if it is one for all of it
    instead = _MAGICS.get(name, "").format(rest=rest, text=repr(rest))
    return f"this is plain Python, without IPython's `%{name}`" + (f": write `{instead}`." if instead else ".")


_TIME = "import time; began = time.perf_counter(); {rest}; print(time.perf_counter() - began)"
_SHELL = "import subprocess; subprocess.run({text}, shell=True)"
_MAGICS = {
    "time": _TIME,
    "timeit": "import timeit; timeit.timeit({text}, globals=globals(), number=1000)",
    "cd": "import os; os.chdir({text})",
    "pwd": "import os; os.getcwd()",
    "ls": "import os; os.listdir()",
    "cat": "print(open({text}).read())",
    "env": "import os; os.environ",
    "run": "import runpy; runpy.run_path({text}, run_name='__main__')",
    "load": "print(open({text}).read())",
    "who": "dir()",
    "whos": "dir()",
    "bash": _SHELL,
    "sh": _SHELL,
    "sx": _SHELL,
    "writefile": "open({text}, 'w').write('''…''')",
    "matplotlib": "import matplotlib.pyplot as plt",
    "history": "print(*In, sep='\\n')",
    "hist": "print(*In, sep='\\n')",
    "reset": "session.reset()",
}
