package local

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func bootID() (string, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(boot)), err
}

func pidNamespace() (uint64, error) {
	var ns unix.Stat_t
	err := unix.Stat("/proc/self/ns/pid", &ns)
	return ns.Ino, err
}

// processStart returns a process's start time in clock ticks since boot, and
// whether it still runs.
func processStart(pid int) (start uint64, alive bool, err error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, unix.ESRCH) {
		err = os.ErrNotExist
	}
	if err != nil {
		return 0, false, err
	}
	// The command's name, in parentheses, may hold anything, so count from its end.
	_, rest, ok := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')')+1:]), " ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 20 {
		return 0, false, errors.New("unexpected form of /proc/pid/stat")
	}
	start, err = strconv.ParseUint(fields[19], 10, 64)
	state := fields[0][0]
	return start, state != 'Z' && state != 'X', err
}
