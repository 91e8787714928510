"""Random sessions: the kernel's values and output are those of `python -i`.

A cell is a block of statements whose last may be an expression, as python -i shows
every expression's value and the kernel the last one's. To python -i a cell goes
as one block, so that an exception ends it there, too.
"""

import os
import random
import re
import subprocess
import sys
import unittest

from harness import Kernel

SESSIONS = 200
SEED = 20260728
END = "<end of cell>"

# Interrupts and tool calls are stubs, but for the first, which is one here.
PREPARE = """
import collections, dataclasses, functools, itertools, json, math, re
def tool(**arguments):
    if arguments.get("n") == 3: raise LookupError("3 is refused")
    return {"echo": arguments, "n": len(arguments)}
def say(*args): print(*args)
"""
PAUSE = "def pause():\n    import time\n    print('paused', flush=True)\n    time.sleep(60)"
INTERRUPTED = "def pause():\n    print('paused', flush=True)\n    raise KeyboardInterrupt"


CLEAR = """
for name in [name for name in globals() if not name.startswith("__")]: del globals()[name]
__import__("builtins").__dict__.pop("_", None)
"""
# What is left at the end of a session.
STATE = "print({name: value for name, value in sorted(globals().items()) if name.rstrip('1ü') in 'abcdefghijy' and len(name) < 3})"


class Grammar:
    """Makes cells. What they use has most often been defined before; not always."""

    def __init__(self, seed):
        self.chosen = random.Random(seed)
        self.names = ["a", "b"]
        self.functions = []
        self.classes = []

    def pick(self, *options):
        return self.chosen.choice(options)

    def cell(self):
        """The lines of a cell."""
        lines = ["a = globals().get('a', 1); b = globals().get('b', [1, 2])"] if self.chosen.random() < 0.1 else []
        for _ in range(self.chosen.randrange(1, 5)):
            lines += self.statement()
        last = self.chosen.random()
        if last < 0.04:
            return [*lines, "pause()"]
        if last < 0.75:
            lines.append(self.expression())
        return lines

    def statement(self):
        return self.chosen.choice([
            self.assign, self.assign, self.mutate, self.prints, self.function, self.define_class, self.loop, self.attempt,
            self.conditional, self.imports, self.delete, self.raises, self.comprehension, self.other,
        ])()  # fmt: skip

    def name(self):
        return self.pick(*self.names)

    def new_name(self):
        name = self.pick(*"abcdefgh") + self.pick("", "", "1", "ü")
        self.names.append(name)
        return name

    def assign(self):
        value = self.expression()
        kind = self.pick("{n} = {v}", "{n} = {v}", "{n}, {m} = {v}, {w}", "{n} = {m} = {v}", "{n}: int = {v}")
        return [kind.format(n=self.new_name(), m=self.new_name(), v=value, w=self.expression())]

    def mutate(self):
        return [self.pick(f"{self.name()} += {self.number()}", f"{self.name()}.append({self.number()})",
                          f"{self.name()}[0] = {self.expression()}", f"b = [*range({self.number()})]", f"_ignored = {self.name()}")]  # fmt: skip

    def prints(self):
        return [self.pick(f"print({self.expression()})", f"print({self.name()}, {self.number()}, sep='|')",
                          f"print({self.name()!r}, end='')", f"say({self.text()}, {self.expression()})", "print()",
                          f"import sys; _n = sys.stdout.write({self.text()} + '\\n')")]  # fmt: skip

    def function(self):
        name = self.pick("f", "g", "h")
        self.functions.append(name)
        body = self.pick(
            [f"def {name}(x, y={self.number()}):", "    return x if y is None else (x, y)"],
            [f"def {name}(x, *rest, **more):", f"    total = {self.number()}", "    for r in rest: total += r", "    return total, more"],
            [f"def {name}(x=1):", "    yield x", f"    yield {self.name()}"],
            [f"@functools.lru_cache", f"def {name}(x=2): return x * {self.number()}"],
            [f"def {name}(x=0):", "    global a", f"    a = {self.number()}", "    return a + x"],
            [f"{name} = lambda x=1: [x, {self.number()}]"],
            [f"def {name}(x=0): return {name}(x - 1) if x > 0 else {self.expression()}"],
        )
        return body

    def define_class(self):
        name = self.pick("C", "D")
        self.classes.append(name)
        return self.pick(
            [f"class {name}:", f"    v = {self.number()}", "    def __repr__(self): return f'<{type(self).__name__} {self.v}>'"],
            ["@dataclasses.dataclass", f"class {name}:", f"    v: int = {self.number()}"],
            [f"class {name}(dict):", f"    def __missing__(self, key): return {self.number()}"],
        )

    def loop(self):
        return self.pick(
            [f"for i in range({self.number()} % 5):", f"    {self.new_name()} = i", "    print(i, end=' ')"],
            [f"for i in range(3):", f"    if i == {self.number()} % 3: break", "else:", "    print('no break')"],
            [f"n = {self.number()}", "while n > 0:", "    n //= 2", "print('n is', n)"],
        )

    def attempt(self):
        return ["try:", f"    {self.new_name()} = {self.expression()}", f"except {self.pick('Exception', 'ZeroDivisionError', '(TypeError, NameError)')} as e:",
                "    print(type(e).__name__)", *self.pick([], ["else:", "    print('fine')"], ["finally:", "    print('finally')"])]  # fmt: skip

    def conditional(self):
        return [f"if {self.expression()}:", f"    {self.new_name()} = {self.number()}", "else:", f"    print({self.text()})"]

    def imports(self):
        return [self.pick("import math as m", "from collections import Counter", "import no_such_module", "from json import nothing", "import string")]

    def delete(self):
        return [f"del {self.pick(*self.names, 'f', 'C')}"]

    def raises(self):
        if self.chosen.random() < 0.5:
            return []
        return [self.pick("raise ValueError('v')", "raise KeyError('ü')", "assert a == 1, 'not one'", "1 / 0", "raise ArithmeticError from OSError(3)",
                          "raise StopIteration", "[][1]", "{}['k']", "undefined_name", "None.x = 1")]  # fmt: skip

    def comprehension(self):
        return [f"{self.new_name()} = {self.pick('[%s for i in range(3)]', '{i: %s for i in range(3)}', '[(lambda: %s)() for i in (1,)]') % self.expression()}"]

    def other(self):
        return [self.pick(f"with open('/dev/null') as handle: {self.new_name()} = handle.read()", "pass", "x: int")]

    def number(self):
        return self.chosen.randrange(-3, 20)

    def text(self):
        return repr(self.pick("", "text", "ü🙂", "line\\nline", "tab\t", "'quoted'", "\x00", "\ud800"))

    def expression(self):
        number = self.number()
        options = [
            str(number), self.text(), self.name(), f"{self.name()}", f"[{number}, {self.text()}]", f"({number},)", "None", f"{number} / {self.number()}",
            f"{{'k': {number}, {self.text()}: [{self.name()}]}}", f"{{{number}}}", f"len({self.name()})", f"sorted([{number}, 3, 1])",
            f"tool(n={self.number()})", f"tool(n={number}, text={self.text()})['echo']", f"{self.name()} == {self.name()}", f"json.dumps([{number}, None])",
            f"math.sqrt({number})", f"str({self.name()})", f"isinstance({self.name()}, int)", "b'bytes\\x00'", f"{number} if {self.name()} else {self.text()}",
            f"(y := {number})", f"f'{{{self.name()}!r:>8}}'", "set()", f"range({number})", "1j", "float('nan')", "_", "_", f"{number} ** 5", "...", "True",
        ]  # fmt: skip
        if self.functions:
            function = self.pick(*self.functions)
            options += [f"{function}({number})", f"{function}({number})", f"list({function}())", f"{function}({self.name()}, 1)", f"{function}({number}, 2, k=3)"]
        if self.classes:
            options += [f"{self.pick(*self.classes)}()", f"{self.pick(*self.classes)}().v", f"{self.pick(*self.classes)}()[1]"]
        return self.chosen.choice(options)


