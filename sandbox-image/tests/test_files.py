"""The workspace's files, kept by a host that the tests play."""

import base64
import os
import pathlib
import threading
import unittest

from harness import Kernel, KernelTest, demo_server


class Host:
    """Keeps files as the bridge does: path -> (content, modified)."""

    def __init__(self, quota=1 << 30):
        self.files = {}
        self.version = 0
        self.quota = quota
        self.partial = None  # (params of the first part, content so far)
        self.hold = None  # called before every answer
        self.lock = threading.Lock()

    def change(self, path, content, modified=10**18):
        """Somebody else changes a file; content None deletes it."""
        with self.lock:
            self.version += 1
            if content is None:
                del self.files[path]
            else:
                self.files[path] = (content, modified)

    def contents(self):
        return {path: content for path, (content, _) in self.files.items()}

    def __call__(self, method, params):
        if not method.startswith("workspace/"):
            return demo_server(method, params)
        if self.hold:
            self.hold(method, params)
        with self.lock:
            return getattr(self, method.partition("/")[2])(**params)

    def list(self, files):
        records = [[p, len(c), m] for p, (c, m) in self.files.items()]
        reply = {"version": self.version, "whole": True, "bytes": sum(r[1] for r in records)}
        return {**reply, "files": records if files else len(records), "max_bytes": self.quota, "max_files": 10_000}

    def get(self, path, offset):
        if path not in self.files:
            raise LookupError("no such file")
        content, modified = self.files[path]
        data = base64.b64encode(content[offset : offset + (1 << 20)]).decode()
        return {"data": data, "size": len(content), "modified": modified}

    def put(self, path, size, modified, offset, data):
        content = base64.b64decode(data, validate=True)
        assert len(content) <= 1 << 20
        if sum(len(c) for p, (c, _) in self.files.items() if p != path) + size > self.quota:
            raise LookupError("the quota is exceeded")
        if offset == 0:
            self.partial = ((path, size, modified), b"")
        key, so_far = self.partial
        assert key == (path, size, modified) and len(so_far) == offset, "not the next part"
        self.partial = (key, so_far + content)
        if len(self.partial[1]) < size or size and not content:
            return {}
        self.files[path] = (self.partial[1], modified)
        return self.changed(size=size, modified=modified)

    def delete(self, files):
        for path, size, modified in files:
            if path in self.files and (len(self.files[path][0]), self.files[path][1]) == (size, modified):
                del self.files[path]
        return self.changed()

    def changed(self, **more):
        self.version += 1
        return {"version": self.version, "previous": self.version - 1, **more}


class FilesTest(KernelTest):
    @classmethod
    def setUpClass(cls):
        pass

    @classmethod
    def tearDownClass(cls):
        pass

    def open(self, host=None):
        """A kernel of a host's, and that."""
        self.host = host or Host()
        self.kernel = self.new_kernel(self.host)
        return self.host

    def run_ok(self, code, **options):
        return super().run_ok(code, **{"workspace": self.host.version, **options})

    def note(self, code, **options):
        return self.run_ok(code, **options)["cell"].get("note", "")

    def asked(self):
        """What of files was asked since the last time."""
        methods = [m.partition("/")[2] for m, _ in self.kernel.calls if m.startswith("workspace/")]
        self.kernel.calls.clear()
        return methods


