package delivery_test

import (
	"testing"
	"time"

	"colophon/internal/delivery"
)

func tried(tries int64) func(*delivery.Delivery) {
	return func(d *delivery.Delivery) {
		d.Tries, d.Numbered, d.FirstTryAt = tries, tries, now.Add(-time.Minute)
		if tries > 0 {
			d.Status = delivery.Retrying
		}
	}
}

func lost(n int64) func(*delivery.Delivery) {
	return func(d *delivery.Delivery) { d.Lost = n }
}

// The rows are the protocol's table of answers.
func TestAfterAttempt(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		class  delivery.Class
		tries  int64
		status delivery.Status
		reason delivery.Reason
		next   time.Duration
	}{
		{class: delivery.ClassDelivered, status: delivery.Delivered},
		{class: delivery.ClassDelivered, tries: 4, status: delivery.Delivered},
		{class: delivery.ClassGone, status: delivery.Failed, reason: "gone"},
		{class: delivery.ClassRefused, status: delivery.Failed, reason: "refused"},
		{class: delivery.ClassBlocked, status: delivery.Failed, reason: "blocked"},
		{class: delivery.ClassUnavailable, status: delivery.Retrying, next: time.Minute},
		{class: delivery.ClassDNS, tries: 1, status: delivery.Retrying, next: 5 * time.Minute},
		{class: delivery.ClassConnect, tries: 2, status: delivery.Retrying, next: 15 * time.Minute},
		{class: delivery.ClassTLS, tries: 3, status: delivery.Retrying, next: 30 * time.Minute},
		{class: delivery.ClassTimeout, tries: 4, status: delivery.Failed, reason: "timeout"},
		{class: delivery.ClassReset, status: delivery.Retrying, next: time.Minute},
		{class: delivery.ClassBadAnswer, status: delivery.Retrying, next: time.Minute},
		{class: delivery.ClassNotHTTP, status: delivery.Retrying, next: time.Minute},
		{class: delivery.ClassLongHeaders, tries: 4, status: delivery.Failed, reason: "headers too large"},
	} {
		d, h := *queued(5, tried(row.tries)), *heldFor(5, 10*time.Second)
		got := delivery.AfterAttempt(d, h, delivery.Outcome{Class: row.class, Received: delivery.Answered}, now, 0)
		if got.Status != row.status || got.Reason != row.reason || got.Tries != row.tries+1 {
			t.Errorf("%s after %d tries: %s %q, tries %d", row.class, row.tries, got.Status, got.Reason, got.Tries)
		}
		if row.next > 0 && (!got.TryAt.Equal(now.Add(row.next)) || got.SweepAt.Before(got.TryAt)) {
			t.Errorf("%s after %d tries: next %v, swept %v, want in %v", row.class, row.tries, got.TryAt, got.SweepAt, row.next)
		}
		if a := got.Attempt; a.Number != h.Attempt || a.Token != h.Token || a.By != delivery.ByRecord || a.Class != row.class {
			t.Errorf("%s: attempt %+v is not the claim's", row.class, a)
		}
	}
}

func TestAShortWaitRidesOnTheMessageAndALongOneIsTheSweepers(t *testing.T) {
	t.Parallel()
	o := delivery.Outcome{Class: delivery.ClassUnavailable}
	short := delivery.AfterAttempt(*queued(5), *heldFor(5, time.Second), o, now, 0)
	if want := short.TryAt.Add(delivery.SweepDelay); !short.SweepAt.Equal(want) {
		t.Errorf("a wait of a minute is swept at %v, want %v", short.SweepAt, want)
	}
	long := delivery.AfterAttempt(*queued(5, tried(1)), *heldFor(5, time.Second), o, now, 0)
	if !long.SweepAt.Equal(long.TryAt) {
		t.Errorf("a wait of five minutes is swept at %v, want when it is due, %v", long.SweepAt, long.TryAt)
	}
}

