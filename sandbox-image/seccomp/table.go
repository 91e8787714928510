package seccomp

import (
	"bufio"
	"bytes"
	_ "embed"
	"fmt"
)

// The kernel's system calls by name and number, as golang.org/x/sys/unix has
// them (v0.46.0, from Linux 7.0's headers); a test compares them with the
// version in go.mod.
var (
	//go:embed amd64.txt
	amd64 []byte
	//go:embed arm64.txt
	arm64 []byte
)

// Architectures are those that there are tables for, by their names in Go.
func Architectures() []string { return []string{"amd64", "arm64"} }

// Table returns the numbers of an architecture's system calls.
func Table(arch string) (map[string]int, error) {
	data, ok := map[string][]byte{"amd64": amd64, "arm64": arm64}[arch]
	if !ok {
		return nil, fmt.Errorf("no table of system calls for %s", arch)
	}
	numbers := map[string]int{}
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		var name string
		var number int
		if _, err := fmt.Sscan(lines.Text(), &name, &number); err != nil {
			return nil, fmt.Errorf("%s: %q: %w", arch, lines.Text(), err)
		}
		numbers[name] = number
	}
	return numbers, lines.Err()
}
