package local

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"
)

// bootID returns the machine's id: a process's start time, by the clock, tells
// one boot from another.
func bootID() (string, error) {
	key, err := registry.OpenKey(registry.LOCAL_MACHINE, `SOFTWARE\Microsoft\Cryptography`, registry.QUERY_VALUE|registry.WOW64_64KEY)
	if err != nil {
		return "", err
	}
	defer key.Close()
	id, _, err := key.GetStringValue("MachineGuid")
	return id, err
}

// pidNamespace returns 0: there is but one.
func pidNamespace() (uint64, error) { return 0, nil }

// processStart returns a process's start time in ticks of 100 ns of the clock,
// and whether it still runs.
func processStart(pid int) (start uint64, alive bool, err error) {
	handle, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION|windows.SYNCHRONIZE, false, uint32(pid)) //nolint:gosec // ids are 32 bits wide
	if errors.Is(err, windows.ERROR_INVALID_PARAMETER) {
		return 0, false, os.ErrNotExist
	}
	if err != nil {
		return 0, false, err
	}
	defer func() { _ = windows.CloseHandle(handle) }()
	var created, exited, kernel, user windows.Filetime
	if err := windows.GetProcessTimes(handle, &created, &exited, &kernel, &user); err != nil {
		return 0, false, err
	}
	event, err := windows.WaitForSingleObject(handle, 0)
	return uint64(created.HighDateTime)<<32 | uint64(created.LowDateTime), event == uint32(windows.WAIT_TIMEOUT), err
}
