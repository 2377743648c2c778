package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"colophon/internal/failure"
	"colophon/internal/store"
)

// wire keeps the bodies of requests, and answers the first ones not at all.
type wire struct {
	silent int
	bodies [][]byte
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if r.ContentLength != int64(len(body)) {
		return nil, fmt.Errorf("content length %d for %d bytes", r.ContentLength, len(body))
	}
	w.bodies = append(w.bodies, body)
	if len(w.bodies) <= w.silent {
		return nil, os.ErrDeadlineExceeded
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}}, Body: io.NopCloser(strings.NewReader("{}")),
	}, nil
}

// A map of many entries, which the SDK writes in another order each time.
func TestATransactionOfUnknownOutcomeIsAskedForAgainByteForByte(t *testing.T) {
	t.Parallel()
	w := &wire{silent: 3}
	engine, err := store.NewDynamo(store.DynamoConfig{Client: dynamodb.New(dynamodb.Options{
		Region: "eu-west-1", HTTPClient: &http.Client{Transport: w}, Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""),
		Retryer: aws.NopRetryer{},
	})})
	if err != nil {
		t.Fatal(err)
	}
	many := store.Item{}
	for i := range 30 {
		many[fmt.Sprintf("attribute%d", i)] = store.Number(int64(i))
	}
	writes := []store.Write{{Table: "content-table", Key: store.Key{PK: "p", SK: "s"}, Put: many}}
	ctx := context.Background()
	for range 3 {
		if err := engine.Transact(ctx, "token-1", writes); !errors.Is(err, failure.ErrUnknown) {
			t.Fatalf("an attempt without answer is %v", err)
		}
	}
	if err := engine.Transact(ctx, "token-1", writes); err != nil {
		t.Fatal(err)
	}
	for i, body := range w.bodies[1:] {
		if !bytes.Equal(body, w.bodies[0]) {
			t.Errorf("ask %d differs from the first", i+2)
		}
	}
	if !bytes.Contains(w.bodies[0], []byte("token-1")) {
		t.Error("the token is not in the request")
	}

	// What is known is forgotten: another transaction has its own bytes.
	if err := engine.Transact(ctx, "token-2", writes[:1]); err != nil {
		t.Fatal(err)
	}
	if last := w.bodies[len(w.bodies)-1]; !bytes.Contains(last, []byte("token-2")) {
		t.Error("another token's bytes were sent")
	}
}
