package runtime

import (
	goruntime "runtime"
	"runtime/debug"
	"strconv"
)

// A function's live memory is a few megabytes and each request makes a fifth of
// one, most of it in the AWS SDK: by Go's default the collector would run every
// twenty requests. Run at five times what is live, it costs a tenth less
// processor time (see docs/benchmarks.md), and a limit below the function's
// memory has it run earlier where that comes near.
const (
	collectAt   = 400 // percent beyond what is live
	limitShare  = 0.7 // of the function's memory: the rest is the runtime's, stacks' and the kernel's
	bytesPerMiB = 1 << 20
)

// processorAt is the memory in MiB at which a function has one whole processor;
// with less, it has that share of one (Lambda Developer Guide, "Configure Lambda
// function memory"). A sandbox shows two even so, and Go would wake threads on
// both for work that waits for others nearly all the time.
const processorAt = 1769

// FitSandbox sets Go's collector and the number of its processors for a function
// of the memory that Lambda says it has. Elsewhere neither memory nor processors
// are limited.
func FitSandbox(getenv func(string) string) {
	debug.SetGCPercent(collectAt)
	size, err := strconv.ParseFloat(getenv("AWS_LAMBDA_FUNCTION_MEMORY_SIZE"), 64)
	if err != nil || size < 128 {
		return
	}
	debug.SetMemoryLimit(int64(size * bytesPerMiB * limitShare))
	if size < 2*processorAt {
		goruntime.GOMAXPROCS(1)
	}
}
