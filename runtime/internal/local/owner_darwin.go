package local

import (
	"os"

	"golang.org/x/sys/unix"
)

func bootID() (string, error) { return unix.Sysctl("kern.bootsessionuuid") }

// pidNamespace returns 0: there is but one.
func pidNamespace() (uint64, error) { return 0, nil }

// processStart returns a process's start time in microseconds of the clock, and
// whether it still runs.
func processStart(pid int) (start uint64, alive bool, err error) {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || int(info.Proc.P_pid) != pid { // the answer for no process is empty
		return 0, false, os.ErrNotExist
	}
	const zombie = 5 // SZOMB
	began := info.Proc.P_starttime
	return uint64(began.Sec)*1_000_000 + uint64(began.Usec), info.Proc.P_stat != zombie, nil //nolint:gosec // times after 1970
}
