package local

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

func frame(t *testing.T, report any) []byte {
	t.Helper()
	data, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(data))), data...)
}

// TestReport reads a report of this very process, of which the host's /proc must
// say the same.
func TestReport(t *testing.T) {
	said := runtime.Report{}
	for _, name := range runtime.ReportFiles() {
		dir := "/proc/self"
		if name == "version" {
			dir = "/proc"
		}
		text, err := procSource(dir)(name)
		if err != nil {
			t.Fatal(err)
		}
		said[name] = text
	}
	stream := bytes.NewReader(append(frame(t, said), "more"...))
	report, err := ReadReport(stream)
	if err != nil {
		t.Fatal(err)
	}
	if rest, _ := io.ReadAll(stream); string(rest) != "more" {
		t.Errorf("after the report there is %q", rest)
	}
	got, err := ReportFacts(report)
	if err != nil {
		t.Fatal(err)
	}
	want, err := ReadFacts(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if want.HostUID != int64(os.Getuid()) || want.HostGID != int64(os.Getgid()) || got.HostUID != runtime.Unlimited {
		t.Errorf("ids on the host: %d:%d, of the report: %d", want.HostUID, want.HostGID, got.HostUID)
	}
	if !slices.Contains(want.Devices, "null") {
		t.Errorf("devices: %v", want.Devices)
	}
	want.HostNamespaces, want.Cgroup, want.Devices = got.HostNamespaces, got.Cgroup, nil // no report has these
	want.HostUID, want.HostGID = got.HostUID, got.HostGID
	if !reflect.DeepEqual(got, want) {
		t.Errorf("facts of the report: %+v\nof /proc: %+v", got, want)
	}
	if got.Cgroup.MemoryBytes != runtime.Unlimited {
		t.Error("a report vouches for a memory limit")
	}
}

func TestReportRefuses(t *testing.T) {
	for name, stream := range map[string][]byte{
		"nothing":      nil,
		"cut short":    frame(t, runtime.Report{"status": "x"})[:9],
		"huge":         binary.BigEndian.AppendUint32(nil, runtime.MaxReport+1),
		"no JSON":      append(binary.BigEndian.AppendUint32(nil, 3), "abc"...),
		"no object":    frame(t, []string{"x"}),
		"other types":  frame(t, map[string]int{"status": 1}),
		"unknown file": frame(t, runtime.Report{"shadow": "x"}),
		"twice":        append(binary.BigEndian.AppendUint32(nil, 26), `{"status":"","status":"x"}`...),
		"two":          append(binary.BigEndian.AppendUint32(nil, 4), "{}{}"...),
		"null":         append(binary.BigEndian.AppendUint32(nil, 4), "null"...),
	} {
		if _, err := ReadReport(bytes.NewReader(stream)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := ReportFacts(runtime.Report{"status": "Uid:\t1\n"}); err == nil || !strings.Contains(err.Error(), "mountinfo") {
		t.Errorf("report without most of its files: %v", err)
	}
}

// In a user namespace of its own a process sees its ids as they are there, which
// is not so for those who look from outside.
func TestReportedIDs(t *testing.T) {
	const status = "Uid:\t1234 1234 1234 1234\nGid:\t1234 1234 1234 1234\nGroups:\t1234\n" +
		"CapInh:\t0\nCapPrm:\t0\nCapEff:\t0\nCapBnd:\t0\nCapAmb:\t0\nNoNewPrivs:\t1\nSeccomp:\t2\n"
	const idMap = "         0 1895825408      65536\n"
	f, err := ReportFacts(runtime.Report{"status": status, "uid_map": idMap, "gid_map": idMap})
	if f.UID != 1234 || f.GID != 1234 || len(f.Groups) != 1 || f.Groups[0] != 1234 {
		t.Errorf("ids are %d, %d, %v; %v", f.UID, f.GID, f.Groups, err)
	}
}

func FuzzReadReport(f *testing.F) {
	f.Add([]byte(`{"status":"Uid:\t1 1 1 1\n","mountinfo":"1 0 0:1 / / ro - a b c"}`))
	f.Fuzz(func(t *testing.T, payload []byte) {
		report, err := ReadReport(bytes.NewReader(append(binary.BigEndian.AppendUint32(nil, uint32(len(payload))), payload...)))
		if err != nil {
			return
		}
		ReportFacts(report) // does not panic
		var again map[string]string
		if err := json.Unmarshal(payload, &again); err != nil || !maps.Equal(report, again) {
			t.Errorf("%q was read as %q, %v", payload, report, err)
		}
	})
}
