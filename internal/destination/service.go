package destination

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"time"

	"colophon/internal/clock"
	"colophon/internal/delivery"
	"colophon/internal/egress"
	"colophon/internal/failure"
	"colophon/internal/retry"
	"colophon/internal/webhook"
)

// Sealer encrypts for one destination what only the worker may read.
type Sealer interface {
	Seal(ctx context.Context, b delivery.Binding, plain []byte) (delivery.Sealed, error)
}

// Config is what a Service needs.
type Config struct {
	Store   Store
	History History
	Sealer  Sealer
	// ParseTarget is egress.ParseTarget with the options of the stage and of the
	// request that the context belongs to.
	ParseTarget func(ctx context.Context, raw string) (*url.URL, error)
	Limits      Limits // zero: DefaultLimits
	Clock       func() time.Time
	Random      io.Reader // the system's: ids, secrets and tokens come from it
	// Sleep waits, or ends with the context; nil: clock.Sleep.
	Sleep func(ctx context.Context, d time.Duration) error
}

func (c Config) validate() error {
	if c.Store == nil || c.History == nil || c.Sealer == nil || c.ParseTarget == nil || c.Clock == nil || c.Random == nil {
		return errors.New("destination: a service needs a store, a history, a sealer, a parser of addresses, a clock and randomness")
	}
	return c.Limits.validate()
}

// Service is what people do about destinations and deliveries. Its errors are an
// *Error where a person can act on them.
type Service struct {
	store       Store
	history     History
	sealer      Sealer
	parseTarget func(ctx context.Context, raw string) (*url.URL, error)
	limits      Limits
	clock       func() time.Time
	random      io.Reader
	sleep       func(ctx context.Context, d time.Duration) error
}

// New makes a Service.
func New(c Config) (*Service, error) {
	if c.Limits == (Limits{}) {
		c.Limits = DefaultLimits()
	}
	if err := c.validate(); err != nil {
		return nil, err
	}
	if c.Sleep == nil {
		c.Sleep = clock.Sleep
	}
	return &Service{
		store: c.Store, history: c.History, sealer: c.Sealer, parseTarget: c.ParseTarget, clock: c.Clock, random: c.Random,
		limits: c.Limits, sleep: c.Sleep,
	}, nil
}

// Add makes a destination and its signing secret. Releases are announced to it
// from the next one on.
func (s *Service) Add(ctx context.Context, project string, a Addition) (Added, error) {
	given, err := check(ctx, Change{Name: &a.Name, URL: &a.URL, Headers: &a.Headers}, s.parseTarget)
	if err != nil {
		return Added{}, err
	}
	id, err := randomText(s.random, idLength)
	if err != nil {
		return Added{}, err
	}
	d, now := delivery.Destination{Project: project, ID: idPrefix + id}, s.clock()
	settings := delivery.Settings{
		Name: *given.name, URL: *given.url, HeaderNames: given.headerNames, Version: 1, CreatedAt: now, UpdatedAt: now,
	}
	secret, err := webhook.NewSecret(s.random)
	if err != nil {
		return Added{}, fmt.Errorf("make secret: %w", err)
	}
	err = s.apply(ctx, "add destination", func(ctx context.Context) (Operation, error) {
		p, err := s.store.Project(ctx, project)
		if err != nil {
			return nil, err
		}
		adding, err := add(p, d, settings)
		if err != nil {
			return nil, err
		}
		if settings.Secret.IsZero() { // the key is asked only once it is clear that this can be done
			settings.SecretFingerprint = secret.Fingerprint(saltOf(d))
			if settings.Secret, err = s.sealSecret(ctx, d, secret); err != nil {
				return nil, err
			}
			if settings.Headers, err = s.sealHeaders(ctx, d, settings.URL, given); err != nil {
				return nil, err
			}
			adding.Settings = settings
		}
		return adding, nil
	})
	if err != nil {
		return Added{}, err
	}
	h := Holding{ID: d.ID, Settings: settings, Slot: delivery.Slot{State: delivery.SlotActive, Version: 1}}
	return Added{Destination: shown(project, h, now), Secret: secret.Reveal()}, nil
}

// saltOf is what fingerprints of a destination's secrets are made with.
func saltOf(d delivery.Destination) string { return d.Project + "/" + d.ID }

func (s *Service) sealSecret(ctx context.Context, d delivery.Destination, secret webhook.Secret) (delivery.Sealed, error) {
	sealed, err := s.sealer.Seal(ctx, delivery.Binding{Destination: d, Purpose: delivery.PurposeSecret}, []byte(secret.Reveal()))
	if err != nil {
		return delivery.Sealed{}, fmt.Errorf("seal secret: %w", err)
	}
	return sealed, nil
}

