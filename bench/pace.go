package main

import (
	"encoding/json"
	goruntime "runtime"
	"syscall"
	"time"
)

// pace is the processor time, in milliseconds, of a fixed piece of work of the
// kind that the functions do: 2,000 events read and written. Beside other work a
// processor does less in the same time, and this says how much less.
func pace() float64 {
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	const rusageThread = 1 // RUSAGE_THREAD, getrusage(2)
	var before, after syscall.Rusage
	event := []byte(firstEvents["deliver"])
	if syscall.Getrusage(rusageThread, &before) != nil {
		return 0
	}
	for range 2_000 {
		var read map[string]any
		if json.Unmarshal(event, &read) != nil {
			return 0
		}
		if _, err := json.Marshal(read); err != nil {
			return 0
		}
	}
	if syscall.Getrusage(rusageThread, &after) != nil {
		return 0
	}
	spent := func(r syscall.Rusage) time.Duration { return time.Duration(r.Utime.Nano() + r.Stime.Nano()) }
	return milliseconds(spent(after) - spent(before))
}
