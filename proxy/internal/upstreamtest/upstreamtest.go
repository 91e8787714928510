// Package upstreamtest is an MCP server for tests, good or bad as its mode
// says. It runs in the test binary itself:
//
//	func TestMain(m *testing.M) {
//		upstreamtest.Main()
//		os.Exit(m.Run())
//	}
package upstreamtest

import (
	"fmt"
	"os"
	"testing"
	"time"
)

// modeVar is the environment variable that makes a test binary a server.
const modeVar = "MCP_BRIDGE_TEST_UPSTREAM"

// Modes of the server.
const (
	Good      = "good"      // go-sdk's server, protocol 2026-07-28; see good.go for its tools
	Legacy    = "legacy"    // protocol 2025-11-25, written out; answers unknown methods with errors
	Silent    = "silent"    // like Legacy, but ignores unknown methods
	Strict    = "strict"    // like Legacy, but exits unless initialize comes first
	Slow      = "slow"      // go-sdk's server, that begins to read after a while and knows no initialize
	Mute      = "mute"      // never answers
	Deaf      = "deaf"      // like Legacy, but stops reading after tools/list
	Noisy     = "noisy"     // like Legacy, with garbage between its messages
	Broken    = "broken"    // like Legacy, but calls are answered with half a message
	Paged     = "paged"     // like Legacy, with 300 tools on six pages
	Endless   = "endless"   // like Legacy, with one more page of tools always
	Circular  = "circular"  // like Legacy, with a last page that points to itself
	Duplicate = "duplicate" // like Legacy, with two tools of one name and some that are unusable
	Listed    = "listed"    // like Legacy, with the tools that the file named by LISTED has, one JSON text on one line
	Odd       = "odd"       // like Legacy, with one tool whose schema is none
	Deep      = "deep"      // like Legacy, with a tool among the others that is nested very deep
	Flood     = "flood"     // like Legacy, but sends requests without end once a tool is called
	Chatter   = "chatter"   // like Legacy, but sends 5,000 notifications with each result
	Twice     = "twice"     // like Legacy, but answers everything twice, and to wrong ids
	Refusing  = "refusing"  // answers initialize with an error
	Failing   = "failing"   // writes its secrets to standard error and exits with 7
	Orphan    = "orphan"    // like Legacy, with a child that holds its output open when it exits
	Hostile   = "hostile"   // like Library, with Hidden in every text
	Library   = "library"   // like Legacy, with resources and prompts: see rawLists
	Toolless  = "toolless"  // like Legacy, but knows no tools/list
	Stubborn  = "stubborn"  // like Legacy, but ignores the end of its input and SIGTERM
)

// Env returns the environment for the test binary to be a server of that mode.
func Env(mode string) map[string]string {
	// Under -race a program sleeps for a second before it exits, unless told not to.
	return map[string]string{modeVar: mode, "GORACE": "atexit_sleep_ms=0"}
}

// Command returns the path of the test binary.
func Command(tb testing.TB) string {
	tb.Helper()
	path, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	return path
}

// Main runs the server and exits if the environment says so; else it returns.
func Main() {
	mode := os.Getenv(modeVar)
	if mode == "" {
		return
	}
	if err := run(mode); err != nil {
		fmt.Fprintln(os.Stderr, "test upstream:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func run(mode string) error {
	switch mode {
	case Good:
		return runGood()
	case Slow:
		return runSlow()
	case Mute:
		time.Sleep(time.Hour) // select {} is a deadlock to a runtime with nothing else to do
	case Failing:
		fmt.Fprintf(os.Stderr, "\x1b[31mError\x1b[0m: cannot log in with key %s at /home/someone/project/index.js:3\n", os.Getenv("API_KEY"))
		os.Exit(7)
	}
	return runRaw(mode)
}
