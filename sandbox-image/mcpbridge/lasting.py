"""What outlasts a sandbox: the REPL's end of it, without what saving itself needs."""

lost = {}  # name → why it was not restored, for who uses it


class Parts:
    """What there is of a session, and what was there before its first cell."""

    def __init__(self, namespace, guard, client, outputs, sources):
        self.namespace = namespace
        self.guard = guard
        self.client = client
        self.outputs = outputs
        self.sources = sources
        self.given = dict(namespace)


def save(runner, **params):
    """Save what the cells have made: see hibernate."""
    return _do("save", runner, params)


def restore(runner, **params):
    """Bring it back."""
    return _do("restore", runner, params)


def _do(task, runner, params):
    try:
        from . import hibernate

        return getattr(hibernate, task)(runner, **params)
    except BaseException as error:
        from . import tracebacks

        runner.parts.guard.disarm()
        return {"cell": params["cell"], "status": "error", "error": tracebacks.describe(error)}
