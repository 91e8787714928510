"""DataFrames, Series and arrays: some rows, and what the columns are."""

import sys

ROWS = 30  # of a table that is shown whole
SOME = 12  # rows of one that is not, half of them from its end
COLUMNS = 20
NAMED = 40  # columns whose type is told
CELL = 60  # characters of a value in a table


def find(value):
    """What shows value within a limit, or None: its repr does."""
    for name, kind, show in (
        ("pandas", "DataFrame", _frame),
        ("pandas", "Series", _series),
        ("numpy", "ndarray", _array),
    ):
        if _is(value, name, kind):
            return show
    return None


def shape(value):
    """What value is, in a few words, or None."""
    if _is(value, "pandas", "DataFrame"):
        rows, columns = value.shape
        return f"DataFrame of {rows:,} rows × {columns:,} columns: {_types(value)}"
    if _is(value, "pandas", "Series"):
        return f"Series of {len(value):,} {value.dtype}"
    if _is(value, "numpy", "ndarray"):
        return f"ndarray of shape {value.shape}, {value.dtype}"
    return None


def _is(value, module, kind):
    """isinstance() of a class of a module that nobody has to have imported."""
    found = getattr(sys.modules.get(module), kind, None)
    return isinstance(found, type) and isinstance(value, found)


def _types(frame):
    """The columns and their types, those of one type together."""
    names = [f"{str(name)[:40]} {kind}" for name, kind in zip(frame.columns[:NAMED], frame.dtypes[:NAMED])]
    more = frame.shape[1] - len(names)
    return ", ".join(names) + (f", … {more:,} more" if more > 0 else "")


def _frame(frame, limit):
    rows, columns = frame.shape
    whole = rows <= ROWS and columns <= COLUMNS
    text = _text(frame, limit, lambda most: frame.to_string(max_rows=most, max_cols=COLUMNS, max_colwidth=CELL), rows)
    if whole and text is not None and columns:
        return {"text": f"{text}\n[{rows:,} rows × {columns:,} columns: {_types(frame)}]"}
    return {"text": text or "", "shape": shape(frame)}


def _series(series, limit):
    rows = len(series)
    text = _text(series, limit, lambda most: series.to_string(max_rows=most), rows)
    if rows <= ROWS and text is not None:
        kind = f"[{rows:,} values, {series.dtype}"
        return {"text": f"{text}\n{kind}{'' if series.name is None else f', {series.name!r}'}]"}
    return {"text": text or "", "shape": shape(series)}


def _text(table, limit, write, rows):
    """The table as text of at most limit characters, or None."""
    for most in (ROWS, SOME, 4, 2):
        if most == ROWS and rows > ROWS:
            continue
        text = write(most)
        if len(text) <= limit:
            return text
    return None


def _array(array, limit):
    numpy = sys.modules["numpy"]
    if array.dtype == object and array.size <= 1000:
        from . import brief
        from .preview import Reprs

        text = Reprs()(array)
        return {"text": text} if len(text) <= limit else {"text": brief.cut(text, limit), "shape": shape(array)}
    with numpy.printoptions(threshold=min(1000, numpy.get_printoptions()["threshold"])):
        text = repr(array)
        if len(text) > limit:
            numpy.set_printoptions(threshold=0, edgeitems=1)
            text = repr(array)
        cut = array.size > numpy.get_printoptions()["threshold"] or len(text) > limit
    return {"text": text[:limit], "shape": shape(array)} if cut else {"text": text}
