"""A host that keeps things, for tests."""

import hashlib
import threading

import harness


class Keeper:
    """Answers state/* as the bridge does, and everything else as answer does."""

    def __init__(self, answer=harness.demo_server, limit=1 << 20):
        self.answer = answer
        self.limit = limit
        self.areas = {"memory": {}, "skills": {}}
        self.lock = threading.Lock()
        self.damaged = set()
        self.stamp = 0
        self.before_change = None  # called once, to do what another session does

    def __call__(self, method, params):
        if not method.startswith("state/"):
            return self.answer(method, params)
        params = dict(params)
        area = self.areas[params.pop("area")]
        with self.lock:
            return getattr(self, method.replace("/", "_"))(area, **params)

    def state_get(self, area, key):
        if key in self.damaged:
            raise harness.Refusal("it is damaged", "damaged")
        if key not in area:
            return {"value": None, "version": ""}
        return {"value": area[key], "version": version(area[key]), "session": "s1", "time": 1_700_000_000}

    def check(self, area, key, expect):
        change, self.before_change = self.before_change, None
        if change:
            change(area)
        if expect is not None and expect != version(area.get(key)):
            raise harness.Refusal("it has been changed meanwhile", "conflict")

    def state_put(self, area, key, value, expect=None):
        self.check(area, key, expect)
        if len(value) > self.limit:
            raise harness.Refusal("full: it is too large", "full", "keep less in one entry")
        self.damaged.discard(key)
        self.stamp += 1
        area[key] = value
        return {"version": version(value)}

    def state_delete(self, area, key, expect=None):
        self.check(area, key, expect)
        self.damaged.discard(key)
        return {"deleted": area.pop(key, None) is not None}

    def state_list(self, area):
        entries = [{"key": key, "size": len(text), "stamp": version(text)} for key, text in area.items()]
        return {"entries": entries, "limits": {}}


def version(text):
    """Tells values apart, as the bridge does."""
    return "" if text is None else hashlib.sha256(text.encode()).hexdigest()[:12]