func TestRetryAfterIsKeptAsAskedAndAsUsed(t *testing.T) {
	t.Parallel()
	o := delivery.Outcome{Class: delivery.ClassUnavailable, Status: 429, RetryAfter: "3600"}
	got := delivery.AfterAttempt(*queued(5), *heldFor(5, time.Second), o, now, 0)
	if got.Asked != time.Hour || got.Used >= time.Hour || got.Attempt.Asked != got.Asked || got.Attempt.Used != got.Used {
		t.Errorf("asked %v used %v, on the attempt %v and %v", got.Asked, got.Used, got.Attempt.Asked, got.Attempt.Used)
	}
}

func TestAfterLoss(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		d      *delivery.Delivery
		newest int64
		status delivery.Status
		reason delivery.Reason
		next   time.Duration
	}{
		{"the first lost attempt of a round is repeated at once", queued(5), 5, delivery.Retrying, "", 0},
		{"the second waits as any try", queued(5, tried(1), lost(1)), 5, delivery.Retrying, "", 5 * time.Minute},
		{"a newer one exists: superseded", queued(5), 6, delivery.Skipped, delivery.Superseded, 0},
		{"forced, a newer one exists: goes on", queued(5, forcedOver(6)), 6, delivery.Retrying, "", 0},
		{"the tries are used up: failed", queued(5, tried(4)), 5, delivery.Failed, "unknown", 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			h := *heldFor(5, -time.Minute)
			got := delivery.AfterLoss(*row.d, h, row.newest, now, 0)
			if got.Status != row.status || got.Reason != row.reason || got.Tries != row.d.Tries+1 || got.Lost != row.d.Lost+1 {
				t.Errorf("%s %q, tries %d, lost %d", got.Status, got.Reason, got.Tries, got.Lost)
			}
			if row.status == delivery.Retrying && !got.TryAt.Equal(now.Add(row.next)) {
				t.Errorf("next try %v, want in %v", got.TryAt, row.next)
			}
			if row.status == delivery.Skipped && got.Successor != row.newest {
				t.Errorf("superseded by %d, want %d", got.Successor, row.newest)
			}
			a := got.Attempt
			if a.Class != delivery.ClassUnknown || a.Received != delivery.MayHave || a.By != delivery.BySettle || a.Token != h.Token {
				t.Errorf("attempt %+v does not say that it may have been received", a)
			}
		})
	}
}

func TestOurFaultsWaitLongerEachTimeAndRememberTheFirst(t *testing.T) {
	t.Parallel()
	d := *queued(5)
	at := now
	for i, want := range []time.Duration{1, 2, 4, 8, 15, 15, 15} {
		ours, sweepAt := delivery.OursAfter(d, at)
		if got := sweepAt.Sub(at); got != want*time.Minute {
			t.Errorf("fault %d waits %v, want %v min", i+1, got, want)
		}
		if ours.Count != int64(i+1) || !ours.Since.Equal(now) {
			t.Errorf("fault %d counted as %+v", i+1, ours)
		}
		d.Ours, at = ours, sweepAt
	}
}

func TestClassOfStatus(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]delivery.Class{
		200: delivery.ClassDelivered, 201: delivery.ClassDelivered, 299: delivery.ClassDelivered,
		300: delivery.ClassRefused, 301: delivery.ClassRefused, 304: delivery.ClassRefused, 308: delivery.ClassRefused,
		400: delivery.ClassRefused, 401: delivery.ClassRefused, 404: delivery.ClassRefused, 422: delivery.ClassRefused, 499: delivery.ClassRefused,
		408: delivery.ClassUnavailable, 425: delivery.ClassUnavailable, 429: delivery.ClassUnavailable,
		410: delivery.ClassGone,
		500: delivery.ClassUnavailable, 503: delivery.ClassUnavailable, 599: delivery.ClassUnavailable,
		101: delivery.ClassUnavailable, 600: delivery.ClassUnavailable, 999: delivery.ClassUnavailable, 0: delivery.ClassUnavailable,
	} {
		if got := delivery.ClassOfStatus(status); got != want {
			t.Errorf("%d is %s, want %s", status, got, want)
		}
	}
}
