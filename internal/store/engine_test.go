package store_test

import (
	"testing"

	"colophon/internal/enginetest"
	"colophon/internal/store"
	"colophon/internal/store/storetest"
)

func TestEngine(t *testing.T) {
	t.Parallel()
	storetest.Engine(t, func(t *testing.T) storetest.Place {
		t.Helper()
		tables := enginetest.NewTables(t)
		engine, err := store.NewDynamo(store.DynamoConfig{Client: tables.Client})
		if err != nil {
			t.Fatal(err)
		}
		return storetest.Place{Engine: engine, Content: tables.Content, Delivery: tables.Delivery}
	})
}
