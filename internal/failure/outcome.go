package failure

import (
	"errors"
	"fmt"
	"time"
)

// The outcomes of a call to the tables. Each but ErrUnknown says that nothing
// was written.
var (
	// ErrMissing: there is no such item.
	ErrMissing = errors.New("missing")
	// ErrMoved: an item is not as it was read; read again.
	ErrMoved = errors.New("not as it was read")
	// ErrBusy: another transaction is at work on an item; wait a moment.
	ErrBusy = errors.New("another transaction is at work on it")
	// ErrUnavailable: the call was not carried out; wait.
	ErrUnavailable = errors.New("table not available")
	// ErrThrottled is the ErrUnavailable of a table that is short of units: waiting
	// has to grow, because each call that is refused feeds the shortage.
	ErrThrottled = fmt.Errorf("%w: it takes no more just now", ErrUnavailable)
	// ErrUnknown: the write may have been carried out, or may be later; repeat the
	// very same under its token.
	ErrUnknown = errors.New("outcome of the write unknown")
)

// NotDone says whether nothing was written and trying again can help, perhaps
// after another read.
func NotDone(err error) bool {
	return errors.Is(err, ErrMoved) || errors.Is(err, ErrBusy) || errors.Is(err, ErrUnavailable)
}

// throttledWait is what a caller is asked to wait while a table is short of units.
const throttledWait = 5 * time.Second

// Explain makes an outcome an Error that a person can act on. What it cannot
// explain stays a fault of our own, wrapped with what was being done.
func Explain(doing string, err error) error {
	var known *Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known):
		return err
	case errors.Is(err, ErrUnknown):
		return explained(UnknownOutcome, doing, err,
			"It is not known whether this was done, because the table did not answer. Look before you ask again.")
	case errors.Is(err, ErrThrottled):
		e := explained(Unavailable, doing, err, "The table takes no more just now. Nothing was done; ask again in a few seconds.")
		e.RetryAfter = throttledWait
		return e
	case errors.Is(err, ErrUnavailable):
		return explained(Unavailable, doing, err, "The table does not answer just now. Nothing was done; ask again in a moment.")
	case errors.Is(err, ErrBusy), errors.Is(err, ErrMoved):
		return explained(Busy, doing, err, "Others kept changing this at the same time. Nothing was done; ask again in a moment.")
	}
	return fmt.Errorf("%s: %w", doing, err)
}

func explained(code Code, doing string, err error, message string) *Error {
	return &Error{Code: code, Message: message, Cause: fmt.Errorf("%s: %w", doing, err)}
}
