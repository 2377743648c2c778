package store_test

import (
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"colophon/internal/failure"
	"colophon/internal/store"
)

// answers stands for a table: one answer an attempt, "" for none in time.
type answers []string

func (a *answers) RoundTrip(*http.Request) (*http.Response, error) {
	next := (*a)[0]
	*a = (*a)[1:]
	if next == "" {
		return nil, os.ErrDeadlineExceeded
	}
	status := http.StatusBadRequest
	if next == "{}" {
		status = http.StatusOK
	}
	return &http.Response{
		StatusCode: status, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body: io.NopCloser(strings.NewReader(next)),
	}, nil
}

const (
	throttled   = `{"__type":"com.amazonaws.dynamodb.v20120810#ThrottlingException","message":"slow down"}`
	busy        = `{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException","CancellationReasons":[{"Code":"TransactionConflict"}]}`
	not         = `{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException","CancellationReasons":[{"Code":"ConditionalCheckFailed"}]}`
	notThis     = `{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException"}`
	busyForThis = `{"__type":"com.amazonaws.dynamodb.v20120810#TransactionConflictException"}`
	bad         = `{"__type":"com.amazon.coral.validate#ValidationException","message":"bad"}`
	inProgress  = `{"__type":"com.amazonaws.dynamodb.v20120810#TransactionInProgressException"}`
)

func TestAWriteIsKnownToBeUndoneOnlyIfNoAttemptOfItWentUnanswered(t *testing.T) {
	t.Parallel()
	const unknown, unavailable, conflict, condition, done, fault = "unknown", "unavailable", "conflict", "condition", "done", "fault"
	for name, c := range map[string]struct {
		answers     answers
		transaction bool
		want        string
	}{
		"a write is throttled every time":                          {answers{throttled, throttled}, false, unavailable},
		"a write is throttled after an attempt without answer":     {answers{"", throttled}, false, unknown},
		"a write gets no answer after it was throttled":            {answers{throttled, ""}, false, unknown},
		"a write succeeds after an attempt without answer":         {answers{"", "{}"}, false, done},
		"a write's condition fails after an attempt without one":   {answers{"", notThis}, false, condition},
		"a write meets a transaction":                              {answers{busyForThis}, false, conflict},
		"a write meets a transaction after one without answer":     {answers{"", busyForThis}, false, unknown},
		"a transaction meets another":                              {answers{busy}, true, conflict},
		"a transaction meets another after one without answer":     {answers{"", busy}, true, unknown},
		"a transaction meets another after it was throttled":       {answers{throttled, busy}, true, conflict},
		"a transaction is refused after an attempt without answer": {answers{"", not}, true, condition},
		"a write is not one that the table takes":                  {answers{bad}, false, fault},
		"a transaction is not one that the table takes":            {answers{bad}, true, fault},
		"a transaction is still at work":                           {answers{inProgress, inProgress}, true, unknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := dynamodb.New(dynamodb.Options{
				Region: "eu-west-1", BaseEndpoint: aws.String("http://table.invalid"),
				Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""),
				HTTPClient:  &http.Client{Transport: &c.answers},
				Retryer: retry.NewStandard(func(o *retry.StandardOptions) {
					o.MaxAttempts, o.Backoff = 2, retry.BackoffDelayerFunc(func(int, error) (time.Duration, error) { return 0, nil })
				}),
			})
			engine, err := store.NewDynamo(store.DynamoConfig{Client: client})
			if err != nil {
				t.Fatal(err)
			}
			w := store.Write{Table: "content-table", Key: store.Key{PK: "a", SK: "b"}, Put: store.Item{}}
			if c.transaction {
				err = engine.Transact(t.Context(), "token", []store.Write{w})
			} else {
				_, err = engine.Write(t.Context(), w)
			}
			refused := store.AsRefused(err)
			got := done
			switch {
			case errors.Is(err, failure.ErrUnknown):
				got = unknown
			case errors.Is(err, failure.ErrUnavailable):
				got = unavailable
			case refused != nil:
				got = string(refused.Reasons[0].Code)
			case err != nil:
				got = fault
			}
			if got != c.want {
				t.Errorf("got %s, want %s (%v)", got, c.want, err)
			}
			if len(c.answers) > 0 {
				t.Errorf("%d attempts were not made", len(c.answers))
			}
		})
	}
}
