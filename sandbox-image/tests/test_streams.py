"""What cells and their children print arrives whole and in order."""

import random
import unittest

from harness import KernelTest
from mcpbridge import streams

CHILD = "import subprocess, sys\ndef child(code): subprocess.run([sys.executable, '-c', code], check=True)\n"


class Streams(KernelTest):
    def test_order(self):
        code = """
            import os, sys
            print("out 1")
            print("err 1", file=sys.stderr)
            print("out 2")
            print("partial ", end="")
            print("err 2", file=sys.stderr)
            sys.stderr.write("err partial ")
            print("out 3")
            """
        self.assertEqual(self.printed(code), "out 1\nerr 1\nout 2\npartial err 2\nerr partial out 3\n")

    def test_order_with_children(self):
        code = CHILD + (
            "for i in range(3):\n"
            "  print('parent', i)\n"
            "  child(f'import os; os.write(1, b\"child {i}\\\\n\"); os.write(2, b\"error {i}\\\\n\")')\n"
        )
        want = "".join(f"parent {i}\nchild {i}\nerror {i}\n" for i in range(3))
        self.assertEqual(self.printed(code), want)

    def test_many_switches(self):
        code = "import sys\nfor i in range(2000): print(i, file=(sys.stdout, sys.stderr)[i % 2])"
        self.assertEqual(self.printed(code), "".join(f"{i}\n" for i in range(2000)))

    def test_threads(self):
        code = """
            import threading, sys
            def write(c):
                for _ in range(200): print(c * 50, file=sys.stdout)
            threads = [threading.Thread(target=write, args=(c,)) for c in "abcd"]
            for t in threads: t.start()
            for t in threads: t.join()
            """
        text = self.printed(code)
        self.assertEqual(sorted(text.replace("\n", "")), sorted("abcd" * 10_000))

    def test_characters_split_over_reads(self):
        code = """
            import os, time
            for byte in "ü🙂漢".encode():
                os.write(1, bytes([byte]))
                time.sleep(0.01)
            """
        self.assertEqual(self.printed(code), "ü🙂漢")

    def test_characters_across_the_read_size(self):
        for shift in range(4):
            self.assertEqual(self.printed(f"print('x' * {shift} + '🙂' * 50_000, end='')"), "x" * shift + "🙂" * 50_000)

    def test_bytes_that_are_no_text(self):
        self.assertEqual(self.printed(r"import os; _ = os.write(1, b'a\xff\xfeb\xc3')" + "\n_ = os.write(1, b'c')"), "a��b�c")
        self.assertEqual(self.printed(r"print('\ud800', '\x00', '\x1b[1m')"), "\\ud800 \x00 \x1b[1m\n")

    def test_a_character_cut_off_at_the_end_does_not_reach_the_next_cell(self):
        self.run_ok(r"import os; _ = os.write(1, b'\xf0\x9f')")
        self.assertTrue(self.printed("print('next')").endswith("next\n"))

    def test_blank_lines_and_carriage_returns(self):
        self.assertEqual(self.printed(r"print('\n\na\n\r\n\n')"), "\n\na\n\r\n\n\n")
        self.assertEqual(self.printed("print(end='')"), "")

    def test_ten_megabytes(self):
        text = self.printed("for i in range(1000): print(str(i % 10) * 9999)\nprint('y' * 1_000_000)")
        self.assertEqual(len(text), 1000 * 10_000 + 1_000_001)
        self.assertEqual(text[:2], "00")
        self.assertTrue(text.endswith("y\n"))

    def test_ten_megabytes_of_a_child(self):
        text = self.printed(CHILD + "child('print(\"z\" * 10_000_000, end=\"\")')")
        self.assertEqual(text, "z" * 10_000_000)

    def test_stdin_is_empty(self):
        self.assertEqual(self.error("input()")["type"], "EOFError")
        self.assertEqual(self.value("import sys; sys.stdin.read()"), "''")
        self.assertEqual(self.printed(CHILD + "child('import sys; print(repr(sys.stdin.read()))')"), "''\n")

    def test_replaced(self):
        code = """
            import contextlib, io
            with contextlib.redirect_stdout(io.StringIO()) as caught: print("caught")
            print("seen")
            caught.getvalue()
            """
        result = self.run_ok(code)
        self.assertEqual((result["text"], result["cell"]["value"]["text"]), ("seen\n", "'caught\\n'"))
        self.run_ok("sys.stdout = None")
        self.assertEqual(self.printed("print('to nobody')"), "")
        self.run_ok("sys.stdout = 5\nsys.stderr = 'x'")
        self.assertEqual(self.printed("sys.stdout = sys.__stdout__; sys.stderr = sys.__stderr__; print('back')"), "back\n")

    def test_closed(self):
        self.run_ok("import sys\nprint('before')\nsys.stdout.close()")
        self.assertEqual(self.printed("print('again')"), "again\n")
        self.run_ok("sys.stderr.close(); sys.stdout.close()")
        self.assertEqual(self.printed("print('a'); print('b', file=sys.stderr)"), "a\nb\n")

    def test_descriptor_closed(self):
        self.run_ok("import os\nos.close(1)")
        self.assertEqual(self.printed("print('again')"), "again\n")
        self.run_ok("os.close(1); os.close(2); f = open('/dev/null', 'w')")
        self.run_ok("f.close()")
        self.assertEqual(self.printed("print('a'); print('b', file=sys.stderr)"), "a\nb\n")
        self.run_ok("os.closerange(0, 3)")
        self.assertEqual(self.printed("print('again')"), "again\n")

    def late(self, text):
        """What comes between cells until text has come, as [(cell or None, text)]."""
        pieces = []
        while text not in "".join(piece for _, piece in pieces):
            message = self.kernel.control.receive()
            self.assertEqual(message["method"], "output")
            cell, piece = message["params"].get("cell"), message["params"]["text"]
            if pieces and pieces[-1][0] == cell:
                piece = pieces.pop()[1] + piece
            pieces.append((cell, piece))
        return pieces

    def test_late_output_of_a_thread_names_its_cell(self):
        code = """
            import os, subprocess, threading
            def work(go, *args):
                go.wait()
                print("a", *args)
                _ = os.write(1, b"descriptor\\n")
                print("ü" * 3000 + "\\udc80", file=__import__("sys").stderr)
            go = threading.Event()
            threading.Thread(target=work, args=(go, 1)).start()
            """
        self.run_ok(code)
        cell = self.kernel.cells
        self.run_ok("'another'")
        self.run_ok("threading.Timer(0.1, go.set).start()")
        self.assertEqual(self.late("udc80\n"), [(cell, "a 1\n"), (None, "descriptor\n"), (cell, "ü" * 3000 + "\\udc80\n")])

    def test_a_thread_of_a_thread_is_of_the_same_cell(self):
        self.run_ok("""
            import threading
            go = threading.Event()
            def outer(): go.wait(); threading.Thread(target=print, args=("inner",)).start()
            threading.Thread(target=outer).start()
            """)
        cell = self.kernel.cells
        self.run_ok("threading.Timer(0.1, go.set).start()")
        self.assertEqual(self.late("inner\n"), [(cell, "inner\n")])

    def test_output_of_an_earlier_cells_thread_while_another_runs(self):
        code = """
            import threading
            go, done = threading.Event(), threading.Event()
            def work(): go.wait(); print("of the first"); done.set()
            threading.Thread(target=work).start()
            """
        self.run_ok(code)
        cell = self.kernel.cells
        self.kernel.start("print('before'); go.set(); _ = done.wait(); print('after')")
        self.assertEqual(self.late("after\n"), [(None, "before\n"), (cell, "of the first\n"), (None, "after\n")])
        self.kernel.finish()

    def test_a_pool_prints_for_the_cell_that_runs(self):
        self.run_ok("import concurrent.futures as f; pool = f.ThreadPoolExecutor(1); pool.submit(print, 'first').result()")
        self.kernel.start("pool.submit(print, 'second').result(); print('end')")
        self.assertEqual(self.late("end\n"), [(None, "second\nend\n")])
        self.kernel.finish()

    def test_late_output_goes_where_a_cell_has_redirected_it(self):
        self.run_ok("""
            import os, tempfile, threading
            file, kept = tempfile.TemporaryFile(), os.dup(1)
            go = threading.Event()
            thread = threading.Thread(target=lambda: (go.wait(), print("into the file")))
            thread.start()
            """)
        code = "_ = os.dup2(file.fileno(), 1); go.set(); thread.join(); _ = os.dup2(kept, 1); file.seek(0); file.read()"
        self.assertEqual(self.value(code), "b'into the file\\n'")

    def test_error_of_a_thread(self):
        text = self.printed("""
            import threading
            def fails(): raise ValueError("in a thread")
            t = threading.Thread(target=fails, name="T"); t.start(); t.join()
            """)
        self.assertTrue(text.startswith("Exception in thread T:\nTraceback (most recent call last):\n  File \"<cell "), text)
        self.assertTrue(text.endswith("ValueError: in a thread\n"), text)
        self.assertNotIn("threading.py", text)

    def test_input_says_what_to_do(self):
        for code in ("input('name? ')", "import getpass, warnings; warnings.simplefilter('ignore'); getpass.getpass()"):
            result = self.kernel.run(code)
            self.assertEqual(result["cell"]["error"]["type"], "EOFError")
            self.assertIn("Hint: nobody can answer input() here", result["cell"]["error"]["traceback"])
        self.run_ok("sys.stdin.close()")
        self.assertEqual(self.error("input()")["type"], "EOFError")

    def test_streams_are_files(self):
        self.assertEqual(self.value("import sys, os; sys.stdout.isatty(), sys.stdout.fileno(), sys.stdin.read()"), "(False, 1, '')")
        self.assertEqual(self.printed("_ = sys.stdout.buffer.write(b'b\\n'); print('t', flush=True); _ = os.system('echo s')"), "b\nt\ns\n")
        self.assertEqual(self.printed("sys.stdout.reconfigure(errors='replace'); print('\\ud800')"), "?\n")
        self.run_ok("sys.stdout.reconfigure(errors='backslashreplace')")
        code = "import logging\nlogging.warning('w'); logging.getLogger('x').error('e')"
        self.assertEqual(self.printed(code), "WARNING:root:w\nERROR:x:e\n")

    def test_json_cannot_disturb_the_channel(self):
        forged = '{"jsonrpc":"2.0","id":1,"result":{}}'
        self.assertEqual(self.printed(f"print({forged!r})"), forged + "\n")
        self.assertEqual(self.value(r"import os; os.write(1, b'\x00\x00\x00\x02{}')"), "6")
        self.assert_alive()

    def test_any_bytes(self):
        """Printed text comes as it is; of bytes that are no UTF-8 as replacements."""
        chosen = random.Random(4)
        for _ in range(60):
            calls, want = [], b""
            for _ in range(chosen.randrange(1, 12)):
                kind = chosen.choice(("print", "error", "buffer", "descriptor", "child"))
                if kind in ("print", "error"):
                    text = any_text(chosen)
                    end = chosen.choice(("\n", "", "\n\n", "\r\n"))
                    calls.append(f"print({text!r}, end={end!r}, file=sys.{'stdout' if kind == 'print' else 'stderr'})")
                    want += (text + end).encode("utf-8", "backslashreplace")
                else:
                    data = any_bytes(chosen) if kind != "child" or chosen.random() < 0.5 else b""
                    calls.append({
                        "buffer": f"sys.stdout.flush(); sys.stderr.flush(); sys.stdout.buffer.write({data!r}); sys.stdout.buffer.flush()",
                        "descriptor": f"sys.stdout.flush(); sys.stderr.flush(); os.write(chosen(1, 2), {data!r})",
                        "child": f"sys.stdout.flush(); sys.stderr.flush(); subprocess.run(['sh', '-c', 'cat >&2'], input={data!r})",
                    }[kind])  # fmt: skip
                    want += data
            code = "import os, random, subprocess, sys\nchosen = lambda *fds: random.choice(fds)\n" + "\n".join(calls) + "\nNone"
            got, want = self.printed(code), want.decode("utf-8", "replace")
            if got != want:
                at = next(i for i in range(len(want) + 1) if got[i : i + 1] != want[i : i + 1])
                self.fail(f"at {at}: {got[at - 20 : at + 20]!r}, want {want[at - 20 : at + 20]!r}, of {code[:2000]}")


