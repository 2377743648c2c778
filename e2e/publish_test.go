//go:build stack

package e2e_test

import (
	"io"
	"net/http"
	"sort"
	"strings"
	"sync"
	"testing"

	"colophon/client"
)

func TestAnAnnouncementArrivesAndIsDelivered(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	p := newProject(t, r)
	release := p.publish()
	got := r.next(t)
	if got.release() != release || got.Header.Get("Colophon-Attempt") != "1" {
		t.Errorf("arrived: release %d, attempt %s", got.release(), got.Header.Get("Colophon-Attempt"))
	}
	d := p.becomes(release, client.DeliveryStateDelivered)
	if d.WebhookId != got.id() || len(d.Attempts) != 1 {
		t.Errorf("delivery %+v", d)
	}
}

// Down, then up.
func TestTheSecondTrySucceedsWithTheSameIDAndBody(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, http.StatusServiceUnavailable, http.StatusNoContent)
	p := newProject(t, r)
	release := p.publish()
	first := r.next(t)
	p.becomes(release, client.DeliveryStateRetrying)
	_, err := p.api.TryNow(t.Context(), client.TryNowParams{Project: p.id, Destination: p.hooks[0], Release: release})
	must(t, err)
	second := r.next(t)
	if first.id() != second.id() || first.Body != second.Body {
		t.Errorf("first %s %s, second %s %s", first.id(), first.Body, second.id(), second.Body)
	}
	if d := p.becomes(release, client.DeliveryStateDelivered); d.Tries != 2 {
		t.Errorf("%d tries", d.Tries)
	}
}

func TestARefusalIsOneTryWithAReadableReason(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, http.StatusBadRequest)
	p := newProject(t, r)
	d := p.becomes(p.publish(), client.DeliveryStateFailed)
	if d.Tries != 1 || len(r.requests()) != 1 || d.Reason.Value != "refused" {
		t.Errorf("%d tries, %d requests, reason %q", d.Tries, len(r.requests()), d.Reason.Value)
	}
	if story := strings.Join(d.Timeline, " "); !strings.Contains(story, "400") || !strings.Contains(story, "refused") {
		t.Errorf("the timeline does not say why: %s", story)
	}
}

func TestAnIdempotencyKeyMakesOneReleaseAndRefusesAnotherRequest(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	p := newProject(t, r)
	ask := func(message string) (*client.ReleaseHeaders, error) {
		return p.api.PublishRelease(t.Context(), client.NewOptPublish(client.Publish{Message: client.NewOptString(message)}),
			client.PublishReleaseParams{Project: p.id, IdempotencyKey: client.NewOptString("key-1")})
	}
	first, err := ask("one")
	must(t, err)
	again, err := ask("one")
	must(t, err)
	if first.Response.Number != again.Response.Number || !again.IdempotentReplayed.Or(false) || first.IdempotentReplayed.Or(false) {
		t.Errorf("first %+v, again %+v", first, again)
	}
	_, err = ask("two")
	if problem := client.AsProblem(err); problem == nil || problem.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("another request with the same key: %v, want 422", err)
	}
	p.becomes(1, client.DeliveryStateDelivered)
	if n := len(r.requests()); n != 1 {
		t.Errorf("%d announcements", n)
	}
}

func TestTwentyForcedPublishesSideBySideMakeReleasesWithoutAGap(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	p.save("before.md", "saved before all of them")
	numbers := make([]int, 20)
	var wait sync.WaitGroup
	for i := range numbers {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for {
				release, err := p.api.PublishRelease(t.Context(), client.NewOptPublish(client.Publish{Force: client.NewOptBool(true)}),
					client.PublishReleaseParams{Project: p.id})
				if problem := client.AsProblem(err); problem != nil && problem.Response.Code.Value == "busy" {
					continue // "nothing was done; ask again": a local gateway is slow enough for that
				}
				if err != nil {
					t.Error(err)
					return
				}
				numbers[i] = int(release.Response.Number)
				return
			}
		}()
	}
	wait.Wait()
	sort.Ints(numbers)
	for i, n := range numbers {
		if n != i+1 {
			t.Fatalf("releases %v, want 1 to 20", numbers)
		}
	}
	for _, release := range []int64{1, 20} {
		page, err := p.api.ListReleaseDocuments(t.Context(), client.ListReleaseDocumentsParams{Project: p.id, Release: release})
		must(t, err)
		if len(page.Documents) != 2 {
			t.Errorf("release %d holds %d documents, want both that were saved before", release, len(page.Documents))
		}
	}
}

func TestBadInputIsAnsweredWithAProblemAndWritesNothing(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	for _, row := range []struct {
		name, method, path, token, kind, body string
		want                                  int
	}{
		{"no token", "GET", "/projects/" + p.id, "", "", "", 401},
		{"a wrong token", "GET", "/projects/" + p.id, "clp_wrong", "", "", 401},
		{"JSON that breaks off", "POST", "/projects", running.token, "application/json", `{"name":`, 400},
		{"something behind the JSON", "POST", "/projects", running.token, "application/json", `{"name":"a"} b`, 400},
		{"an unknown field", "POST", "/projects", running.token, "application/json", `{"name":"a","extra":1}`, 400},
		{"a field that is missing", "POST", "/projects", running.token, "application/json", `{}`, 400},
		{"a document over the limit", "PUT", "/projects/" + p.id + "/document?path=big.md", running.token, "text/markdown", strings.Repeat("x", 256<<10+1), 413},
		{"an unknown project", "GET", "/projects/prj_aaaaaaaaaaaaaaaa", running.token, "", "", 404},
		{"a publish of an unknown project", "POST", "/projects/prj_aaaaaaaaaaaaaaaa/releases", running.token, "application/json", `{}`, 404},
		{"an unknown route", "GET", "/nothing/here", running.token, "", "", 404},
		{"a wrong method", "DELETE", "/projects", running.token, "", "", 405},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			q, err := http.NewRequestWithContext(t.Context(), row.method, running.API+row.path, strings.NewReader(row.body))
			must(t, err)
			if row.token != "" {
				q.Header.Set("Authorization", "Bearer "+row.token)
			}
			if row.kind != "" {
				q.Header.Set("Content-Type", row.kind)
			}
			answer, err := http.DefaultClient.Do(q)
			must(t, err)
			defer answer.Body.Close()
			text, err := io.ReadAll(answer.Body)
			must(t, err)
			if answer.StatusCode != row.want || !strings.HasPrefix(answer.Header.Get("Content-Type"), "application/problem+json") {
				t.Errorf("answered %d %s: %s, want %d and a problem", answer.StatusCode, answer.Header.Get("Content-Type"), text, row.want)
			}
		})
	}
	t.Cleanup(func() {
		project, err := running.client(t).GetProject(t.Context(), client.GetProjectParams{Project: p.id})
		if err == nil && project.NewestRelease.Set {
			t.Error("a bad request published something")
		}
	})
}
