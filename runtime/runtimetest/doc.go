// Package runtimetest is the contract of [runtime.Engine] in executable form:
// [Run] proves from inside a real sandbox, and on the host around it, what an
// engine promises. Engines call it from their own tests.
//
// It never skips: an engine that is missing is a failure.
package runtimetest
