package delivery_test

import (
	"strings"
	"testing"
	"time"

	"colophon/internal/delivery"
	"colophon/internal/egress"
)

func TestATimelineRoundsTheWaitsThatItTells(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 9, 7, 7, 6, 0, time.UTC)
	for _, row := range []struct {
		used time.Duration
		says string
	}{
		{61_400 * time.Millisecond, "61 s"},
		{61_600 * time.Millisecond, "62 s"},
		{10*time.Minute - 100*time.Millisecond, "10 min"},
		{15*time.Minute + 40*time.Second, "16 min"},
		{3*time.Hour - time.Second, "3 h"},
	} {
		d := delivery.Delivery{
			Status: delivery.Retrying, CreatedAt: now, Tries: 1, Numbered: 1, TryAt: now.Add(row.used), Asked: 8760 * time.Hour, Used: row.used,
			Attempts: []delivery.Attempt{{Number: 1, Round: 1, At: now, Class: delivery.ClassUnavailable, Status: 503, Asked: 8760 * time.Hour, Used: row.used}},
		}
		story := strings.Join(delivery.Timeline(d, false, now), "\n")
		for _, sentence := range []string{
			"It asked to wait 8760 h; " + row.says + " were waited.",
			"The receiver asked to wait 8760 h; " + row.says + " are waited.",
		} {
			if !strings.Contains(story, sentence) {
				t.Errorf("after a wait of %v it does not say %q:\n%s", row.used, sentence, story)
			}
		}
	}
}

func TestADeliveryThatCannotBeReadSaysWhatToDoWhereItsDestinationIsDamagedToo(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 9, 7, 7, 6, 0, time.UTC)
	d := delivery.Delivery{Status: delivery.Failed, Reason: delivery.Unreadable, CreatedAt: now, EndedAt: now}
	story := strings.Join(delivery.Timeline(d, false, now), "\n")
	for _, advice := range []string{"Publish again", "remove the destination and add it again"} {
		if !strings.Contains(story, advice) {
			t.Errorf("it does not say %q:\n%s", advice, story)
		}
	}
}

func TestADeliveryThatWasBlockedSaysWhy(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 9, 7, 7, 6, 0, time.UTC)
	for detail, says := range map[egress.Detail][2]string{
		egress.DetailNone:       {"the address is not public", "an address that leads to a public host"},
		egress.DetailOwnAPI:     {"the address is Colophon's own API", "Give the destination the receiver's address."},
		egress.DetailNotAllowed: {"the address has a scheme, port or form that is not called", "starts with https:// and has no port"},
	} {
		d := delivery.Delivery{
			Status: delivery.Failed, Reason: delivery.Reason(delivery.ClassBlocked), CreatedAt: now, EndedAt: now, Numbered: 1, Tries: 1,
			Attempts: []delivery.Attempt{{Number: 1, Round: 1, At: now, Class: delivery.ClassBlocked, Detail: string(detail), Received: delivery.NotReceived}},
		}
		story := strings.Join(delivery.Timeline(d, false, now), "\n")
		if !strings.Contains(story, "Failed: "+says[0]+", so nothing was sent.") || !strings.Contains(story, says[1]) || strings.Count(story, says[0]) != 2 {
			t.Errorf("%q: it says:\n%s", detail, story)
		}
	}
}
