package local

import (
	"errors"
	"fmt"
	"os"
	"strconv"
)

// Labels on every container of ours. They say which process the container
// belongs to, precisely enough to tell a dead owner from a process that has got
// the same id since.
const (
	LabelOwner   = "io.mcp-bridge.owner"   // user id
	LabelBoot    = "io.mcp-bridge.boot"    // boot id of the kernel
	LabelPID     = "io.mcp-bridge.pid"     // process id …
	LabelPIDNS   = "io.mcp-bridge.pidns"   // … in this PID namespace
	LabelStart   = "io.mcp-bridge.start"   // the process's start, in clock ticks since boot
	LabelSandbox = "io.mcp-bridge.sandbox" // the sandbox's id
)

// An Owner is a process that sandboxes belong to.
type Owner struct {
	UID   int
	Boot  string
	PID   int
	PIDNS uint64
	Start uint64
}

// Self returns the calling process as an owner.
func Self() (Owner, error) {
	boot, err := bootID()
	if err != nil {
		return Owner{}, fmt.Errorf("read boot id: %w", err)
	}
	ns, err := pidNamespace()
	if err != nil {
		return Owner{}, fmt.Errorf("read pid namespace: %w", err)
	}
	start, _, err := processStart(os.Getpid())
	if err != nil {
		return Owner{}, fmt.Errorf("read own start time: %w", err)
	}
	return Owner{UID: os.Geteuid(), Boot: boot, PID: os.Getpid(), PIDNS: ns, Start: start}, nil
}

// Labels returns o as container labels.
func (o Owner) Labels() map[string]string {
	return map[string]string{
		LabelOwner: strconv.Itoa(o.UID),
		LabelBoot:  o.Boot,
		LabelPID:   strconv.Itoa(o.PID),
		LabelPIDNS: strconv.FormatUint(o.PIDNS, 10),
		LabelStart: strconv.FormatUint(o.Start, 10),
	}
}

// OwnerFromLabels is the inverse of Labels. It returns false unless every label
// is there and exactly as we write it.
func OwnerFromLabels(labels map[string]string) (Owner, bool) {
	uid, err1 := strconv.Atoi(labels[LabelOwner])
	pid, err2 := strconv.Atoi(labels[LabelPID])
	ns, err3 := strconv.ParseUint(labels[LabelPIDNS], 10, 64)
	start, err4 := strconv.ParseUint(labels[LabelStart], 10, 64)
	o := Owner{UID: uid, Boot: labels[LabelBoot], PID: pid, PIDNS: ns, Start: start}
	if errors.Join(err1, err2, err3, err4) != nil || o.Boot == "" || pid <= 0 {
		return Owner{}, false
	}
	for name, value := range o.Labels() {
		if labels[name] != value {
			return Owner{}, false
		}
	}
	return o, true
}

// Outlived reports whether other is certainly dead, judged by o: the same
// user's, and either from before the last boot or from o's own PID namespace
// without such a process. When in doubt it is false.
func (o Owner) Outlived(other Owner) bool {
	if other.UID != o.UID {
		return false
	}
	if other.Boot != o.Boot {
		return true
	}
	if other.PIDNS != o.PIDNS {
		return false
	}
	start, alive, err := processStart(other.PID)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return true
	case err != nil:
		return false
	}
	return start != other.Start || !alive
}
