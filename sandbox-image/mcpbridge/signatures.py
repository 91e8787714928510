"""inspect.Signature of a tool, for who looks at it that way."""

import inspect


class _Literal(str):
    """A default value, or a type, as the signature shows it."""

    __repr__ = str.__str__


def signature(doc):
    kinds = inspect.Parameter
    params = [
        kinds(
            p["ident"],
            kinds.POSITIONAL_OR_KEYWORD,
            default=kinds.empty if p["required"] else _Literal(p.get("default") or "None"),
            annotation=p["type"],
        )
        for p in doc["params"]  # required ones come first
    ]
    if doc.get("open"):
        params.append(kinds("arguments", kinds.VAR_KEYWORD))
    return inspect.Signature(params, return_annotation=doc.get("returns") or inspect.Signature.empty)
