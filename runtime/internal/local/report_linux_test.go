package local

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"os"
	"reflect"
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
	want.HostNamespaces, want.Cgroup = got.HostNamespaces, got.Cgroup
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
	} {
		if _, err := ReadReport(bytes.NewReader(stream)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := ReportFacts(runtime.Report{"status": "Uid:\t1\n"}); err == nil || !strings.Contains(err.Error(), "mountinfo") {
		t.Errorf("report without most of its files: %v", err)
	}
}
