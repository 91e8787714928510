package bridge

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/bridge/internal/store"
)

// began is the area that has, of each saved session, the number of the latest
// cell that has begun: a bridge that is killed saves nothing any more, and the
// next one tells which cells are not in what was saved.
const (
	beganEntries = 4 * savedEntries
	beganBytes   = 64
)

func openBegan(st *store.Store) *store.Area {
	return st.Area("began", store.Limits{Entries: beganEntries, EntryBytes: beganBytes, TotalBytes: beganEntries * beganBytes})
}

// noteBegan notes that the running cell has begun, beside it: a cell does not
// wait for a disk. It needs the turn.
func (s *session) noteBegan() {
	h := s.sleep
	if h == nil || h.temporary {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.off {
		return
	}
	h.begun = s.cell
	if h.noting {
		return // it will see the new number
	}
	h.noting = true
	s.wg.Go(h.writeBegan)
}

func (h *hibernation) writeBegan() {
	written := 0
	for {
		h.mu.Lock()
		cell := h.begun
		if cell == written || h.off {
			h.noting = false
			h.mu.Unlock()
			return
		}
		h.mu.Unlock()
		err := h.began.Put(h.key, mustJSON(cell))
		if errors.Is(err, store.ErrFull) && h.deleteOldest(h.began) {
			continue
		}
		written = cell // or it cannot be: a notice is no reason for trouble
	}
}

// latestBegan returns the number of the latest cell that an earlier bridge has
// begun, or 0.
func (h *hibernation) latestBegan() int {
	data, err := h.began.Get(h.key)
	var cell int
	if err != nil || json.Unmarshal(data, &cell) != nil || cell < 0 || cell > maxCell {
		return 0
	}
	return cell
}

// gapText says which cells are not in what was saved, or not wholly; "" if all
// are.
func gapText(info savedInfo, latest int) string {
	var parts []string
	if info.Interrupted > 0 {
		parts = append(parts, fmt.Sprintf("cell %d was interrupted then", info.Interrupted))
	}
	switch first := info.Cell + 1; {
	case latest < first:
	case latest == first:
		parts = append(parts, fmt.Sprintf("cell %d was not saved", first))
	case latest == first+1:
		parts = append(parts, fmt.Sprintf("cells %d and %d were not saved", first, latest))
	default:
		parts = append(parts, fmt.Sprintf("cells %d to %d were not saved", first, latest))
	}
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf(", as it was after cell %d; %s", info.Cell, strings.Join(parts, "; "))
}