// sealHeaders seals what was given for an address, nothing where there are none.
func (s *Service) sealHeaders(ctx context.Context, d delivery.Destination, address string, given checked) (delivery.Sealed, error) {
	if given.headers == nil || *given.headers == nil {
		return delivery.Sealed{}, nil
	}
	b := delivery.Binding{Destination: d, Purpose: delivery.PurposeHeaders, Origin: egress.Origin(address)}
	sealed, err := s.sealer.Seal(ctx, b, *given.headers)
	if err != nil {
		return delivery.Sealed{}, fmt.Errorf("seal headers: %w", err)
	}
	return sealed, nil
}

// List returns a project's destinations, those that were removed left out.
func (s *Service) List(ctx context.Context, project string) ([]Destination, error) {
	p, err := s.store.Project(ctx, project)
	if err != nil {
		return nil, fault("list destinations", err)
	}
	if p == nil {
		return nil, errNoProject()
	}
	held, err := s.store.Holdings(ctx, project, p.Destinations)
	if err != nil {
		return nil, fault("list destinations", err)
	}
	destinations := make([]Destination, 0, len(held))
	for _, h := range held {
		destinations = append(destinations, shown(project, h, s.clock()))
	}
	return destinations, nil
}

// Get returns a destination, also one that was removed.
func (s *Service) Get(ctx context.Context, project, id string) (Destination, error) {
	h, err := s.holding(ctx, delivery.Destination{Project: project, ID: id})
	if err != nil {
		return Destination{}, fault("read destination", err)
	}
	if !h.Slot.Unreadable && h.Slot.Version == 0 {
		return Destination{}, errNotFound()
	}
	return shown(project, h, s.clock()), nil
}

func (s *Service) holding(ctx context.Context, d delivery.Destination) (Holding, error) {
	held, err := s.store.Holdings(ctx, d.Project, []string{d.ID})
	if err != nil {
		return Holding{}, err
	}
	return held[0], nil
}

// Change changes a destination's name, address or headers. An attempt that has
// begun goes where it was going.
func (s *Service) Change(ctx context.Context, project, id string, c Change) (Destination, error) {
	given, err := check(ctx, c, s.parseTarget)
	if err != nil {
		return Destination{}, err
	}
	d := delivery.Destination{Project: project, ID: id}
	return s.settle(ctx, "change destination", d, func(h Holding) (*delivery.Settings, error) {
		settings, err := reset(h, given, c.Version, s.clock())
		if err != nil || settings == nil || given.headers == nil {
			return settings, err
		}
		settings.Headers, err = s.sealHeaders(ctx, d, settings.URL, given)
		return settings, err
	})
}

// Rotate replaces the signing secret. The replaced one signs for
// webhook.RotationOverlap longer, in addition to the new one and to those that
// were replaced before, unless they are revoked at once.
func (s *Service) Rotate(ctx context.Context, project, id string, r Rotation) (Rotated, error) {
	secret, err := s.newSecret(r.Secret)
	if err != nil {
		return Rotated{}, err
	}
	d := delivery.Destination{Project: project, ID: id}
	fingerprint := secret.Fingerprint(saltOf(d))
	var sealed delivery.Sealed
	after, err := s.settle(ctx, "rotate secret", d, func(h Holding) (*delivery.Settings, error) {
		settings, err := rotate(h, fingerprint, r.Secret != "", r, s.clock())
		if err != nil || settings == nil || !settings.Secret.IsZero() {
			return settings, err
		}
		if sealed.IsZero() {
			if sealed, err = s.sealSecret(ctx, d, secret); err != nil {
				return nil, err
			}
		}
		settings.Secret = sealed
		return settings, nil
	})
	if err != nil {
		return Rotated{}, err
	}
	return Rotated{Secret: secret.Reveal(), PreviousUntil: after.PreviousUntil, Destination: after}, nil
}

// newSecret reads the secret that a caller brought, or makes one.
func (s *Service) newSecret(brought string) (webhook.Secret, error) {
	if brought == "" {
		secret, err := webhook.NewSecret(s.random)
		if err != nil {
			return secret, fmt.Errorf("make secret: %w", err)
		}
		return secret, nil
	}
	secret, err := webhook.ParseSecret(brought)
	if err != nil { // its text says only what a secret is
		return secret, invalid("secret", "Give a signing secret as whsec_ and the base64 of %d to %d random bytes, or leave it out to have one made.",
			webhook.MinSecretBytes, webhook.MaxSecretBytes)
	}
	return secret, nil
}

// RevokePrevious ends replaced secrets before their time. An attempt that has
// begun, at most delivery.LeaseTime ago, may still be signed with them.
func (s *Service) RevokePrevious(ctx context.Context, project, id string, r Revocation) error {
	_, err := s.settle(ctx, "revoke secret", delivery.Destination{Project: project, ID: id}, func(h Holding) (*delivery.Settings, error) {
		return revoke(h, r, s.clock())
	})
	return err
}

