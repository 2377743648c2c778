//go:build stack

package e2e_test

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"colophon/client"
)

// The functions' clock is moved, so it runs while no other test does.
func TestWhatFailedAfterwardsIsNotTheLastDeliveredAndRevivesNothing(t *testing.T) {
	r := newReceiver(t)
	r.says = func(_ int, q request) int {
		if q.release() == 1 || q.release() == 4 {
			return http.StatusNoContent
		}
		return http.StatusInternalServerError
	}
	p := newProject(t, r)
	p.becomes(p.publish(), client.DeliveryStateDelivered)
	p.becomes(p.publish(), client.DeliveryStateRetrying)
	p.publish()
	p.supersededBy(2, 3, 1)
	for try := int64(1); try < 5; try++ {
		var d client.Delivery
		eventually(t, fmt.Sprintf("try %d of release 3 is recorded", try), func() bool {
			d = p.delivery(3)
			return d.Tries == try
		}, func() string { return fmt.Sprintf("%d tries", d.Tries) })
		running.moveClock(t, time.Duration(try)*35*time.Minute)
		running.sweep(t)
	}
	p.becomes(3, client.DeliveryStateFailed)
	destination, err := p.api.GetDestination(t.Context(), client.GetDestinationParams{Project: p.id, Destination: p.hooks[0]})
	must(t, err)
	if got := destination.Response.DeliveredThrough.Value; got != 1 {
		t.Errorf("the last that arrived is %d, want 1", got)
	}
	p.supersededBy(2, 3, 1)
	p.becomes(p.publish(), client.DeliveryStateDelivered)
	if got, want := releases(r), []int64{1, 2, 3, 3, 3, 3, 3, 4}; !slices.Equal(got, want) {
		t.Errorf("releases arrived as %v, want %v", got, want)
	}
	if got := r.requests()[7].Header.Get("Colophon-Previous"); got != "1" {
		t.Errorf("release 4 names %q as the one before it, want 1", got)
	}
}

func TestAReleaseThatWaitsForItsRetryIsSkippedByANewerOneThatIsSentAtOnce(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, http.StatusServiceUnavailable, http.StatusNoContent)
	p := newProject(t, r)
	waits := p.becomes(p.publish(), client.DeliveryStateRetrying)
	p.becomes(p.publish(), client.DeliveryStateDelivered)
	d := p.supersededBy(1, 2, 1)
	if len(d.Attempts) != 1 || d.Attempts[0].Class != "unavailable" || d.Attempts[0].Status.Value != http.StatusServiceUnavailable {
		t.Errorf("release 1's tries: %+v", d.Attempts)
	}
	got := r.requests()
	if !slices.Equal(releases(r), []int64{1, 2}) || !got[1].At.Before(waits.TryAt.Value) {
		t.Errorf("releases arrived as %v, the last at %v; release 1 would have been tried at %v", releases(r), got[len(got)-1].At, waits.TryAt.Value)
	}
}

func TestAReleaseThatIsBeingSentEndsAndIsRecordedBeforeTheNewerOneIsSent(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		answer  int
		becomes func(p *project)
	}{
		"it arrived": {http.StatusNoContent, func(p *project) { p.becomes(1, client.DeliveryStateDelivered) }},
		"it failed":  {http.StatusServiceUnavailable, func(p *project) { p.supersededBy(1, 2, 1) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answer := make(chan struct{})
			letGo := sync.OnceFunc(func() { close(answer) })
			r := newReceiver(t)
			t.Cleanup(letGo) // before the receiver closes, which waits for its answers
			var answered time.Time
			r.says = func(_ int, q request) int {
				if q.release() != 1 {
					return http.StatusNoContent
				}
				<-answer
				answered = time.Now()
				return row.answer
			}
			p := newProject(t, r)
			p.publish()
			eventually(t, "release 1 is being sent", func() bool {
				d, err := p.api.GetDestination(t.Context(), client.GetDestinationParams{Project: p.id, Destination: p.hooks[0]})
				must(t, err)
				return d.Response.Sending.Value == 1 && len(r.requests()) == 1
			}, func() string { return "" })
			p.publish()
			letGo()
			r.next(t)
			second := r.next(t)
			if got := releases(r); !slices.Equal(got, []int64{1, 2}) || second.At.Before(answered) {
				t.Errorf("releases arrived as %v, the second at %v; the first was answered at %v", got, second.At, answered)
			}
			p.becomes(2, client.DeliveryStateDelivered)
			row.becomes(p)
			d := p.delivery(1)
			if len(d.Attempts) != 1 || d.Attempts[0].Status.Value != row.answer {
				t.Errorf("release 1's attempts: %+v", d.Attempts)
			}
		})
	}
}

func TestOldContentThatIsPublishedAgainIsANewReleaseAndSupersedesAsUsual(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	r.says = func(_ int, q request) int {
		if q.release() == 2 {
			return http.StatusServiceUnavailable
		}
		return http.StatusNoContent
	}
	p := newProject(t, r)
	publish := func(text string) int64 { // unforced: there is something to publish
		t.Helper()
		p.save("guide.md", text)
		release, err := p.api.PublishRelease(t.Context(), client.OptPublish{}, client.PublishReleaseParams{Project: p.id})
		must(t, err)
		return release.Response.Number
	}
	p.becomes(publish("old"), client.DeliveryStateDelivered)
	p.becomes(publish("new"), client.DeliveryStateRetrying)
	if again := publish("old"); again != 3 {
		t.Fatalf("the old content is release %d, want 3", again)
	}
	p.becomes(3, client.DeliveryStateDelivered)
	p.supersededBy(2, 3, 1)
	digest := func(release int64) string {
		page, err := p.api.ListReleaseDocuments(t.Context(), client.ListReleaseDocumentsParams{Project: p.id, Release: release})
		must(t, err)
		if len(page.Documents) != 1 {
			t.Fatalf("release %d holds %d documents", release, len(page.Documents))
		}
		return page.Documents[0].Digest
	}
	if digest(1) != digest(3) || digest(1) == digest(2) {
		t.Errorf("digests %s, %s, %s", digest(1), digest(2), digest(3))
	}
	got := r.requests()
	if !slices.Equal(releases(r), []int64{1, 2, 3}) || got[0].id() == got[2].id() || got[0].Body == got[2].Body {
		t.Errorf("releases arrived as %v, with ids %s and %s", releases(r), got[0].id(), got[len(got)-1].id())
	}
}

// supersededBy waits until a release is skipped for a newer one, with its tries kept.
func (p *project) supersededBy(release, successor, tries int64) client.Delivery {
	p.t.Helper()
	d := p.becomes(release, client.DeliveryStateSkipped)
	if d.Reason.Value != "superseded" || d.Successor.Value != successor || d.Tries != tries {
		p.t.Errorf("release %d is skipped: %s by %d after %d tries, want superseded by %d after %d",
			release, d.Reason.Value, d.Successor.Value, d.Tries, successor, tries)
	}
	return d
}

// releases are those of the requests that arrived, in their order.
func releases(r *receiver) (list []int64) {
	for _, q := range r.requests() {
		list = append(list, q.release())
	}
	return list
}
