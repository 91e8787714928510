"""When the files of the workspace are fetched and kept: see keeping for how."""

import os

from . import tracebacks

current = None  # the Files of this process


class Files:
    """What is done around a cell. The rest is imported when there is time, or need."""

    def __init__(self, client):
        global current
        current = self
        self._client = client
        self.root = os.getcwd()  # before a cell can change it
        self._keeper = None

    def keeper(self):
        """What keeps the files, which every cell needs."""
        if self._keeper is None:
            from . import keeping

            self._keeper = keeping.Keeper(self._client, self.root)
        return self._keeper

    def around(self, handle, workspace=None, **params):
        """handle(**params). `workspace` is the version of what the host has, if it keeps files."""
        if workspace is None:
            return handle(**params)
        keeper = self.keeper()
        try:
            if params.get("task") != "keep" or not keeper.kept:  # no cell comes that needs what others have changed
                keeper.before(workspace)
        except KeyboardInterrupt as error:
            return {"cell": params["cell"], "status": "error", "error": tracebacks.describe(error)}
        report = handle(**params)
        note = keeper.after(report.get("error", {}).get("type") == "KeyboardInterrupt")
        if note:
            report["note"] = note
        return report


def keep(_runner, cell, **_params):
    """Only what is around a cell: the sandbox is about to end."""
    return {"cell": cell, "status": "ok", "value": {"text": "{}"}}
