package lambdahttp

import (
	"context"
	"net/http"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"colophon/internal/clock"
)

// answerTime is kept of an invocation for the answer: of one that is cut off the
// caller learns nothing, not even that its outcome is unknown.
const answerTime = time.Second

// Handle makes a function for the Lambda runtime of an http.Handler.
func Handle(h http.Handler) func(context.Context, events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
	return func(ctx context.Context, event events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
		ctx, stop := clock.EndingBefore(ctx, answerTime)
		defer stop()
		r, err := request(ctx, event)
		if err != nil {
			return events.APIGatewayProxyResponse{}, err
		}
		w := newRecorder(r.Method)
		h.ServeHTTP(w, r)
		return w.response(), nil
	}
}
