package access

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"colophon/internal/failure"
	"colophon/internal/ratelimit"
)

// CodeTooOften says that a token made too many requests in a short while.
const CodeTooOften failure.Code = "too-often"

// useInterval is how far a token's recorded last use may be behind: one write an
// hour is what a busy token costs, and whoever looks whether one is still used
// asks about days.
const useInterval = time.Hour

// UseIsDue says whether a use of the token is to be recorded.
func (s *Service) UseIsDue(p Principal) bool {
	return s.c.Clock().Sub(p.Token.LastUsedAt) >= useInterval
}

// RecordUse records that the token was used. A token that was revoked meanwhile
// stays revoked. Of several calls in one hour one writes.
func (s *Service) RecordUse(ctx context.Context, p Principal) error {
	now := s.c.Clock()
	return s.c.Tokens.RecordUse(ctx, p.hash, now, now.Add(-useInterval))
}

// halves divides a limit. One half is judged in this process's memory and costs
// nothing; what goes beyond it is judged by the other half, which is in the table
// and shared by all processes. So a token that one process serves has exactly its
// limit, and one that n serve has at most (n+1)/2 of it. A burst of one has no
// halves: it is the table's, and local is zero.
func halves(whole ratelimit.Limit) (local, shared ratelimit.Limit) {
	if whole.Burst < 2 {
		return ratelimit.Limit{}, whole
	}
	local = ratelimit.Limit{Burst: whole.Burst / 2, Every: 2 * whole.Every}
	return local, ratelimit.Limit{Burst: whole.Burst - local.Burst, Every: 2 * whole.Every}
}

// TakeRequest takes one request from the token's limit. Refusals are CodeTooOften
// and say when to ask again.
func (s *Service) TakeRequest(ctx context.Context, p Principal) error {
	if s.c.Limit == (ratelimit.Limit{}) {
		return nil
	}
	now := s.c.Clock()
	var local time.Duration
	if s.local != (ratelimit.Limit{}) {
		if local = s.takeLocally(p.hash, now); local == 0 {
			return nil
		}
	}
	shared, err := s.c.Tokens.TakeRequest(ctx, p.hash, p.Token.LimitedAt, now, s.shared)
	switch {
	case failure.NotDone(err), errors.Is(err, failure.ErrUnknown):
		// It is not let through: who is past half of the limit asks most of a table
		// that is short.
		return &failure.Error{
			Code: failure.Unavailable, Cause: err,
			Message: "The requests of this token cannot be counted just now. Nothing was done; ask again in a moment.",
		}
	case err != nil:
		return fmt.Errorf("count a request: %w", err)
	case shared == 0:
		return nil
	}
	wait := shared
	if local > 0 {
		wait = min(local, shared)
	}
	e := failure.New(CodeTooOften, "This token made too many requests in a short while. Wait %d seconds and ask again.", int(wait.Seconds()))
	e.RetryAfter = wait
	return e
}

// mostTaken is how many tokens' states are kept before those that are full again
// are dropped.
const mostTaken = 1000

func (s *Service) takeLocally(hash [sha256.Size]byte, now time.Time) (wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next, wait := s.local.Take(s.taken[hash], now)
	if wait > 0 {
		return wait
	}
	if len(s.taken) >= mostTaken {
		for other, full := range s.taken {
			if !full.After(now) {
				delete(s.taken, other)
			}
		}
	}
	s.taken[hash] = next
	return 0
}
