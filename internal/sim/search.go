package sim

import (
	"context"
	"sync"
	"time"
)

// Search is many runs side by side.
type Search struct {
	From   uint64        // the first seed
	Seeds  uint64        // at most so many; 0: no end
	Steps  int           // end after so many; 0: no end
	Time   time.Duration // end after this long; 0: no end
	Beside int           // runs side by side; 0: one
}

// Found is what a search came to.
type Found struct {
	Counts Counts
	Seeds  uint64 // how many were run to their end
	Took   time.Duration
	Broken *Result // a run that broke a rule; nil: none did
	Story  []string
}

// Run searches until it has enough, the context ends, or a rule is broken: then
// that run is made as plain as can be, and told. Every run before the search's
// end counts, whatever the order in which they ended.
func (s Search) Run(ctx context.Context) Found {
	began := time.Now()
	if s.Time > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.Time)
		defer cancel()
	}
	var mu sync.Mutex
	var found Found
	next := s.From
	take := func() (seed uint64, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		if found.Broken != nil || ctx.Err() != nil || s.Seeds > 0 && next-s.From >= s.Seeds || s.Steps > 0 && found.Counts.Steps >= s.Steps {
			return 0, false
		}
		next++
		return next - 1, true
	}
	var working sync.WaitGroup
	for range max(s.Beside, 1) {
		working.Go(func() {
			var r Runner
			defer r.Close()
			for {
				seed, ok := take()
				if !ok {
					return
				}
				got := r.Run(seed)
				mu.Lock()
				found.Counts.add(got.Counts)
				found.Seeds++
				if got.Violation != nil && found.Broken == nil {
					found.Broken = &got
				}
				mu.Unlock()
			}
		})
	}
	working.Wait()
	found.Took = time.Since(began)
	if found.Broken != nil {
		var r Runner
		defer r.Close()
		plain := r.Shrink(*found.Broken, shrinkMost)
		found.Broken, found.Story = &plain, r.Story(plain)
	}
	return found
}

// shrinkMost is how many runs making one plain may take.
const shrinkMost = 30_000
