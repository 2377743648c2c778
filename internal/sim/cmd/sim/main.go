// Command sim searches simulated worlds for one that breaks a rule of the
// protocol, and tells its story.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"

	"colophon/internal/killpoint"
	"colophon/internal/sim"
)

func main() {
	var s sim.Search
	flag.Uint64Var(&s.From, "from", 0, "the first `seed`")
	flag.Uint64Var(&s.Seeds, "seeds", 0, "end after so many worlds (0: no end)")
	flag.IntVar(&s.Steps, "steps", 0, "end after so many steps (0: no end)")
	flag.DurationVar(&s.Time, "time", 0, "end after this long (0: no end)")
	flag.IntVar(&s.Beside, "beside", 1, "worlds side by side")
	tell := flag.Bool("tell", false, "tell the story of the first seed, whatever becomes of it")
	flag.Parse()
	debug.SetGCPercent(1000) // a world lives for milliseconds: let most of it die before anybody looks
	if *tell {
		for _, line := range sim.Tell(s.From) {
			fmt.Println(line)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	found := s.Run(ctx)
	report(found)
	if found.Broken != nil {
		os.Exit(1)
	}
}

func report(f sim.Found) {
	c := f.Counts
	fmt.Printf("%d steps in %d worlds, %.0f steps a second\n", c.Steps, f.Seeds, float64(c.Steps)/f.Took.Seconds())
	fmt.Printf("releases %d, deliveries: %d delivered, %d failed, %d skipped\n", c.Releases, c.Delivered, c.Failed, c.Skipped)
	fmt.Printf("claims %d, requests sent %d, arrived %d; leases that ran out %d, late results %d\n", c.Claims, c.Sends, c.Arrivals, c.Settled, c.Late)
	fmt.Printf("sandboxes that stood still %d, queries beside a transaction under way %d, deliveries left to a host whose clock is right %d, killed",
		c.Freezes, c.Torn, c.HeldBack)
	for _, name := range killpoint.Names() {
		fmt.Printf(" %s %d,", name, c.Kills[name])
	}
	fmt.Printf(" elsewhere %d\n", c.Kills[""])
	if f.Broken == nil {
		fmt.Println("no rule was broken")
		return
	}
	fmt.Printf("\nseed %d breaks a rule. As plain as could be found:\n\n", f.Broken.Seed)
	for _, line := range f.Story {
		fmt.Println(line)
	}
}
