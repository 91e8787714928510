"""matplotlib without a display: its figures become pictures of the cell.

Nothing of it is imported here. A finder waits for the import of pyplot.
"""

import os
import sys

PYPLOT = "matplotlib.pyplot"


class Watch:
    """In sys.meta_path: finds pyplot as the others do, and has its show() show."""

    def __init__(self, display):
        self._display = display
        self._pid = os.getpid()

    def find_spec(self, name, path=None, target=None):
        if name != PYPLOT:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(name, path, target)
            if spec is not None:
                break
        else:
            return None
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            self._attach(module)

        spec.loader.exec_module = exec_module
        return spec

    def _attach(self, pyplot):
        original = pyplot.show

        def show(*args, **kwargs):
            """Show all open figures, and close them."""
            if os.getpid() != self._pid:  # a fork has no way to
                return original(*args, **kwargs)
            marks = self._display.add(take(self._display))
            if marks:
                print("\n".join(marks))
            return None

        pyplot.show = show


def install(display):
    """Have matplotlib draw into memory, and show its figures by display."""
    os.environ.setdefault("MPLBACKEND", "agg")
    sys.meta_path.insert(0, Watch(display))


def take(display):
    """The pictures of the open figures, which are closed."""
    from . import rich

    pyplot = sys.modules[PYPLOT]
    pictures = []
    try:
        for number in pyplot.get_fignums():
            figure = pyplot.figure(number)
            if figure in display.figures and not figure.stale:  # shown, and not drawn on since
                continue
            if display.full() or len(pictures) >= 8:
                display.leave_out()
                continue
            display.figures.append(figure)
            if is_blank(figure):
                continue
            try:
                pictures.append(rich.entry(*render(figure)))
            except Exception as error:
                display.note(f"a figure is not shown: {type(error).__name__}: {error}")
        pyplot.close("all")
    except Exception as error:  # what a cell has made of pyplot
        display.note(f"figures are not shown: {type(error).__name__}: {error}")
    return pictures


def is_blank(figure):
    """Whether there is nothing on figure but its background."""
    return not figure.get_children()[1:]


def render(figure):
    """figure as (PNG, mime, note)."""
    import io

    from . import rich

    width, height = figure.get_size_inches()
    dpi = figure.dpi
    most = rich.SIDE / max(width, height)
    note = ""
    if dpi > most:
        note = f"scaled down from {width * dpi:,.0f} × {height * dpi:,.0f} pixels"
        dpi = most
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=dpi, bbox_inches="tight")
    return file.getvalue(), "image/png", note
