package store_test

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/bridge/internal/store"
)

func TestHold(t *testing.T) {
	dir := t.TempDir() + "/state"
	s, err := store.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	a := s.Area("sessions", store.Limits{Entries: 2, EntryBytes: 10, TotalBytes: 1000})
	h, err := a.TryHold("x")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.TryHold("x"); !errors.Is(err, store.ErrBusy) {
		t.Errorf("held twice: %v", err)
	}
	if err := a.Put("x", []byte("1")); err != nil {
		t.Errorf("the holder cannot write: %v", err)
	}
	other, err := a.TryHold("X")
	if err != nil {
		t.Fatalf("another key: %v", err)
	}
	if entries, err := a.List(); err != nil || len(entries) != 1 {
		t.Errorf("holds count as entries: %v, %v", entries, err)
	}
	if err := errors.Join(h.Close(), other.Close()); err != nil {
		t.Error(err)
	}
	if files, err := os.ReadDir(dir + "/sessions"); err != nil || len(files) > 2 {
		t.Errorf("files are left: %v, %v", files, err)
	}
	again, err := a.TryHold("x")
	if err != nil {
		t.Fatalf("not free again: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

// However many want it, one has it at a time.
func TestHoldIsExclusive(t *testing.T) {
	s, err := store.Open(t.TempDir() + "/state")
	if err != nil {
		t.Fatal(err)
	}
	a := s.Area("sessions", store.Limits{Entries: 1, EntryBytes: 1, TotalBytes: 1})
	var holders, taken atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 300 {
				h, err := a.TryHold("key")
				if errors.Is(err, store.ErrBusy) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if holders.Add(1) != 1 {
					t.Error("two have it")
				}
				taken.Add(1)
				holders.Add(-1)
				if err := h.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if taken.Load() == 0 {
		t.Error("nobody ever had it")
	}
}
