"""Helpers that code-execution-mcp had, for code that was written for it."""

import json
import re
import sys

from . import kept, provided
from .values import Record

# Files of the workspace.


def _path(name):
    """A path in the workspace; PermissionError if it leads out."""
    root = provided.made("workspace")
    import os
    import pathlib

    real = os.path.realpath(os.path.join(root, os.fspath(name)))
    top = os.path.realpath(root)
    if real != top and not real.startswith(os.path.join(top, "")):
        raise PermissionError(f"{str(name)!r} is outside the workspace")
    return pathlib.Path(real)


def read_file(filename):
    """The text of a file in the workspace."""
    path = _path(filename)
    if not path.exists():
        raise FileNotFoundError(f"File not found: {filename}")
    return path.read_text()


def write_file(filename, content):
    """Write text, or bytes, to a file in the workspace, and make its folder; says how much."""
    data = content.encode() if isinstance(content, str) else bytes(memoryview(content))
    path = _path(filename)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return f"Written {len(data)} bytes to {filename}"


def list_files(subpath="."):
    """The files below a folder of the workspace, as paths from there on."""
    path, root = _path(subpath), _path(".")
    return sorted(str(found.relative_to(root)) for found in path.rglob("*") if found.is_file()) if path.is_dir() else []


def delete_file(filename):
    """Delete a file of the workspace."""
    path = _path(filename)
    if not path.exists():
        raise FileNotFoundError(f"File not found: {filename}")
    path.unlink()
    return f"Deleted {filename}"


# Tools: a server is a category.


def search_tools(query, category=None, detail_level="summary"):
    """Tools that fit query: {"query", "category", "detail_level", "count", "tools"}."""
    hits = provided.original("tools").search(query, 100 if category else 20)
    found = []
    for hit in hits:
        if hit.tool and category in (None, hit.server):
            about = {"name": hit.tool, "category": hit.server, "description": hit.description, "mcp_server": hit.server}
            if detail_level == "full":
                about["signature"] = hit.signature
                about["doc"] = str(hit.doc)
            found.append(Record(about))
    return Record(query=query, category=category, detail_level=detail_level, count=len(found), tools=found)


def get_tool_definition(tool_name, category=None):
    """The definition of a tool, "server.tool" or its own name, or None if there is none."""
    from . import compat

    toolbox = provided.original("tools")
    if category is None and "." in tool_name:
        category, tool_name = tool_name.split(".", 1)
    infos = [compat.find_info(toolbox, category)] if category else _likely(toolbox, tool_name)
    for info in filter(None, infos):
        tool = compat.tool_of(toolbox, info, tool_name)
        if tool is not None:
            return Record(
                name=tool.name,
                category=info.name,
                mcp_server=info.name,
                description=tool.__doc__,
                signature=tool._doc["signature"],
                inputSchema=compat.schema(tool),
            )
    return None


def _likely(toolbox, tool_name):
    """The servers that may have a tool: those that a search for it finds."""
    from . import compat

    names = dict.fromkeys(hit.server for hit in toolbox.search(tool_name, 20) if hit.tool and hit.server != "skills")
    return [compat.find_info(toolbox, name) for name in names]


def list_tool_categories():
    """The servers, with descriptions and how many tools each has, as far as that is known."""
    from . import compat

    infos = compat.enabled(provided.original("tools"))
    categories = {info.name: {"description": info.description, "tool_count": info.tools or 0} for info in infos}
    return {"categories": categories, "total_tools": sum(c["tool_count"] for c in categories.values())}


# Skills.


def save_skill(name, code, description=""):
    """Keep source code under a name."""
    provided.made("skills").save(name, code=code, description=description)
    return f"Skill {name!r} saved successfully"


def load_skill(name):
    """The source code of a skill."""
    try:
        return str(provided.made("skills").source(name))
    except LookupError:
        raise FileNotFoundError(f"Skill not found: {name}") from None


def list_skills():
    """The skills: dicts with name, description, created, code_hash, signature, version."""
    import hashlib
    import time

    skills = provided.made("skills")
    found = []
    for info in skills.list():
        try:
            digest = hashlib.sha256(skills.source(info.name).encode()).hexdigest()
        except (ImportError, LookupError, kept.StateError):
            digest = ""
        found.append(
            Record(
                name=info.name,
                description=info.description,
                created=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(info.saved_at)),
                code_hash=digest,
                signature=info.signature,
                version=info.version,
            )
        )
    return found


# Personal data.

_PII = {
    "email": re.compile(r"[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}"),
    "api_key": re.compile(
        r"\b(?:sk|pk|rk)[-_](?:[A-Za-z0-9]+[-_])*[A-Za-z0-9]{16,}\b|\bgh[pousr]_[A-Za-z0-9]{20,}\b|\bAKIA[0-9A-Z]{16}\b"
        r"|\bxox[abprs]-[A-Za-z0-9-]{10,}\b|(?i:(?<=api_key=)|(?<=api-key=)|(?<=apikey=)|(?<=api_key: )|(?<=api-key: ))[\w-]{16,}"
    ),
    "ssn": re.compile(r"(?<![\d-])(?!000|666|9\d\d)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?![\d-])"),
    "credit_card": re.compile(r"(?<![\d.-])\d(?:[ -]?\d){12,18}(?![\d-])"),
    "ip_address": re.compile(r"(?<![\d.])(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)(?![\d.])"),
    "phone": re.compile(
        r"(?<![\w.-])(?<!\d )(?:\+\d{1,3}[ .-]?)?(?:\(\d{2,4}\)|\d{2,4})[ .-]\d{3,4}[ .-]\d{3,4}(?![ .-]?\w*\d|[\w-])|(?<!\w)\+\d{9,15}(?!\d)"
    ),
}
_tokens = {}  # token → what it stands for, in this session
_token_of = {}  # kind and text → token


