//go:build stack || restore

package e2e_test

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"colophon/client"
	"colophon/internal/access"
	"colophon/internal/killpoint"
	"colophon/internal/store"
)

// longest is how long a test waits for anything: a killed worker's lease and its
// message's visibility are 45 s together, on a machine that does other things too.
const longest = 3 * time.Minute

// stack is what the stack's description says, and clients to it.
type stack struct {
	API          string            `json:"api"`
	Stack        string            `json:"stack"`
	Endpoint     string            `json:"endpoint"`
	Region       string            `json:"region"`
	Outputs      map[string]string `json:"outputs"`
	Resources    map[string]string `json:"resources"`
	Environments string            `json:"environments"`

	settings aws.Config
	lambda   *lambda.Client
	queues   *sqs.Client
	tables   *dynamodb.Client
	logs     *cloudwatchlogs.Client
	token    string // an admin's
	orders   string // where the functions look for orders
}

var running *stack

func open() (*stack, error) {
	path := os.Getenv("COLOPHON_STACK")
	if path == "" {
		return nil, errors.New("e2e: COLOPHON_STACK names no running stack: use `make test`, or `make up` and name its stack.json")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("e2e: %w", err)
	}
	s := &stack{}
	if err := json.Unmarshal(text, s); err != nil {
		return nil, fmt.Errorf("e2e: %s: %w", path, err)
	}
	s.settings = aws.Config{
		Region: s.Region, BaseEndpoint: &s.Endpoint, Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	}
	s.lambda, s.queues = lambda.NewFromConfig(s.settings), sqs.NewFromConfig(s.settings)
	s.tables, s.logs = dynamodb.NewFromConfig(s.settings), cloudwatchlogs.NewFromConfig(s.settings)
	engine, err := store.NewDynamo(store.DynamoConfig{Client: s.tables})
	if err != nil {
		return nil, err
	}
	kept, err := store.NewTokens(store.TokensConfig{Engine: engine, Table: s.Outputs["ContentTableName"]})
	if err != nil {
		return nil, err
	}
	service, err := access.New(access.Config{Tokens: kept})
	if err != nil {
		return nil, err
	}
	_, s.token, err = service.CreateToken(context.Background(), access.NewToken{Name: "e2e", Role: access.Admin, AllProjects: true})
	return s, err
}

func (s *stack) client(t testing.TB) *client.Client {
	t.Helper()
	c, err := client.New(client.Config{Address: s.API, Token: s.token, HTTP: &http.Client{Timeout: time.Minute}})
	must(t, err)
	return c
}

