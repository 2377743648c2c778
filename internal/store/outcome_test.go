package store_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"colophon/internal/failure"
	"colophon/internal/store"
)

// oneAnswer is a table that answers every request in one way.
type oneAnswer struct {
	status int
	body   string
}

func (a oneAnswer) RoundTrip(*http.Request) (*http.Response, error) {
	if a.status == 0 {
		return nil, io.ErrUnexpectedEOF
	}
	return &http.Response{
		StatusCode: a.status, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}}, Body: io.NopCloser(strings.NewReader(a.body)),
	}, nil
}

func cancelled(codes ...string) string {
	for i, code := range codes {
		codes[i] = `{"Code":"` + code + `"}`
	}
	return `{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException","Message":"cancelled","CancellationReasons":[` + strings.Join(codes, ",") + `]}`
}

func exception(name string) string {
	return `{"__type":"com.amazonaws.dynamodb.v20120810#` + name + `","message":"no"}`
}

// The codes are those of the DynamoDB API reference: CancellationReasons of
// TransactWriteItems, and the errors that all calls have.
func TestEachAnswerOfDynamoDBIsOneOutcome(t *testing.T) {
	t.Parallel()
	outcomes := map[string]error{
		"moved": failure.ErrMoved, "busy": failure.ErrBusy, "throttled": failure.ErrThrottled,
		"unavailable": failure.ErrUnavailable, "unknown": failure.ErrUnknown,
	}
	const condition, conflict, none = "ConditionalCheckFailed", "TransactionConflict", "None"
	for name, row := range map[string]struct {
		answer              oneAnswer
		transact, put, read string // the outcome of each kind of call; "-": a fault of our own; empty: not asked
	}{
		"throttled by provisioned units, first":  {oneAnswer{400, cancelled("ProvisionedThroughputExceeded", none)}, "throttled", "", ""},
		"throttled by provisioned units, second": {oneAnswer{400, cancelled(none, "ProvisionedThroughputExceeded")}, "throttled", "", ""},
		"throttled on demand, first":             {oneAnswer{400, cancelled("ThrottlingError", none)}, "throttled", "", ""},
		"throttled on demand, second":            {oneAnswer{400, cancelled(none, "ThrottlingError")}, "throttled", "", ""},
		"throttled, and a conflict":              {oneAnswer{400, cancelled(conflict, "ThrottlingError")}, "throttled", "", ""},
		"throttled, and a condition":             {oneAnswer{400, cancelled(condition, "ThrottlingError")}, "moved", "", ""},
		"a conflict":                             {oneAnswer{400, cancelled(none, conflict)}, "busy", "", ""},
		"a conflict, and a condition":            {oneAnswer{400, cancelled(condition, conflict)}, "moved", "", ""},
		"a condition":                            {oneAnswer{400, cancelled(none, condition)}, "moved", "", ""},
		"an item that is too large":              {oneAnswer{400, cancelled(none, "ItemCollectionSizeLimitExceeded")}, "-", "", ""},
		"a write that is not valid":              {oneAnswer{400, cancelled(none, "ValidationError")}, "-", "", ""},
		"a transaction still under way":          {oneAnswer{400, exception("TransactionInProgressException")}, "unknown", "", ""},
		"one write's condition":                  {oneAnswer{400, exception("ConditionalCheckFailedException")}, "", "moved", ""},
		"one write's conflict":                   {oneAnswer{400, exception("TransactionConflictException")}, "", "busy", ""},
		"short of provisioned units":             {oneAnswer{400, exception("ProvisionedThroughputExceededException")}, "throttled", "throttled", "throttled"},
		"short of units on demand":               {oneAnswer{400, exception("ThrottlingException")}, "throttled", "throttled", "throttled"},
		"the account's limit":                    {oneAnswer{400, exception("RequestLimitExceeded")}, "throttled", "throttled", "throttled"},
		"not allowed":                            {oneAnswer{400, exception("AccessDeniedException")}, "-", "-", "-"},
		"no such table":                          {oneAnswer{400, exception("ResourceNotFoundException")}, "-", "-", "-"},
		"a fault of the table":                   {oneAnswer{500, exception("InternalServerError")}, "unknown", "unknown", "unavailable"},
		"no answer":                              {oneAnswer{}, "unknown", "unknown", "unavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			engine, err := store.NewDynamo(store.DynamoConfig{Client: store.NewClient(aws.Config{
				Region: "eu-west-1", Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""),
				HTTPClient: &http.Client{Transport: row.answer}, Retryer: func() aws.Retryer { return aws.NopRetryer{} },
			})})
			if err != nil {
				t.Fatal(err)
			}
			write := store.Write{Table: "table", Key: store.Key{PK: "a", SK: "b"}, Put: store.Item{}}
			for call, want := range map[string]string{"transact": row.transact, "put": row.put, "read": row.read} {
				if want == "" {
					continue
				}
				switch call {
				case "transact":
					err = engine.Transact(t.Context(), "token", []store.Write{write, write})
				case "put":
					_, err = engine.Write(t.Context(), write)
				case "read":
					_, err = engine.Get(t.Context(), "table", write.Key)
				}
				if err == nil {
					t.Fatalf("%s: no error", call)
				}
				for outcome, is := range outcomes {
					// A throttled call is an unavailable one too: nothing was carried out.
					should := outcome == want || outcome == "unavailable" && want == "throttled"
					if errors.Is(err, is) != should {
						t.Errorf("%s is %s: %v (%v)", call, outcome, !should, err)
					}
				}
			}
		})
	}
}
