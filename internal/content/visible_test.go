package content_test

import (
	"context"
	"errors"
	"testing"

	"colophon/internal/content"
)

// halfVisible shows a transaction's items one after another: a release is
// missing for the first so many reads.
type halfVisible struct {
	content.Store
	missing int
}

func (h *halfVisible) Release(ctx context.Context, project string, number int64) (content.Release, error) {
	if h.missing > 0 {
		h.missing--
		return content.Release{}, content.ErrMissing
	}
	return h.Store.Release(ctx, project, number)
}

func TestARepeatWaitsForTheReleaseThatItsKeyMade(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.publish(content.PublishRequest{Force: true, IdempotencyKey: "key"})
	var half *halfVisible
	again := w.service(func(c *content.Config) {
		half = &halfVisible{Store: c.Store, missing: 3}
		c.Store = half
	})
	got, err := again.Publish(t.Context(), w.project, content.PublishRequest{Force: true, IdempotencyKey: "key"})
	if err != nil || !got.Replayed || got.Number != first.Number {
		t.Errorf("%+v, %v; want release %d again", got, err, first.Number)
	}
	if half.missing > 0 {
		t.Error("the release was never missing")
	}
}

func TestWhileOthersAreAtWorkNothingElseThatIsRefusedIsCertain(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		refusal content.Refusal
		busy    bool
	}{
		"others alone":                      {content.Refusal{Busy: true}, true},
		"others, and a release that exists": {content.Refusal{Busy: true, Other: []string{"release 2 exists"}}, true},
		"a release that exists":             {content.Refusal{Other: []string{"release 2 exists"}}, false},
		"others, and the project has moved": {content.Refusal{Busy: true, Project: &content.Project{}}, false},
		"others, and the key was used":      {content.Refusal{Busy: true, Use: &content.Use{}}, false},
	} {
		if got := errors.Is(&row.refusal, content.ErrBusy); got != row.busy {
			t.Errorf("%s: busy is %v, want %v", name, got, row.busy)
		}
	}
}
