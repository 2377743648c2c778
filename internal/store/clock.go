package store

import (
	"context"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"colophon/internal/delivery"
)

// exchange is the last HTTP request of a call, the SDK's own retries counted one
// by one, and its response.
type exchange struct {
	clock           func() time.Time
	asked, answered time.Time // by this host's clock
	date            time.Time // by the table's; zero: the response had none
}

// watch is an option of one call. The step is the innermost, so nothing but the
// request and the response's head lies between the two readings of the clock.
func (x *exchange) watch(o *dynamodb.Options) {
	o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
		return stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("CompareClocks",
			func(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
				x.asked, x.date = x.clock(), time.Time{}
				out, metadata, err := next.HandleDeserialize(ctx, in)
				x.answered = x.clock()
				if response, ok := out.RawResponse.(*smithyhttp.Response); ok && response != nil {
					if date, dateErr := http.ParseTime(response.Header.Get("Date")); dateErr == nil {
						x.date = date
					}
				}
				return out, metadata, err
			}), middleware.After)
	})
}

// offset is what the response says about the clocks: nothing where it has no date.
func (x *exchange) offset() delivery.ClockOffset {
	if x.date.IsZero() {
		return delivery.ClockOffset{}
	}
	return delivery.MeasureClock(x.date, x.asked, x.answered)
}
