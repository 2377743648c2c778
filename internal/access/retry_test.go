package access_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"testing"
	"time"

	"colophon/internal/access"
	"colophon/internal/content"
	"colophon/internal/failure"
)

// troubled is a store whose writes come to what results says, in turn, the last
// one for ever. A write of unknown outcome is carried out.
type troubled struct {
	access.Tokens
	results []error
	writes  int
	added   map[[sha256.Size]byte]bool
	removed bool
}

func (s *troubled) next() error {
	result := s.results[min(s.writes, len(s.results)-1)]
	s.writes++
	return result
}

func (s *troubled) AddToken(_ context.Context, hash [sha256.Size]byte, _ access.Token) error {
	if s.added == nil {
		s.added = map[[sha256.Size]byte]bool{}
	}
	err := s.next()
	if err == nil || errors.Is(err, failure.ErrUnknown) {
		s.added[hash] = true
	}
	return err
}

func (s *troubled) RemoveToken(context.Context, string, string) error {
	if s.removed {
		s.writes++
		return content.ErrMissing
	}
	err := s.next()
	s.removed = err == nil || errors.Is(err, failure.ErrUnknown)
	return err
}

func TestTokensAreMadeAndRevokedAlsoWhereATableIsBusyForAMoment(t *testing.T) {
	t.Parallel()
	busy, throttled, unknown := failure.ErrBusy, failure.ErrThrottled, failure.ErrUnknown
	for name, row := range map[string]struct {
		results []error
		code    failure.Code // of both
		writes  int          // 0: more than one
	}{
		"at once":                  {[]error{nil}, "", 1},
		"busy twice":               {[]error{busy, busy, nil}, "", 3},
		"short of units, once":     {[]error{throttled, nil}, "", 2},
		"not known, once":          {[]error{unknown, nil}, "", 2},
		"busy all the time":        {[]error{busy}, failure.Busy, 0},
		"short of units for good":  {[]error{throttled}, failure.Unavailable, 0},
		"something is missing":     {[]error{content.ErrMissing}, failure.NotFound, 1},
		"missing after a conflict": {[]error{busy, content.ErrMissing}, failure.NotFound, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for doing, act := range map[string]func(*access.Service) error{
				"make": func(s *access.Service) error {
					_, _, err := s.CreateToken(t.Context(), access.NewToken{Name: "Ada", Role: access.Viewer, AllProjects: true})
					return err
				},
				"revoke": func(s *access.Service) error { return s.RevokeToken(t.Context(), "", "tok_a") },
			} {
				store := &troubled{results: row.results}
				if doing == "make" && row.code == failure.NotFound {
					continue // a new token cannot be missing
				}
				now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
				s, err := access.New(access.Config{
					Tokens: store, Clock: func() time.Time { return now },
					Sleep: func(_ context.Context, d time.Duration) error { now = now.Add(d); return nil },
				})
				if err != nil {
					t.Fatal(err)
				}
				err = act(s)
				var refusal *failure.Error
				if errors.As(err, &refusal); (err == nil) != (row.code == "") || err != nil && (refusal == nil || refusal.Code != row.code) {
					t.Errorf("%s: %v, want %q", doing, err, row.code)
				}
				if row.writes == 0 && store.writes < 2 || row.writes > 0 && store.writes != row.writes {
					t.Errorf("%s: %d writes, want %d", doing, store.writes, row.writes)
				}
				if len(store.added) > 1 {
					t.Errorf("%s: %d tokens", doing, len(store.added))
				}
			}
		})
	}
}
