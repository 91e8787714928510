"""display(), and values that show themselves."""

import base64
import sys
import unittest

from harness import KernelTest

HELPERS = """
class P:
  def __init__(self, data): self.data = data
  def _repr_png_(self): return self.data
"""


def made(**methods):
    """Code for an object whose class has these methods, each returning a value."""
    return f"type('T', (), {{k: (lambda v: lambda self, **_: v)(v) for k, v in {methods!r}.items()}})()"


class Values(KernelTest):
    def cell(self, code):
        return self.run_ok(HELPERS + code)["cell"]

    def test_pictures(self):
        cell = self.cell("P(b'png')")
        self.assertEqual(cell["images"], [{"mime": "image/png", "data": "cG5n"}])
        self.assertNotIn("value", cell)
        cell = self.cell("[P(b'a'), 1, P(b'b')]")
        self.assertEqual([image["data"] for image in cell["images"]], ["YQ==", "Yg=="])
        self.assertIn("value", cell)
        for code, mime in (
            (made(_repr_png_=(b"png", {"width": 3})), "image/png"),
            (made(_repr_png_=None, _repr_jpeg_=b"png"), "image/jpeg"),
            (made(_repr_png_="cG5n"), "image/png"),
            (made(_repr_mimebundle_={"image/jpeg": "cG5n", "text/html": "<p>"}), "image/jpeg"),
            (made(_repr_mimebundle_=({"image/png": b"png"}, {})), "image/png"),
        ):
            self.assertEqual(self.cell(code).get("images"), [{"mime": mime, "data": "cG5n"}], code)

    def test_no_pictures(self):
        for code in ("P(b'')", "P('no base64!')", "P(None)", "P", "P(5)", made(_repr_mimebundle_=5), made(_repr_mimebundle_={}), "type('M', (), {'_repr_png_': 5})()"):
            cell = self.cell(code)
            self.assertNotIn("images", cell, code)
            self.assertTrue(cell["value"]["text"].startswith("<"), cell)
        self.assertNotIn("images", self.cell("class Q:\n  def _repr_png_(self): raise OSError\nQ()"))
        self.assertIn("ZeroDivisionError", self.cell("type('M', (), {'__class__': property(lambda _: 1 / 0)})()")["value"]["text"])

    def test_pictures_are_bounded(self):
        cell = self.cell("[P(b'x' * (1 << 20))] * 16")
        self.assertEqual(len(cell["images"]), 6)
        self.assertEqual(cell["notes"], ["10 more images not shown: at most 8 and 6 MB a cell"])
        cell = self.cell("asked = []\nP._repr_png_ = lambda self: asked.append(1) or b'x'\nfor i in range(1000): display(P(b''))")
        self.assertEqual(len(cell["images"]), 8)
        self.assertEqual(cell["notes"], ["992 more images not shown: at most 8 and 6 MB a cell"])
        self.assertEqual(self.value("len(asked)"), "8")
        cell = self.cell("P(b'x' * (7 << 20))")
        self.assertEqual((cell.get("images"), cell["notes"]), (None, ["an image of 7,340,032 bytes is not shown: at most 6,291,456"]))
        self.assertNotIn("notes", self.cell("1"))

    def test_markup(self):
        for code, text in (
            (made(_repr_markdown_="# Title\n\ntext"), "# Title\n\ntext"),
            (made(_repr_markdown_=("a", {})), "a"),
            (made(_repr_markdown_="x", _repr_html_="<p>"), "x"),
            (made(_repr_svg_="<svg/>"), "<svg/>"),
            (made(_repr_svg_="<svg>" + "x" * 10_000), "[SVG image of 10,005 characters: its _repr_svg_() has it]"),
            (made(_repr_html_="<p>hello</p>"), "<p>hello</p>"),
            (made(_repr_html_="<p>hello</p>", __repr__="hello"), "hello"),
            (made(_repr_markdown_="\ud800"), "\\ud800"),
        ):
            self.assertEqual(self.cell(code)["value"]["text"], text, code)
        text = self.cell(made(_repr_markdown_="a" * 10_000))["value"]["text"]
        self.assertLess(len(text), 2100)
        self.assertIn("characters …]", text)
        for code in (made(_repr_markdown_=None), made(_repr_markdown_=""), made(_repr_svg_=5)):
            self.assertIn("T object at", self.cell(code)["value"]["text"])

    def test_display(self):
        result = self.run_ok(HELPERS + "print(1)\ndisplay({'a': 1}, 'text')\nprint(2)\ndisplay(P(b'a'))\nprint(3)\ndisplay(P(b'b'), [P(b'c')])\nP(b'd')")
        self.assertRegex(result["text"], r"^1\n\{'a': 1\}\n'text'\n2\n\[image 1\]\n3\n\[image 2\]\n\[<__main__.P object at 0x\w+>\]\n\[image 3\]\n$")
        self.assertEqual([base64.b64decode(i["data"]) for i in result["cell"]["images"]], [b"a", b"b", b"c", b"d"])
        result = self.run_ok("display(list(range(100_000)), raw=True)")
        self.assertRegex(result["text"], r"^\[0, 1,[\s\S]* … [\d,]+ more …,\s+99998,\s+99999\]\n\[cut: list of 100,000 int\]\n$")
        self.assertEqual(self.printed("display()"), "")
        self.assertEqual(self.value("repr(display)[:9]"), "'display(x'")

    def test_pictures_of_a_cell_that_fails(self):
        result = self.kernel.run(HELPERS + "display(P(b'a'))\n1 / 0")
        self.assertEqual(len(result["cell"]["images"]), 1)
        self.assertEqual(result["cell"]["status"], "error")
        self.assertNotIn("images", self.cell("1"))

    @unittest.skipUnless(hasattr(sys, "set_int_max_str_digits"), "newer Python refuses long integers")
    def test_long_integers(self):
        self.assertIn("<int of 16,610 bits: more digits", self.value("10**5000"))

    def test_a_repr_may_print_and_take_long(self):
        result = self.run_ok("class L:\n  def __repr__(self): print('asked'); return 'L'\nL()")
        self.assertEqual((result["text"], result["cell"]["value"]["text"]), ("asked\n", "L"))
        result = self.kernel.run("class E:\n  def __repr__(self):\n    while True: pass\nkept = E()\nkept", timeout=0.5)
        self.assertEqual((result["interrupted"], result["lost"]), ("timeout", None))
        self.assertEqual(self.value("type(kept).__name__"), "'E'")


