package storetest

import (
	"context"
	"sync/atomic"

	"colophon/internal/store"
)

// Short is an Engine whose queries answer with pages as short as DynamoDB may
// make them: with one item, and now and then with none, whatever the limit.
type Short struct {
	store.Engine

	queries atomic.Int64
}

// Query reads a short page.
func (s *Short) Query(ctx context.Context, q store.Query) (store.Page, error) {
	if q.After != nil && s.queries.Add(1)%2 == 0 {
		return store.Page{Last: q.After}, nil
	}
	q.Limit = 1
	return s.Engine.Query(ctx, q)
}
