"""The source text of cells: for tracebacks, for inspect, and as `In`."""

import linecache

LATEST = 200  # cells whose text is kept anyway
KEPT = 1000  # cells whose text is kept while they may have definitions in use
KEPT_CHARS = 16 << 20  # of all cells; the latest one counts, and stays


def filename(cell):
    """What stands for a file in the code of a cell."""
    return f"<cell {cell}>"


class Sources:
    """In[3] is the code of cell 3, In[-1] that of the running one."""

    def __init__(self, namespace):
        self._namespace = namespace
        self._texts = {}  # cell → text, oldest first
        self._chars = 0
        linecache.cache.pop("<string>", None)  # from 3.13 on our own start is there, and exec() uses the name
        self.flags = 0  # of the compiler: the __future__ imports of the cells so far

    def add(self, cell, text):
        """Keep the text of a cell that is about to run."""
        self._texts[cell] = text
        self._chars += len(text)
        self._show(cell)
        if len(self._texts) > KEPT or self._chars > KEPT_CHARS:
            self._forget()

    def replace(self, cell, text):
        """The text of a cell is after all this."""
        self._chars += len(text) - len(self._texts[cell])
        self._texts[cell] = text
        self._show(cell)

    def restore(self):
        """Put back what linecache.clearcache() has taken from tracebacks."""
        for cell in self._texts:
            if filename(cell) not in linecache.cache:
                self._show(cell)

    def items(self):
        """The cells and their text, oldest first."""
        return list(self._texts.items())

    def _show(self, cell):
        text, name = self._texts[cell], filename(cell)
        linecache.cache[name] = (len(text), None, [line + "\n" for line in text.splitlines()], name)

    def _forget(self):
        """Forget old cells that define nothing in use, and if they are too few the oldest."""
        cells = list(self._texts)
        used = files_in_use(self._namespace)
        for cell in cells[:-LATEST]:
            if filename(cell) not in used:
                self._drop(cell)
        for cell in cells[:-1]:
            if len(self._texts) <= KEPT * 3 // 4 and self._chars <= KEPT_CHARS * 3 // 4:
                break
            self._drop(cell)

    def _drop(self, cell):
        text = self._texts.pop(cell, None)
        if text is not None:
            self._chars -= len(text)
            linecache.cache.pop(filename(cell), None)

    # As `In`.

    def __getitem__(self, cell):
        if not isinstance(cell, int):
            raise TypeError(f"In[n] takes the number of a cell, not {type(cell).__name__}")
        latest = next(reversed(self._texts))
        number = cell if cell >= 0 else latest + 1 + cell
        if number in self._texts:
            return self._texts[number]
        if 0 < number <= latest:
            raise IndexError(f"the code of cell {number} is no longer kept")
        raise IndexError(f"there is no cell {cell}; the latest is {latest}")

    def __iter__(self):
        return iter(list(self._texts.values()))

    def __len__(self):
        return len(self._texts)

    def __repr__(self):
        return "In[n]: the code of cell n, as text; In[-1] is the running one"


def files_in_use(namespace):
    """The names of the cells whose functions the namespace holds."""
    used = set()
    for value in list(namespace.values()):
        _add_file(value, used)
        if isinstance(value, type) and value.__dict__.get("__module__") == "__main__":
            for member in list(value.__dict__.values()):
                _add_file(member, used)
    return used


def _add_file(value, used):
    kind = type(value)
    if kind in (staticmethod, classmethod):
        value = value.__func__
    elif kind is property:
        value = value.fget
    if type(value) is type(filename):
        used.add(value.__code__.co_filename)
        _add_file(value.__dict__.get("__wrapped__"), used)
