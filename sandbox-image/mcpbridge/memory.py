"""`memory`: JSON values by name, kept across sessions."""

import time
from collections.abc import MutableMapping

from . import kept
from .values import Record

MANUAL = """\
memory: values kept across sessions and restarts, and seen at once by other sessions. Any JSON will do.

  memory["key"] = value, memory["key"], del memory["key"], "key" in memory, memory.get("key", default)
  for key in memory, memory.items(), memory.update({…}), memory.setdefault(key, value), memory.pop(key)
  memory.change("key", lambda old: …, default=[])   in one step: nobody else writes in between
  memory.set("key", value, tags=["a"], about="…")   with metadata, which later writes keep
  memory.info("key")                                metadata, created_at, updated_at, size, session

What memory["key"] returns is a copy: assign it again, or use change(), to keep what you do to it."""

_SHOWN = 50  # keys in the repr


class Memory(MutableMapping):
    """Values kept across sessions. See help(memory)."""

    __doc__ = MANUAL

    def __init__(self, client):
        self._area = kept.Area(client, "memory")

    def __getitem__(self, key):
        return self._record(kept.checked_key(key))["value"]

    def __setitem__(self, key, value):
        self.set(key, value)

    def __delitem__(self, key):
        if not self._area.delete(kept.checked_key(key)):
            raise KeyError(key)

    def __contains__(self, key):
        return isinstance(key, str) and bool(key) and self._area.get(kept.checked_key(key)).text is not None

    def __iter__(self):
        return iter([entry["key"] for entry in self._area.list()])

    def __len__(self):
        return len(self._area.list())

    def __repr__(self):
        entries = self._area.list()
        if not entries:
            return 'memory: nothing kept yet. memory["key"] = value keeps it across sessions.'
        lines = [f"memory: {len(entries)} keys kept across sessions"]
        lines += [f"  {entry['key']!r}  {_size(entry['size'])}{_damage(entry)}" for entry in entries[:_SHOWN]]
        if len(entries) > _SHOWN:
            lines.append(f"  … and {len(entries) - _SHOWN} more: list(memory)")
        return "\n".join(lines)

    def _help(self):
        return MANUAL

    def get(self, key, default=None):
        """The value, or default if there is none."""
        try:
            return self[key]
        except KeyError:
            return default

    def set(self, key, value, /, **metadata):
        """Keep value. Metadata given here replaces the entry's of that name; the rest stays."""
        self._write(kept.checked_key(key), lambda old: value, None, metadata)

    def change(self, key, function, default=None):
        """Replace a value by function(value), or function(default) if there is none, in one
        step. If another session writes meanwhile, function is called again. Returns the new value."""
        return self._write(kept.checked_key(key), function, default, {})

    update_key = change

    def setdefault(self, key, default=None):
        """The value; default, which is then kept, if there is none."""
        return self._write(kept.checked_key(key), lambda old: old, default, {})

    def pop(self, key, *default):
        """Delete a value and return it; default if there is none."""
        key = kept.checked_key(key)
        taken = []

        def take(entry):
            taken[:] = [] if entry.text is None else [kept.from_json(entry.text)["value"]]

        self._area.change(key, take)
        if taken:
            return taken[0]
        if default:
            return default[0]
        raise KeyError(key)

    def info(self, key):
        """What is known of a value: key, metadata, created_at, updated_at, size in bytes, and
        the session that wrote it last."""
        key = kept.checked_key(key)
        entry = self._area.get(key)
        record = _open(key, entry)
        return Record(
            key=key,
            metadata=record["metadata"],
            created_at=record["created_at"],
            updated_at=record["updated_at"],
            size=len(entry.text),
            session=entry.session,
        )

    def _record(self, key):
        return _open(key, self._area.get(key))

    def _write(self, key, function, default, metadata):
        """Replace a value and return the new one."""
        kept.check(metadata, "metadata")
        value = None

        def make(entry):
            nonlocal value
            now = time.time()
            record = {"value": default, "metadata": {}, "created_at": now}
            if entry.text is not None:
                record.update(kept.from_json(entry.text))
            value = function(record["value"])
            kept.check(value, f"memory[{key!r}]")
            return kept.to_json({**record, "value": value, "metadata": {**record["metadata"], **metadata}, "updated_at": now})

        self._area.change(key, make)
        return value


def provide(client, name):
    """The memory of this sandbox's user."""
    return Memory(client)


def _open(key, entry):
    if entry.text is None:
        raise KeyError(key)
    return kept.from_json(entry.text)


def _size(size):
    return f"{size:,} bytes" if size < 10_000 else f"{size / 1000:,.0f} kB"


def _damage(entry):
    return "  damaged: write or delete it" if entry.get("damaged") else ""
