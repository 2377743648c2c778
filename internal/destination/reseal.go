package destination

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"colophon/internal/clock"
	"colophon/internal/delivery"
	"colophon/internal/egress"
)

// ResealerConfig is what a Resealer needs.
type ResealerConfig struct {
	Store Store
	// Reseal moves a value to the newest context without opening it:
	// sealing.Resealer.Reseal. delivery.ErrSealedForAnother.
	Reseal func(ctx context.Context, b delivery.Binding, sealed delivery.Sealed) (delivery.Sealed, error)
	Clock  func() time.Time
	Random io.Reader // of the writes' tokens
	// Sleep waits, or ends with the context; nil: clock.Sleep.
	Sleep func(ctx context.Context, d time.Duration) error
}

func (c ResealerConfig) validate() error {
	if c.Store == nil || c.Reseal == nil || c.Clock == nil || c.Random == nil {
		return errors.New("destination: a resealer needs a store, a way to reseal, a clock and randomness")
	}
	return nil
}

// Resealer moves what destinations have sealed under delivery.SealedForDestination
// to delivery.SealedForPurpose. It is the operator's: no function's role may do it.
type Resealer struct {
	s      *Service // for its way of reading, deciding and writing
	reseal func(ctx context.Context, b delivery.Binding, sealed delivery.Sealed) (delivery.Sealed, error)
}

// NewResealer makes a Resealer.
func NewResealer(c ResealerConfig) (*Resealer, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	if c.Sleep == nil {
		c.Sleep = clock.Sleep
	}
	return &Resealer{s: &Service{store: c.Store, clock: c.Clock, random: c.Random, sleep: c.Sleep}, reseal: c.Reseal}, nil
}

// Resealed is what was done about one destination.
type Resealed struct {
	Destination string
	Origin      string // that its headers are bound to now; empty: it has none
	Moved       int    // values
	// Failed names the values that do not open under the context that they are
	// stored with: "secret", "previous secret", "headers".
	Failed []string
}

// Project reseals what the destinations of a project still have under the old
// context, and reports each that had any.
func (r *Resealer) Project(ctx context.Context, project string, report func(Resealed)) error {
	p, err := r.s.store.Project(ctx, project)
	if err != nil {
		return fault("reseal", err)
	}
	if p == nil {
		return errNoProject()
	}
	for _, id := range p.Destinations {
		done, err := r.destination(ctx, delivery.Destination{Project: project, ID: id})
		if err != nil {
			return fmt.Errorf("destination %s: %w", id, err)
		}
		if done.Moved > 0 || len(done.Failed) > 0 {
			report(done)
		}
	}
	return nil
}

func (r *Resealer) destination(ctx context.Context, d delivery.Destination) (Resealed, error) {
	var done Resealed
	_, err := r.s.settle(ctx, "reseal", d, func(h Holding) (*delivery.Settings, error) {
		done = Resealed{Destination: d.ID}
		if inUse(h) != nil { // it was removed meanwhile, or is damaged: nothing of it can be kept
			return nil, nil
		}
		s := h.Settings
		move := func(name string, b delivery.Binding, sealed *delivery.Sealed) error {
			if sealed.IsZero() || sealed.Context != delivery.SealedForDestination {
				return nil
			}
			moved, err := r.reseal(ctx, b, *sealed)
			switch {
			case errors.Is(err, delivery.ErrSealedForAnother):
				done.Failed = append(done.Failed, name)
				return nil
			case err != nil:
				return err
			}
			*sealed = moved
			done.Moved++
			return nil
		}
		secret := delivery.Binding{Destination: d, Purpose: delivery.PurposeSecret}
		if err := move("secret", secret, &s.Secret); err != nil {
			return nil, err
		}
		s.Previous = signing(s.Previous, r.s.clock())
		for i := range s.Previous {
			if err := move("previous secret", secret, &s.Previous[i].Sealed); err != nil {
				return nil, err
			}
		}
		headers := delivery.Binding{Destination: d, Purpose: delivery.PurposeHeaders, Origin: egress.Origin(s.URL)}
		before := done.Moved
		if err := move("headers", headers, &s.Headers); err != nil {
			return nil, err
		}
		if done.Moved > before {
			done.Origin = headers.Origin
		}
		if done.Moved == 0 {
			return nil, nil
		}
		s.Version++
		return &s, nil
	})
	return done, err
}
