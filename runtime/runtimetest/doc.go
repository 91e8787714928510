// Package runtimetest is the contract of [runtime.Engine] in executable form:
// [Run] proves from inside a real sandbox, and on the host around it, what an
// engine promises. It runs over every transport, for the engines in the table of
// runtime/contract_test.go.
//
// It never skips: an engine that is missing is a failure. [Fake] is an engine
// without any isolation, for tests of the suite itself and of what is above
// engines.
package runtimetest
