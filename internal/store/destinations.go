package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"colophon/internal/delivery"
	"colophon/internal/destination"
)

// DestinationsConfig is what Destinations needs.
type DestinationsConfig struct {
	Engine        Engine
	ContentTable  string
	DeliveryTable string
}

func (c DestinationsConfig) validate() error {
	if c.Engine == nil || c.ContentTable == "" || c.DeliveryTable == "" {
		return errors.New("store: destinations need an engine and both tables")
	}
	return nil
}

// Destinations keeps destinations, and what people do about their deliveries.
type Destinations struct {
	engine  Engine
	content string
	table   string // the delivery table
}

// NewDestinations makes Destinations.
func NewDestinations(c DestinationsConfig) (*Destinations, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &Destinations{engine: c.Engine, content: c.ContentTable, table: c.DeliveryTable}, nil
}

var _ interface {
	destination.Store
	destination.History
} = (*Destinations)(nil)

// Project reads a project; nil where there is none.
func (s *Destinations) Project(ctx context.Context, project string) (*destination.Project, error) {
	item, err := s.engine.Get(ctx, s.content, metaKey(project))
	if err != nil || item == nil {
		return nil, told("read project", err)
	}
	p, err := decodeProject(project, item)
	if err != nil {
		return nil, err
	}
	return &destination.Project{
		ID: p.ID, Name: p.Name, Newest: p.Seq, Version: p.Version, Destinations: p.Destinations,
	}, nil
}

// Holdings reads slots and settings, in the order of the ids.
func (s *Destinations) Holdings(ctx context.Context, project string, ids []string) ([]destination.Holding, error) {
	keys := make([]Key, 0, 2*len(ids))
	for _, id := range ids {
		d := delivery.Destination{Project: project, ID: id}
		keys = append(keys, slotKey(d), settingsKey(d))
	}
	items, err := batch(ctx, s.engine, s.table, keys)
	if err != nil {
		return nil, told("read destinations", err)
	}
	held := make([]destination.Holding, 0, len(ids))
	for _, id := range ids {
		held = append(held, holding(project, id, items))
	}
	return held, nil
}

// holding puts a destination together. Settings that cannot be read have no Version.
func holding(project, id string, items map[Key]Item) destination.Holding {
	d := delivery.Destination{Project: project, ID: id}
	h := destination.Holding{ID: id}
	var err error
	if h.Slot, err = decodeSlot(items[slotKey(d)]); err != nil {
		h.Slot = delivery.Slot{Unreadable: true}
	}
	if h.Settings, err = decodeSettings(items[settingsKey(d)]); err != nil {
		h.Settings = delivery.Settings{}
	}
	return h
}

// Read is the worker's read, so that a person's action and the worker decide
// from the same.
func (s *Destinations) Read(ctx context.Context, key delivery.Key) (delivery.Reading, error) {
	r, err := (&Deliveries{engine: s.engine, table: s.table}).Read(ctx, key)
	return r, told("read destination", err)
}

// Release reads a release's deliveries to those that it was announced to.
func (s *Destinations) Release(ctx context.Context, project string, release int64) ([]destination.Entry, bool, error) {
	item, err := s.engine.Get(ctx, s.content, recordKey(project, release))
	if err != nil || item == nil {
		return nil, false, told("read release", err)
	}
	r, err := decodeRelease(project, item)
	if err != nil {
		return nil, false, err
	}
	ids := r.Destinations
	keys := make([]Key, 0, 3*len(ids))
	for _, id := range ids {
		d := delivery.Destination{Project: project, ID: id}
		keys = append(keys, deliveryKey(delivery.Key{Destination: d, Release: release}), slotKey(d), settingsKey(d))
	}
	items, err := batch(ctx, s.engine, s.table, keys)
	if err != nil {
		return nil, false, told("read deliveries", err)
	}
	entries := make([]destination.Entry, 0, len(ids))
	for _, id := range ids {
		key := delivery.Key{Destination: delivery.Destination{Project: project, ID: id}, Release: release}
		entry := destination.Entry{Holding: holding(project, id, items)}
		if item := items[deliveryKey(key)]; item != nil {
			entry.Delivery = decodeDelivery(key, item)
		}
		entries = append(entries, entry)
	}
	return entries, true, nil
}

// highestRelease is the last number that a key has room for.
const highestRelease = 999_999_999_999

// Range reads deliveries of the releases from … to, newest first; 0 leaves a side open.
func (s *Destinations) Range(ctx context.Context, d delivery.Destination, from, to int64, limit int) ([]delivery.Delivery, error) {
	if to < 1 || to > highestRelease {
		to = highestRelease
	}
	q := Query{
		Table: s.table, PK: Text(destinationPK(d.Project, d.ID)),
		From: Text(releaseSK(max(from, 1))), To: Text(releaseSK(to)), Descending: true,
	}
	if max(from, 1) > to {
		return nil, nil // DynamoDB refuses bounds in the wrong order
	}
	page, err := collect(ctx, s.engine, q, limit)
	if err != nil {
		return nil, told("read deliveries", err)
	}
	deliveries := make([]delivery.Delivery, 0, len(page.Items))
	for _, item := range page.Items {
		if _, _, release, ok := parseDeliveryKey(textOf(item[attrPK]), textOf(item[attrSK])); ok {
			deliveries = append(deliveries, *decodeDelivery(delivery.Key{Destination: d, Release: release}, item))
		}
	}
	return deliveries, nil
}

// Test reads a test send; nil where there is none.
func (s *Destinations) Test(ctx context.Context, d delivery.Destination, id string) (*delivery.TestSend, error) {
	t, err := (&Deliveries{engine: s.engine, table: s.table}).ReadTest(ctx, d, id)
	return t, told("read test", err)
}

// Spent reads what was taken from the limits of a destination and of an origin.
func (s *Destinations) Spent(ctx context.Context, d delivery.Destination, origin string) (destination.Spent, error) {
	keys := []Key{allowanceKey(d)}
	if origin != "" {
		keys = append(keys, originKey(d.Project, origin))
	}
	items, err := batch(ctx, s.engine, s.table, keys)
	if err != nil {
		return destination.Spent{}, told("read limits", err)
	}
	spent := destination.Spent{Origin: origin}
	for i, into := range []*time.Time{&spent.Until, &spent.OriginUntil}[:len(keys)] {
		a := &attributes{item: items[keys[i]]}
		*into = a.optionalTime(attrUntil)
		if a.fault != nil {
			return destination.Spent{}, fmt.Errorf("limit: %w", a.fault)
		}
	}
	return spent, nil
}

// Commit writes an operation in one transaction, so that the token makes its
// repeat harmless.
func (s *Destinations) Commit(ctx context.Context, token string, o destination.Operation) error {
	return told("write", s.engine.Transact(ctx, token, s.writes(o)))
}

// told says what was being done. The outcome is in the error already: see Refused.Unwrap.
func told(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}

func contentFault(doing string, err error) error { return told(doing, err) }
