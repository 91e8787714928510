"""`session`: what there is to know and to do about the session that cells run in."""

import os
import sys

from .values import Record


class Info(Record):
    """What session.info() tells; prints as lines."""

    __slots__ = ()

    def __repr__(self):
        return "\n".join(f"{name}: {value}" for name, value in self.items())


class Session:
    """The session that this cell runs in. Variables stay until it is reset.

    session.info()       cells, memory, and what is saved of it
    session.reset()      begin anew: no variables, and nothing saved
    session.forget()     delete what is saved, and save nothing more
    session.interrupt()  stop the cell that runs; as the whole code of a call
    session.name         None for the connection's own
    """

    def __init__(self, client):
        self._client = client

    @property
    def name(self):
        """None for the connection's own."""
        return self._client.call("session/info", {})["name"] or None

    def info(self):
        """How the session is: a dict."""
        info = self._client.call("session/info", {})
        saved, limit = info["saved"], info["memory_limit"]
        return Info(
            name=info["name"] or None,
            cells=info["cells"],
            started=_time(info["started"]),
            memory=f"{resident() >> 20} MiB" + (f" of {limit >> 20} MiB" if limit else ""),
            kept_when_stopped=info["kept"],
            saved="{names} names after cell {cell}, {bytes:,} bytes, {time}".format(**saved) if saved else None,
        )

    def reset(self):
        """Begin anew: no variables, and nothing saved. Files stay. Ends this cell."""
        self._client.call("session/reset", {})
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except Exception:
                pass  # what cells have made of it
        os._exit(0)  # the supervisor has another one

    def forget(self):
        """Delete what is saved of the session, and save nothing more of it.

        Variables stay as long as the sandbox runs.
        """
        self._client.call("session/forget", {})

    def interrupt(self):
        """Stop the cell that runs. Only as the whole code of a call, which the host answers."""
        raise RuntimeError("send session.interrupt() as the whole code of a call: code like this waits until the cell has ended")

    def __repr__(self):
        return (
            "session: session.info(), session.reset() begins anew, session.forget() deletes what is saved, "
            "session.interrupt() as the whole code of a call stops the cell that runs, session.name"
        )

    def _help(self):
        return self.__doc__


def resident():
    """The bytes of memory that this process has."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _time(seconds):
    import time

    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds)) if seconds else None


def provide(client, _name):
    """What the name `session` stands for."""
    return Session(client)
