package main_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

// alphabet is what texts are made of that are printed: all kinds of characters
// but those that draw over a line, which are not shown as they came.
var alphabet = []rune("ab \n\n\t\x00\x01\x7f\u0085ü漢🙂\u2028\u202e\ufeff\uffff\U0010ffff'\"\\{}[]")

// TestAnyBytesComeBack prints random text, and bytes that are none, by every way
// there is, and wants it shown as it was printed and kept in out[n].
func TestAnyBytesComeBack(t *testing.T) {
	t.Parallel()
	c := connect(t, setup{})
	c.run(t, "import os, subprocess, sys")
	random := rand.New(rand.NewPCG(4, 2)) // the same texts each time
	for cell := 2; cell < 80; cell += 2 {
		var code strings.Builder
		var want []byte
		for range 1 + random.IntN(8) {
			data := piece(random)
			if random.IntN(3) == 0 { // print takes text only
				data = []byte(strings.ToValidUTF8(string(data), "?"))
				fmt.Fprintf(&code, "print(bytes.fromhex('%x').decode(), end='', file=sys.std%s, flush=True)\n", data, []string{"out", "err"}[random.IntN(2)])
			} else {
				ways := []string{
					"sys.stdout.buffer.write(bytes.fromhex('%x')); sys.stdout.flush()\n",
					"sys.stderr.buffer.write(bytes.fromhex('%x')); sys.stderr.flush()\n",
					"os.write(1, bytes.fromhex('%x'))\n",
					"subprocess.run(['cat'], input=bytes.fromhex('%x'))\n",
				}
				fmt.Fprintf(&code, ways[random.IntN(len(ways))], data)
			}
			want = append(want, data...)
		}
		got := c.run(t, code.String()+"None")
		text := decoded(want)
		if shown := strings.TrimSuffix(text, "\n"); got != shown && (shown != "" || got != "(no output)") {
			t.Errorf("cell %d shows %q\nwant %q, of\n%s", cell, got, shown, code.String())
		}
		c.wants(t, fmt.Sprintf("out[%d] == bytes.fromhex('%x').decode('utf-8', 'replace')", cell, want), "True")
	}
}

// piece is a random text, or bytes that are none.
func piece(random *rand.Rand) []byte {
	var b []byte
	for range []int{0, 1, 3, 40, 900}[random.IntN(5)] {
		if random.IntN(60) == 0 {
			b = append(b, []byte{0xff, 0xfe, 0xc3, 0xf0, 0x80}[random.IntN(5)])
		} else {
			b = utf8.AppendRune(b, alphabet[random.IntN(len(alphabet))])
		}
	}
	return b
}

// decoded is what Python's decode('utf-8', 'replace') makes of data: a replacement
// for each longest part of a character, and for each byte that can be in none.
func decoded(data []byte) string {
	var b strings.Builder
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		if r == utf8.RuneError && size == 1 && len(data) > 1 {
			size = truncated(data)
		}
		b.WriteRune(r)
		data = data[size:]
	}
	return b.String()
}

// truncated is how many bytes at the start of data, which are no character, could
// have become one.
func truncated(data []byte) int {
	for n := min(3, len(data)); n > 1; n-- {
		if data[0] >= 0xc2 && !utf8.FullRune(data[:n]) {
			return n
		}
	}
	return 1
}
