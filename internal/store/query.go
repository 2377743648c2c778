package store

import "context"

// collect reads a range until it ends or there are enough items, and returns
// them as one page; its Last is nil where the range has ended.
//
// DynamoDB may end a page before the limit and before the end of the range, after
// any item and with none. Every query of this package goes through here, so none
// can take a short page for the whole (a test holds it).
func collect(ctx context.Context, engine Reader, q Query, limit int) (Page, error) {
	var all Page
	for {
		q.Limit = int32(limit - len(all.Items))
		page, err := engine.Query(ctx, q)
		if err != nil {
			return Page{}, err
		}
		all.Items, all.Last, all.Clock = append(all.Items, page.Items...), page.Last, page.Clock
		if page.Last == nil || len(all.Items) >= limit {
			return all, nil
		}
		q.After = page.Last
	}
}
