package bench

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// sandboxes are the processes of a bridge's sandboxes, as this kernel has them.
func (br *bridge) sandboxes(b *testing.B) [][]int {
	b.Helper()
	var firsts []int
	if cli := br.engine.cli; cli != "" {
		firsts = containers(b, cli, br.pid)
	} else {
		firsts = children(br.pid)
	}
	var all [][]int
	for _, pid := range firsts {
		all = append(all, family(pid))
	}
	return all
}

// containers are the first processes of a bridge's running containers.
func containers(b *testing.B, cli string, pid int) []int {
	b.Helper()
	out, err := exec.Command(cli, "ps", "--quiet", "--filter", fmt.Sprintf("label=io.mcp-bridge.pid=%d", pid)).Output()
	if err != nil {
		b.Fatalf("%s ps: %v", cli, err)
	}
	ids := strings.Fields(string(out))
	if len(ids) == 0 {
		return nil
	}
	out, _ = exec.Command(cli, append([]string{"inspect", "--format", "{{.State.Pid}}"}, ids...)...).Output() // one may be gone
	var pids []int
	for field := range strings.FieldsSeq(string(out)) {
		if pid, err := strconv.Atoi(field); err == nil && pid > 0 {
			pids = append(pids, pid)
		}
	}
	return pids
}

// family is a process and all that descend from it.
func family(pid int) []int {
	all := []int{pid}
	for _, child := range children(pid) {
		all = append(all, family(child)...)
	}
	return all
}

func children(pid int) []int {
	var all []int
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, task := range tasks {
		list, _ := os.ReadFile(task)
		for field := range strings.FieldsSeq(string(list)) {
			if child, err := strconv.Atoi(field); err == nil {
				all = append(all, child)
			}
		}
	}
	return all
}

// pss is a process's proportional set size in KiB.
func pss(b *testing.B, pid int) int64 {
	b.Helper()
	file, err := os.Open(filepath.Join("/proc", strconv.Itoa(pid), "smaps_rollup"))
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); fields[0] == "Pss:" {
			n, err := strconv.ParseInt(fields[1], 10, 64)
			if err != nil {
				b.Fatal(err)
			}
			return n
		}
	}
	b.Fatalf("no Pss of process %d", pid)
	return 0
}
