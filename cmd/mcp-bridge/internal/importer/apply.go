package importer

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	journalName = "journal.json"
	keptImports = 10 // that can be looked at afterwards; only the last one is taken back
)

// A journal says how to take an import back. It and the copies that it names are
// written before anything else is.
type journal struct {
	Time  time.Time
	Files []journalFile
}

type journalFile struct {
	Path   string
	Create bool   // there was none
	Backup string // the name of the copy of it
	Mode   fs.FileMode
	Before string // hash of what it was
	After  string // hash of what it is since
	Taken  []taken
	Bridge []string
}

// An applier does the steps of an import. before is called ahead of each of
// them and may stop it, as a crash would.
type applier struct {
	before func(step string) error
}

func (a applier) step(name string) error {
	if a.before == nil {
		return nil
	}
	return a.before(name)
}

// Apply does what the plan says. Copies of the files that it changes are below
// the state folder first. Whenever it ends, and however, no server is lost:
// first the folder gets the servers, and then the clients' files lose them.
func (p *Plan) Apply() error { return p.apply(applier{}) }

func (p *Plan) apply(a applier) error {
	if len(p.Changes) == 0 {
		return nil
	}
	if p.opts.StateDir == "" {
		return errors.New("there is no folder for copies of what is changed")
	}
	dir := filepath.Join(p.opts.StateDir, "imports", time.Now().UTC().Format("20060102T150405.000Z")+"-"+rand.Text()[:6])
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	log := journal{Time: time.Now()}
	for i, change := range p.Changes {
		file := journalFile{Path: change.Path, Create: change.Create, Mode: change.Mode, Before: sum(change.before), After: sum(change.after), Taken: change.taken, Bridge: change.bridge}
		if !change.Create {
			file.Backup = fmt.Sprintf("%d%s", i, filepath.Ext(change.Path))
			if err := a.write(dir, file.Backup, change.before); err != nil {
				return err
			}
		}
		log.Files = append(log.Files, file)
	}
	text, err := json.MarshalIndent(log, "", "  ")
	if err != nil {
		return err
	}
	if err := a.write(dir, journalName, text); err != nil {
		return err
	}
	if err := os.MkdirAll(p.opts.Dir, 0o700); err != nil {
		return err
	}
	for _, change := range p.Changes {
		if err := a.step("replace " + filepath.Base(change.Path)); err != nil {
			return err
		}
		if err := Replace(change.Path, change.before, change.after, change.Mode); err != nil {
			return err
		}
	}
	prune(filepath.Dir(dir))
	return nil
}

func (a applier) write(dir, name string, data []byte) error {
	if err := a.step("write " + name); err != nil {
		return err
	}
	return Replace(filepath.Join(dir, name), nil, data, 0o600)
}

// prune removes the oldest imports: their copies may hold secrets.
func prune(dir string) {
	entries, err := os.ReadDir(dir) // sorted by name, and so by time
	for err == nil && len(entries) > keptImports {
		_ = os.RemoveAll(filepath.Join(dir, entries[0].Name()))
		entries = entries[1:]
	}
}

// ErrNothing is the error of Undo where there is no import.
var ErrNothing = errors.New("there is no import to take back")

// A ChangedError says which files Undo would have overwritten.
type ChangedError struct{ Files []string }

func (e *ChangedError) Error() string {
	return strings.Join(e.Files, ", ") + ": changed since the import"
}

// Undo takes the last import back, and returns the files that it restored or
// removed. In a client's file that was changed since only the edit is taken back.
// Unless force is set it changes nothing if that cannot be done; with it, what they are now is kept in the folder that it returns.
func Undo(stateDir string, force bool) (files []string, keptIn string, err error) {
	return undo(stateDir, force, applier{})
}

func undo(stateDir string, force bool, a applier) (files []string, keptIn string, err error) {
	dir, log, err := lastImport(filepath.Join(stateDir, "imports"))
	if err != nil {
		return nil, "", err
	}
	current, merged := make([][]byte, len(log.Files)), make([][]byte, len(log.Files))
	var changed []string
	for i, file := range log.Files {
		current[i], err = read(file.Path)
		switch {
		case errors.Is(err, fs.ErrNotExist) && file.Create:
		case err == nil && (sum(current[i]) == file.After || !file.Create && sum(current[i]) == file.Before):
		case err == nil && !force && takenBack(dir, file, current[i], &merged[i]):
		case err == nil || errors.Is(err, fs.ErrNotExist):
			changed = append(changed, file.Path)
		default:
			return nil, "", err
		}
	}
	if len(changed) > 0 && !force {
		return nil, "", &ChangedError{changed}
	}
	for i, file := range slices.Backward(log.Files) { // the clients' files first
		if slices.Contains(changed, file.Path) && current[i] != nil {
			if err := a.write(dir, fmt.Sprintf("changed-%d%s", i, filepath.Ext(file.Path)), current[i]); err != nil && !errors.Is(err, ErrChanged) {
				return files, "", err
			}
			keptIn = dir
		}
		done, err := restore(dir, file, current[i], merged[i], a)
		if err != nil {
			return files, keptIn, err
		}
		if done {
			files = append(files, file.Path)
		}
	}
	if err := a.step("forget"); err != nil {
		return files, keptIn, err
	}
	if keptIn != "" {
		return files, keptIn, os.Rename(filepath.Join(dir, journalName), filepath.Join(dir, "undone.json"))
	}
	return files, "", os.RemoveAll(dir)
}

// restore makes one file what it was, and reports whether it was not.
// merged is what to make it instead, if it is not nil.
func restore(dir string, file journalFile, current, merged []byte, a applier) (bool, error) {
	if err := a.step("restore " + filepath.Base(file.Path)); err != nil {
		return false, err
	}
	if merged != nil {
		if bytes.Equal(current, merged) {
			return false, nil
		}
		return true, Replace(file.Path, current, merged, file.Mode)
	}
	if file.Create {
		if current == nil {
			return false, nil
		}
		return true, os.Remove(file.Path)
	}
	if current != nil && sum(current) == file.Before {
		return false, nil
	}
	backup, err := read(filepath.Join(dir, file.Backup))
	if err != nil {
		return false, err
	}
	if sum(backup) != file.Before {
		return false, fmt.Errorf("the copy of %s in %s is damaged", file.Path, dir)
	}
	return true, Replace(file.Path, current, backup, file.Mode)
}

// lastImport is the newest import that was not taken back.
func lastImport(dir string) (string, *journal, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", nil, err
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(b.Name(), a.Name()) })
	for _, e := range entries {
		text, err := read(filepath.Join(dir, e.Name(), journalName))
		if errors.Is(err, fs.ErrNotExist) {
			continue // ended before it changed anything, or taken back
		}
		var log journal
		if err == nil {
			err = json.Unmarshal(text, &log)
		}
		if err != nil {
			return "", nil, fmt.Errorf("%s: %w", filepath.Join(dir, e.Name(), journalName), err)
		}
		return filepath.Join(dir, e.Name()), &log, nil
	}
	return "", nil, ErrNothing
}
