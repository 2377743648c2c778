package store_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"colophon/internal/delivery"
	"colophon/internal/store"
)

// shelf is a table with one delivery and nothing else.
type shelf struct {
	store.Engine
	item store.Item
}

func (s shelf) Get(context.Context, string, store.Key) (store.Item, error) { return s.item, nil }

func (s shelf) Query(context.Context, store.Query) (store.Page, error) { return store.Page{}, nil }

// readItem reads a delivery's item as the worker does.
func readItem(t *testing.T, item store.Item) delivery.Delivery {
	t.Helper()
	deliveries, err := store.NewDeliveries(store.DeliveriesConfig{Engine: shelf{item: item}, Table: "delivery-table", Clock: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	d, err := deliveries.ReadDelivery(context.Background(), delivery.Key{
		Destination: delivery.Destination{Project: "p", ID: "d"}, Release: 6,
	})
	if err != nil {
		t.Fatal(err)
	}
	return *d
}

func wholeItem() store.Item {
	at := store.Number(1_700_000_000_000)
	return store.Item{
		"v": store.Number(1), "status": store.Text("retrying"), "round": store.Number(2), "rev": store.Number(3),
		"webhookId": store.Text("msg_x"), "body": store.Text("{}"), "tryAt": at, "tries": store.Number(1),
		"numbered": store.Number(4), "createdAt": at, "sweepAt": at, "asked": store.Number(90_000),
		"ours":   store.Map(store.Item{"count": store.Number(1), "since": at}),
		"force":  store.Map(store.Item{"over": store.Number(7)}),
		"before": store.Map(store.Item{"status": store.Text("failed"), "round": store.Number(1), "at": at}),
		"attempts": store.Map(store.Item{"4": store.Map(store.Item{
			"round": store.Number(2), "token": store.Text("t"), "by": store.Text("record"), "at": at,
			"class": store.Text("timeout"), "received": store.Text("may-have"),
		})}),
	}
}

func TestAnItemOfANewerVersionWaitsWhateverElseIsInIt(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(store.Item){
		"nothing else":    func(store.Item) {},
		"a new state":     func(item store.Item) { item["status"] = store.Text("held") },
		"a state no more": func(item store.Item) { delete(item, "status") },
		"a new form":      func(item store.Item) { item["attempts"] = store.Texts([]string{"t"}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			item := wholeItem()
			item["v"] = store.Number(2)
			change(item)
			if d := readItem(t, item); d.Fault != delivery.FaultUnknownVersion {
				t.Errorf("fault %q", d.Fault)
			}
		})
	}
}

// A path names an attribute of wholeItem, or an entry within it: "attempts.4.at".
func FuzzADeliverysItemIsReadWholeOrSaidToBeUnreadable(f *testing.F) {
	for _, path := range []string{"", "v", "status", "tryAt", "ours", "ours.count", "force.over", "attempts.4", "attempts.4.at", "attempts.x"} {
		for kind := range uint8(6) {
			f.Add(path, kind, "9223372036854775807")
		}
	}
	f.Fuzz(func(t *testing.T, path string, kind uint8, value string) {
		item := wholeItem()
		place(item, strings.Split(path, "."), valueOf(kind, value))
		d := readItem(t, item)
		if d.Fault != "" {
			return
		}
		states := []delivery.Status{delivery.Queued, delivery.Retrying, delivery.Delivered, delivery.Failed, delivery.Skipped}
		if !slices.Contains(states, d.Status) || d.Round < 1 || d.WebhookID == "" || len(d.Body) == 0 || d.TryAt.IsZero() ||
			d.Tries < 0 || d.Asked < 0 || d.Ours.Count < 0 || d.Over < 0 {
			t.Errorf("read as %+v", d)
		}
		for _, a := range d.Attempts {
			if a.Number < 1 || a.Round < 1 || a.At.IsZero() || a.Elapsed < 0 {
				t.Errorf("an attempt is read as %+v", a)
			}
		}
	})
}

func valueOf(kind uint8, value string) store.Value {
	switch kind % 6 {
	case 0:
		return nil // taken away
	case 1:
		return store.Text(value)
	case 2:
		return &types.AttributeValueMemberN{Value: value}
	case 3:
		return store.Bytes([]byte(value))
	case 4:
		return store.Map(store.Item{value: store.Text(value)})
	}
	return store.Texts([]string{value})
}

func place(item store.Item, path []string, v store.Value) {
	if len(path) > 1 {
		if inner, ok := item[path[0]].(*types.AttributeValueMemberM); ok {
			entries := maps.Clone(inner.Value)
			place(entries, path[1:], v)
			item[path[0]] = store.Map(entries)
		}
		return
	}
	if v == nil {
		delete(item, path[0])
		return
	}
	item[path[0]] = v
}
