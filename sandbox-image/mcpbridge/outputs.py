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
    """out[7] is all that cell 7 printed, as text; out[7].value its last expression."""

    def __init__(self, client):
        self._client = client
        self._values = {}
        self._forgotten = 0  # of the cells up to here

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

    def __getitem__(self, cell):
        if not isinstance(cell, int):
            raise TypeError(f"out[n] takes the number of a cell, not {type(cell).__name__}")
        try:
            reply = self._client.call("output/read", {"cell": cell})
        except RemoteError as error:
            raise IndexError(str(error)) from None
        output = Output(reply["text"])
        if cell <= self._forgotten and cell not in self._values:
            output._gone = f"the value of cell {cell} is no longer kept: there are those of the last {KEPT_VALUES} cells that ended with one"
        output._value = self._values.get(cell)
        return output

    def __repr__(self):
        return "out[n]: all that cell n printed, as text; out[n].value: the value it ended with"
