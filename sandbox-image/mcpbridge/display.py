"""display(), and the pictures of a cell."""

import sys

MOST = 8  # pictures of a cell
MOST_BYTES = 9 << 20  # of them in base64: with it a report fits its frame


_SCALARS = frozenset({bool, int, float, str})
_PLAIN = _SCALARS | {complex, bytes, list, tuple, dict, set, frozenset, type(None)}


def prepare():
    """Import what showing values needs: to be done when nobody waits."""
    try:
        from . import preview  # noqa: F401
    except BaseException:  # what a cell has done to imports; _show copes
        pass


def _show(value, limit, display):
    """{"text", "shape", "pictures"} of value, whatever it does."""
    try:
        if type(value) in _SCALARS:
            text = _literal(value, limit)
            if text is not None and len(text) <= limit and text.isascii():
                return {"text": text, "pictures": []}
        if _is_plain(value):  # most are, and rich takes time to import
            from .preview import preview

            return {**preview(value, limit), "pictures": []}
        from . import rich

        return rich.show(value, limit, display)
    except Exception as error:
        why = f"<{type(value).__name__} that cannot be shown: {type(error).__name__}>"
        return {"text": why, "pictures": []}


def _literal(value, limit):
    """repr() of a scalar, or None if it is too long."""
    if type(value) is int and value.bit_length() > 1 << 13 or type(value) is str and len(value) >= limit:
        return None
    return repr(value)


def _is_plain(value):
    """Whether value surely has nothing but text to show."""
    kind = type(value)
    if kind is list or kind is tuple:
        return all(type(item) in _PLAIN for item in value[:16])
    return kind in _PLAIN


class Display:
    """display(x, …): show values now, in the order of what is printed."""

    def __init__(self):
        self.begin(20_000)

    def begin(self, limit, mode="compact"):
        """A cell begins. In mode "json" its value is wanted as JSON, too."""
        self._limit = limit
        self._mode = mode
        self._pictures = []
        self._size = 0
        self._notes = []
        self._left_out = 0
        self.figures = []  # that have been shown

    def __call__(self, *values, **_options):  # those of IPython's are about pages
        for value in values:
            shown = _show(value, self._limit, self)
            lines = [shown["text"]] if "text" in shown else []
            if "shape" in shown:
                lines.append(f"[cut: {shown['shape']}]")
            lines += self.add(shown["pictures"])
            if lines:
                print("\n".join(lines))

    def __repr__(self):
        return "display(x, …): show values, figures and images now; the last expression is shown anyway"

    def add(self, pictures):
        """Keep pictures for the report; return what stands for them in the text."""
        marks = []
        for picture in pictures:
            size = len(picture["data"])
            if len(self._pictures) >= MOST or self._size + size > MOST_BYTES:
                self._left_out += 1
                continue
            self._size += size
            self._pictures.append(picture)
            marks.append(f"[image {len(self._pictures)}]")
        return marks

    def full(self):
        """Whether no more pictures are taken, so that none need be made."""
        return len(self._pictures) >= MOST

    def leave_out(self, count=1):
        self._left_out += count

    def note(self, text):
        """Something to say of a picture that cannot be shown."""
        if len(self._notes) < MOST:
            self._notes.append(text[:300])

    def end(self):
        """The cell's code has ended: show the figures that are open, and close them."""
        if "matplotlib.pyplot" in sys.modules:
            from . import figures

            self.add(figures.take(self))

    def end_quickly(self):
        """The same after an interrupt, or say that there is no time for it."""
        if "matplotlib.pyplot" in sys.modules:
            from . import figures

            try:
                self.add(figures.take_quickly(self))
            except Exception as error:  # no memory or process left, or what a cell has made of pyplot
                figures.drop(self, f"{type(error).__name__}: {error}")

    def value(self, value, report):
        """Put the value that a cell ends with into its report."""
        shown = _show(value, self._limit, self)
        self.add(shown.pop("pictures"))
        if not shown:
            return
        report["value"] = shown
        if self._mode == "json":
            from . import jsonable

            text = jsonable.encode(value, self._limit)
            if text is not None:
                shown["json"] = text

    def report(self, report):
        """Add the pictures to a cell's report."""
        if self._pictures:
            report["images"] = self._pictures
        if self._left_out:
            self.note(f"{self._left_out:,} more image{'s' * (self._left_out > 1)} not shown: "
                      f"at most {MOST} and {MOST_BYTES * 3 // 4 >> 20} MB a cell")  # fmt: skip
        if self._notes:
            report["notes"] = self._notes
        self.begin(self._limit)
