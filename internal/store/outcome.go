package store

import (
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"colophon/internal/failure"
)

// This file alone knows what DynamoDB's errors mean: it makes each one of
// failure's outcomes, or leaves it a fault of our own.

// readFault: a read that failed changed nothing, so it is only a question of
// whether asking again can help.
func readFault(doing string, err error) error {
	var api smithy.APIError
	switch {
	case errors.As(err, &api) && throttled(api):
		return fmt.Errorf("%s: %w: %w", doing, failure.ErrThrottled, err)
	case api != nil && rejected(err):
		return fmt.Errorf("%s: %w", doing, err)
	}
	return fmt.Errorf("%s: %w: %w", doing, failure.ErrUnavailable, err)
}

// writeFault tells apart what was refused, what was not carried out and what is
// not known. The SDK does not retry a cancelled transaction, and its message
// names reasons by index only.
func writeFault(doing string, err error) error {
	var cancelled *types.TransactionCanceledException
	if errors.As(err, &cancelled) {
		refused := &Refused{Reasons: make([]Reason, len(cancelled.CancellationReasons))}
		for i, reason := range cancelled.CancellationReasons {
			refused.Reasons[i] = Reason{Code: reasonCode(aws.ToString(reason.Code)), Old: reason.Item}
		}
		return fmt.Errorf("%s: %w", doing, refused)
	}
	var condition *types.ConditionalCheckFailedException
	if errors.As(err, &condition) {
		return fmt.Errorf("%s: %w", doing, &Refused{Reasons: []Reason{{Code: CodeCondition, Old: condition.Item}}})
	}
	var conflict *types.TransactionConflictException
	if errors.As(err, &conflict) {
		return fmt.Errorf("%s: %w", doing, &Refused{Reasons: []Reason{{Code: CodeConflict}}})
	}
	var inProgress *types.TransactionInProgressException
	if errors.As(err, &inProgress) {
		return fmt.Errorf("%s: %w: %w", doing, failure.ErrUnknown, err)
	}
	var api smithy.APIError
	if errors.As(err, &api) && rejected(err) {
		if throttled(api) {
			return fmt.Errorf("%s: %w: %w", doing, failure.ErrThrottled, err)
		}
		return fmt.Errorf("%s: %w", doing, err)
	}
	return fmt.Errorf("%s: %w: %w", doing, failure.ErrUnknown, err)
}

// rejected says whether DynamoDB answered that it did not carry the request out.
// The status tells: the SDK knows no type for some such answers, a
// ValidationException and a refused signature among them.
func rejected(err error) bool {
	var answer *smithyhttp.ResponseError
	return errors.As(err, &answer) && answer.HTTPStatusCode() >= 400 && answer.HTTPStatusCode() < 500
}

func throttled(api smithy.APIError) bool {
	switch api.ErrorCode() {
	case "ProvisionedThroughputExceededException", "RequestLimitExceeded", "ThrottlingException", "LimitExceededException":
		return true
	}
	return false
}

// reasonCode maps the codes of TransactionCanceledException.CancellationReasons
// (DynamoDB API reference, TransactWriteItems).
func reasonCode(code string) Code {
	switch code {
	case "", "None":
		return CodeNone
	case "ConditionalCheckFailed":
		return CodeCondition
	case "TransactionConflict":
		return CodeConflict
	case "ProvisionedThroughputExceeded", "ThrottlingError":
		return CodeThrottled
	case "ItemCollectionSizeLimitExceeded":
		return CodeSize
	}
	return CodeOther
}
