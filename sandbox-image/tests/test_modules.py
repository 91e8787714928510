"""Modules that are no files, and names that are there when a cell mentions them."""

import builtins
import importlib
import sys
import types
import unittest

import harness  # noqa: F401  finds mcpbridge
from mcpbridge import modules, provided


class ModulesTest(unittest.TestCase):
    def setUp(self):
        self.finder = modules.Finder()
        sys.meta_path.append(self.finder)
        self.filled = []

    def tearDown(self):
        sys.meta_path.remove(self.finder)
        for name in [name for name in sys.modules if name.startswith("made_up")]:
            del sys.modules[name]
        modules._makers.clear()
        modules._packages.clear()

    def fill(self, module):
        self.filled.append(module.__name__)
        module.value = len(self.filled)

    def test_import(self):
        modules.register("made_up", self.fill)
        import made_up
        from made_up import value

        self.assertEqual((made_up.value, value, self.filled), (1, 1, ["made_up"]))
        with self.assertRaisesRegex(ImportError, "cannot import name 'other'"):
            from made_up import other  # noqa: F401
        with self.assertRaisesRegex(ModuleNotFoundError, "'made_up' is not a package"):
            import made_up.below

    def test_package(self):
        modules.register("made_up", self.fill, below=self.fill)
        from made_up import below

        self.assertEqual(below.value, 2)
        with self.assertRaises(ModuleNotFoundError):
            importlib.import_module("made_up.below.deeper")

    def test_a_maker_that_fails(self):
        def fail(module):
            raise ImportError("not today")

        modules.register("made_up", fail)
        for _ in range(2):
            with self.assertRaisesRegex(ImportError, "not today"):
                import made_up  # noqa: F401

    def test_a_file_goes_first(self):
        modules.register("json", self.fill)
        self.assertIsNot(importlib.import_module("json").__spec__.loader, self.finder)
        self.assertEqual(self.filled, [])

    def test_an_instance_in_the_module_s_place(self):
        thing = types.SimpleNamespace(__name__="made_up", value=9)

        def replace(module):
            sys.modules[module.__name__] = thing

        modules.register("made_up", replace)
        import made_up

        self.assertIs(made_up, thing)


class ProvidedTest(unittest.TestCase):
    def setUp(self):
        self.made = []
        fake = types.ModuleType("mcpbridge.fake")
        fake.provide = self.provide
        sys.modules["mcpbridge.fake"] = fake
        provided.SHOWN["made_shown"] = provided.HIDDEN["made_hidden"] = provided.PREFIXES["made2_"] = "fake"
        self.namespace = {}
        self.provider = provided.Provider("client", self.namespace)

    def tearDown(self):
        del sys.modules["mcpbridge.fake"], provided.SHOWN["made_shown"], provided.HIDDEN["made_hidden"], provided.PREFIXES["made2_"]
        for name in [name for name in vars(builtins) if name.startswith("made")]:
            delattr(builtins, name)

    def provide(self, client, name):
        self.made.append(name)
        return {"name": name, "client": client}

    def run_cell(self, text):
        self.provider.look_through(text)
        self.namespace.pop("__builtins__", None)
        exec(text, self.namespace)

    def test_nothing_is_made_that_is_not_mentioned(self):
        self.run_cell("x = 1; unmade_hidden = 2; made_hiddenly = 3")
        self.assertEqual(self.made, [])

    def test_what_is_mentioned(self):
        self.run_cell("def f(): return made_hidden['name'], made_shown['name'], made2_x['name']\nx = f()\ny = f()")
        self.assertEqual(self.namespace["x"], ("made_hidden", "made_shown", "made2_x"))
        self.assertEqual(sorted(self.made), ["made2_x", "made_hidden", "made_shown"])
        self.assertNotIn("made_hidden", self.namespace)

    def test_names_are_whole_words(self):
        for text in "made_hiddené", "émade_hidden", "made_hidden1", "_made_hidden", "xmade2_y", "made2":
            self.provider.look_through(text)
        self.assertEqual(self.made, [])
        for text in "é.made_hidden\t", "a=made2_größe;", "[made_shown]", "# of made2_x:\x0c":
            self.provider.look_through(text)
        self.assertEqual(self.made, ["made_hidden", "made2_größe", "made_shown", "made2_x"])

    def test_of_text(self):
        self.assertEqual(list(self.provider.of_text("made_shown, made_hidden")), ["made_shown"])
        self.assertEqual(sorted(self.made), ["made_hidden", "made_shown"])

    def test_the_user_s_own_names_win(self):
        self.run_cell("made_hidden = made_shown = 1")
        self.run_cell("x = made_hidden, made_shown")
        self.assertEqual(self.namespace["x"], (1, 1))
        self.run_cell("del made_shown")
        with self.assertRaises(NameError):
            self.run_cell("made_shown")

    def test_a_placeholder_does_what_the_thing_does(self):
        self.run_cell("code = 'made_' + 'shown'\ny = eval(code)['name'], eval(code).keys()\neval(code)['new'] = 1\nz = repr(eval(code))")
        self.assertEqual(self.namespace["y"][0], "made_shown")
        self.assertIn("'new': 1", self.namespace["z"])
        self.assertEqual(self.made, ["made_shown"])

    def test_what_cannot_be_made(self):
        del sys.modules["mcpbridge.fake"].provide
        with self.assertRaises(NameError):
            self.run_cell("made_hidden")


if __name__ == "__main__":
    unittest.main()
