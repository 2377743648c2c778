package failure_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"colophon/internal/failure"
)

func TestEachOutcomeIsExplainedOnce(t *testing.T) {
	t.Parallel()
	marked := errors.New("marked")
	for name, c := range map[string]struct {
		err   error
		code  failure.Code // empty: a fault of our own
		says  string
		after time.Duration
	}{
		"moved":       {failure.ErrMoved, failure.Busy, "Others kept changing this", 0},
		"busy":        {failure.ErrBusy, failure.Busy, "Others kept changing this", 0},
		"throttled":   {failure.ErrThrottled, failure.Unavailable, "takes no more just now", 5 * time.Second},
		"unavailable": {failure.ErrUnavailable, failure.Unavailable, "does not answer just now", 0},
		"unknown":     {failure.ErrUnknown, failure.UnknownOutcome, "not known whether this was done", 0},
		"missing":     {failure.ErrMissing, "", "", 0},
		"a fault":     {marked, "", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := failure.Explain("save", fmt.Errorf("write: %w: %w", c.err, marked))
			var e *failure.Error
			if !errors.As(err, &e) {
				e = &failure.Error{}
			}
			if e.Code != c.code || !strings.Contains(e.Message, c.says) || e.RetryAfter != c.after {
				t.Errorf("explained as %+v", e)
			}
			if !errors.Is(err, marked) || !errors.Is(err, c.err) || !strings.Contains(err.Error(), "save: write") {
				t.Errorf("the log is given %v", err)
			}
			if strings.Contains(e.Message, "marked") {
				t.Errorf("a person is given %q", e.Message)
			}
			if again := failure.Explain("again", err); c.code != "" && again != err {
				t.Errorf("explained twice: %v", again)
			}
		})
	}
	if failure.Explain("save", nil) != nil {
		t.Error("no error is explained")
	}
}

func TestAThrottledCallIsUnavailableAndNotTheOtherWayRound(t *testing.T) {
	t.Parallel()
	if !errors.Is(failure.ErrThrottled, failure.ErrUnavailable) || errors.Is(failure.ErrUnavailable, failure.ErrThrottled) {
		t.Error("the two are not told apart")
	}
	for err, notDone := range map[error]bool{
		failure.ErrMoved: true, failure.ErrBusy: true, failure.ErrUnavailable: true, failure.ErrThrottled: true,
		failure.ErrUnknown: false, failure.ErrMissing: false, errors.New("other"): false,
	} {
		if failure.NotDone(fmt.Errorf("write: %w", err)) != notDone {
			t.Errorf("%v: not done is %v", err, !notDone)
		}
	}
}
