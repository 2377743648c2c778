package store_test

import (
	"context"
	"reflect"
	"testing"
	"time"

	"colophon/internal/delivery"
	"colophon/internal/failure"
	"colophon/internal/store"
)

// asked keeps what is asked of it, and never says what came of it.
type asked struct {
	store.Engine
	transactions [][]store.Write
}

func (a *asked) Transact(_ context.Context, _ string, writes []store.Write) error {
	a.transactions = append(a.transactions, writes)
	return failure.ErrUnknown
}

// DynamoDB refuses a token that comes with another request than before.
func TestARecordingThatIsAskedForAgainIsTheVerySameTransaction(t *testing.T) {
	t.Parallel()
	engine := &asked{}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	deliveries, err := store.NewDeliveries(store.DeliveriesConfig{
		Engine: engine, Table: "delivery-table", Clock: func() time.Time { return now },
	})
	if err != nil {
		t.Fatal(err)
	}
	d := delivery.Delivery{
		Key:    delivery.Key{Destination: delivery.Destination{Project: "p", ID: "d"}, Release: 6},
		Status: delivery.Queued, Round: 1, Rev: 3, Lost: 1, Numbered: 40,
	}
	h := delivery.Holder{Token: "t", Release: 6, Round: 1, Attempt: 41, Since: now, Until: now.Add(delivery.LeaseTime)}
	r := delivery.Recording{
		Delivery: d, Slot: delivery.Slot{State: delivery.SlotActive, Version: 9}, Holder: h, Request: "request",
		Transition: delivery.AfterAttempt(d, h, delivery.Outcome{Class: delivery.ClassUnavailable, Status: 503, RetryAfter: "90"}, now, 0.5),
	}
	for range 20 {
		if err := deliveries.Record(context.Background(), r); err == nil {
			t.Fatal("nobody said that it was recorded")
		}
	}
	for _, again := range engine.transactions[1:] {
		if !reflect.DeepEqual(again, engine.transactions[0]) {
			t.Fatalf("asked first for %v, then for %v", engine.transactions[0], again)
		}
	}
}
