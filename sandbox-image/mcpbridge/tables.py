"""DataFrames, Series and arrays: some rows, and what the columns are."""

import sys

ROWS = 30  # of a table that is shown whole
SOME = 12  # rows of one that is not, half of them from its end
COLUMNS = 20
NAMED = 40  # columns whose type is told
CELL = 60  # characters of a value in a table
TYPES = 380  # characters of columns and their types: the host shows 500 of a shape
DEFAULTS = {"max_rows": {60}, "max_columns": {0, 20}, "max_colwidth": {50}}  # of pandas


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
    while len(", ".join(names)) > TYPES:
        names.pop()
    more = frame.shape[1] - len(names)
    return ", ".join(names) + (f", … {more:,} more" if more > 0 else "")


def _option(name, ours):
    """What a cell has set as pandas' display.name, or ours."""
    value = sys.modules["pandas"].get_option("display." + name)
    return ours if value in DEFAULTS[name] else value


def _frame(frame, limit):
    rows, columns = frame.shape
    if not rows or not columns:
        text = repr(frame)
        return {"text": text} if len(text) <= limit else {"text": text[:limit], "shape": shape(frame)}
    most = _option("max_columns", COLUMNS) or None
    text, whole, width = _text(frame, limit, lambda **options: frame.to_string(max_cols=most, **options))
    if most is not None and columns > most:
        whole = False
    return _shown(text, whole, width, frame, f"[{rows:,} rows × {columns:,} columns: {_types(frame)}]", frame.items)


def _series(series, limit):
    if not len(series):
        return {"text": repr(series)[:limit]}
    pandas = sys.modules["pandas"]

    def write(max_rows, max_colwidth):
        with pandas.option_context("display.max_colwidth", max_colwidth):
            return series.to_string(max_rows=max_rows)

    text, whole, width = _text(series, limit, write)
    name = "" if series.name is None else f", {series.name!r}"
    return _shown(text, whole, width, series, f"[{len(series):,} values, {series.dtype}{name}]", lambda: [(None, series)])


def _shown(text, whole, width, table, footer, columns):
    """The table's text, with what is left out of it, if anything is."""
    if not whole:
        return {"text": text, "shape": shape(table)}
    if width is not None and "..." in text and any(_is_wide(column, width) for _, column in columns()):
        return {"text": text, "shape": f"values of {width:,} characters and more in a {shape(table)}"}
    return {"text": f"{text}\n{footer}"}


def _is_wide(column, width):
    """Whether a value of a column has so many characters that pandas cuts it."""
    return column.dtype.kind not in "biufcmM" and any(len(str(value)) >= width for value in column)


def _text(table, limit, write):
    """(the table as text of at most limit characters, whether that has all rows, and how wide values are)."""
    rows = len(table)
    most = _option("max_rows", ROWS) or rows
    wanted = _option("max_colwidth", CELL)
    for width in dict.fromkeys((wanted, CELL)):
        for some in [rows] * (rows <= min(most, limit)) + [min(some, most) for some in (SOME, 4, 2)]:
            text = write(max_rows=some, max_colwidth=width)
            if len(text) <= limit:
                return text, some >= rows, width
    return "", False, None


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