// settle writes what decide makes of a destination's settings; nil: nothing.
func (s *Service) settle(ctx context.Context, doing string, d delivery.Destination, decide func(Holding) (*delivery.Settings, error)) (Destination, error) {
	var after Holding
	err := s.apply(ctx, doing, func(ctx context.Context) (Operation, error) {
		h, err := s.holding(ctx, d)
		if err != nil {
			return nil, err
		}
		settings, err := decide(h)
		after = h
		if err != nil || settings == nil {
			return nil, err
		}
		after.Settings = *settings
		return Resetting{Destination: d, Version: h.Settings.Version, Settings: *settings}, nil
	})
	if err != nil {
		return Destination{}, err
	}
	return shown(d.Project, after, s.clock()), nil
}

// Pause stops what is sent to a destination, but for an attempt that has begun.
// Releases that are published meanwhile are skipped, visibly.
func (s *Service) Pause(ctx context.Context, project, id string) (Destination, error) {
	return s.toggle(ctx, "pause destination", delivery.Destination{Project: project, ID: id}, pause)
}

// Resume lets a destination take deliveries again. What was skipped meanwhile
// stays skipped; the newest release can be redelivered.
func (s *Service) Resume(ctx context.Context, project, id string) (Resumed, error) {
	d := delivery.Destination{Project: project, ID: id}
	after, err := s.toggle(ctx, "resume destination", d, resume)
	if err != nil {
		return Resumed{}, err
	}
	r := Resumed{Destination: after}
	newest, err := s.history.Range(ctx, d, 0, 0, 1)
	if err != nil {
		e := refuse(CodeUnavailable, "The destination takes deliveries again, but what it missed could not be read. Resume it again to see that.")
		e.Cause = fmt.Errorf("read newest delivery: %w", err)
		return Resumed{}, e
	}
	if len(newest) > 0 {
		r.Newest, r.SendNewest = newest[0].Release, undelivered(newest[0])
	}
	return r, nil
}

// toggle writes what decide makes of a destination's slot; nil: nothing.
func (s *Service) toggle(ctx context.Context, doing string, d delivery.Destination, decide func(Holding) (*Switching, error)) (Destination, error) {
	var after Holding
	err := s.apply(ctx, doing, func(ctx context.Context) (Operation, error) {
		h, err := s.holding(ctx, d)
		if err != nil {
			return nil, err
		}
		switching, err := decide(h)
		after = h
		if err != nil || switching == nil {
			return nil, err
		}
		switching.Destination = d
		after.Slot.State, after.Slot.PausedBy = switching.To, switching.By
		return *switching, nil
	})
	if err != nil {
		return Destination{}, err
	}
	return shown(d.Project, after, s.clock()), nil
}

// Remove takes a destination out of its project for good. An attempt that has
// begun ends and is recorded; what was pending ends as skipped. Removing again
// is no fault.
func (s *Service) Remove(ctx context.Context, project, id string) error {
	d := delivery.Destination{Project: project, ID: id}
	return s.apply(ctx, "remove destination", func(ctx context.Context) (Operation, error) {
		p, err := s.store.Project(ctx, project)
		if err != nil {
			return nil, err
		}
		h, err := s.holding(ctx, d)
		if err != nil {
			return nil, err
		}
		removing, err := remove(p, d, h, s.clock())
		if err != nil || removing == nil {
			return nil, err
		}
		return *removing, nil
	})
}

// retryTime is for how long a write is tried again while others change the same,
// the table is short of units or the outcome is unknown.
const retryTime = 5 * time.Second

// apply reads, decides and writes, and does so again where nothing was written. A
// decision of nil writes nothing.
func (s *Service) apply(ctx context.Context, doing string, decide func(context.Context) (Operation, error)) error {
	// A busy slot moves a few times a second.
	waits := retry.Within(retryTime, retry.Jittered(s.chance, retry.Doubling(10*time.Millisecond, 640*time.Millisecond)))
	loop := retry.New(retry.Clock{Now: s.clock, Sleep: s.sleep}, waits)
	for {
		o, err := decide(ctx)
		if err != nil || o == nil {
			return fault(doing, err)
		}
		token, err := randomText(s.random, tokenLength)
		if err != nil {
			return fault(doing, err)
		}
		err = loop.UntilKnown(ctx, func() error { return s.store.Commit(ctx, token, o) })
		if !failure.NotDone(err) || !loop.Again(ctx) {
			return fault(doing, err)
		}
	}
}

// chance is random, from [0, 1).
func (s *Service) chance() float64 {
	one := make([]byte, 1)
	if _, err := io.ReadFull(s.random, one); err != nil {
		return 0 // what needs randomness asks for it itself, and fails
	}
	return float64(one[0]) / 256
}

func fault(doing string, err error) error { return failure.Explain(doing, err) }
