package lambdahttp

import (
	"context"
	"net/http"

	"github.com/aws/aws-lambda-go/events"
)

// Handle makes a function for the Lambda runtime of an http.Handler.
func Handle(h http.Handler) func(context.Context, events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
	return func(ctx context.Context, event events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
		r, err := request(ctx, event)
		if err != nil {
			return events.APIGatewayProxyResponse{}, err
		}
		w := newRecorder(r.Method)
		h.ServeHTTP(w, r)
		return w.response(), nil
	}
}