# What figures.py asks of matplotlib, for hosts that do not have it. The data
# image has the real one: see data_test.go.
PYPLOT = """
import os, pathlib, sys, tempfile
root = pathlib.Path(tempfile.mkdtemp())
(root / "matplotlib").mkdir()
(root / "matplotlib" / "__init__.py").write_text("")
(root / "matplotlib" / "figure.py").write_text('''
class Figure:
    dpi = 100
    size = (6, 4)
    stale = True
    def __init__(self): self.children = ["patch"]
    def get_children(self): return self.children
    def get_size_inches(self): return self.size
    def savefig(self, file, dpi=None, **options):
        if "bad" in self.children: raise ValueError("no such font")
        self.stale = False
        file.write(f"{self.children[1:]} {dpi:g}".encode())
''')
(root / "matplotlib" / "pyplot.py").write_text('''
from matplotlib.figure import Figure
figures = {}
def get_fignums(): return sorted(figures)
def figure(n=None):
    n = n or max(figures, default=0) + 1
    return figures.setdefault(n, Figure())
def close(what): figures.clear()
def plot(x):
    figure(max(figures, default=1)).children.append(x)
    figure(max(figures)).stale = True
def show(*a, **k): print("nowhere to show")
''')
sys.path.insert(0, str(root))
"""


