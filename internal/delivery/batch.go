package delivery

import (
	"cmp"
	"context"
	"slices"
	"sync"
)

// AnswerAll answers a batch of rings: destinations side by side, the rings of one
// destination one after another, highest release first, so that the newest is
// sent and the older ones find that it was. The answer to rings[i] is the i-th.
func (w *Worker) AnswerAll(ctx context.Context, rings []Ring) []Disposition {
	ends := make([]Disposition, len(rings))
	groups := map[Destination][]int{}
	for i, ring := range rings {
		groups[ring.Destination] = append(groups[ring.Destination], i)
	}
	var wait sync.WaitGroup
	for _, group := range groups {
		slices.SortStableFunc(group, func(i, j int) int { return cmp.Compare(rings[j].Release, rings[i].Release) })
		wait.Add(1)
		go func() {
			defer wait.Done()
			for _, i := range group {
				ends[i] = w.Answer(ctx, rings[i])
			}
		}()
	}
	wait.Wait()
	return ends
}
