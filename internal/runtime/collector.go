package runtime

import (
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

// CollectRarely sets the garbage collector for a function of the memory that
// Lambda says it has; elsewhere there is no limit.
func CollectRarely(getenv func(string) string) {
	debug.SetGCPercent(collectAt)
	if size, err := strconv.ParseFloat(getenv("AWS_LAMBDA_FUNCTION_MEMORY_SIZE"), 64); err == nil && size >= 128 {
		debug.SetMemoryLimit(int64(size * bytesPerMiB * limitShare))
	}
}
