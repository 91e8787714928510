package workspace

import "fmt"

// Size writes a number of bytes for people.
func Size(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1000<<10:
		return fmt.Sprintf("%.3g KiB", float64(n)/(1<<10))
	case n < 1000<<20:
		return fmt.Sprintf("%.3g MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.3g GiB", float64(n)/(1<<30))
}