func must(t testing.TB, err error) {
	t.Helper()
	if problem := client.AsProblem(err); problem != nil {
		t.Fatalf("%d %s: %s", problem.StatusCode, problem.Response.Code.Value, problem.Response.Detail.Value)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// project is a project of a test's own, with one document and a destination for
// each receiver.
type project struct {
	t      testing.TB
	api    *client.Client
	id     string
	hooks  []string // destinations' ids
	secret []string
}

func newProject(t testing.TB, receivers ...*receiver) *project {
	t.Helper()
	p := &project{t: t, api: running.client(t)}
	created, err := p.api.CreateProject(t.Context(), &client.NewProject{Name: t.Name()})
	must(t, err)
	p.id = created.ID
	p.save("guide.md", "# Guide\n")
	for i, r := range receivers {
		p.add(fmt.Sprintf("receiver %d", i+1), r.URL)
	}
	return p
}

func (p *project) add(name, url string) {
	p.t.Helper()
	created, err := p.api.CreateDestination(p.t.Context(), &client.NewDestination{Name: name, URL: url},
		client.CreateDestinationParams{Project: p.id})
	must(p.t, err)
	p.hooks = append(p.hooks, created.Response.Destination.ID)
	p.secret = append(p.secret, created.Response.Secret)
}

func (p *project) save(path, text string) {
	p.t.Helper()
	_, err := p.api.PutDocument(p.t.Context(), &client.PutDocumentReqWithContentType{
		ContentType: "text/markdown", Content: client.PutDocumentReq{Data: strings.NewReader(text)},
	}, client.PutDocumentParams{Project: p.id, Path: path})
	must(p.t, err)
}

// publish publishes whether anything changed or not.
func (p *project) publish() int64 {
	p.t.Helper()
	release, err := p.api.PublishRelease(p.t.Context(), client.NewOptPublish(client.Publish{
		Message: client.NewOptString("news"), Force: client.NewOptBool(true),
	}), client.PublishReleaseParams{Project: p.id})
	must(p.t, err)
	return release.Response.Number
}

func (p *project) delivery(release int64) client.Delivery {
	p.t.Helper()
	d, err := p.api.GetDelivery(p.t.Context(), client.GetDeliveryParams{Project: p.id, Destination: p.hooks[0], Release: release})
	must(p.t, err)
	return *d
}

// becomes waits until a delivery is in the state, and returns it.
func (p *project) becomes(release int64, state client.DeliveryState) client.Delivery {
	p.t.Helper()
	var d client.Delivery
	eventually(p.t, fmt.Sprintf("release %d is %s", release, state), func() bool {
		d = p.delivery(release)
		return d.State == state
	}, func() string { return fmt.Sprintf("it is %s: %s", d.State, strings.Join(d.Timeline, " ")) })
	return d
}

// eventually asks until it holds. The system tells nobody when a table was
// written, so the table is asked.
func eventually(t testing.TB, what string, holds func() bool, say func() string) {
	t.Helper()
	deadline := time.NewTimer(longest)
	defer deadline.Stop()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for !holds() {
		select {
		case <-deadline.C:
			t.Fatalf("within %v not: %s. %s", longest, what, say())
		case <-again.C:
		}
	}
}

// request is what a receiver got.
type request struct {
	Header http.Header
	Body   string
	At     time.Time
}

func (r request) id() string { return r.Header.Get("Webhook-Id") }

func (r request) release() int64 {
	var body struct{ Data struct{ Release int64 } }
	_ = json.Unmarshal([]byte(r.Body), &body)
	return body.Data.Release
}

// receiver answers on loopback as its script says and keeps what it got.
type receiver struct {
	*httptest.Server
	arrived chan request

	mu     sync.Mutex
	got    []request
	says   func(n int, r request) int // n counts from 1
	header http.Header                // of its answers
}

// newReceiver's script is the statuses of the first answers; the last one stays.
func newReceiver(t testing.TB, statuses ...int) *receiver {
	t.Helper()
	r := &receiver{arrived: make(chan request, 10000)}
	r.says = func(n int, _ request) int {
		if len(statuses) == 0 {
			return http.StatusNoContent
		}
		return statuses[min(n, len(statuses))-1]
	}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		return // the sender was killed
	}
	got := request{Header: q.Header, Body: string(body), At: time.Now()}
	r.mu.Lock()
	r.got = append(r.got, got)
	n, says := len(r.got), r.says
	r.mu.Unlock()
	status := says(n, got)
	for name, values := range r.header {
		w.Header()[name] = values
	}
	w.WriteHeader(status)
	r.arrived <- got
}

// answerHeader sets a header of the answers, before anything is sent to it.
func (r *receiver) answerHeader(name, value string) { r.header = http.Header{name: {value}} }

// next is the next request that arrives.
func (r *receiver) next(t testing.TB) request {
	t.Helper()
	select {
	case q := <-r.arrived:
		return q
	case <-time.After(longest):
		t.Fatalf("nothing arrived within %v", longest)
		return request{}
	}
}

func (r *receiver) requests() []request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]request(nil), r.got...)
}

// mapping is the event source mapping of a function from a source whose ARN ends so.
func (s *stack) mapping(t testing.TB, function, source string) string {
	t.Helper()
	list, err := s.lambda.ListEventSourceMappings(t.Context(), &lambda.ListEventSourceMappingsInput{FunctionName: aws.String(s.Resources[function])})
	must(t, err)
	for _, m := range list.EventSourceMappings {
		if strings.HasSuffix(aws.ToString(m.EventSourceArn), source) {
			return aws.ToString(m.UUID)
		}
	}
	t.Fatalf("%s has no mapping from %s", function, source)
	return ""
}

// enable switches a mapping on or off and waits until it is.
func (s *stack) enable(t testing.TB, mapping string, on bool) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	want := "Disabled"
	if on {
		want = "Enabled"
	}
	_, err := s.lambda.UpdateEventSourceMapping(ctx, &lambda.UpdateEventSourceMappingInput{UUID: &mapping, Enabled: &on})
	must(t, err)
	var state string
	eventually(t, "the mapping is "+want, func() bool {
		m, err := s.lambda.GetEventSourceMapping(ctx, &lambda.GetEventSourceMappingInput{UUID: &mapping})
		must(t, err)
		state = aws.ToString(m.State)
		return state == want
	}, func() string { return "it is " + state })
}

func queueName(url string) string { return url[strings.LastIndex(url, "/")+1:] }

