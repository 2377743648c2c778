package sim_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"colophon/internal/killpoint"
	"colophon/internal/sim"
)

func TestNoWorldBreaksARule(t *testing.T) {
	t.Parallel()
	found := sim.Search{Seeds: 600}.Run(t.Context())
	if found.Broken != nil {
		t.Fatalf("seed %d:\n%s", found.Broken.Seed, strings.Join(found.Story, "\n"))
	}
	c := found.Counts
	t.Logf("%d steps, %.0f a second: %+v", c.Steps, float64(c.Steps)/found.Took.Seconds(), c)
	// A world in which nothing happens breaks no rule either.
	for name, n := range map[string]int{
		"releases": c.Releases, "claims": c.Claims, "requests": c.Sends, "arrivals": c.Arrivals, "delivered": c.Delivered,
		"failed": c.Failed, "skipped": c.Skipped, "leases that ran out": c.Settled, "late results": c.Late,
		"sandboxes that stood still": c.Freezes, "reads beside a transaction under way": c.Torn,
		"deliveries that were left to another host": c.HeldBack,
	} {
		if n < 3 {
			t.Errorf("%s: %d", name, n)
		}
	}
	for _, name := range killpoint.Names() {
		if c.Kills[name] == 0 {
			t.Errorf("nobody was killed at %s", name)
		}
	}
}

func TestASeedTellsItsStoryAgain(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		story := sim.Tell(seed)
		if len(story) == 0 || !slices.Equal(story, sim.Tell(seed)) {
			t.Errorf("seed %d: %d lines, and others the second time", seed, len(story))
		}
	}
}

func TestASearchEndsWhereItIsTold(t *testing.T) {
	t.Parallel()
	for name, search := range map[string]sim.Search{
		"after so many worlds":                {Seeds: 5},
		"after so many worlds, side by side":  {Seeds: 5, Beside: 3},
		"after so many steps":                 {Seeds: 1000, Steps: 200},
		"after so much time":                  {Time: 1},
		"after so many worlds from a seed on": {From: 7, Seeds: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := search.Run(t.Context())
			if search.Steps == 0 && search.Time == 0 && found.Seeds != search.Seeds {
				t.Errorf("%d worlds", found.Seeds)
			}
			if search.Steps > 0 && (found.Counts.Steps < search.Steps || found.Seeds == search.Seeds) {
				t.Errorf("%d steps in %d worlds", found.Counts.Steps, found.Seeds)
			}
			if search.Time > 0 && found.Seeds != 0 {
				t.Errorf("%d worlds in no time", found.Seeds)
			}
		})
	}
}

// BenchmarkWorlds measures what the search's speed is stated in.
func BenchmarkWorlds(b *testing.B) {
	var counted sync.Mutex
	steps := 0
	b.RunParallel(func(p *testing.PB) {
		var r sim.Runner
		defer r.Close()
		mine := 0
		for seed := uint64(0); p.Next(); seed++ {
			mine += r.Run(seed).Counts.Steps
		}
		counted.Lock()
		defer counted.Unlock()
		steps += mine
	})
	b.ReportMetric(float64(steps)/b.Elapsed().Seconds(), "steps/s")
}