def any_text(chosen):
    alphabet = ["a", " ", "\n", "\r", "\t", "\0", "\x1b", "\x7f", "\x85", "ü", "漢", "🙂", "\u2028", "\ud800", "\udcff", "\uffff", "\U0010ffff"]
    return "".join(chosen.choice(alphabet) for _ in range(chosen.choice((0, 1, 5, 50, 3000))))


def any_bytes(chosen):
    return bytes(chosen.choice((10, 65, 0xC3, 0xBC, 0xF0, 0x9F, 0xFF, 0xFE, 0)) for _ in range(chosen.choice((0, 1, 5, 5000))))


class Labels(unittest.TestCase):
    """Any stream of labelled and other pieces comes apart again, however it is cut."""

    def test_any_stream(self):
        chosen = random.Random(5)
        for _ in range(300):
            mark = streams.new_mark()
            data, want = b"", {}
            for _ in range(chosen.randrange(8)):
                cell = chosen.choice((None, None, 1, 70_000))
                piece = chosen.choice((any_bytes(chosen)[:300], mark[: chosen.randrange(16)], b"\xff" * 20))
                data += piece if cell is None else mark + streams.LABEL.pack(cell, len(piece)) + piece
                want.setdefault(cell, []).append(piece)
            labels, got, at = streams.Labels(mark), {}, 0
            while at < len(data):
                step = chosen.choice((1, 3, 17, 1000))
                for cell, piece in labels.feed(data[at : at + step]):
                    got.setdefault(cell, []).append(piece)
                at += step
            got.setdefault(None, []).append(labels.rest())
            joined = [{cell: b"".join(p) for cell, p in pieces.items() if any(p)} for pieces in (want, got)]
            self.assertEqual(*joined)

    def test_forged(self):
        mark = streams.new_mark()
        for tail in (b"", b"\xff" * 8, b"\0\0\0\1\0\0\xff\xff" + b"x" * 100):
            labels = streams.Labels(mark)
            pieces = [*labels.feed(mark + tail), (None, labels.rest())]
            self.assertEqual(b"".join(piece for _, piece in pieces), mark + tail)


if __name__ == "__main__":
    unittest.main()
