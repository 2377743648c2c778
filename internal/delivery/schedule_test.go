package delivery_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"colophon/internal/delivery"
)

func TestTriesFollowAtOneFiveFifteenAndThirtyMinutes(t *testing.T) {
	t.Parallel()
	for tries, want := range map[int64]time.Duration{
		1: time.Minute, 2: 5 * time.Minute, 3: 15 * time.Minute, 4: 30 * time.Minute,
	} {
		if got := delivery.Schedule(tries, now, now, "", 0); got.Used != want || !got.TryAt.Equal(now.Add(want)) || got.Asked != 0 {
			t.Errorf("after try %d: %+v, want %v", tries, got, want)
		}
		if got := delivery.Schedule(tries, now, now, "", 1); got.Used != want+want/20 {
			t.Errorf("after try %d with the most jitter: %v, want %v", tries, got.Used, want+want/20)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	imf := "Mon, 02 Jan 2006 15:04:05 GMT"
	for _, row := range []struct {
		name, value string
		asked, used time.Duration
	}{
		{"R01 120 seconds: later than the schedule", "120", 2 * time.Minute, 2 * time.Minute},
		{"sooner than the schedule: the schedule", "5", 5 * time.Second, time.Minute},
		{"R03 beyond all numbers: clamped, both kept", "999999999999999999999", 365 * 24 * time.Hour, 10 * time.Minute},
		{"a day: moved as far as the hour allows", "86400", 24 * time.Hour, 10 * time.Minute},
		{"R08 a date two minutes ahead", now.Add(2 * time.Minute).Format(imf), 2 * time.Minute, 2 * time.Minute},
		{"a date of RFC 850's form", now.Add(2 * time.Minute).Format("Monday, 02-Jan-06 15:04:05 GMT"), 2 * time.Minute, 2 * time.Minute},
		{"a date of asctime's form", now.Add(2 * time.Minute).Format(time.ANSIC), 2 * time.Minute, 2 * time.Minute},
		{"a date that is past: none", now.Add(-time.Minute).Format(imf), 0, time.Minute},
		{"negative: none", "-5", 0, time.Minute},
		{"with a sign: none", "+120", 0, time.Minute},
		{"a fraction: none", "1.5", 0, time.Minute},
		{"words: none", "soon", 0, time.Minute},
		{"zero: the schedule", "0", 0, time.Minute},
		{"within blanks", " 120\t", 2 * time.Minute, 2 * time.Minute},
		{"empty", "", 0, time.Minute},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			got := delivery.Schedule(1, now, now, row.value, 0)
			if got.Asked != row.asked || got.Used != row.used {
				t.Errorf("asked %v used %v, want %v and %v", got.Asked, got.Used, row.asked, row.used)
			}
		})
	}
}

// R15, R17: whatever receivers ask and however the jitter falls, no try comes
// earlier than planned, none earlier than asked unless the hour forbids it, and
// the waits of all five fit in the hour.
func TestFiveTriesStayWithinTheHour(t *testing.T) {
	t.Parallel()
	planned := []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute}
	rapid.Check(t, func(t *rapid.T) {
		at := now
		for tries := int64(1); tries < delivery.Tries; tries++ {
			asked := rapid.SampledFrom([]string{"", "1", "120", "1000", "86400", "999999999999999999999"}).Draw(t, "asked")
			jitter := rapid.Float64Range(0, 0.999).Draw(t, "jitter")
			got := delivery.Schedule(tries, now, at, asked, jitter)
			if got.Used < planned[tries-1] {
				t.Fatalf("Retry-After %q makes try %d wait %v, less than planned", asked, tries+1, got.Used)
			}
			at = at.Add(got.Used)
			left := now.Add(delivery.RetryHorizon).Sub(at)
			for _, wait := range planned[tries:] {
				left -= wait
			}
			if got.Used < got.Asked && left > 0 {
				t.Fatalf("waits %v where %v was asked and the hour has %v left", got.Used, got.Asked, left)
			}
		}
		if span := at.Sub(now); span > delivery.RetryHorizon {
			t.Fatalf("the last try begins %v after the first", span)
		}
	})
}

func FuzzParseRetryAfter(f *testing.F) {
	for _, seed := range []string{"", "0", "120", "-1", "99999999999999999999", "Sun, 01 Mar 2026 12:02:00 GMT", "Sunday, 01-Mar-26 12:02:00 GMT", "Sun Mar  1 12:02:00 2026", "Mon, 32 Foo", "\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		if got := delivery.ParseRetryAfter(value, now); got < 0 || got > 365*24*time.Hour {
			t.Errorf("%q reads as %v", value, got)
		}
	})
}
