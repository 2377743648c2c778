package store

import (
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"colophon/internal/failure"
)

// attempts watches the SDK's own attempts of one write. The SDK answers with the
// last one's error; one before it that got no answer may have been carried out
// all the same, or may be still.
type attempts struct {
	aws.RetryerV2
	unknown bool
}

// watch is an option of one call. Every retryer of the SDK is of the second version.
func (a *attempts) watch(o *dynamodb.Options) {
	if retryer, ok := o.Retryer.(aws.RetryerV2); ok {
		a.RetryerV2, o.Retryer = retryer, a
	}
}

// IsErrorRetryable is asked after each attempt that failed.
func (a *attempts) IsErrorRetryable(err error) bool {
	a.unknown = a.unknown || errors.Is(writeFault("attempt", err), failure.ErrUnknown)
	return a.RetryerV2.IsErrorRetryable(err)
}

// fault is the write's, over all of its attempts. A condition that did not hold
// stays a refusal: what it shows of the item tells whether an earlier attempt
// was the reason.
func (a *attempts) fault(doing string, err error) error {
	fault := writeFault(doing, err)
	refused := AsRefused(fault)
	notDone := errors.Is(fault, failure.ErrUnavailable) || refused != nil && !refused.Has(CodeCondition)
	if a.unknown && notDone {
		return fmt.Errorf("%s: an earlier attempt: %w, the last: %v", doing, failure.ErrUnknown, err)
	}
	return fault
}
