package sim

import (
	"cmp"
	"context"
	"slices"
	"time"

	"colophon/internal/store"
)

// entry is a delivery's place in the sweep index.
type entry struct {
	key     store.Key
	shard   int64
	sweepAt int64
}

// follows is a change that the index has not seen yet.
type follows struct {
	at  moment
	key store.Key
	to  *entry // nil: it leaves
}

// index is the sweep index: it follows the table, some time behind.
type index struct {
	entries []entry   // those of a world are few
	behind  []follows // of each key in the order in which they happened
	last    map[store.Key]moment
}

// follow takes note of an item as it is now.
func (x *index) follow(w *World, c *cell) {
	f := follows{at: w.now, key: c.key}
	if w.happens(faultIndexLag) {
		lags := [...]moment{50 * time.Millisecond, time.Second, 10 * time.Second, time.Minute, 5 * time.Minute}
		f.at += lags[w.choices.below(faultIndexLag, len(lags))]
	}
	f.at = max(f.at, x.last[c.key])
	x.last[c.key] = f.at
	if shard, ok := c.item["sweepShard"]; ok && c.item["sweepAt"] != nil {
		f.to = &entry{key: c.key, shard: numberOf(shard), sweepAt: numberOf(c.item["sweepAt"])}
	}
	x.behind = append(x.behind, f)
}

// catchUp does what is due by now.
func (x *index) catchUp(now moment) {
	kept := x.behind[:0]
	for _, f := range x.behind {
		if f.at > now {
			kept = append(kept, f)
			continue
		}
		x.entries = slices.DeleteFunc(x.entries, func(e entry) bool { return e.key == f.key })
		if f.to != nil {
			x.entries = append(x.entries, *f.to)
		}
	}
	x.behind = kept
}

// due says whether a sweep at this time of its clock would find anything.
func (x *index) due(now moment, at time.Time) bool {
	x.catchUp(now)
	return slices.ContainsFunc(x.entries, func(e entry) bool { return e.sweepAt < at.UnixMilli() })
}

// queryIndex reads a shard of the index. One that finds nothing shows nothing of
// the world either, so it takes no time and is no step.
func (t *tables) queryIndex(ctx context.Context, q store.Query) (store.Page, error) {
	if q.Index != store.SweepIndex || q.Table != t.delivery || q.From != nil || q.Descending {
		panic("sim: no such index query")
	}
	if t.w.current.process.dead {
		panic(killed{})
	}
	if len(t.index.found(t.w.now, q)) == 0 {
		t.queries++
		return store.Page{}, nil
	}
	if err := t.reach(ctx); err != nil {
		return store.Page{}, err
	}
	var page store.Page
	limit := t.limit(q)
	if limit == 0 {
		page.Last = q.After
	}
	for _, e := range t.index.found(t.w.now, q) {
		if limit == 0 {
			break
		}
		page.Items = append(page.Items, store.Item{
			"pk": store.Text(e.key.PK), "sk": store.Text(e.key.SK),
			"sweepShard": store.Number(e.shard), "sweepAt": store.Number(e.sweepAt),
		})
		if len(page.Items) == limit {
			page.Last = page.Items[len(page.Items)-1]
			break
		}
	}
	t.w.back()
	return page, nil
}

// found are a shard's entries of a query in the order of the index.
func (x *index) found(now moment, q store.Query) []entry {
	x.catchUp(now)
	if len(x.entries) == 0 {
		return nil
	}
	shard, to := numberOf(q.PK), numberOf(q.To)
	var found []entry
	for _, e := range x.entries {
		if e.shard == shard && (q.To == nil || e.sweepAt <= to) {
			found = append(found, e)
		}
	}
	order := func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.sweepAt, b.sweepAt), cmp.Compare(a.key.PK, b.key.PK), cmp.Compare(a.key.SK, b.key.SK))
	}
	slices.SortFunc(found, order)
	if q.After == nil {
		return found
	}
	after := entry{
		key: store.Key{PK: textOf(q.After["pk"]), SK: textOf(q.After["sk"])}, sweepAt: numberOf(q.After["sweepAt"]),
	}
	at, _ := slices.BinarySearchFunc(found, after, order)
	for at < len(found) && order(found[at], after) <= 0 {
		at++
	}
	return found[at:]
}
