package delivery

import (
	"cmp"
	"context"
	"slices"
)

// AnswerAll answers a batch of rings: destinations side by side, the rings of one
// destination one after another, highest release first, so that the newest is
// sent and the older ones find that it was. The answer to rings[i] is the i-th.
func (w *Worker) AnswerAll(ctx context.Context, rings []Ring) []Disposition {
	ends := make([]Disposition, len(rings))
	var destinations []Destination
	groups := map[Destination][]int{}
	for i, ring := range rings {
		if groups[ring.Destination] == nil {
			destinations = append(destinations, ring.Destination)
		}
		groups[ring.Destination] = append(groups[ring.Destination], i)
	}
	w.sideBySide(destinations, func(d Destination) {
		group := groups[d]
		slices.SortStableFunc(group, func(i, j int) int { return cmp.Compare(rings[j].Release, rings[i].Release) })
		for _, i := range group {
			ends[i] = w.Answer(ctx, rings[i])
		}
	})
	return ends
}

func (w *Worker) sideBySide(destinations []Destination, do func(Destination)) {
	switch len(destinations) {
	case 0:
	case 1:
		do(destinations[0])
	default:
		w.Beside(func() { do(destinations[0]) }, func() { w.sideBySide(destinations[1:], do) })
	}
}
