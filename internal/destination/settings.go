package destination

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"colophon/internal/delivery"
	"colophon/internal/egress"
	"colophon/internal/text"
	"colophon/internal/webhook"
)

// checked is what a person gave, judged and in the form that is stored.
type checked struct {
	name        *string
	url         *string
	headers     *[]byte // as JSON, name to value; still to be sealed
	headerNames []string
}

// check judges what a person gave. parseTarget is egress.ParseTarget with this
// stage's options.
func check(ctx context.Context, c Change, parseTarget func(context.Context, string) (*url.URL, error)) (checked, error) {
	var out checked
	if c.Name != nil {
		name, err := checkName(*c.Name)
		if err != nil {
			return checked{}, err
		}
		out.name = &name
	}
	if c.URL != nil {
		if wrong := text.Check(*c.URL, text.Line); wrong != "" {
			return checked{}, invalid("url", "The address %s.", wrong)
		}
		target, err := parseTarget(ctx, *c.URL)
		if err != nil {
			return checked{}, inputFault("url", err)
		}
		address := target.String()
		out.url = &address
	}
	if c.Headers != nil {
		plain, names, err := checkHeaders(*c.Headers)
		if err != nil {
			return checked{}, err
		}
		out.headers, out.headerNames = &plain, names
	}
	return out, nil
}

func checkName(raw string) (string, error) {
	name := strings.TrimSpace(raw)
	switch {
	case name == "":
		return "", invalid("name", "Give the destination a name.")
	case text.Check(name, text.Line) != "":
		return "", invalid("name", "The name %s.", text.Check(name, text.Line))
	case utf8.RuneCountInString(name) > LongestName:
		return "", invalid("name", "Use a name of at most %d characters.", LongestName)
	}
	return name, nil
}

// checkHeaders returns the headers as JSON, nil where there are none, and their
// names in order.
func checkHeaders(given map[string]string) (plain []byte, names []string, err error) {
	if len(given) == 0 {
		return nil, nil, nil
	}
	if err := egress.CheckHeaders(given); err != nil {
		return nil, nil, inputFault("headers", err)
	}
	headers := make(map[string]string, len(given))
	for name, value := range given {
		headers[http.CanonicalHeaderKey(name)] = value
	}
	if plain, err = json.Marshal(headers); err != nil {
		return nil, nil, fmt.Errorf("encode headers: %w", err)
	}
	return plain, slices.Sorted(maps.Keys(headers)), nil
}

// inputFault turns a checker's refusal into ours: its message is for people and
// holds no part of the input. Any other error is a fault of the checker.
func inputFault(field string, err error) error {
	var refusal *egress.Refusal
	if !errors.As(err, &refusal) {
		return fmt.Errorf("check %s: %w", field, err)
	}
	e := invalid(field, "%s", refusal.Message)
	e.Cause = err
	return e
}

func invalid(field, format string, args ...any) *Error {
	e := refuse(CodeInvalid, format, args...)
	e.Field = field
	return e
}

// reset says how settings are changed, given what was read; or why not. Nil:
// nothing would be different. New headers are still to be sealed, for the
// settings' address.
func reset(h Holding, c checked, version int64, now time.Time) (*delivery.Settings, error) {
	if err := atVersion(h, version); err != nil {
		return nil, err
	}
	if c.name == nil && c.url == nil && c.headers == nil {
		return nil, nil
	}
	s := h.Settings
	// Whoever changes the address need not have seen the headers' values, and
	// must not be able to have them sent to himself.
	if c.url != nil && c.headers == nil && !s.Headers.IsZero() && egress.Origin(*c.url) != egress.Origin(s.URL) {
		return nil, invalid("headers", "The custom headers were given for another host, so they are not sent to the new one. "+
			"Give the headers again together with the address; an empty object removes them.")
	}
	if c.name != nil {
		s.Name = *c.name
	}
	if c.url != nil {
		s.URL = *c.url
	}
	if c.headers != nil {
		s.Headers, s.HeaderNames = delivery.Sealed{}, c.headerNames
	}
	s.Version, s.UpdatedAt = s.Version+1, now
	return &s, nil
}

