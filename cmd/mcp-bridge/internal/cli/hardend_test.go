package cli

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// What cannot be closed does not keep the program for ever.
func TestCloseThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		hanging, code := make(chan struct{}), -1
		began := time.Now()
		closeWithin(closeLimit, func() { <-hanging }, slog.New(slog.NewTextHandler(&log, nil)), func(c int) {
			code = c
			close(hanging) // the program is gone
		})
		synctest.Wait()
		if code != exitFailure || time.Since(began) != closeLimit || strings.Count(log.String(), "takes too long") != 1 {
			t.Errorf("exit %d after %v: %s", code, time.Since(began), &log)
		}
	})
}

func TestEndInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		exit := func(int) { t.Error("the program was ended") }
		log := slog.New(slog.DiscardHandler)
		closeWithin(closeLimit, func() { time.Sleep(closeLimit - 1) }, log, exit)
		ctx, cancel := context.WithCancel(t.Context())
		over := endWithin(endLimit, ctx.Done(), log, exit)
		time.Sleep(time.Hour) // it serves
		cancel()
		time.Sleep(endLimit - 1)
		over()
		time.Sleep(time.Hour)
	})
}
