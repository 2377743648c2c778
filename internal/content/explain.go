package content

import (
	"errors"
	"fmt"
)

// Explain makes a store's error one that a person can act on. What it cannot
// explain stays a fault of ours, wrapped with what was being done.
func Explain(doing string, err error) error {
	var known *Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known):
		return err
	case errors.Is(err, ErrUnknown):
		return explained(CodeUnknownOutcome, doing, err,
			"It is not known whether this was done, because the table did not answer. Look before you ask again.")
	case errors.Is(err, ErrUnavailable):
		return explained(CodeUnavailable, doing, err, "The table does not answer just now. Nothing was done; ask again in a moment.")
	case errors.Is(err, ErrBusy), errors.Is(err, ErrMoved):
		return explained(CodeBusy, doing, err, "Others kept changing this at the same time. Nothing was done; ask again in a moment.")
	}
	return fmt.Errorf("%s: %w", doing, err)
}

func explained(code Code, doing string, err error, message string) *Error {
	return &Error{Code: code, Message: message, cause: fmt.Errorf("%s: %w", doing, err)}
}