// rotate puts a new secret in the current one's place. The current one signs for
// webhook.RotationOverlap longer, like those that it replaced; revokeOld ends
// them all. Brought says that the caller brought the secret: then the current one
// is recognized by its fingerprint, and bringing it again changes nothing. A
// result without a Secret is still to be sealed; nil: nothing would be different.
func rotate(h Holding, fingerprint []byte, brought bool, r Rotation, now time.Time) (*delivery.Settings, error) {
	if err := inUse(h); err != nil {
		return nil, err
	}
	s := h.Settings
	s.Previous = signing(s.Previous, now)
	// The change has happened, whatever version it was asked for (RFC 9110, 13.1.1).
	repeated := brought && bytes.Equal(s.SecretFingerprint, fingerprint)
	switch {
	case repeated && (!r.RevokeOld || len(s.Previous) == 0):
		return nil, nil
	case repeated:
		s.Previous = nil
		s.Version, s.UpdatedAt = s.Version+1, now
		return &s, nil
	}
	if err := atVersion(h, r.Version); err != nil {
		return nil, err
	}
	switch {
	case r.RevokeOld:
		s.Previous = nil
	case len(s.Previous) >= delivery.MaxPreviousSecrets:
		return nil, tooManySecrets(s.Previous, now)
	default:
		replaced := delivery.PreviousSecret{Sealed: s.Secret, Until: now.Add(webhook.RotationOverlap)}
		s.Previous = append([]delivery.PreviousSecret{replaced}, s.Previous...)
	}
	s.Secret, s.SecretFingerprint = delivery.Sealed{}, fingerprint
	s.Version, s.UpdatedAt = s.Version+1, now
	return &s, nil
}

func tooManySecrets(previous []delivery.PreviousSecret, now time.Time) *Error {
	first := previous[0].Until
	for _, p := range previous {
		if p.Until.Before(first) {
			first = p.Until
		}
	}
	e := refuse(CodeTooManySecrets, "%d replaced secrets still sign in addition to the current one, which is the limit. "+
		"The first of them ends at %s UTC. To rotate now, revoke one of them, or all with revokeOld.",
		len(previous), first.UTC().Format(time.DateTime))
	e.RetryAfter = (first.Sub(now) + time.Second - 1).Truncate(time.Second)
	return e
}

// signing leaves out what has ended.
func signing(previous []delivery.PreviousSecret, now time.Time) []delivery.PreviousSecret {
	var still []delivery.PreviousSecret
	for _, p := range previous {
		if now.Before(p.Until) {
			still = append(still, p)
		}
	}
	return still
}

// revoke ends the previous secret at a position, from 1 for the newest, or all of
// them where it is 0; nil: there is none to end.
func revoke(h Holding, r Revocation, now time.Time) (*delivery.Settings, error) {
	if err := atVersion(h, r.Version); err != nil {
		return nil, err
	}
	s := h.Settings
	still := signing(s.Previous, now)
	switch {
	case r.Position < 0 || r.Position > len(still):
		e := refuse(CodeNotFound, "There is no previous secret at position %d. The destination's previousSecrets lists them.", r.Position)
		e.Field = "position"
		return nil, e
	case r.Position == 0 && len(s.Previous) == 0:
		return nil, nil
	case r.Position == 0:
		s.Previous = nil
	default:
		s.Previous = slices.Delete(still, r.Position-1, r.Position) // of a list of its own
	}
	s.Version, s.UpdatedAt = s.Version+1, now
	return &s, nil
}

// atVersion refuses a destination that is not in use, or not at the version that
// a change was made from; 0 takes any.
func atVersion(h Holding, version int64) error {
	if err := inUse(h); err != nil {
		return err
	}
	if version != 0 && version != h.Settings.Version {
		return refuse(CodeChanged, "Somebody else changed this destination in the meantime. Look at it again, and then change it.")
	}
	return nil
}

// inUse refuses a destination that is not there, was removed, or cannot be read.
func inUse(h Holding) error {
	switch {
	case h.Slot.Unreadable:
		return errDamaged()
	case h.Slot.Version == 0:
		return errNotFound()
	case h.Slot.State == delivery.SlotRemoved:
		return errRemoved()
	case h.Settings.Version == 0:
		return errDamaged()
	}
	return nil
}

func errNotFound() *Error { return refuse(CodeNotFound, "There is no such destination.") }
