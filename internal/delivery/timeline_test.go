package delivery_test

import (
	"strings"
	"testing"
	"time"

	"colophon/internal/delivery"
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