def tokenize_pii(text):
    """The text with personal data replaced, and a dict of the tokens: "[EMAIL_1f…]" → data.

    Found are email addresses, phone numbers, US social security numbers, credit cards, IP
    addresses and API keys. The same data gets the same token in all of a session; tokens are
    random. It helps to keep data out of what is printed, and proves nothing.
    """
    import secrets

    used = {}

    def replace(kind, match):
        data = match.group()
        if kind == "credit_card" and not _luhn(data):
            return data
        token = _token_of.get((kind, data))
        if token is None:
            token = f"[{kind.upper()}_{secrets.token_hex(4)}]"
            while token in _tokens:
                token = f"[{kind.upper()}_{secrets.token_hex(4)}]"
            _token_of[kind, data] = token
            _tokens[token] = data
        used[token] = data
        return token

    for kind, pattern in _PII.items():
        parts = _TOKEN.split(text)  # what is a token already stays
        text = "".join(part if _TOKEN.fullmatch(part) else pattern.sub(lambda m, k=kind: replace(k, m), part) for part in parts)
    return text, used


_TOKEN = re.compile(rf"(\[(?:{'|'.join(_PII).upper()})_[0-9a-f]{{8}}\])")


def _luhn(number):
    digits = [int(c) for c in number if c.isdigit()][::-1]
    total = sum(digits[0::2]) + sum(sum(divmod(2 * d, 10)) for d in digits[1::2])
    return total > 0 and total % 10 == 0


def detokenize_pii(text, tokens=None):
    """The text with the data for its tokens: those given, or all of this session."""
    known = _tokens if tokens is None else tokens
    return _TOKEN.sub(lambda match: known.get(match.group(), match.group()), text)


def sanitize_pii(text):
    """tokenize_pii as {"sanitized_text", "pii_found", "pii_types"}."""
    text, used = tokenize_pii(text)
    kinds = sorted({token[1:].rpartition("_")[0].lower() for token in used})
    return {"sanitized_text": text, "pii_found": len(used), "pii_types": kinds}


def restore_pii(text):
    """detokenize_pii as {"restored_text"}."""
    return {"restored_text": detokenize_pii(text)}


# Data.


def filter_by_field(data, field, value):
    """The dicts that have that value in that field."""
    return [item for item in data if isinstance(item, dict) and item.get(field) == value]


def summarize_list(data, limit=10):
    """How many there are, and the first few."""
    data = data if isinstance(data, (list, tuple)) else list(data)
    return {"count": len(data), "sample": list(data[:limit])}


def aggregate_stats(data, numeric_fields=None):
    """Count, and sum, avg, min and max of numeric fields: {"count", "price_sum", …}.

    Fields are found in all rows if none are named; rows without a number there do not count.
    """
    rows = [row for row in data if isinstance(row, dict)]
    result = {"count": len(data)}
    if numeric_fields is None:
        numeric_fields = dict.fromkeys(key for row in rows for key, value in row.items() if _is_number(value))
    for field in numeric_fields:
        numbers = [row[field] for row in rows if _is_number(row.get(field))]
        if numbers:
            total = sum(numbers)
            result.update(
                {f"{field}_sum": total, f"{field}_avg": total / len(numbers), f"{field}_min": min(numbers), f"{field}_max": max(numbers)}
            )
    return result


def _is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def format_output(data, max_chars=5000):
    """Data as indented JSON of at most max_chars characters; says so if that is not all."""
    text = json.dumps(data, indent=2, default=str, ensure_ascii=False)
    if len(text) <= max_chars:
        return text
    note = f"\n… ({len(text):,} characters in all)"
    return text[: max(0, max_chars - len(note))] + note[:max_chars]


def get_execution_stats():
    """Counts of what there is, and the limits of this sandbox."""
    import resource
    import time

    infos = provided.original("tools").servers()
    used = resource.getrusage(resource.RUSAGE_SELF)
    limit = resource.getrlimit(resource.RLIMIT_DATA)[0]
    return Record(
        python=sys.version.split()[0],
        uptime_s=round(time.clock_gettime(time.CLOCK_MONOTONIC) - _started(), 1),
        cpu_s=round(used.ru_utime + used.ru_stime, 3),
        max_memory_mb=used.ru_maxrss // 1024,
        memory_limit_mb=None if limit == resource.RLIM_INFINITY else limit >> 20,
        workspace_files=len(list_files()),
        skills=_count("skills"),
        memories=_count("memory"),
        servers=len(infos),
        tools=sum(info.tools or 0 for info in infos),
        capabilities=["tools", "skills", "memory", "workspace", "pii_tokenization", "top_level_await"],
    )


def _count(name):
    """How many are kept, or None if that is not known: nothing may be kept here."""
    try:
        return len(provided.made(name))
    except kept.StateError:
        return None


def _started():
    """When this process started, on the monotonic clock."""
    with open("/proc/self/stat") as f:
        ticks = int(f.read().rpartition(")")[2].split()[19])
    import os

    return ticks / os.sysconf("SC_CLK_TCK")


def provide(client, name):
    """The helper of that name."""
    return globals()[name]
