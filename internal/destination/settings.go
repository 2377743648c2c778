package destination

import (
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
func check(c Change, parseTarget func(string) (*url.URL, error)) (checked, error) {
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
		target, err := parseTarget(*c.URL)
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
// nothing would be different.
func reset(h Holding, c checked, sealedHeaders []byte, version int64, now time.Time) (*delivery.Settings, error) {
	if err := inUse(h); err != nil {
		return nil, err
	}
	if version != 0 && version != h.Settings.Version {
		return nil, refuse(CodeChanged, "Somebody else changed this destination in the meantime. Look at it again, and then change it.")
	}
	if c.name == nil && c.url == nil && c.headers == nil {
		return nil, nil
	}
	s := h.Settings
	if c.name != nil {
		s.Name = *c.name
	}
	if c.url != nil {
		s.URL = *c.url
	}
	if c.headers != nil {
		s.Headers, s.HeaderNames = sealedHeaders, c.headerNames
	}
	s.Version, s.UpdatedAt = s.Version+1, now
	return &s, nil
}

// rotate puts a new secret in the current one's place, which signs beside it
// for a while or is revoked. The sealed bytes move as they are: nothing here can
// open them.
func rotate(h Holding, sealed []byte, revokeOld bool, now time.Time) (*delivery.Settings, error) {
	if err := inUse(h); err != nil {
		return nil, err
	}
	s := h.Settings
	s.Previous, s.PreviousUntil = s.Secret, now.Add(webhook.RotationOverlap)
	if revokeOld {
		s.Previous, s.PreviousUntil = nil, time.Time{}
	}
	s.Secret = sealed
	s.Version, s.UpdatedAt = s.Version+1, now
	return &s, nil
}

// revoke takes the previous secret away; nil: there is none.
func revoke(h Holding, now time.Time) (*delivery.Settings, error) {
	if err := inUse(h); err != nil || len(h.Settings.Previous) == 0 {
		return nil, err
	}
	s := h.Settings
	s.Previous, s.PreviousUntil = nil, time.Time{}
	s.Version, s.UpdatedAt = s.Version+1, now
	return &s, nil
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
