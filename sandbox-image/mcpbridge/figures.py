"""matplotlib without a display: its figures become pictures of the cell.

Nothing of it is imported here. A finder waits for the import of pyplot.
"""

import os
import sys

PYPLOT = "matplotlib.pyplot"
QUICKLY = 1.5  # seconds for figures of a cell that was interrupted: half of what it has to end


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
    except BaseException:  # an interrupt: no other cell is to show them
        drop(display, "drawing them was interrupted")
        raise
    return pictures


def drop(display, why):
    """Close the open figures, and say why they are not shown."""
    try:
        pyplot = sys.modules[PYPLOT]
        if pyplot.get_fignums():
            display.note(f"open figures are not shown: {why}")
        pyplot.close("all")
    except Exception:
        pass  # what a cell has made of pyplot


def take_quickly(display):
    """The pictures of the open figures of a cell that was interrupted.

    A fork draws them: it can be killed, while code that does not heed the end of
    the grace period would cost the session.
    """
    import json
    import warnings

    if not sys.modules[PYPLOT].get_fignums():
        return []
    ours, theirs = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there are threads
        pid = os.fork()
    if not pid:
        try:
            notes, left_out = [], []
            display.note, display.leave_out = notes.append, lambda count=1: left_out.append(count)
            drawn = json.dumps([take(display), notes, sum(left_out)]).encode()
            with open(theirs, "wb") as file:
                file.write(drawn)
        finally:
            os._exit(0)
    os.close(theirs)
    data = _read(ours, pid)
    try:
        pictures, notes, left_out = json.loads(data)
    except ValueError:  # it had no time to write all of it
        drop(display, "the cell was interrupted, and drawing them takes long")
        return []
    for text in notes:
        display.note(text)
    if left_out:
        display.leave_out(left_out)
    sys.modules[PYPLOT].close("all")
    return pictures


def _read(pipe, pid):
    """All that the process pid writes while it may, as bytes; it ends."""
    import select
    import signal
    import time

    data = b""
    until = time.monotonic() + QUICKLY
    try:
        while select.select([pipe], [], [], max(0, until - time.monotonic()))[0]:
            more = os.read(pipe, 1 << 20)
            if not more:
                break
            data += more
    finally:
        os.close(pipe)
        os.kill(pid, signal.SIGKILL)
        try:
            os.waitpid(pid, 0)
        except ChildProcessError:
            pass  # the cell has had its children reaped
    return data


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
