package access_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"colophon/internal/access"
	"colophon/internal/failure"
	"colophon/internal/ratelimit"
	"colophon/internal/store"
)

func TestATokenEndsAfter90DaysUnlessSomethingElseIsSaid(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	made, plain := g.token(t, access.NewToken{Name: "Ada", Role: access.Viewer})
	if made.ExpiresAt != g.now.AddDate(0, 0, 90) {
		t.Errorf("expires %v", made.ExpiresAt)
	}
	g.now = g.now.AddDate(0, 0, 90)
	if _, err := g.Authenticate(t.Context(), plain); code(t, err) != failure.Unauthenticated {
		t.Errorf("after 90 days: %v", err)
	}
}

func (g *gate) principal(t *testing.T, plain string) access.Principal {
	t.Helper()
	p, err := g.Authenticate(t.Context(), plain)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestALastUseIsWrittenOnceAnHourAndNeverBringsATokenBack(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	made, plain := g.token(t, access.NewToken{Name: "Ada", Role: access.Viewer, Forever: true})
	lastUse := func() time.Time {
		t.Helper()
		list, err := g.ListTokens(t.Context(), "")
		if err != nil || len(list) != 1 {
			t.Fatalf("listed %+v, %v", list, err)
		}
		return list[0].LastUsedAt
	}
	if used := lastUse(); !used.IsZero() {
		t.Errorf("before it was used: %v", used)
	}
	first := g.now
	never := g.principal(t, plain)
	for _, step := range []struct {
		after    time.Duration
		due      bool
		recorded time.Time
	}{
		{0, true, first},
		{time.Hour - time.Millisecond, false, first},
		{time.Millisecond, true, first.Add(time.Hour)},
	} {
		g.now = g.now.Add(step.after)
		p := g.principal(t, plain)
		if due := g.UseIsDue(p); due != step.due {
			t.Errorf("at %v: due is %v", g.now, due)
		}
		if err := g.RecordUse(t.Context(), p); err != nil {
			t.Error(err)
		}
		if used := lastUse(); !used.Equal(step.recorded) {
			t.Errorf("at %v: used %v, want %v", g.now, used, step.recorded)
		}
	}
	if err := g.RecordUse(t.Context(), never); err != nil || !lastUse().Equal(first.Add(time.Hour)) {
		t.Errorf("by a request that read it before: %v, %v", lastUse(), err)
	}

	g.now = g.now.Add(2 * time.Hour)
	p := g.principal(t, plain)
	if err := g.RevokeToken(t.Context(), "", made.ID); err != nil {
		t.Fatal(err)
	}
	if err := g.RecordUse(t.Context(), p); err != nil {
		t.Errorf("after it was revoked: %v", err)
	}
	if _, err := g.Authenticate(t.Context(), plain); code(t, err) != failure.Unauthenticated {
		t.Errorf("it is back: %v", err)
	}
}

// limited is a service of its own, as another process is, with a limit, on the
// gate's table. Its writes are counted.
func (g *gate) limited(t *testing.T, limit ratelimit.Limit, writes *int) *access.Service {
	t.Helper()
	var mu sync.Mutex
	engine := &countingWrites{Engine: g.engine, count: func() { mu.Lock(); *writes++; mu.Unlock() }}
	tokens, err := store.NewTokens(store.TokensConfig{Engine: engine, Table: g.table})
	if err != nil {
		t.Fatal(err)
	}
	s, err := access.New(access.Config{Tokens: tokens, Clock: func() time.Time { return g.now }, Limit: limit})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// take authenticates and takes a request; it returns how long to wait, 0 where it was allowed.
func take(t *testing.T, s *access.Service, plain string) time.Duration {
	t.Helper()
	p, err := s.Authenticate(t.Context(), plain)
	if err != nil {
		t.Fatal(err)
	}
	err = s.TakeRequest(t.Context(), p)
	var refusal *failure.Error
	switch {
	case err == nil:
		return 0
	case errors.As(err, &refusal) && refusal.Code == access.CodeTooOften && refusal.RetryAfter >= time.Second:
		return refusal.RetryAfter
	}
	t.Fatalf("refused otherwise: %v", err)
	return 0
}

func allowed(t *testing.T, s *access.Service, plain string, asked int) (n int) {
	t.Helper()
	for range asked {
		if take(t, s, plain) == 0 {
			n++
		}
	}
	return n
}

func TestATokenMakesSoManyRequestsAtOnceAndSoManyAMinute(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	_, plain := g.token(t, access.NewToken{Name: "Ada", Role: access.Viewer, Forever: true})
	_, other := g.token(t, access.NewToken{Name: "CI", Role: access.Viewer, Forever: true})
	writes := 0
	s := g.limited(t, ratelimit.PerMinute(20, 60), &writes)
	if n := allowed(t, s, plain, 10); n != 10 || writes != 0 {
		t.Errorf("the first half: %d of 10 are allowed, with %d writes", n, writes)
	}
	if n := allowed(t, s, plain, 10); n != 10 || writes != 10 {
		t.Errorf("the other half: %d of 10 are allowed, with %d writes", n, writes)
	}
	if n := allowed(t, s, plain, 50); n != 0 || writes != 10 {
		t.Errorf("past it: %d of 50 are allowed, with %d writes", n, writes-10)
	}
	if n := allowed(t, s, other, 10); n != 10 {
		t.Errorf("another token: %d of 10 are allowed", n)
	}
	wait := take(t, s, plain)
	g.now = g.now.Add(wait)
	if again := take(t, s, plain); again != 0 {
		t.Errorf("after the %v that were asked for: wait %v", wait, again)
	}
	total := 0
	for range 600 { // ten minutes
		g.now = g.now.Add(time.Second)
		total += allowed(t, s, plain, 3)
	}
	if total < 598 || total > 602 {
		t.Errorf("%d requests in ten minutes of 60 each", total)
	}
}

func TestATokensProcessesShareTheSecondHalfOfItsLimit(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	_, plain := g.token(t, access.NewToken{Name: "Ada", Role: access.Viewer, Forever: true})
	writes, n := 0, 0
	var mu sync.Mutex
	var all sync.WaitGroup
	for range 3 {
		s := g.limited(t, ratelimit.PerMinute(40, 1), &writes)
		all.Go(func() {
			ok := allowed(t, s, plain, 60)
			mu.Lock()
			n += ok
			mu.Unlock()
		})
	}
	all.Wait()
	if n != 3*20+20 {
		t.Errorf("%d are allowed, want each process's half and one more", n)
	}
}

func TestWhatCannotBeCountedIsRefusedPastHalfOfTheLimitOnly(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	_, plain := g.token(t, access.NewToken{Name: "Ada", Role: access.Viewer})
	p := g.principal(t, plain)
	s, err := access.New(access.Config{
		Tokens: silent{}, Clock: func() time.Time { return g.now }, Limit: ratelimit.PerMinute(2, 1),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.TakeRequest(t.Context(), p); err != nil {
		t.Errorf("the first half: %v", err)
	}
	if err := s.TakeRequest(t.Context(), p); code(t, err) != failure.Unavailable {
		t.Errorf("past it: %v", err)
	}
}

func TestASmallLimitHasItsBurstAndItsRate(t *testing.T) {
	t.Parallel()
	for burst := 1; burst <= 5; burst++ {
		t.Run(fmt.Sprint(burst), func(t *testing.T) {
			t.Parallel()
			g := newGate(t)
			_, plain := g.token(t, access.NewToken{Name: "Ada", Role: access.Viewer, Forever: true})
			writes := 0
			s := g.limited(t, ratelimit.PerMinute(burst, 60), &writes)
			if n := allowed(t, s, plain, burst+3); n != burst || writes != (burst+1)/2 {
				t.Errorf("%d are allowed at once, with %d writes", n, writes)
			}
			wait := take(t, s, plain)
			g.now = g.now.Add(wait)
			if again := take(t, s, plain); again != 0 {
				t.Errorf("after the %v that were asked for: wait %v", wait, again)
			}
			total := 0
			for range 120 { // two minutes
				g.now = g.now.Add(time.Second)
				total += allowed(t, s, plain, 2)
			}
			if total < 118 || total > 122 {
				t.Errorf("%d requests in two minutes of 60 each", total)
			}
		})
	}
}