class Figures(KernelTest):
    def setUp(self):
        self.kernel = self.new_kernel()
        self.run_ok(PYPLOT)

    def pictures(self, code):
        result = self.kernel.run(code)
        shown = [base64.b64decode(i["data"]).decode() for i in result["cell"].get("images", [])]
        return shown, result

    def test_nothing_is_imported_before(self):
        self.assertEqual(self.value("'matplotlib' in sys.modules, os.environ['MPLBACKEND']"), "(False, 'agg')")

    def test_open_figures_at_the_end(self):
        shown, result = self.pictures("import matplotlib.pyplot as plt\nplt.plot(1)\nprint('done')")
        self.assertEqual((shown, result["text"]), (["[1] 100"], "done\n"))
        self.assertEqual(self.pictures("plt.get_fignums()")[0], [])
        shown, _ = self.pictures("plt.plot(1); plt.figure(); plt.plot(2); plt.figure()")
        self.assertEqual(shown, ["[1] 100", "[2] 100"])  # nothing is on the third

    def test_show(self):
        shown, result = self.pictures("from matplotlib import pyplot as plt\nplt.plot(1)\nplt.show()\nprint('then')\nplt.plot(2)\nplt.show(block=False)\nplt.show()")
        self.assertEqual((shown, result["text"]), (["[1] 100", "[2] 100"], "[image 1]\nthen\n[image 2]\n"))

    def test_a_figure_is_shown_once(self):
        shown, result = self.pictures("import matplotlib.pyplot as plt\nf = plt.figure(); plt.plot(1)\nf")
        self.assertEqual(shown, ["[1] 100"])
        self.assertEqual(result["cell"]["value"]["text"][:30], "<matplotlib.figure.Figure obje")
        self.assertEqual(self.pictures("f")[0], ["[1] 100"])
        shown, _ = self.pictures("f = plt.figure(); plt.plot(1)\ndisplay(f)\nprint(1)")
        self.assertEqual(shown, ["[1] 100"])
        shown, _ = self.pictures("f = plt.figure(); plt.plot(1)\ndisplay(f)\nplt.plot(2)")
        self.assertEqual(shown, ["[1] 100", "[1, 2] 100"])

    def test_large_figures_are_scaled_down(self):
        _, result = self.pictures("import matplotlib.pyplot as plt\nf = plt.figure(); f.size = (98, 49)\nplt.plot(1)")
        image = result["cell"]["images"][0]
        self.assertEqual((base64.b64decode(image["data"]), image["note"]), (b"[1] 16", "scaled down from 9,800 × 4,900 pixels"))

    def test_failures(self):
        shown, result = self.pictures("import matplotlib.pyplot as plt\nplt.plot(1)\n1 / 0")
        self.assertEqual((shown, result["cell"]["status"]), (["[1] 100"], "error"))
        shown, result = self.pictures("plt.plot('bad')")
        self.assertEqual((shown, result["cell"]["notes"]), ([], ["a figure is not shown: ValueError: no such font"]))
        shown, result = self.pictures("f = plt.figure()\nf.children.append('bad')\nplt.close('all')\nf")
        self.assertEqual((shown, result["cell"]["notes"]), ([], ["an image is not shown: ValueError: no such font"]))
        shown, result = self.pictures("for i in range(20): plt.figure(); plt.plot(i)")
        self.assertEqual((len(shown), result["cell"]["notes"]), (8, ["12 more images not shown: at most 8 and 6 MB a cell"]))
        shown, result = self.pictures("plt.get_fignums = None\nplt.plot(1)")
        self.assertEqual((shown, result["cell"]["status"]), ([], "ok"))
        self.assertIn("figures are not shown: TypeError", result["cell"]["notes"][0])

    def interrupted(self, code):
        self.run_ok("import matplotlib.pyplot as plt, time")
        self.kernel.start(code, grace=60)
        self.kernel.output_until("ready")
        self.kernel.cancel()
        result = self.kernel.finish()
        self.assertEqual((result["lost"], result["cell"]["status"]), (None, "error"))
        shown = [base64.b64decode(i["data"]).decode() for i in result["cell"].get("images", [])]
        self.assertEqual(self.pictures("1")[0], [])  # not with another cell
        return shown, result["cell"].get("notes")

    def test_an_interrupted_cell_shows_its_figures(self):
        self.assertEqual(self.interrupted("plt.plot(1)\nprint('ready')\ntime.sleep(60)"), (["[1] 100"], None))
        self.assertEqual(self.interrupted("plt.plot('bad')\nprint('ready')\ntime.sleep(60)"), ([], ["a figure is not shown: ValueError: no such font"]))
        self.assertEqual(self.interrupted("print('ready')\ntime.sleep(60)"), ([], None))

    def test_figures_that_take_long_are_dropped(self):
        slow = "f = plt.figure()\nf.children.append(1)\nf.get_children = lambda: print('ready') or time.sleep(60)\n"
        dropped = "open figures are not shown: "
        self.assertEqual(self.interrupted(slow), ([], [dropped + "drawing them was interrupted"]))
        self.assertEqual(self.interrupted(slow + "print('ready')\ntime.sleep(60)"), ([], [dropped + "the cell was interrupted, and drawing them takes long"]))

    def test_a_failed_import_can_be_repeated(self):
        self.run_ok("path = root / 'matplotlib' / 'pyplot.py'\ngood = path.read_text()\n_ = path.write_text('1 / 0')")
        self.error("import matplotlib.pyplot")
        self.run_ok("_ = path.write_text(good + '\\n\\n')\nimport importlib; importlib.invalidate_caches()")
        self.assertEqual(self.pictures("import matplotlib.pyplot as plt\nplt.plot(1); plt.show()")[1]["text"], "[image 1]\n")


if __name__ == "__main__":
    unittest.main()
