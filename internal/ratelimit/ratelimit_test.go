package ratelimit_test

import (
	"testing"
	"time"

	"colophon/internal/ratelimit"
)

var (
	noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	ten  = ratelimit.PerMinute(10, 1)
)

// takeAll takes so many calls at once, and fails where one is refused.
func takeAll(t *testing.T, l ratelimit.Limit, full, now time.Time, calls int) time.Time {
	t.Helper()
	for call := range calls {
		next, wait := l.Take(full, now)
		if wait > 0 {
			t.Fatalf("call %d: wait %v", call+1, wait)
		}
		full = next
	}
	return full
}

func TestTheBurstIsAllowedAtOnceAndTheNextCallIsNot(t *testing.T) {
	t.Parallel()
	full := takeAll(t, ten, time.Time{}, noon, 10)
	if same, wait := ten.Take(full, noon); wait != time.Minute || !same.Equal(full) {
		t.Errorf("got %v, %v", same, wait)
	}
}

func TestACallerWhoWaitsAsLongAsItIsSaidIsAllowed(t *testing.T) {
	t.Parallel()
	for _, limit := range []ratelimit.Limit{ten, ratelimit.PerMinute(60, 10), ratelimit.PerMinute(1, 7), ratelimit.PerMinute(3, 90)} {
		for ahead := time.Duration(0); ahead < limit.Every; ahead += limit.Every/7 + 1 {
			now := noon
			full := takeAll(t, limit, time.Time{}, now, limit.Burst)
			now = now.Add(ahead)
			_, wait := limit.Take(full, now)
			if wait < time.Second || wait%time.Second != 0 {
				t.Errorf("%+v after %v: wait %v", limit, ahead, wait)
			}
			if _, again := limit.Take(full, now.Add(wait)); again != 0 {
				t.Errorf("%+v after %v: waited %v, and then %v", limit, ahead, wait, again)
			}
		}
	}
}

func TestAfterTheBurstOneCallIsAllowedEachInterval(t *testing.T) {
	t.Parallel()
	full, allowed := time.Time{}, 0
	for second := range 600 {
		for range 100 {
			next, wait := ten.Take(full, noon.Add(time.Duration(second)*time.Second))
			if wait == 0 {
				full, allowed = next, allowed+1
			}
		}
	}
	if allowed != 19 { // ten at once, and one after each of nine minutes
		t.Errorf("%d calls were allowed", allowed)
	}
}

func TestAnUnusedLimitDoesNotSaveMoreThanItsBurst(t *testing.T) {
	t.Parallel()
	full := takeAll(t, ten, noon, noon.Add(1000*time.Hour), 10)
	if _, wait := ten.Take(full, noon.Add(1000*time.Hour)); wait == 0 {
		t.Error("an eleventh call was allowed")
	}
}

func TestAStateFarAheadIsCorrectedByTheNextCall(t *testing.T) {
	t.Parallel()
	refill := 10 * time.Minute
	for _, ahead := range []time.Duration{refill + time.Minute + 1, time.Hour, 1 << 62} {
		next, wait := ten.Take(noon.Add(ahead), noon)
		if wait != 0 || !next.Equal(noon.Add(refill)) {
			t.Errorf("%v ahead: wait %v, then full at %v", ahead, wait, next)
		}
		if _, wait := ten.Take(next, noon); wait != time.Minute {
			t.Errorf("%v ahead: the call after it waits %v", ahead, wait)
		}
	}
}

func TestAStateThatAnotherHostsClockExplainsIsKept(t *testing.T) {
	t.Parallel()
	full := noon.Add(10*time.Minute + time.Second) // exhausted by a host that is a second ahead
	if same, wait := ten.Take(full, noon); wait != time.Minute+time.Second || !same.Equal(full) {
		t.Errorf("wait %v, full at %v", wait, same)
	}
}

func TestALimitThatAllowsNothingOrEverythingIsRefused(t *testing.T) {
	t.Parallel()
	for _, wrong := range []ratelimit.Limit{{}, {Burst: 1}, {Every: 1}, {Burst: -1, Every: time.Minute}, {Burst: 1, Every: -1}} {
		if wrong.Validate() == nil {
			t.Errorf("%+v is taken", wrong)
		}
	}
	if err := ten.Validate(); err != nil {
		t.Error(err)
	}
}
