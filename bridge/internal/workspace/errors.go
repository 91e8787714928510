package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// A Kind is what is wrong.
type Kind string

// The kinds.
const (
	BadName  Kind = "name"      // no file can have it
	OverFull Kind = "quota"     // the quota is exceeded
	NoSpace  Kind = "space"     // the host's disk is full
	NotFound Kind = "not_found" // there is no such file
	Refused  Kind = "refused"   // it cannot be done
)

// An Error may be told to a sandbox: it has no paths of the host in it.
type Error struct {
	Kind Kind
	Text string
}

func (e *Error) Error() string { return e.Text }

func notFound(path string) *Error {
	return &Error{Kind: NotFound, Text: fmt.Sprintf("there is no file %.200q in the workspace", path)}
}

// failed is the error of what the operating system has refused. The log has
// the rest.
func (s *Store) failed(op, path string, err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	s.log.Warn("workspace", "op", op, "path", path, "error", err)
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return &Error{Kind: NoSpace, Text: "there is no space left on the host's disk"}
	case errors.Is(err, fs.ErrExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EISDIR), errors.Is(err, syscall.ENOTEMPTY):
		return &Error{Kind: Refused, Text: "a file and a folder would have the same name"}
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return &Error{Kind: Refused, Text: "the host does not permit it"}
	}
	return &Error{Kind: Refused, Text: "the host cannot " + op + " it"}
}
