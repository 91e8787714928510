"""`context`: JSON that the client passes along with a cell, and no model pays for."""

from .values import Record


def bind(namespace, value):
    """Bind `context` for this cell and those after it."""
    namespace["context"] = _records(value)


def _records(value):
    """value with its objects as Records. The host has bounded how deep it goes."""
    if isinstance(value, dict):
        return Record((key, _records(element)) for key, element in value.items())
    if isinstance(value, list):
        return [_records(element) for element in value]
    return value
