package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

// resetCode is the code of a call that works even if the session's Python does
// not any more.
const resetCode = "session.reset()"

// sessionReset answers session/reset, after which the REPL ends itself.
func (s *session) sessionReset(context.Context, json.RawMessage) (json.RawMessage, error) {
	s.mu.Lock()
	if s.running != nil {
		s.running.reset = true
	}
	s.granted = nil // a new session is asked anew
	s.mu.Unlock()
	return json.RawMessage("{}"), s.forgetSaved(false)
}

// errReset is why a sandbox is gone after resetCode.
var errReset = errors.New("the session was reset")

// isReset reports whether a cell with resetCode did what it was to.
func (s *session) isReset(e *execution, o outcome) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	done := e.reset && o.Lost != ""
	e.reset = true // one way or the other
	return done
}

// renew removes a sandbox whose folders of the host are not as they are now:
// what begins anew sees them so. It needs the turn.
func (s *session) renew(ctx context.Context) {
	k := s.liveKernel()
	if k == nil || !k.outdated(ctx) {
		return
	}
	k.close()
	s.upload.drop()
	s.dropKernel()
}

// discardSaved deletes what was saved before it is restored. It needs the turn.
func (s *session) discardSaved() error {
	h := s.hibernate()
	if h == nil {
		return nil
	}
	h.pending = ""
	if err := h.discard(); err != nil {
		return s.bridge.stateError(err)
	}
	return nil
}

// sessionForget answers session/forget: what was saved is deleted, and nothing
// more is saved.
func (s *session) sessionForget(context.Context, json.RawMessage) (json.RawMessage, error) {
	return json.RawMessage("{}"), s.forgetSaved(true)
}

// forgetSaved deletes what was saved. A cell runs, which has the turn.
func (s *session) forgetSaved(off bool) error {
	h := s.sleeping()
	if h == nil {
		return nil
	}
	if err := h.discard(); err != nil {
		return s.bridge.stateError(err)
	}
	if off {
		h.mu.Lock()
		h.off = true
		h.mu.Unlock()
	}
	return nil
}

func (s *session) sleeping() *hibernation {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sleep
}

// sessionInfo answers session/info.
func (s *session) sessionInfo(context.Context, json.RawMessage) (json.RawMessage, error) {
	s.mu.Lock()
	info := map[string]any{"name": s.name, "cells": s.cell, "started": nil, "memory_limit": nil, "kept": "no", "saved": nil}
	if k := s.kernel; k != nil {
		info["started"], info["memory_limit"] = k.started.Unix(), k.memory
	}
	h := s.sleep
	s.mu.Unlock()
	if h == nil {
		return mustJSON(info), nil
	}
	known, off := h.status()
	switch {
	case off:
	case h.temporary:
		info["kept"] = "until the bridge ends"
	default:
		info["kept"] = "yes"
	}
	if !known.Time.IsZero() {
		info["saved"] = map[string]any{
			"time": known.Time.Format(time.RFC3339), "bytes": known.Size, "names": known.Names, "cell": known.Cell,
		}
	}
	return mustJSON(info), nil
}
