#!/usr/bin/env python3
"""Locks what the data target of Dockerfile.sandbox installs.

    python3 -m pip install uv
    sandbox-image/build/lock.py

For each Python version writes requirements/data-VERSION.txt, from data.in: exact
versions, and the hash of every wheel that a sandbox could take (Linux with
glibc, x86-64 and AArch64), without markers, so that pip can read a file for
another Python than its own. requirements/pip.txt is the pip that installs them.
"""

import pathlib
import re
import subprocess
import tempfile
import tomllib

PYTHONS = ["3.10", "3.11", "3.12", "3.13", "3.14"]
MACHINES = ["x86_64", "aarch64"]
HERE = pathlib.Path(__file__).parent / "requirements"


def resolve(requirements, python, machine):
    """Returns what uv takes for the requirements: wheels by name and version of their package."""
    with tempfile.TemporaryDirectory() as folder:
        lock = pathlib.Path(folder) / "pylock.toml"
        subprocess.run(
            ["uv", "pip", "compile", "--no-config", "--quiet", "--only-binary", ":all:", "--format", "pylock.toml",
             "--python-version", python, "--python-platform", f"{machine}-manylinux_2_28", "--output-file", lock, "-"],
            input=requirements.encode(), check=True,
        )
        packages = tomllib.loads(lock.read_text())["packages"]
    return {(p["name"], p["version"]): p["wheels"] for p in packages}


def usable(wheel, python, machine):
    """Reports whether a wheel fits, by its file's name."""
    interpreter, abi, platform = wheel["url"].removesuffix(".whl").split("-")[-3:]
    if platform == "any":
        return abi == "none" and "py3" in interpreter.split(".")
    if "manylinux" not in platform or not platform.endswith(machine):
        return False
    oldest = re.fullmatch(r"cp3(\d+)", interpreter)
    stable = abi == "abi3" and oldest is not None and int(oldest[1]) <= int(python.removeprefix("3."))
    return stable or interpreter == abi == "cp" + python.replace(".", "")


def locked(requirements, python):
    """Returns the lines that lock every package, the same on each machine."""
    hashes = {}
    for machine in MACHINES:
        for package, wheels in resolve(requirements, python, machine).items():
            found = {wheel["hashes"]["sha256"] for wheel in wheels if usable(wheel, python, machine)}
            if not found:
                raise SystemExit(f"{package} has no wheel for Python {python} on {machine}")
            hashes[package] = hashes.get(package, set()) | found
    names = [name for name, _ in hashes]
    if len(names) != len(set(names)):
        raise SystemExit(f"the machines differ in what they take for Python {python}: {sorted(hashes)}")
    for (name, version), digests in sorted(hashes.items()):
        yield " \\\n".join([f"{name}=={version}", *(f"    --hash=sha256:{digest}" for digest in sorted(digests))])


def write(name, requirements, python):
    lines = [f"# Written by sandbox-image/build/lock.py for Python {python}; do not edit.", *locked(requirements, python)]
    (HERE / name).write_text("\n".join(lines) + "\n")


for version in PYTHONS:
    write(f"data-{version}.txt", (HERE / "data.in").read_text(), version)
write("pip.txt", "pip", PYTHONS[0])