// obey makes the functions, which are test builds, look for orders in a folder:
// see internal/killpoint and internal/clock.
func (s *stack) obey(ctx context.Context, orders string) error {
	s.orders = orders
	for _, function := range []string{"ApiFunction", "OutboxStreamFunction", "DeliverFunction", "SweepFunction"} {
		name := s.Resources[function]
		f, err := s.lambda.GetFunctionConfiguration(ctx, &lambda.GetFunctionConfigurationInput{FunctionName: &name})
		if err != nil {
			return fmt.Errorf("e2e: %w", err)
		}
		f.Environment.Variables["COLOPHON_ORDERS"] = orders
		_, err = s.lambda.UpdateFunctionConfiguration(ctx, &lambda.UpdateFunctionConfigurationInput{
			FunctionName: &name, Environment: &lambdatypes.Environment{Variables: f.Environment.Variables},
		})
		if err != nil {
			return fmt.Errorf("e2e: %w", err)
		}
		updated := lambda.NewFunctionUpdatedV2Waiter(s.lambda, func(o *lambda.FunctionUpdatedV2WaiterOptions) {
			o.MinDelay, o.MaxDelay = 100*time.Millisecond, time.Second
		})
		if err := updated.Wait(ctx, &lambda.GetFunctionInput{FunctionName: &name}, longest); err != nil {
			return fmt.Errorf("e2e: %s is not configured: %w", function, err)
		}
	}
	return nil
}

// kill orders the next process that passes the point to die there. It returns a
// question: did one?
func (s *stack) kill(t testing.TB, point killpoint.Name) (died func() bool) {
	t.Helper()
	return s.order(t, "kill-"+string(point))
}

// panicAt orders whoever passes the point next to panic there.
func (s *stack) panicAt(t testing.TB, point killpoint.Name) (panicked func() bool) {
	t.Helper()
	return s.order(t, "panic-"+string(point))
}

func (s *stack) order(t testing.TB, name string) (carriedOut func() bool) {
	t.Helper()
	order := filepath.Join(s.orders, name)
	must(t, os.WriteFile(order, nil, 0o600))
	t.Cleanup(func() { _ = os.Remove(order) })
	return func() bool {
		_, err := os.Stat(order)
		return errors.Is(err, fs.ErrNotExist)
	}
}

// moveClock moves the functions' clock for the test's time.
func (s *stack) moveClock(t testing.TB, by time.Duration) {
	t.Helper()
	clock := filepath.Join(s.orders, "clock")
	must(t, os.WriteFile(clock+".new", []byte(by.String()), 0o600))
	must(t, os.Rename(clock+".new", clock)) // whole, whenever a function looks
	t.Cleanup(func() { _ = os.Remove(clock) })
}

// sweep runs the sweeper now instead of at the next full minute.
func (s *stack) sweep(t testing.TB) {
	t.Helper()
	out, err := s.lambda.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: aws.String(s.Resources["SweepFunction"]), Payload: []byte("{}")})
	must(t, err)
	if out.FunctionError != nil {
		t.Fatalf("the sweeper failed: %s %s", *out.FunctionError, out.Payload)
	}
}

// standing are the bodies of a queue's messages that hold the text, hidden ones
// too: the local stack shows them without receiving them.
func (s *stack) standing(t testing.TB, queue, text string) (bodies []string) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		s.Endpoint+"/_aws/sqs/messages?"+url.Values{"QueueUrl": {queue}, "ShowInvisible": {"true"}}.Encode(), nil)
	must(t, err)
	answer, err := http.DefaultClient.Do(q)
	must(t, err)
	defer answer.Body.Close()
	var list struct {
		XMLName xml.Name `xml:"ReceiveMessageResponse"`
		Bodies  []string `xml:"ReceiveMessageResult>Message>Body"`
	}
	must(t, xml.NewDecoder(answer.Body).Decode(&list))
	for _, body := range list.Bodies {
		if strings.Contains(body, text) {
			bodies = append(bodies, body)
		}
	}
	return bodies
}

// quiet waits until nothing stands on the queue: an order is then carried out by
// what the test itself causes.
func (s *stack) quiet(t testing.TB) {
	t.Helper()
	s.gone(t, "")
}

// gone waits until no message with the text stands on the queue.
func (s *stack) gone(t testing.TB, text string) {
	t.Helper()
	var left []string
	eventually(t, "nothing stands on the queue", func() bool {
		left = s.standing(t, s.Outputs["QueueUrl"], text)
		return len(left) == 0
	}, func() string { return strings.Join(left, " ") })
}

// lines are those of a function's log.
func (s *stack) lines(t testing.TB, function string) (lines []string) {
	t.Helper()
	group := s.Resources[function]
	if group == "" {
		t.Fatalf("the stack has no %s", function)
	}
	pages := cloudwatchlogs.NewFilterLogEventsPaginator(s.logs, &cloudwatchlogs.FilterLogEventsInput{LogGroupName: &group})
	for pages.HasMorePages() {
		page, err := pages.NextPage(context.WithoutCancel(t.Context()))
		must(t, err)
		for _, event := range page.Events {
			lines = append(lines, aws.ToString(event.Message))
		}
	}
	return lines
}