class Keeping(FilesTest):
    def test_what_a_cell_writes_is_kept(self):
        host = self.open()
        self.assertEqual(self.note("import os\nos.makedirs('d/e')\nopen('d/e/x', 'wb').write(b'x' * 3_000_000)\nopen('empty', 'w').close()"), "")
        self.assertEqual(host.contents(), {"d/e/x": b"x" * 3_000_000, "empty": b""})
        self.assertEqual(host.files["empty"][1], os.stat(self.kernel.dir + "/empty").st_mtime_ns)
        self.run_ok("n = open('d/e/x', 'r+').write('new')")
        self.assertEqual(host.contents()["d/e/x"], b"new" + b"x" * 2_999_997)
        self.run_ok("os.rename('d/e/x', 'y'); os.unlink('empty')")
        self.assertEqual(set(host.files), {"y"})

    def test_nothing_is_asked_when_nothing_has_changed(self):
        self.open()
        self.run_ok("1")
        self.assertEqual(self.asked(), [], "an empty workspace")
        self.run_ok("n = open('a', 'w').write('a')")
        self.assertEqual(self.asked(), ["put"])
        for _ in range(3):
            self.run_ok("import time; time.sleep(0.06)")  # now the file's time can tell
        self.assertEqual(self.asked(), [])

    def test_nothing_is_kept_for_a_host_that_does_not(self):
        self.open()
        report = self.kernel.run("n = open('a', 'w').write('a')\nworkspace.usage()")
        self.assertIn("not kept", report["cell"]["value"]["text"])
        self.assertEqual((self.asked(), self.host.files), ([], {}))
        error = self.kernel.run("workspace.sync()")["cell"]["error"]
        self.assertIn("files are not kept", error["message"])

    def test_a_change_within_a_clock_tick_is_noticed(self):
        host = self.open()
        self.run_ok("import os\ndef same_time(text):\n open('a', 'w').write(text)\n os.utime('a', ns=(t, t))\nimport time\nt = time.time_ns()\nsame_time('one')")
        self.run_ok("same_time('two')")
        self.assertEqual(host.contents(), {"a": b"two"})
        self.run_ok("pass")
        self.assertEqual(host.contents(), {"a": b"two"})

    def test_caches_are_not_kept(self):
        host = self.open()
        self.run_ok(
            """
            import os
            for d in ("__pycache__", "p/__pycache__", ".cache/pip", ".config/matplotlib", ".config/other"):
                os.makedirs(d)
                open(d + "/f", "w").close()
            """
        )
        self.assertEqual(set(host.files), {".config/other/f"})

    def test_only_files_are_kept(self):
        host = self.open()
        note = self.note(
            """
            import os, socket
            open("file", "w").write("x")
            os.symlink("/etc/passwd", "link"); os.symlink("/", "folder"); os.symlink("file", "inner"); os.symlink("loop", "loop")
            os.mkfifo("pipe"); s = socket.socket(socket.AF_UNIX); s.bind("sock")
            os.link("file", "hard")
            """
        )
        self.assertEqual(host.contents(), {"file": b"x", "hard": b"x"})
        for name in ("link", "folder", "inner", "loop"):
            self.assertIn(name, note)
        self.assertIn("links are not", note)
        self.assertEqual(self.note("pass"), "", "said once")

    def test_odd_names_are_told_of_plainly(self):
        host = self.open()
        note = self.note(r"open(b'bad\xff', 'w').close(); open('new\nline\u202e', 'w').close(); open('é ü', 'w').close()")
        self.assertIn(r"'bad\udcff' (0 bytes): its name is not UTF-8", note)
        self.assertEqual(set(host.files), {"new\nline\u202e", "é ü"}, "the host decides about the others")

    def test_what_the_host_refuses_is_told_once_and_tried_again(self):
        host = self.open(Host(quota=5_000_000))
        note = self.note("n = open('big', 'wb').write(bytes(6_000_000)); n = open('small', 'w').write('x')")
        self.assertEqual(note, "not kept: big (5.72 MiB): the quota is exceeded")
        self.assertEqual(set(host.files), {"small"})
        sent = [p for m, p in self.kernel.calls if m == "workspace/put" and p["path"] == "big"]
        self.assertEqual([p["data"] for p in sent], [""], "nothing of it was sent")
        self.run_ok("pass")  # the other one has made a new version: there may be room
        self.asked()
        self.assertEqual((self.note("pass"), self.asked()), ("", []))
        self.assertIn("not kept: big: the quota is exceeded", self.value("workspace.usage()"))
        self.run_ok("n = open('big', 'wb').write(bytes(4_000_000))")
        self.assertEqual(len(host.contents()["big"]), 4_000_000)
        self.assertIn("2 of 10,000 files, 3.81 MiB of 4.77 MiB", self.value("workspace.usage()"))
        self.assertEqual(self.value("workspace.quota"), "5000000")

    def test_a_sparse_file_is_as_large_as_it_says(self):
        host = self.open(Host(quota=1 << 20))
        self.assertIn("sparse (1,024 GiB): the quota is exceeded", self.note("open('sparse', 'wb').truncate(1 << 40)"))
        self.assertEqual(host.files, {})

    def test_very_many_files(self):
        host = self.open()
        self.run_ok("n = open('first', 'w').write('x')")
        host.hold = lambda method, params: (_ for _ in ()).throw(LookupError("the quota is exceeded")) if method == "workspace/put" else None
        self.run_ok("import os; from mcpbridge import keeping; keeping.MAX_ENTRIES = 500")
        note = self.note("os.mkdir('many')\nfor i in range(600): open(f'many/{i}', 'w').close()\nos.unlink('first')")
        self.assertIn("there are more than 500", note)
        self.assertRegex(note, r"and 4\d\d more")
        self.assertLess(len(note), 1000)
        self.assertEqual(set(host.files), {"first"}, "what is not known to be gone is not deleted")
        self.run_ok("import shutil; shutil.rmtree('many')")
        self.assertEqual(host.files, {})

    def test_folders_that_cannot_be_read_or_have_no_end(self):
        host = self.open()
        self.run_ok("import os\nos.mkdir('d'); n = open('d/f', 'w').write('x')\nos.makedirs('/'.join('d' * 40)); n = open('/'.join('d' * 40) + '/f', 'w').write('x')")
        self.assertEqual(set(host.files), {"d/f"})
        if os.getuid():
            self.assertIn("not kept: d/: Permission denied", self.note("os.chmod('d', 0)"))
            self.assertEqual(set(host.files), {"d/f"})
            self.run_ok("os.chmod('d', 0o700)")

    def test_a_cell_that_failed_exited_or_was_interrupted(self):
        host = self.open()
        for name, code in {"a": "1 / 0", "b": "import sys; sys.exit(3)", "c": "import time; time.sleep(100)"}.items():
            result = self.kernel.run(f"n = open('{name}', 'w').write('x')\n{code}", workspace=host.version, timeout=1 if name == "c" else 20)
            self.assertNotEqual(result["cell"]["status"], "ok")
            self.assertIn(name, host.files)

    def test_a_killed_cell_is_kept_with_the_next(self):
        host = self.open()
        self.run_ok("n = open('before', 'w').write('x')")
        result = self.kernel.run("import os, signal\nn = open('a', 'w').write('x'); os.unlink('before')\nos.kill(os.getpid(), signal.SIGKILL)", workspace=host.version)
        self.assertIsNone(result["cell"])
        self.assertEqual(set(host.files), {"before"})
        self.kernel.restart()
        self.asked()
        self.run_ok("import os")
        self.assertEqual(set(host.files), {"before", "a"}, "what the dead process has deleted comes back")
        self.assertEqual(self.asked(), ["list", "get", "put"])
        self.run_ok("pass")

    def test_what_came_after_the_last_cell_is_kept_at_the_end(self):
        host = self.open()
        self.run_ok("n = open('mine', 'w').write('x')")
        host.change("others", b"x")
        (pathlib.Path(self.kernel.dir) / "late").write_text("of a process that outlived its cell")
        self.asked()
        self.run_ok("", task="keep", limit=0)
        self.assertEqual(set(host.files), {"mine", "late", "others"})
        self.assertEqual(self.asked(), ["put"], "nothing is fetched that nobody will see")
        self.run_ok("", task="keep", limit=0)
        self.assertEqual(self.asked(), [])

    def test_a_killed_cell_is_kept_at_the_end(self):
        host = self.open()
        self.kernel.run("import os, signal\nn = open('a', 'w').write('x')\nos.kill(os.getpid(), signal.SIGKILL)", workspace=host.version)
        self.kernel.restart()
        self.run_ok("", task="keep", limit=0)
        self.assertEqual(host.contents(), {"a": b"x"})

    def test_an_interrupt_while_files_are_sent(self):
        host = self.open()
        reached, go = threading.Event(), threading.Event()

        def hold(method, params):
            if method == "workspace/put" and params["offset"]:
                reached.set()
                go.wait(20)

        host.hold = hold
        self.kernel.start("kept = 1\nn = open('a', 'wb').write(bytes(3_000_000))", workspace=host.version)
        self.assertTrue(reached.wait(20))
        self.kernel.cancel()
        result = self.kernel.finish()
        self.assertEqual((result["interrupted"], result["cell"]["status"]), ("cancel", "ok"))
        self.assertIn("the rest goes with the next cell", result["cell"]["note"])
        go.set()
        host.hold = None
        self.assertEqual(self.value("kept"), "1")
        self.assertEqual(len(host.contents()["a"]), 3_000_000)

    def test_after_an_interrupt_there_is_little_time(self):
        host = self.open()
        host.hold = lambda method, params: threading.Event().wait(0.3) if method == "workspace/put" else None
        code = "kept = 1\nn = open('a', 'wb').write(bytes(20 << 20))\nimport time; time.sleep(100)"
        result = self.kernel.run(code, workspace=host.version, timeout=1, grace=4)
        self.assertEqual(result["cell"]["error"]["type"], "KeyboardInterrupt")
        self.assertIn("the rest goes with the next cell", result["cell"]["note"])
        host.hold = None
        self.assertEqual(self.value("kept"), "1")
        self.assertEqual(len(host.contents()["a"]), 20 << 20)

    def test_what_cells_do_to_python_does_not_break_it(self):
        host = self.open()
        self.run_ok(
            """
            import os, signal
            for name in ("scandir", "open", "stat", "fstat", "unlink", "replace", "pread"):
                setattr(os, name, None)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            os.chdir("/")
            n = open("WORKSPACE/a".replace("WORKSPACE", workspace.as_posix()), "w").write("x")
            """
        )
        self.assertEqual(set(host.files), {"a"})

    def test_a_fork_keeps_nothing(self):
        host = self.open()
        self.kernel.run("import os\npid = os.fork()\nif pid: _ = os.waitpid(pid, 0)\nn = open(f'{bool(pid)}', 'w').write('x')", workspace=host.version)
        self.assertEqual(set(host.files), {"True", "False"})
        self.assertEqual(self.value("1"), "1")

    def test_a_file_that_grows_all_the_time(self):
        host = self.open()
        code = "import threading, time\ngo = True\ndef grow():\n with open('log', 'a') as f:\n  while go: f.write('x' * 100_000); f.flush(); time.sleep(0.001)\n  f.write('end')\nt = threading.Thread(target=grow); t.start(); time.sleep(0.2)"
        self.run_ok(code)
        self.run_ok("go = False; t.join()")
        self.assertEqual(host.contents()["log"], pathlib.Path(self.kernel.dir, "log").read_bytes())


