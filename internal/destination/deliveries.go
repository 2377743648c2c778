package destination

import (
	"context"
	"errors"
	"fmt"
	"time"

	"colophon/internal/delivery"
	"colophon/internal/retry"
	"colophon/internal/webhook"
)

// Redeliver starts the next round of a delivery that has ended: the same id and
// body, new tries. The newest release needs nothing else; an older one must be
// forced over the newest that the person saw.
func (s *Service) Redeliver(ctx context.Context, key delivery.Key, ask Redelivery) (Delivery, error) {
	return s.send(ctx, "redeliver", key, func(r delivery.Reading, spent Spent, now time.Time) (sending, error) {
		return requeue(s.limits, r, spent, ask, now)
	})
}

// TryNow makes a pending delivery due now. It adds no try.
func (s *Service) TryNow(ctx context.Context, key delivery.Key) (Delivery, error) {
	return s.send(ctx, "try now", key, func(r delivery.Reading, spent Spent, now time.Time) (sending, error) {
		return advance(s.limits, r, spent, now)
	})
}

// sending is an operation after which a delivery is due.
type sending interface {
	Operation
	After() delivery.Delivery
}

func (s *Service) send(ctx context.Context, doing string, key delivery.Key,
	decide func(r delivery.Reading, spent Spent, now time.Time) (sending, error)) (Delivery, error) {
	var after Delivery
	err := s.apply(ctx, doing, func(ctx context.Context) (Operation, error) {
		r, err := s.readWhole(ctx, key)
		if err != nil {
			return nil, err
		}
		spent, err := s.history.Spent(ctx, key.Destination, countedOrigin(r.Settings.URL))
		if err != nil {
			return nil, err
		}
		now := s.clock()
		o, err := decide(r, spent, now)
		if err != nil {
			return nil, err
		}
		h := Holding{ID: key.ID, Slot: r.Slot, Settings: r.Settings}
		after = shownDelivery(o.After(), h, r.NewestRelease(), now)
		return o, nil
	})
	if err != nil {
		return Delivery{}, err
	}
	return after, nil
}

// readWhole reads until the reading is of one piece, as the worker does. A write
// over a transaction that is seen in part would hide that from the worker, which
// would then send what has ended. One that stays torn for longer than any
// transaction shows a destination whose newest delivery has expired.
func (s *Service) readWhole(ctx context.Context, key delivery.Key) (delivery.Reading, error) {
	loop := retry.New(retry.Clock{Now: s.clock, Sleep: s.sleep}, delivery.WhileTorn)
	for {
		r, err := s.history.Read(ctx, key)
		if err != nil || !r.Torn() {
			return r, err
		}
		if !loop.Again(ctx) {
			return r, ctx.Err()
		}
	}
}

// read reads a few times until the reading is of one piece: enough to show it.
func (s *Service) read(ctx context.Context, key delivery.Key) (delivery.Reading, error) {
	for again := 0; ; again++ {
		r, err := s.history.Read(ctx, key)
		if err != nil || !r.Torn() || again == 2 {
			return r, err
		}
	}
}

// Delivery returns one delivery with its attempts.
func (s *Service) Delivery(ctx context.Context, key delivery.Key) (Delivery, error) {
	r, err := s.read(ctx, key)
	if err != nil {
		return Delivery{}, fault("read delivery", err)
	}
	if r.Rang == nil {
		return Delivery{}, errNoDelivery()
	}
	var older []delivery.Delivery
	if key.Release > 1 {
		if older, err = s.history.Range(ctx, key.Destination, 0, key.Release-1, MostReplaced); err != nil {
			return Delivery{}, fault("read older deliveries", err)
		}
	}
	h := Holding{ID: key.ID, Slot: r.Slot, Settings: r.Settings}
	d := shownDelivery(*r.Rang, h, r.NewestRelease(), s.clock())
	d.Replaced = replaced(key.Release, older)
	return d, nil
}

// Deliveries returns a release's deliveries, one for each destination that it
// was announced to, those removed since among them.
func (s *Service) Deliveries(ctx context.Context, project string, release int64) ([]Delivery, error) {
	p, err := s.store.Project(ctx, project)
	if err != nil {
		return nil, fault("read deliveries of release", err)
	}
	if p == nil {
		return nil, errNoProject()
	}
	entries, found, err := s.history.Release(ctx, project, release)
	if err != nil {
		return nil, fault("read deliveries of release", err)
	}
	if !found {
		return nil, refuse(CodeNotFound, "There is no such release.")
	}
	deliveries := make([]Delivery, 0, len(entries))
	for _, e := range entries {
		if e.Delivery != nil {
			deliveries = append(deliveries, shownDelivery(*e.Delivery, e.Holding, max(p.Newest, e.Delivery.Release), s.clock()))
		}
	}
	return deliveries, nil
}

