package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge"
	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// byteSize is a number of bytes with an optional unit of 1024: 512m, 2g, 1GiB.
type byteSize int64

func (b *byteSize) Set(text string) error {
	number := strings.TrimRight(strings.ToLower(text), "kmgib")
	unit := strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(text)[len(number):], "b"), "i")
	shift := slices.Index([]string{"", "k", "m", "g"}, unit)
	n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
	if err != nil || shift < 0 || n <= 0 || n > 1<<40>>(10*shift) {
		return fmt.Errorf("%q is not a size such as 512m or 2g", text)
	}
	*b = byteSize(n << (10 * shift))
	return nil
}

func (b *byteSize) String() string {
	if *b%(1<<20) == 0 {
		return fmt.Sprintf("%dm", *b>>20)
	}
	return strconv.FormatInt(int64(*b), 10)
}

// Type names the value in help texts.
func (*byteSize) Type() string { return "size" }

// sizeOrNone is a byteSize that may be 0.
type sizeOrNone byteSize

func (s *sizeOrNone) Set(text string) error {
	if n, err := strconv.ParseFloat(text, 64); err == nil && n == 0 {
		*s = 0
		return nil
	}
	return (*byteSize)(s).Set(text)
}

func (s *sizeOrNone) String() string { return (*byteSize)(s).String() }

// Type names the value in help texts.
func (*sizeOrNone) Type() string { return "size" }

// seconds is a duration, written as a number of seconds or as 90s, 2m.
type seconds time.Duration

func (s *seconds) Set(text string) error {
	d, err := time.ParseDuration(text)
	if n, plain := strconv.ParseFloat(text, 64); plain == nil {
		d, err = time.Duration(n*float64(time.Second)), nil
	}
	if err != nil || d < time.Millisecond || d > 24*time.Hour {
		return fmt.Errorf("%q is not a number of seconds between 0.001 and 86400", text)
	}
	*s = seconds(d)
	return nil
}

func (s *seconds) String() string {
	return strconv.FormatFloat(time.Duration(*s).Seconds(), 'f', -1, 64)
}

// Type names the value in help texts.
func (*seconds) Type() string { return "seconds" }

// secondsOrNever is seconds, of which 0 means for ever.
type secondsOrNever time.Duration

func (s *secondsOrNever) Set(text string) error {
	if n, err := strconv.ParseFloat(text, 64); err == nil && n == 0 {
		*s = 0
		return nil
	}
	return (*seconds)(s).Set(text)
}

func (s *secondsOrNever) String() string { return (*seconds)(s).String() }

// Type names the value in help texts.
func (*secondsOrNever) Type() string { return "seconds" }

// transport is a runtime.Transport as a flag.
type transport runtime.Transport

func (t *transport) Set(text string) error {
	parsed, err := runtime.ParseTransport(text)
	if err != nil {
		return err
	}
	*t = transport(parsed)
	return nil
}

func (t *transport) String() string { return string(*t) }

// Type names the value in help texts.
func (*transport) Type() string { return "name" }

// outputMode is a bridge.Mode as a flag.
type outputMode bridge.Mode

func (m *outputMode) Set(text string) error {
	parsed, err := bridge.ParseMode(text)
	if err != nil {
		return err
	}
	*m = outputMode(parsed)
	return nil
}

func (m *outputMode) String() string { return string(*m) }

// Type names the value in help texts.
func (*outputMode) Type() string { return "name" }

// anyOf lists names to choose from.
func anyOf(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}
