package store_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"colophon/internal/delivery"
	"colophon/internal/store"
)

// dated stands for a table: a status and a date for each HTTP request, each of
// which takes a while of the host's clock.
type dated struct {
	responses []dateOf
	now       time.Time
}

type dateOf struct {
	status int
	date   string
	takes  time.Duration
}

func (d *dated) RoundTrip(*http.Request) (*http.Response, error) {
	next := d.responses[0]
	d.responses = d.responses[1:]
	d.now = d.now.Add(next.takes)
	header := http.Header{"Content-Type": {"application/x-amz-json-1.0"}}
	if next.date != "" {
		header.Set("Date", next.date)
	}
	body := `{"Items":[]}`
	if next.status != http.StatusOK {
		body = throttled
	}
	return &http.Response{StatusCode: next.status, Header: header, Body: io.NopCloser(strings.NewReader(body))}, nil
}

// The offset is that of the HTTP request that was answered: a retry before it,
// with a wait, is none of it.
func TestTheOffsetOfAReadIsThatOfItsLastHTTPRequest(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	date := noon.Format(http.TimeFormat)
	for name, row := range map[string]struct {
		responses []dateOf
		want      delivery.ClockOffset
	}{
		"one request": {
			[]dateOf{{200, date, 20 * time.Millisecond}},
			delivery.ClockOffset{Known: true, Least: -20 * time.Millisecond, Most: time.Second},
		},
		"one before it was throttled": {
			[]dateOf{{400, date, 30 * time.Second}, {200, date, 20 * time.Millisecond}},
			delivery.ClockOffset{Known: true, Least: -30*time.Second - 20*time.Millisecond, Most: -29 * time.Second},
		},
		"the host was frozen before its response was read": {
			[]dateOf{{200, date, 5 * time.Minute}},
			delivery.ClockOffset{Known: true, Least: -5 * time.Minute, Most: time.Second},
		},
		"no date":                         {[]dateOf{{200, "", time.Millisecond}}, delivery.ClockOffset{}},
		"a date that is none":             {[]dateOf{{200, "today", time.Millisecond}}, delivery.ClockOffset{}},
		"a date before it, and none then": {[]dateOf{{400, date, time.Millisecond}, {200, "", time.Millisecond}}, delivery.ClockOffset{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := &dated{responses: row.responses, now: noon}
			client := dynamodb.New(dynamodb.Options{
				Region: "eu-west-1", BaseEndpoint: aws.String("http://table.invalid"),
				Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""),
				HTTPClient:  &http.Client{Transport: table},
				Retryer: retry.NewStandard(func(o *retry.StandardOptions) {
					o.MaxAttempts, o.Backoff = 2, retry.BackoffDelayerFunc(func(int, error) (time.Duration, error) { return 0, nil })
				}),
			})
			engine, err := store.NewDynamo(store.DynamoConfig{Client: client, Clock: func() time.Time { return table.now }})
			if err != nil {
				t.Fatal(err)
			}
			page, err := engine.Query(t.Context(), store.Query{Table: "delivery-table", PK: store.Text("a")})
			if err != nil || page.Clock != row.want {
				t.Errorf("%+v, want %+v (%v)", page.Clock, row.want, err)
			}
		})
	}
}

// What the worker reads has the offset with it, and the engine here dates its responses.
func TestAReadComparesTheClocks(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	deliveries, err := store.NewDeliveries(store.DeliveriesConfig{Engine: place.Engine, Table: place.Delivery, Clock: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	d := delivery.Destination{Project: "prj_a", ID: "dst_a"}
	reading, err := deliveries.Read(t.Context(), delivery.Key{Destination: d, Release: 1})
	if err != nil || !reading.Clock.Known || reading.Clock.OutOfBounds() || reading.Clock.Vague() {
		t.Errorf("reading: %+v, %v", reading.Clock, err)
	}
	target, err := deliveries.ReadTarget(t.Context(), d)
	if err != nil || !target.Clock.Known || target.Clock.OutOfBounds() || target.Clock.Vague() {
		t.Errorf("target: %+v, %v", target.Clock, err)
	}
}
