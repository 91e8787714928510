package runtime

import (
	"fmt"
	"slices"
)

// A Transport is how a sandbox's two streams cross its border. The engine tells
// the program by an argument that it appends to [Spec.Command].
type Transport string

const (
	// TransportAuto is the engine's choice.
	TransportAuto Transport = "auto"

	// TransportSocket is a unix socket in a directory that is mounted
	// read-only. The last argument is "socket:" and [SocketPath]. The program
	// connects twice: the first connection becomes [Sandbox.Control], the
	// second [Sandbox.Callback]; after the second the way in is gone. Its
	// files are below [FilesDir].
	TransportSocket Transport = "socket"

	// TransportFD is two inherited descriptors. The last argument is
	// "fd:CONTROL,CALLBACK", with their numbers. The program's files are below
	// [FilesDir]; its first frame on the control stream is a [Report].
	TransportFD Transport = "fd"

	// TransportStdio is both streams on the program's stdin and stdout, in the
	// frames of package runtime/internal/mux; for engines on another kernel,
	// where neither a socket nor a mount of ours can cross. The last argument
	// is "stdio". The program first reads its files from stdin: 4 bytes of
	// length, big-endian, and that much of a zip archive, which may be empty.
	// All that follows, and all that it writes, are mux frames. Its first
	// frame on the control stream is a [Report].
	TransportStdio Transport = "stdio"
)

// ParseTransport understands what a user may write.
func ParseTransport(text string) (Transport, error) {
	switch t := Transport(text); t {
	case TransportAuto, TransportSocket, TransportFD, TransportStdio:
		return t, nil
	}
	return "", fmt.Errorf("unknown transport %q: want auto, socket, fd or stdio", text)
}

// CheckTransport returns an error if the engine does not have the transport that
// was asked for. Every engine has auto.
func CheckTransport(engine string, asked Transport, has ...Transport) error {
	if asked == "" || asked == TransportAuto || slices.Contains(has, asked) {
		return nil
	}
	err := &transportError{engine: engine, asked: asked, has: has}
	return &Error{Engine: engine, Op: "open engine", Err: err, Hint: "use --transport " + err.others()}
}

// A transportError is about a setting, and not about the hardening; another
// engine may do as asked.
type transportError struct {
	engine string
	asked  Transport
	has    []Transport
}

func (e *transportError) Error() string {
	return e.engine + " has no transport " + string(e.asked) + ": use " + e.others()
}

func (e *transportError) others() string {
	text := string(TransportAuto)
	for i, t := range e.has {
		if i == len(e.has)-1 {
			text += " or " + string(t)
		} else {
			text += ", " + string(t)
		}
	}
	return text
}

// A Report is what the program says of itself before it is given anything to
// do, for engines whose processes this kernel does not show: a frame of 4 bytes
// of length, big-endian, and one JSON object, from the names of files below
// /proc/self to what is in them. "ns/net" and the like are symbolic links; "version" is
// /proc/version; a file that cannot be read is not there.
type Report map[string]string

// ReportFiles are the files of a report.
func ReportFiles() []string {
	return []string{
		"status", "uid_map", "gid_map", "mountinfo", "limits", "net/dev", "environ", "cgroup", "version",
		"ns/cgroup", "ns/ipc", "ns/mnt", "ns/net", "ns/pid", "ns/user", "ns/uts",
	}
}

// MaxReport bounds a report's frame in bytes.
const MaxReport = 1 << 20
