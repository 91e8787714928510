"""`context`: JSON that the client passes along with a cell, and no model pays for."""

from .values import Record

_bound = None  # what we have bound


def bind(namespace, *value):
    """Bind `context` for this cell: to value, or to {} if the cell came with none,
    unless a cell has taken the name for something else."""
    global _bound
    if not value and not is_bound(namespace.get("context", _bound)):
        return
    _bound = namespace["context"] = _records(value[0]) if value else Record()


def is_bound(value):
    """Whether value is what was bound last."""
    return value is _bound


def _records(value):
    """value with its objects as Records. The host has bounded how deep it goes."""
    if isinstance(value, dict):
        return Record((key, _records(element)) for key, element in value.items())
    if isinstance(value, list):
        return [_records(element) for element in value]
    return value
