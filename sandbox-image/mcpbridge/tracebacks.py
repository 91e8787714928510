"""Tracebacks for a reader who knows only the cells: the user's own lines."""

import os
import sys

_USER_FILES = ("<cell ", "<skill ", "/workspace/", "/tmp/", "/mnt/")
_USER_NAMES = ("<string>", "<stdin>", "<unknown>")  # of what a cell compiles itself
_COMPILED = (".pyx", ".pxd", ".pxi")  # in packages, as Cython names them
_OWN_FILES = os.path.dirname(os.path.abspath(__file__)) + "/"
_MAX_CHARS = 12_000
_FIRST_FRAMES, _LAST_FRAMES = 10, 20  # shown of a stack that is deeper than both


_traceback = None


def prepare():
    """Import what describing an error needs: to be done when nobody waits, for it
    is half as much as all else, and before a cell has used up the memory."""
    global _traceback
    if _traceback is None:
        try:
            import traceback as _traceback
        except BaseException:  # what a cell has done to imports; describe copes
            pass
    return _traceback


def describe(error):
    """error as {type, message, traceback}, bounded."""
    try:
        traceback = prepare()
        tree = traceback.TracebackException.from_exception(error, compact=True)
        _trim(tree, traceback)
        _add_line(tree, error)
        text = "".join(tree.format()).rstrip("\n")
    except Exception as trouble:  # an endless __cause__ …
        text = f"{type(error).__name__}: {_unshown(trouble)}"
    try:
        message = str(error)
    except Exception as trouble:
        message = _unshown(trouble)
    return {
        "type": type(error).__name__,
        "message": _cut(message, 2000),
        "traceback": _cut(text, _MAX_CHARS),
    }


def _unshown(trouble):
    return f"(its message cannot be shown: {type(trouble).__name__})"


def _add_line(tree, error):
    """The line of a cell that has an error the parser does not find, as `return` in no function."""
    if isinstance(error, SyntaxError) and tree.text is None and str(error.filename).startswith("<cell ") and error.lineno:
        import linecache

        tree.text = linecache.getline(error.filename, error.lineno) or None


def hint(error, code):
    """What to write instead, for who wrote code, which has raised error; or None."""
    try:
        from . import hints

        return hints.of_error(error, code)
    except Exception:
        return None  # a message that cannot be had, no memory …


def _trim(tree, traceback):
    """Keep the frames of user files, in the error and in those that led to it."""
    seen = set()
    todo = [tree]
    while todo:
        node = todo.pop()
        if node is None or id(node) in seen:
            continue
        seen.add(id(node))
        frames = [f for f in node.stack or () if _is_users(f.filename)]
        node.stack = _stack(traceback)(frames) if frames else None
        _leave_out_repetition(node)
        todo += [node.__cause__, node.__context__, *(getattr(node, "exceptions", None) or ())]


def _leave_out_repetition(node):
    """Leave out what led to an error if it says the same of a library's own lines."""
    for _ in range(10):
        cause = node.__cause__ or (None if node.__suppress_context__ else node.__context__)
        if cause is None or any(_is_users(f.filename) for f in cause.stack or ()):
            return
        if getattr(cause, "exceptions", None) or list(cause.format_exception_only()) != list(node.format_exception_only()):
            return
        node.__cause__, node.__context__ = cause.__cause__, cause.__context__
        node.__suppress_context__ = cause.__suppress_context__


def _stack(traceback):
    """A StackSummary that leaves out the middle of a deep stack."""

    class Stack(traceback.StackSummary):
        def format(self, **options):
            lines = super().format(**options)
            left_out = len(lines) - _FIRST_FRAMES - _LAST_FRAMES
            if left_out <= 1:
                return lines
            return [*lines[:_FIRST_FRAMES], f"  [… {left_out} frames left out …]\n", *lines[-_LAST_FRAMES:]]

    return Stack


def _is_users(filename):
    if filename.startswith(_OWN_FILES):
        return False
    if filename.startswith("<"):
        return filename.startswith(_USER_FILES) or filename in _USER_NAMES
    if not os.path.isabs(filename):
        return not filename.endswith(_COMPILED)
    if filename.startswith(_USER_FILES):
        return "-packages/" not in filename
    prefixes = {os.path.join(prefix, "") for prefix in (sys.prefix, sys.base_prefix)}
    return not filename.startswith((*prefixes, "/usr/")) and "-packages/" not in filename


def _cut(text, limit):
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[… {len(text) - limit:,} characters cut …]\n{text[-half:]}"
