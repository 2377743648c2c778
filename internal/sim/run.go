package sim

import (
	"fmt"
	"time"

	"colophon/internal/content"
	"colophon/internal/delivery"
	"colophon/internal/outbox"
	"colophon/internal/store"
)

// mutant is a mistake that is put in around the code under test.
type mutant struct {
	Worker    func(w *World, p *process, c *delivery.Config)
	Sweeper   func(w *World, c *outbox.SweeperConfig)
	Contents  func(w *World, c *content.Config)
	Engine    func(w *World, e store.Engine) store.Engine
	Unguarded bool // the wire does not ask the clock
	Monotonic bool // clocks stand still with their sandbox
	LateBytes bool // bytes arrive later than egress lets them
}

// Result is what became of a run.
type Result struct {
	Seed      uint64
	Violation *Violation // nil: none
	Counts    Counts

	tape tapes
}

// Runner runs worlds one after another. It is for one goroutine at a time.
type Runner struct {
	threads threads
	mutant  mutant
}

// Close ends the runner's coroutines.
func (r *Runner) Close() { r.threads.close() }

// Run runs the world of a seed.
func (r *Runner) Run(seed uint64) Result {
	c := newChoices(seed)
	w := newWorld(c, &r.threads, r.mutant, nil)
	w.run()
	return Result{Seed: seed, Violation: w.violation, Counts: w.counts, tape: c.tape}
}

// Story runs a result's choices again and tells what happens.
func (r *Runner) Story(of Result) []string {
	var lines []string
	w := newWorld(again(of.tape), &r.threads, r.mutant, func(at moment, line string) {
		lines = append(lines, fmt.Sprintf("%12s  %s", at.Round(time.Millisecond), line))
	})
	w.run()
	return lines
}

// Tell tells the story of a seed's world.
func Tell(seed uint64) []string {
	var r Runner
	defer r.Close()
	return r.Story(r.Run(seed))
}
