"""How a value shows itself: as a picture, as text that it has made for that, or by its repr."""

import base64
import sys

from .preview import encodable, preview
from .values import Image

SIDE = 1568  # pixels: models scale down what is larger
FEW = 4000  # characters of markup that is not meant to be read
ITEMS = 16  # how far into a list pictures are looked for
PICTURE_BYTES = 6 << 20
PHOTO_BYTES = 512 << 10  # a PNG larger than that may be better off as JPEG
PIXELS = 64 << 20  # of a PIL image: scaling copies it


def show(value, limit, display):
    """{"text", "shape"} as in preview(), if there is text, and "pictures"."""
    pictures = _pictures(value, display)
    if pictures is not None:
        return {"pictures": pictures}
    text = _markup(value, limit)
    if text is not None:
        return {"text": text, "pictures": []}
    pictures = []
    if isinstance(value, (list, tuple)):
        for item in value[:ITEMS]:
            pictures += _pictures(item, display) or []
    return {**preview(value, limit), "pictures": pictures}


def _pictures(value, display):
    """The pictures that value is: one, or none if it cannot be shown; None if it is not one."""
    try:
        maker = _maker(value)
        if maker is None:
            return None
        if display.full():
            display.leave_out()
            return []
        picture = maker(value, display)
    except Exception as error:
        if not isinstance(value, Image) and not _is(value, "matplotlib.figure", "Figure"):
            return None  # its repr says what it is
        display.note(f"an image is not shown: {type(error).__name__}: {error}")
        return []
    if picture is None:
        return None
    data, mime, note = picture
    if len(data) > PICTURE_BYTES:
        display.note(f"an image of {len(data):,} bytes is not shown: at most {PICTURE_BYTES:,}")
        return []
    return [entry(data, mime, note)]


def entry(data, mime, note=""):
    """A picture in the form of the report."""
    picture = {"mime": mime, "data": base64.b64encode(data).decode()}
    if note:
        picture["note"] = note
    return picture


def _maker(value):
    """What makes (data, mime, note) of value, or None."""
    if isinstance(value, type):
        return None
    if isinstance(value, Image):
        return _ours
    if _is(value, "matplotlib.figure", "Figure"):
        return _figure
    if _is(value, "PIL.Image", "Image"):
        return _pil
    kind = type(value)
    for method in ("_repr_png_", "_repr_jpeg_", "_repr_mimebundle_"):
        if callable(getattr(kind, method, None)):
            return _repr
    return None


def _is(value, module, kind):
    """isinstance() of a class of a module that nobody has to have imported."""
    found = getattr(sys.modules.get(module), kind, None)
    return isinstance(found, type) and isinstance(value, found)


def _ours(image, _):
    if image.mime_type == "image/svg+xml":
        return None
    return image.data, image.mime_type, ""


def _repr(value, _):
    """From the methods that notebooks ask."""
    kind = type(value)
    for method, mime in (("_repr_png_", "image/png"), ("_repr_jpeg_", "image/jpeg")):
        function = getattr(kind, method, None)
        if callable(function):
            try:
                data = _bytes(function(value))
            except Exception:
                data = None
            if data:
                return data, mime, ""
    function = getattr(kind, "_repr_mimebundle_", None)
    if callable(function):
        bundle = function(value, include={"image/png", "image/jpeg"})
        bundle = bundle[0] if isinstance(bundle, tuple) else bundle
        for mime in ("image/png", "image/jpeg"):
            data = _bytes(bundle.get(mime))
            if data:
                return data, mime, ""
    return None


def _bytes(data):
    """data as bytes, or None: with it may come metadata, and it may be base64."""
    if isinstance(data, tuple) and data:
        data = data[0]
    if isinstance(data, str):
        data = base64.b64decode("".join(data.split()), validate=True)
    return bytes(data) if isinstance(data, (bytes, bytearray)) else None


def _figure(figure, display):
    from . import figures

    if figure in display.figures and not figure.stale or figures.is_blank(figure):
        return None
    display.figures.append(figure)
    return figures.render(figure)


def _pil(image, _):
    import io

    width, height = image.size
    note = ""
    if width * height > PIXELS:
        raise ValueError("too large")
    if max(width, height) > SIDE:
        scale = SIDE / max(width, height)
        size = (max(1, round(width * scale)), max(1, round(height * scale)))
        if image.mode in ("1", "P"):
            image = image.convert("RGBA" if "transparency" in image.info else "RGB")
        image = image.resize(size, reducing_gap=2.0)
        note = f"scaled down from {width:,} × {height:,} pixels to {size[0]:,} × {size[1]:,}"
    if image.mode not in ("1", "L", "LA", "P", "RGB", "RGBA", "I", "I;16"):
        image = image.convert("RGB")
    file = io.BytesIO()
    image.save(file, "PNG")
    data, mime = file.getvalue(), "image/png"
    if len(data) > PHOTO_BYTES and image.mode in ("L", "RGB"):
        file = io.BytesIO()
        image.save(file, "JPEG", quality=85)
        if len(file.getvalue()) < len(data) // 2:
            data, mime = file.getvalue(), "image/jpeg"
    return data, mime, note


def _markup(value, limit):
    """Text that value has made for a reader, or None."""
    if isinstance(value, type):
        return None
    kind = type(value)
    if isinstance(value, Image) and value.mime_type == "image/svg+xml":
        return _few(value.data.decode("utf-8", "replace"), "SVG image", "its .data")
    for method, write in (
        ("_repr_markdown_", lambda text: _bounded(text, limit)),
        ("_repr_svg_", lambda text: _few(text, "SVG image", "its _repr_svg_()")),
        ("_repr_html_", lambda text: _few(text, "HTML", "its _repr_html_()")),
    ):
        function = getattr(kind, method, None)
        if not callable(function) or method == "_repr_html_" and kind.__repr__ is not object.__repr__:
            continue
        try:
            text = function(value)
            text = text[0] if isinstance(text, tuple) else text
            if isinstance(text, str) and text.strip():
                return write(text)
        except Exception:
            pass  # then its repr
    return None


def _bounded(text, limit):
    from .brief import cut

    return encodable(cut(text, limit))


def _few(text, what, where):
    """Short markup, or a note on it: it is for programs to render."""
    if len(text) > FEW:
        return f"[{what} of {len(text):,} characters: {where} has it]"
    return _bounded(text, FEW)
