package store_test

import (
	"testing"

	"colophon/internal/enginetest"
	"colophon/internal/store"
	"colophon/internal/store/storetest"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

// newPlace is a fresh place on the real engine.
func newPlace(t *testing.T) storetest.Place {
	t.Helper()
	tables := enginetest.NewTables(t)
	engine, err := store.NewDynamo(store.DynamoConfig{Client: tables.Client})
	if err != nil {
		t.Fatal(err)
	}
	return storetest.Place{Engine: engine, Content: tables.Content, Delivery: tables.Delivery}
}

func TestEngine(t *testing.T) {
	t.Parallel()
	storetest.Engine(t, newPlace)
}

func TestContents(t *testing.T) {
	t.Parallel()
	storetest.Contents(t, newPlace)
}

func TestDestinations(t *testing.T) {
	t.Parallel()
	storetest.Destinations(t, newPlace)
}

func TestSweep(t *testing.T) {
	t.Parallel()
	storetest.Sweep(t, newPlace)
}