class Fetching(FilesTest):
    def test_files_of_other_sessions_appear(self):
        host = self.open()
        host.change("a/b.txt", b"b" * 2_500_000)
        host.change("c", b"")
        self.assertEqual(self.value("import os\nlen(open('a/b.txt').read()), os.stat('a/b.txt').st_mtime_ns, open('c').read()"), f"(2500000, {10**18}, '')")
        self.asked()
        self.run_ok("pass")
        self.assertEqual(self.asked(), [], "nothing was changed here")
        host.change("c", b"changed")
        host.change("a/b.txt", None)
        self.assertEqual(self.value("open('c').read(), os.listdir('.')[0:0], os.path.exists('a')"), "('changed', [], False)")
        self.assertEqual(self.asked(), ["list", "get"])

    def test_both_have_changed(self):
        host = self.open()
        self.run_ok("n = [open(f, 'w').write('old') for f in 'abcd']")
        later = 2 * 10**18  # than any clock
        self.kernel.run("import os\nopen('a', 'w').write('mine'); open('b', 'w').write('mine'); os.unlink('c'); open('d', 'w').write('mine')")
        host.change("a", b"theirs", later)  # they are later
        host.change("b", b"theirs", 10**18)  # they are earlier
        host.change("c", b"theirs", later)  # deleted here, changed there
        host.change("d", None)  # changed here, deleted there
        self.run_ok("pass")
        self.assertEqual(host.contents(), {"a": b"theirs", "b": b"mine", "c": b"theirs", "d": b"mine"})
        self.assertEqual(self.value("[open(f).read() for f in 'abcd']"), "['theirs', 'mine', 'theirs', 'mine']")

    def test_a_new_process_finds_its_files_again(self):
        host = self.open()
        self.run_ok("n = [open(f, 'w').write(f) for f in 'abc']")
        self.kernel.run("import os; os._exit(1)", workspace=host.version)
        self.kernel.restart()
        self.asked()
        self.run_ok("pass")
        self.assertEqual(self.asked(), ["list"], "nothing travels again")
        self.run_ok("import os; os.unlink('a')")
        self.assertEqual(set(host.files), {"b", "c"})

    def test_what_cannot_be_fetched(self):
        host = self.open()
        host.change("taken/x", b"x")
        host.change("fine", b"x")
        self.kernel.run("n = open('taken', 'w').write('mine')")
        note = self.note("pass")
        self.assertIn("not in the workspace of this sandbox: taken/x", note)
        self.assertIn("fine", host.files)
        self.assertIn("taken/x", host.files, "it is not taken for deleted")
        self.assertEqual(self.value("open('fine').read()"), "'x'")

    def test_a_file_that_changes_while_it_is_fetched(self):
        host = self.open()
        host.change("a", b"1" * 3_000_000)
        turns = []

        def hold(method, params):
            if method == "workspace/get" and params["offset"]:
                turns.append(params)
                if len(turns) < 4:
                    host.change("a", b"%d" % len(turns) * (3_000_000 - len(turns)), len(turns))

        host.hold = hold
        self.assertEqual(self.value("text = open('a').read(); len(text), set(text)"), "(2999997, {'3'})")

    def test_a_link_in_the_way_is_replaced(self):
        host = self.open()
        self.kernel.run("import os\nn = open('/tmp/mcp-bridge-test-%d' % os.getpid(), 'w').write('mine')\nos.symlink('/tmp/mcp-bridge-test-%d' % os.getpid(), 'a')")
        host.change("a", b"theirs")
        self.run_ok("pass")
        self.assertEqual(self.value("r = os.path.islink('a'), open('/tmp/mcp-bridge-test-%d' % os.getpid()).read(); os.unlink('/tmp/mcp-bridge-test-%d' % os.getpid()); r"), "(False, 'mine')")

    def test_an_interrupt_while_files_are_fetched(self):
        host = self.open()
        self.run_ok("kept = 1")
        host.change("a", b"x")
        reached, go = threading.Event(), threading.Event()
        host.hold = lambda method, params: (reached.set(), go.wait(20)) if method == "workspace/get" else None
        self.kernel.start("ran = True", workspace=host.version)
        self.assertTrue(reached.wait(20))
        self.kernel.cancel()
        result = self.kernel.finish()
        self.assertEqual((result["cell"]["error"]["type"], result["interrupted"]), ("KeyboardInterrupt", "cancel"))
        go.set()
        host.hold = None
        self.assertEqual(self.value("kept, 'ran' in globals(), open('a').read()"), "(1, False, 'x')")
        self.assertEqual([f for f in os.listdir(self.kernel.dir) if "partial" in f], [])


