"""`out`: what earlier cells printed, whole, and the values they ended with."""

from .callback import RemoteError

KEPT_VALUES = 50


class Output(str):
    """What a cell printed. `.value` is the value of its last expression."""

    _value = None
    _gone = ""

    @property
    def value(self):
        if self._gone:
            raise LookupError(self._gone)
        return self._value


class Outputs:
    """out[7] is all that cell 7 printed, as text; out[7].value its last expression.
    out[-1] is of the cell before this one."""

    def __init__(self, client):
        self._client = client
        self._values = {}
        self._forgotten = 0  # of the cells up to here
        self.cell = 0  # the running one

    def keep(self, cell, value):
        self._values[cell] = value
        while len(self._values) > KEPT_VALUES:
            self._forgotten = next(iter(self._values))
            del self._values[self._forgotten]

    def forget(self):
        """Let go of all values: there is no memory left."""
        self._forgotten = max(self._values, default=self._forgotten)
        self._values.clear()

    def items(self):
        """The cells and their values, oldest first."""
        return list(self._values.items())

    def value(self, cell):
        """What a cell ended with; KeyError if there is none."""
        if cell in self._values:
            return self._values[cell]
        if isinstance(cell, int) and 0 < cell <= self._forgotten:
            raise KeyError(f"{cell}: {self._gone()}")
        raise KeyError(f"{cell}: that cell ended with no value; out[{cell}] is what it printed")

    def _gone(self):
        return f"no longer kept: there are the values of the last {KEPT_VALUES} cells that ended with one"

    def __len__(self):
        """How many cells have ended."""
        return max(self.cell - 1, 0)

    def __bool__(self):
        return True

    def __getitem__(self, cell):
        if not isinstance(cell, int):
            raise TypeError(f"out[n] takes the number of a cell, not {type(cell).__name__}")
        if -self.cell < cell < 0:
            cell += self.cell
        try:
            reply = self._client.call("output/read", {"cell": cell})
        except RemoteError as error:
            raise IndexError(str(error)) from None
        output = Output(reply["text"])
        if cell <= self._forgotten and cell not in self._values:
            output._gone = f"the value of cell {cell} is {self._gone()}"
        output._value = self._values.get(cell)
        return output

    def __repr__(self):
        return "out[n]: all that cell n printed, as text; out[n].value: the value it ended with"


class Values:
    """Out[7] is the value that cell 7 ended with, as in IPython."""

    def __init__(self, outputs):
        self._outputs = outputs

    def _dict(self):
        return dict(self._outputs.items())

    def __getitem__(self, cell):
        return self._outputs.value(cell)

    def __contains__(self, cell):
        return cell in self._dict()

    def __iter__(self):
        return iter(self._dict())

    def __len__(self):
        return len(self._dict())

    def get(self, cell, default=None):
        """The value of a cell, or default."""
        return self._dict().get(cell, default)

    def keys(self):
        """The cells that ended with a value, oldest first."""
        return self._dict().keys()

    def values(self):
        """Their values."""
        return self._dict().values()

    def items(self):
        """Both."""
        return self._dict().items()

    def __repr__(self):
        return "Out[n]: the value that cell n ended with; out[n]: all that it printed"
