"""What cells and their children print arrives whole and in order."""

import unittest

from harness import KernelTest

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

    def test_late_output_belongs_to_no_cell(self):
        self.run_ok("import threading\nthreading.Timer(0.05, lambda: print('late')).start()")
        message = self.kernel.control.receive()
        self.assertEqual((message["method"], message["params"]["text"]), ("output", "late\n"))

    def test_json_cannot_disturb_the_channel(self):
        forged = '{"jsonrpc":"2.0","id":1,"result":{}}'
        self.assertEqual(self.printed(f"print({forged!r})"), forged + "\n")
        self.assertEqual(self.value(r"import os; os.write(1, b'\x00\x00\x00\x02{}')"), "6")
        self.assert_alive()


if __name__ == "__main__":
    unittest.main()