class ThePath(FilesTest):
    def test_it_is_a_path(self):
        self.open()
        checks = {
            "isinstance(workspace, __import__('pathlib').Path)": "True",
            "str(workspace) == __import__('os').getcwd(), workspace == type(workspace / 'a')(workspace)": "(True, True)",
            "(workspace / 'a' / 'b').parent.mkdir()": None,
            "(workspace / 'a' / 'b.txt').write_text('text')": "4",
            "[type(p).__name__ for p in (workspace / 'x', workspace.parent, workspace.joinpath('x'), next(workspace.glob('a')), next(workspace.iterdir()))]": "['PosixPath', 'PosixPath', 'PosixPath', 'PosixPath', 'PosixPath']",
            "sorted(p.name for p in workspace.rglob('*.txt'))": "['b.txt']",
            "open(workspace / 'a' / 'b.txt').read(), __import__('os').path.join(workspace, 'x') == str(workspace / 'x')": "('text', True)",
            "workspace.exists(), workspace.is_dir(), {workspace: 1}[workspace]": "(True, True, 1)",
            "import pickle, copy; pickle.loads(pickle.dumps(workspace)) == copy.deepcopy(workspace) == workspace": "True",
            "workspace.resolve() == __import__('pathlib').Path.cwd()": "True",
            "repr(workspace)[:11]": "\"Workspace('\"",
            "usage = workspace.usage(); usage.files, usage['bytes'], usage.kept": "(1, 4, True)",
        }
        for code, want in checks.items():
            self.assertEqual(self.value(code), want, code)

    def test_a_name_of_the_users_stays_theirs(self):
        self.open()
        self.assertEqual(self.value("workspace = 5\nworkspace"), "5")
        self.assertEqual(self.value("workspace"), "5")

    def test_sync_keeps_at_once(self):
        host = self.open()
        self.run_ok("n = open('a', 'w').write('x'); workspace.sync()\nseen = workspace.usage().files; n = open('a', 'w').write('later')")
        self.assertEqual(self.value("seen"), "1")
        self.assertEqual(host.contents(), {"a": b"later"})


if __name__ == "__main__":
    unittest.main()