// DestinationDeliveries returns a part of a destination's deliveries, newest first.
func (s *Service) DestinationDeliveries(ctx context.Context, project, id string, r Range) (DeliveryPage, error) {
	d := delivery.Destination{Project: project, ID: id}
	limit := r.Limit
	if limit < 1 || limit > MostListed {
		limit = MostListed
	}
	h, err := s.holding(ctx, d)
	if err != nil {
		return DeliveryPage{}, fault("list deliveries", err)
	}
	if !h.Slot.Unreadable && h.Slot.Version == 0 {
		return DeliveryPage{}, errNotFound()
	}
	// Those behind the page are read too: the last of it may have replaced some.
	read, err := s.history.Range(ctx, d, 0, r.To, limit+MostReplaced)
	if err != nil {
		return DeliveryPage{}, fault("list deliveries", err)
	}
	top := read
	if r.To > 0 {
		if top, err = s.history.Range(ctx, d, 0, 0, 1); err != nil {
			return DeliveryPage{}, fault("list deliveries", err)
		}
	}
	newest := h.Slot.SentThrough
	if len(top) > 0 {
		newest = max(newest, top[0].Release)
	}
	page := DeliveryPage{Deliveries: make([]Delivery, 0, min(limit, len(read)))}
	for i, one := range read {
		if one.Release < r.From {
			break
		}
		if i == limit {
			page.Next = one.Release
			break
		}
		shown := shownDelivery(one, h, newest, s.clock())
		shown.Replaced = replaced(one.Release, read[i+1:])
		page.Deliveries = append(page.Deliveries, shown)
	}
	return page, nil
}

// SendTest sends one signed request to a destination, also to a paused one.
func (s *Service) SendTest(ctx context.Context, project, id string) (delivery.TestSend, error) {
	return s.test(ctx, delivery.TestSend{Destination: delivery.Destination{Project: project, ID: id}})
}

// Examine sends the same request as SendTest and has looked at all that stands
// between us and the receiver: its result has Findings.
func (s *Service) Examine(ctx context.Context, project, id string) (delivery.TestSend, error) {
	return s.test(ctx, delivery.TestSend{Destination: delivery.Destination{Project: project, ID: id}, Kind: delivery.TestDoctor})
}

func (s *Service) test(ctx context.Context, test delivery.TestSend) (delivery.TestSend, error) {
	var err error
	if test.ID, err = randomText(s.random, testLength); err != nil {
		return delivery.TestSend{}, err
	}
	if test.WebhookID, err = webhook.NewID(s.random); err != nil {
		return delivery.TestSend{}, err
	}
	err = s.apply(ctx, "send test", func(ctx context.Context) (Operation, error) {
		h, err := s.holding(ctx, test.Destination)
		if err != nil {
			return nil, err
		}
		if err := inUse(h); err != nil {
			return nil, err
		}
		p, err := s.store.Project(ctx, test.Project)
		if err != nil {
			return nil, err
		}
		if p == nil {
			return nil, errNoProject()
		}
		spent, err := s.history.Spent(ctx, test.Destination, countedOrigin(h.Settings.URL))
		if err != nil {
			return nil, err
		}
		test.CreatedAt = s.clock()
		spending, err := spend(s.limits, spent, test.CreatedAt)
		if err != nil {
			return nil, err
		}
		payload := webhook.Test{Project: webhook.Project{ID: p.ID, Name: p.Name}, ID: test.ID}
		if test.Body, err = payload.Body(test.CreatedAt); err != nil {
			return nil, fmt.Errorf("write test's body: %w", err)
		}
		return Testing{Test: test, Spending: spending}, nil
	})
	if err != nil {
		return delivery.TestSend{}, err
	}
	return test, nil
}

// Test returns a test send; delivery.TestSend.State says where it stands.
func (s *Service) Test(ctx context.Context, project, id, test string) (delivery.TestSend, error) {
	t, err := s.readTest(ctx, project, id, test)
	if err != nil {
		return delivery.TestSend{}, err
	}
	if t == nil {
		return delivery.TestSend{}, refuse(CodeNotFound, "There is no such test. Tests are kept for 7 days.")
	}
	return *t, nil
}

// Examination returns a test send that Examine made.
func (s *Service) Examination(ctx context.Context, project, id, examination string) (delivery.TestSend, error) {
	t, err := s.readTest(ctx, project, id, examination)
	if err != nil {
		return delivery.TestSend{}, err
	}
	if t == nil || t.Kind != delivery.TestDoctor {
		return delivery.TestSend{}, refuse(CodeNotFound, "There is no such examination. Examinations are kept for 7 days.")
	}
	return *t, nil
}

func (s *Service) readTest(ctx context.Context, project, id, test string) (*delivery.TestSend, error) {
	t, err := s.history.Test(ctx, delivery.Destination{Project: project, ID: id}, test)
	if errors.Is(err, delivery.ErrUnknownVersion) {
		return nil, refuse(CodeUnreadable, "This test was written by a newer version of Colophon. Try again after its deployment.")
	}
	return t, fault("read test", err)
}
