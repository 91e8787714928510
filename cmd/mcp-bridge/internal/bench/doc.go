// Package bench measures the built binary as its users meet it, beside the
// floor that no implementation can go below on the same machine, in the same
// run. Its benchmarks print medians and ratios; none of them asserts a time.
//
//	make bench
package bench
