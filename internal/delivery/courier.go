package delivery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"colophon/internal/egress"
	"colophon/internal/webhook"
)

// Opener opens what was sealed for a destination, under the context that is
// stored with it. ErrSealedForAnother.
type Opener interface {
	Open(ctx context.Context, b Binding, sealed Sealed) ([]byte, error)
}

// CourierConfig is what a Courier needs.
type CourierConfig struct {
	Opener Opener
	Client *egress.Client
	Clock  func() time.Time
}

func (c CourierConfig) validate() error {
	if c.Opener == nil || c.Client == nil || c.Clock == nil {
		return errors.New("delivery: a courier's config is not complete")
	}
	return nil
}

// Courier is the Sender that calls receivers: it signs what internal/webhook
// makes and sends it through internal/egress.
type Courier struct{ CourierConfig }

// NewCourier makes a Courier.
func NewCourier(c CourierConfig) (*Courier, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &Courier{c}, nil
}

// Open opens the secrets that sign now, and the custom headers. The headers are
// opened for the very address that Send is given with them.
func (c *Courier) Open(ctx context.Context, d Destination, s Settings) (Opened, error) {
	if s.URL == "" || s.Secret.IsZero() {
		return Opened{}, errors.New("settings have no address or no secret")
	}
	current, err := c.secret(ctx, d, s.Secret)
	if err != nil {
		return Opened{}, fmt.Errorf("open signing secret: %w", err)
	}
	secrets, now := webhook.Secrets{Current: current}, c.Clock()
	for _, previous := range s.Previous {
		if !now.Before(previous.Until) {
			continue
		}
		secret, err := c.secret(ctx, d, previous.Sealed)
		if err != nil {
			return Opened{}, fmt.Errorf("open previous signing secret: %w", err)
		}
		secrets.Previous = append(secrets.Previous, webhook.PreviousSecret{Secret: secret, Until: previous.Until})
	}
	opened := Opened{Secrets: secrets.Signing(now)}
	if s.Headers.IsZero() {
		return opened, nil
	}
	plain, err := c.Opener.Open(ctx, Binding{Destination: d, Purpose: PurposeHeaders, Origin: egress.Origin(s.URL)}, s.Headers)
	if err != nil {
		return Opened{}, fmt.Errorf("open custom headers: %w", err)
	}
	if json.Unmarshal(plain, &opened.Headers) != nil { // its error would show a value
		return Opened{}, errors.New("open custom headers: not what was sealed")
	}
	return opened, nil
}

func (c *Courier) secret(ctx context.Context, d Destination, sealed Sealed) (webhook.Secret, error) {
	plain, err := c.Opener.Open(ctx, Binding{Destination: d, Purpose: PurposeSecret}, sealed)
	if err != nil {
		return webhook.Secret{}, err
	}
	return webhook.ParseSecret(string(plain))
}

// Send makes the attempt's request.
func (c *Courier) Send(ctx context.Context, s Sending) Outcome {
	attempt := webhook.Attempt{
		ID: s.ID, Body: s.Body, At: s.At, Number: s.Attempt, Previous: s.Previous,
		Secrets: s.Opened.Secrets, Custom: s.Opened.Headers,
	}
	result := c.Client.Send(ctx, egress.Request{
		URL: s.URL, Body: s.Body, Header: attempt.Headers(), NotAfter: s.NotAfter, Deadline: AttemptTime,
	})
	outcome := outcomeOf(result)
	if s.Examine {
		outcome.Findings = Examine(result, strings.HasPrefix(s.URL, "https:"), c.Clock())
	}
	return outcome
}

var classOfFailure = map[egress.Failure]Class{
	egress.FailureDNS:             ClassDNS,
	egress.FailureConnect:         ClassConnect,
	egress.FailureTLS:             ClassTLS,
	egress.FailureTimeout:         ClassTimeout,
	egress.FailureReset:           ClassReset,
	egress.FailureBadAnswer:       ClassBadAnswer,
	egress.FailureNotHTTP:         ClassNotHTTP,
	egress.FailureHeadersTooLarge: ClassLongHeaders,
	egress.FailureBlocked:         ClassBlocked,
	egress.FailureClock:           ClassTimeout, // with bytes out; without, see Unsent
	egress.FailureCanceled:        ClassTimeout,
	egress.FailureOurs:            ClassOurs,
}

// outcomeOf puts a result into the protocol's words.
func outcomeOf(r egress.Result) Outcome {
	o := Outcome{
		Status: r.Status, Elapsed: r.Elapsed, RetryAfter: r.RetryAfter, Detail: string(r.Detail), Received: NotReceived,
	}
	switch {
	case r.Failure == egress.FailureNone:
		o.Class, o.Received = ClassOfStatus(r.Status), Answered
		return o
	case r.MayHaveBeenReceived:
		o.Received = MayHave
	case r.Failure == egress.FailureClock, r.Failure == egress.FailureCanceled:
		o.Unsent = true
	}
	class, known := classOfFailure[r.Failure]
	if !known {
		class = ClassOurs
	}
	o.Class = class
	if r.Detail == egress.DetailExpired && !r.CertificateNotAfter.IsZero() {
		o.Detail += " " + r.CertificateNotAfter.UTC().Format(time.DateOnly)
	}
	return o
}
