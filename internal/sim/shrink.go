package sim

import "slices"

// Shrink makes a run that broke a rule as plain as can be while the same rule is
// broken: fewer faults, fewer things, shorter waits. It runs worlds at most so
// often: first small ones with no other faults than that run met, for a small
// world that breaks the rule is worth more than a large one made smaller.
func (r *Runner) Shrink(of Result, most int) Result {
	s := &shrinking{Runner: r, best: of, left: most}
	for _, size := range []int{2, 4} {
		if s.small(size, most/5) {
			break
		}
	}
	for better := true; better && s.left > 0; {
		better = false
		for t := range s.best.tape {
			better = s.clear(t) || better
		}
		for t := range s.best.tape {
			better = s.cut(t) || better
			better = s.lower(t) || better
		}
		better = s.fewer() || better
	}
	return s.best
}

// small looks for a small world that breaks the same rule.
func (s *shrinking) small(size, runs int) bool {
	var met [labels]bool
	for t, values := range s.best.tape {
		met[t/int(roles)] = met[t/int(roles)] || !plain(values)
	}
	for seed := range uint64(runs) {
		s.left--
		c := newChoices(seed)
		c.most, c.only = size, &met
		w := newWorld(c, &s.threads, s.mutant, nil)
		w.run()
		if w.violation != nil && w.violation.Name == s.best.Violation.Name {
			s.best = Result{Seed: s.best.Seed, Violation: w.violation, Counts: w.counts, tape: c.tape}
			return true
		}
	}
	return false
}

type shrinking struct {
	*Runner
	best Result
	left int
}

// try runs tapes that differ from the best, and keeps them where the same rule
// is broken.
func (s *shrinking) try(change func(tape *tapes)) bool {
	if s.left == 0 {
		return false
	}
	s.left--
	tape := s.best.tape
	change(&tape)
	c := again(tape)
	w := newWorld(c, &s.threads, s.mutant, nil)
	w.run()
	if w.violation == nil || w.violation.Name != s.best.Violation.Name {
		return false
	}
	for t, used := range c.played { // what was not asked for is no part of it
		tape[t] = tape[t][:min(used, len(tape[t]))]
	}
	s.best = Result{Seed: s.best.Seed, Violation: w.violation, Counts: w.counts, tape: tape}
	return true
}

func plain(values []uint32) bool {
	return !slices.ContainsFunc(values, func(v uint32) bool { return v != 0 })
}

// clear takes the plainest of all choices of a tape.
func (s *shrinking) clear(t int) bool {
	return !plain(s.best.tape[t]) && s.try(func(tape *tapes) { tape[t] = nil })
}

// without is a tape with a part left out: what stands behind it moves up.
func without(values []uint32, from, to int) []uint32 {
	return append(slices.Clone(values[:from]), values[to:]...)
}

// cut takes the plainest of runs of choices: halves, quarters … single ones; or
// leaves runs out.
func (s *shrinking) cut(t int) bool {
	better := false
	for size := len(s.best.tape[t]) / 2; size > 0; size /= 2 {
		for from := 0; from+size <= len(s.best.tape[t]) && s.left > 0; {
			now := s.best.tape[t]
			switch {
			case s.try(func(tape *tapes) { tape[t] = without(now, from, from+size) }):
				better = true
				continue
			case !plain(now[from:from+size]) && s.try(func(tape *tapes) {
				tape[t] = slices.Clone(now)
				clear(tape[t][from : from+size])
			}):
				better = true
			}
			from += size
		}
	}
	return better
}

// lower halves single choices, or takes one off.
func (s *shrinking) lower(t int) bool {
	better := false
	for i := 0; i < len(s.best.tape[t]) && s.left > 0; i++ {
		for i < len(s.best.tape[t]) && s.best.tape[t][i] > 1 {
			v := s.best.tape[t][i]
			if !s.set(t, i, v/2) && !s.set(t, i, v-1) {
				break
			}
			better = true
		}
	}
	return better
}

func (s *shrinking) set(t, i int, v uint32) bool {
	now := s.best.tape[t]
	return s.try(func(tape *tapes) {
		tape[t] = slices.Clone(now)
		tape[t][i] = v
	})
}

// fewer takes things away together with what was chosen about them: with one
// release less, the fault that matters is met so much earlier.
func (s *shrinking) fewer() bool {
	better := false
	sizes := int(chooseSize) * int(roles)
	for i := 0; i < len(s.best.tape[sizes]); i++ {
		for t := range s.best.tape {
			if t == sizes || plain(s.best.tape[t]) {
				continue
			}
			for _, gone := range []int{1, 2, 3, 4, 5, 6, 8, 10, 12, 16} {
				for i < len(s.best.tape[sizes]) && s.best.tape[sizes][i] > 0 && s.left > 0 {
					now, values := s.best.tape[sizes], s.best.tape[t]
					first := slices.IndexFunc(values, func(v uint32) bool { return v != 0 })
					if first < gone || !s.try(func(tape *tapes) {
						tape[sizes] = slices.Clone(now)
						tape[sizes][i]--
						tape[t] = without(values, first-gone, first)
					}) {
						break
					}
					better = true
				}
			}
		}
	}
	return better
}
