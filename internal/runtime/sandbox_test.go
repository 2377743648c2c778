package runtime_test

import (
	"math"
	goruntime "runtime"
	"runtime/debug"
	"testing"

	"colophon/internal/runtime"
)

// Not parallel: collector and processors are the whole process's.
func TestASandboxHasItsMemorysShareOfCollectorAndProcessors(t *testing.T) {
	percent, limit, processors := debug.SetGCPercent(100), debug.SetMemoryLimit(-1), goruntime.GOMAXPROCS(0)
	defer func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
		goruntime.GOMAXPROCS(processors)
	}()
	for size, want := range map[string]struct {
		limit      int64
		processors int
	}{
		"256":  {187_904_819, 1},
		"512":  {375_809_638, 1},
		"3537": {2_596_169_318, 1},
		"3538": {2_596_903_321, 3},
		"":     {math.MaxInt64, 3},
		"much": {math.MaxInt64, 3},
		"0":    {math.MaxInt64, 3},
	} {
		debug.SetMemoryLimit(math.MaxInt64)
		goruntime.GOMAXPROCS(3)
		runtime.FitSandbox(func(name string) string {
			if name == "AWS_LAMBDA_FUNCTION_MEMORY_SIZE" {
				return size
			}
			return ""
		})
		if got := debug.SetMemoryLimit(-1); got != want.limit {
			t.Errorf("%q MiB: the limit is %d, want %d", size, got, want.limit)
		}
		if got := debug.SetGCPercent(400); got != 400 {
			t.Errorf("%q MiB: collected at %d %%", size, got)
		}
		if got := goruntime.GOMAXPROCS(0); got != want.processors {
			t.Errorf("%q MiB: %d processors, want %d", size, got, want.processors)
		}
	}
}
