package local

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// ReadReport reads the first frame of a control stream, see [runtime.Report].
// It reads not a byte more.
func ReadReport(r io.Reader) (runtime.Report, error) {
	var header [4]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return nil, fmt.Errorf("read the program's report: %w", err)
	}
	size := binary.BigEndian.Uint32(header[:])
	if size > runtime.MaxReport {
		return nil, fmt.Errorf("the program's report has %d bytes, at most %d are allowed", size, runtime.MaxReport)
	}
	data := make([]byte, size)
	if _, err := io.ReadFull(r, data); err != nil {
		return nil, fmt.Errorf("read the program's report: %w", err)
	}
	report, err := parseReport(data)
	if err != nil {
		return nil, fmt.Errorf("the program's report: %w", err)
	}
	return report, nil
}

// parseReport is strict: an object of strings, with the names that were asked
// for, each at most once.
func parseReport(data []byte) (runtime.Report, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil, errors.New("not an object")
	}
	report := runtime.Report{}
	for d.More() {
		key, err1 := d.Token()
		value, err2 := d.Token()
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		name, _ := key.(string)
		text, isText := value.(string)
		_, twice := report[name]
		if !isText || twice || !slices.Contains(runtime.ReportFiles(), name) {
			return nil, fmt.Errorf("unexpected entry %.40q", name)
		}
		report[name] = text
	}
	if _, err := d.Token(); err != nil { // the closing brace
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one object")
	}
	return report, nil
}

// initialNamespaces are those that a kernel makes for its first process: all of
// Linux since 3.8 gives them these numbers. Where the numbers differ between
// versions, other facts speak: a network namespace has interfaces, a mount
// namespace has mounts.
var initialNamespaces = map[string]string{
	"cgroup": "cgroup:[4026531835]",
	"ipc":    "ipc:[4026531839]",
	"mnt":    "mnt:[4026531832]",
	"net":    "net:[4026531833]",
	"pid":    "pid:[4026531836]",
	"user":   "user:[4026531837]",
	"uts":    "uts:[4026531838]",
}

// ReportFacts are the facts that a report tells. The namespaces that a sandbox
// must not share are its kernel's initial ones. What its control group enforces
// no sandbox can see, so Cgroup is not set.
func ReportFacts(report runtime.Report) (runtime.Facts, error) {
	f, err := ParseFacts(func(name string) (string, error) {
		text, ok := report[name]
		if !ok {
			return "", &fs.PathError{Op: "report", Path: "/proc/self/" + name, Err: fs.ErrNotExist}
		}
		return text, nil
	})
	f.HostNamespaces = initialNamespaces
	f.HostUID, f.HostGID = runtime.Unlimited, runtime.Unlimited
	f.Cgroup = runtime.CgroupLimits{
		MemoryBytes: runtime.Unlimited, SwapBytes: runtime.Unlimited, PIDs: runtime.Unlimited, MilliCPUs: runtime.Unlimited,
	}
	return f, err
}
