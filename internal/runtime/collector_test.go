package runtime_test

import (
	"math"
	"runtime/debug"
	"testing"

	"colophon/internal/runtime"
)

// Not parallel: the collector is the whole process's.
func TestTheCollectorKeepsBelowTheFunctionsMemory(t *testing.T) {
	percent, limit := debug.SetGCPercent(100), debug.SetMemoryLimit(-1)
	defer func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	}()
	for size, want := range map[string]int64{"256": 187_904_819, "512": 375_809_638, "": math.MaxInt64, "much": math.MaxInt64, "0": math.MaxInt64} {
		debug.SetMemoryLimit(math.MaxInt64)
		runtime.CollectRarely(func(name string) string {
			if name == "AWS_LAMBDA_FUNCTION_MEMORY_SIZE" {
				return size
			}
			return ""
		})
		if got := debug.SetMemoryLimit(-1); got != want {
			t.Errorf("%q MiB: the limit is %d, want %d", size, got, want)
		}
		if got := debug.SetGCPercent(400); got != 400 {
			t.Errorf("%q MiB: collected at %d %%", size, got)
		}
	}
}
