package store

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// unknownKept bounds how many transactions of unknown outcome are remembered: a
// sandbox works on one publish, or on ten deliveries, at a time.
const unknownKept = 64

// repeats remembers the bytes of transactions whose outcome is unknown. DynamoDB
// refuses a token that comes again with other parameters, and the SDK writes a
// map's entries in another order each time: what is asked again is asked byte for
// byte.
type repeats struct {
	mu    sync.Mutex
	bytes map[string][]byte // by token
}

// asked is an option of one call: it sends what was sent under this token before,
// or notes what is sent now into body.
func (r *repeats) asked(token string, body *[]byte) func(*dynamodb.Options) {
	return func(o *dynamodb.Options) {
		o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
			return stack.Build.Add(middleware.BuildMiddlewareFunc("ByteForByte",
				func(ctx context.Context, in middleware.BuildInput, next middleware.BuildHandler) (middleware.BuildOutput, middleware.Metadata, error) {
					request, ok := in.Request.(*smithyhttp.Request)
					if !ok {
						return middleware.BuildOutput{}, middleware.Metadata{}, fmt.Errorf("a request of type %T", in.Request)
					}
					sent, err := r.settle(token, request)
					if err != nil {
						return middleware.BuildOutput{}, middleware.Metadata{}, err
					}
					*body = sent
					if in.Request, err = request.SetStream(bytes.NewReader(sent)); err != nil {
						return middleware.BuildOutput{}, middleware.Metadata{}, err
					}
					return next.HandleBuild(ctx, in)
				}), middleware.Before)
		})
	}
}

func (r *repeats) settle(token string, request *smithyhttp.Request) ([]byte, error) {
	r.mu.Lock()
	before, again := r.bytes[token]
	r.mu.Unlock()
	if again {
		return before, nil
	}
	sent, err := io.ReadAll(request.GetStream())
	if err != nil {
		return nil, fmt.Errorf("read the request: %w", err)
	}
	return sent, nil
}

// ended keeps the bytes while the outcome is unknown, and forgets them else.
func (r *repeats) ended(token string, body []byte, unknown bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.bytes, token)
	if !unknown || body == nil {
		return
	}
	if r.bytes == nil {
		r.bytes = map[string][]byte{}
	}
	for old := range r.bytes { // any: whoever is forgotten is asked again in an equal form
		if len(r.bytes) < unknownKept {
			break
		}
		delete(r.bytes, old)
	}
	r.bytes[token] = body
}
