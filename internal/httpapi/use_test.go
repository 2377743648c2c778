package httpapi_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"colophon/internal/access"
	"colophon/internal/failure"
)

func TestATokensUseIsRecordedInParallelAndBeforeTheAnswerLeaves(t *testing.T) {
	t.Parallel()
	for name, outcome := range map[string]error{"it is recorded": nil, "it is not": errors.New("marked")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begun, ended := make(chan struct{}), false
			w := &world{}
			w.record = func(ctx context.Context) error {
				close(begun)
				deadline, bounded := ctx.Deadline()
				if !bounded || time.Until(deadline) > time.Second {
					t.Errorf("it may take until %v", deadline)
				}
				ended = true
				return outcome
			}
			h, _ := api(t, w)
			answer := serve(h, ask("GET", "/projects", "viewer", ""))
			<-begun
			if answer.Code != http.StatusOK || !ended {
				t.Errorf("status %d, recorded before the answer: %v", answer.Code, ended)
			}
		})
	}
}

func TestARecordOfUseThatHangsIsGivenUp(t *testing.T) {
	t.Parallel()
	w := &world{}
	w.record = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	h, _ := api(t, w)
	if answer := serve(h, ask("GET", "/projects", "viewer", "")); answer.Code != http.StatusOK {
		t.Errorf("status %d", answer.Code)
	}
}

func TestATokenOverItsLimitIsAskedToWaitAndNothingIsDone(t *testing.T) {
	t.Parallel()
	w := &world{tooOften: &failure.Error{Code: access.CodeTooOften, Message: "Wait 7 seconds.", RetryAfter: 7 * time.Second}}
	h, _ := api(t, w)
	answer := serve(h, ask("GET", "/projects", "viewer", ""))
	if answer.Code != http.StatusTooManyRequests || answer.Header().Get("Retry-After") != "7" || w.calls() != 0 {
		t.Errorf("status %d, Retry-After %q, %d calls", answer.Code, answer.Header().Get("Retry-After"), w.calls())
	}
	if answer := serve(h, ask("GET", "/health", "", "")); answer.Code != http.StatusOK {
		t.Errorf("health: status %d", answer.Code)
	}
}