def by_kernel(sessions):
    """What the kernel makes of the sessions: of each cell its output, value and error."""
    kernel = Kernel()
    try:
        for cells in sessions:
            kernel.run(f"exec({CLEAR!r}); exec({PREPARE + PAUSE!r}, globals())")
            for lines in cells:
                kernel.start("\n".join(lines), value_limit=1_000_000, grace=30.0, timeout=60.0)
                yield lines, normal(finish(kernel))
    finally:
        trouble = kernel.close()
        assert not trouble, trouble


def finish(kernel):
    """The end of the running cell, which is cancelled when it pauses."""
    text, cancelled = "", False
    while True:
        message = kernel.control.receive()
        if message.get("method") != "output":
            break
        text += message["params"]["text"]
        if "paused\n" in text and not cancelled:
            cancelled = True
            kernel.cancel()
    cell = message["result"]["cell"]
    if "value" in cell:
        text += re.sub(r"\n +", " ", cell["value"]["text"]) + "\n"  # long ones are laid out
    if "error" in cell:
        text += f"{cell['error']['type']}: {cell['error']['message']}\n"
    return text


def by_python(sessions):
    """The same of `python -i`, told to name errors as briefly."""
    lines = [
        "import sys; sys.ps1 = sys.ps2 = ''",
        "sys.excepthook = lambda kind, error, _: print(f'{kind.__name__}: {error}')",
    ]
    for cells in sessions:
        lines += [f"exec({CLEAR!r}); exec({PREPARE + INTERRUPTED!r}, globals()); print({END!r})"]
        for cell in cells:
            lines += ["try:", *(" " + line for line in cell or ["pass"])]
            lines += ["except KeyboardInterrupt: print('KeyboardInterrupt: ')"]  # from 3.14 on it would be the end
            lines += ["", f"print({END!r})"]
    lines.append("raise SystemExit(0)")
    environment = {**os.environ, "PYTHONUTF8": "1", "PYTHONIOENCODING": "utf-8:backslashreplace"}
    ran = subprocess.run(
        [sys.executable, "-i", "-q", "-u", "-s"], input="\n".join(lines) + "\n", env=environment,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", timeout=300, check=True,
    )  # fmt: skip
    ends = iter(ran.stdout.split(END + "\n"))
    for cells in sessions:
        next(ends)
        for _ in cells:
            yield normal(next(ends))


def normal(text):
    """text without what is never the same: addresses, and where a recursion ended."""
    text = re.sub(r"RecursionError: .*", "RecursionError", text)
    return re.sub(r"0x[0-9a-f]+", "0x", text)


class Sessions(unittest.TestCase):
    def test_same_as_python(self):
        sessions = []
        for number in range(SESSIONS):
            grammar = Grammar(SEED + number)
            sessions.append([grammar.cell() for _ in range(grammar.chosen.randrange(4, 12))] + [[STATE]])
        paused = 0
        for number, ((lines, got), want) in enumerate(zip(by_kernel(sessions), by_python(sessions))):
            paused += "paused\n" in got
            if got != want:
                self.fail(f"cell {number}:\n" + "\n".join(lines) + f"\n\ngave {got[-2000:]!r}\nwant {want[-2000:]!r}")
        self.assertGreater(paused, SESSIONS // 20)


if __name__ == "__main__":
    unittest.main()
