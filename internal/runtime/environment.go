package runtime

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"colophon/internal/ratelimit"
)

// Stage is the kind of environment that a stack is.
type Stage string

// The stages; the template's parameter Environment takes the same.
const (
	Production Stage = "production"
	Staging    Stage = "staging"
	Local      Stage = "local"
)

// API is the api function's environment.
type API struct {
	Stage          Stage
	ContentTable   string
	DeliveryTable  string
	SealingKey     string // id or ARN
	PublicAddress  string // links begin with it; empty: the request's own domain and stage. No slash at its end
	AllowsLoopback bool   // destinations may be loopback addresses
	// Limits of what is sent by hand to one destination, and to all of a project at
	// one origin.
	DestinationLimit, OriginLimit ratelimit.Limit
	PublishLimit                  ratelimit.Limit // of each project
	ProjectContentLimit           int             // GiB of documents' content that a project may have
	// TokenLimit is how many requests one token may make.
	TokenLimit ratelimit.Limit
}

// OutboxStream is the outbox-stream function's environment. It reads no table, and
// refuses a stream that is not the delivery table's all the same: the mapping would
// forward another table's deliveries, and leave this one's to the sweeper.
type OutboxStream struct {
	Stage          Stage
	DeliveryStream string // ARN, of the delivery table
	QueueURL       string
	OnFailureQueue string // URL
	Namespace      string // of the metrics
}

// Deliver is the deliver function's environment.
type Deliver struct {
	Stage           Stage
	DeliveryTable   string
	QueueURL        string
	SlowQueue       string // URL
	DeadLetterQueue string // URL
	SealingKey      string // id or ARN
	AllowsLoopback  bool   // loopback addresses may be called
	APIID           string // the stack's own API, which is not called; empty: not known
	PublicAddress   string // of the stack's own API; empty: it has none of its own
	Namespace       string // of the metrics
}

// Sweep is the sweep function's environment.
type Sweep struct {
	Stage         Stage
	DeliveryTable string
	QueueURL      string
	Namespace     string // of the metrics
}

// ReadAPI reads the api function's environment through getenv (os.Getenv).
func ReadAPI(getenv func(string) string) (API, error) {
	r := reader{getenv: getenv}
	stage := r.stage()
	e := API{
		Stage:          stage,
		ContentTable:   r.need("CONTENT_TABLE"),
		DeliveryTable:  r.need("DELIVERY_TABLE"),
		SealingKey:     r.need("SEALING_KEY_ID"),
		PublicAddress:  r.publicAddress("PUBLIC_ADDRESS", stage),
		AllowsLoopback: r.loopback(stage),

		DestinationLimit: r.limit("DESTINATION_SEND_BURST", 10, "DESTINATION_SENDS_PER_MINUTE", 1),
		OriginLimit:      r.limit("ORIGIN_SEND_BURST", 40, "ORIGIN_SENDS_PER_MINUTE", 10),
		PublishLimit:     r.limit("PUBLISH_BURST", 60, "PUBLISHES_PER_MINUTE", 60), ProjectContentLimit: r.positive("PROJECT_CONTENT_LIMIT", 10),
		TokenLimit: r.limit("TOKEN_REQUEST_BURST", 2000, "TOKEN_REQUESTS_PER_MINUTE", 600),
	}
	return e, r.err()
}

// ReadOutboxStream reads the outbox-stream function's environment.
func ReadOutboxStream(getenv func(string) string) (OutboxStream, error) {
	r := reader{getenv: getenv}
	e := OutboxStream{
		Stage:          r.stage(),
		DeliveryStream: r.streamOf("DELIVERY_STREAM_ARN", "DELIVERY_TABLE"),
		QueueURL:       r.address("QUEUE_URL"),
		OnFailureQueue: r.address("ON_FAILURE_QUEUE_URL"),
		Namespace:      r.namespace(),
	}
	return e, r.err()
}

// ReadDeliver reads the deliver function's environment.
func ReadDeliver(getenv func(string) string) (Deliver, error) {
	r := reader{getenv: getenv}
	stage := r.stage()
	e := Deliver{
		Stage:           stage,
		DeliveryTable:   r.need("DELIVERY_TABLE"),
		QueueURL:        r.address("QUEUE_URL"),
		SlowQueue:       r.address("SLOW_QUEUE_URL"),
		DeadLetterQueue: r.address("DEAD_LETTER_QUEUE_URL"),
		SealingKey:      r.need("SEALING_KEY_ID"),
		AllowsLoopback:  r.loopback(stage),
		APIID:           r.getenv("API_ID"),
		PublicAddress:   r.publicAddress("PUBLIC_ADDRESS", stage),
		Namespace:       r.namespace(),
	}
	return e, r.err()
}

// ReadSweep reads the sweep function's environment.
func ReadSweep(getenv func(string) string) (Sweep, error) {
	r := reader{getenv: getenv}
	e := Sweep{
		Stage:         r.stage(),
		DeliveryTable: r.need("DELIVERY_TABLE"),
		QueueURL:      r.address("QUEUE_URL"),
		Namespace:     r.namespace(),
	}
	return e, r.err()
}

// reader reads variables and gathers what is wrong with them.
type reader struct {
	getenv func(string) string
	wrong  []string
}

func (r *reader) complain(format string, args ...any) {
	r.wrong = append(r.wrong, fmt.Sprintf(format, args...))
}

func (r *reader) err() error {
	if len(r.wrong) == 0 {
		return nil
	}
	return errors.New("the environment is not as the template sets it: " + strings.Join(r.wrong, "; "))
}

func (r *reader) need(name string) string {
	value := r.getenv(name)
	if value == "" {
		r.complain("%s is missing", name)
	}
	return value
}

// stage takes an environment that is not named for production, whose rules are
// the strictest.
func (r *reader) stage() Stage {
	const name = "COLOPHON_ENVIRONMENT"
	switch stage := Stage(r.getenv(name)); {
	case stage == "":
		return Production
	case slices.Contains([]Stage{Production, Staging, Local}, stage):
		return stage
	}
	r.complain("%s is neither production nor staging nor local", name)
	return Production
}

func (r *reader) loopback(stage Stage) bool {
	const name = "ALLOW_LOOPBACK_RECEIVERS"
	switch r.getenv(name) {
	case "", "false":
		return false
	case "true":
		if stage == Production {
			r.complain("%s is true, which production refuses: its receivers are on public addresses. "+
				"Set the stack's parameter AllowLoopbackReceivers to false", name)
		}
		return true
	}
	r.complain("%s is neither true nor false", name)
	return false
}

// streamOf reads the ARN of a stream, which must be the table's.
func (r *reader) streamOf(stream, table string) string {
	arn, name := r.need(stream), r.need(table)
	if arn != "" && name != "" && !strings.Contains(arn, ":table/"+name+"/stream/") {
		r.complain("%s is not a stream of the table that %s names: "+
			"set the stack's parameters DeliveryStreamArn and DeliveryTableName to one table's", stream, table)
	}
	return arn
}

// limit reads a limit of so many at once and so many a minute from then on.
func (r *reader) limit(burst string, atOnce int, perMinute string, each int) ratelimit.Limit {
	return ratelimit.PerMinute(r.positive(burst, atOnce), r.positive(perMinute, each))
}

// positive reads a whole number from 1; missing, it is the usual one.
func (r *reader) positive(name string, usual int) int {
	value := r.getenv(name)
	if value == "" {
		return usual
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > 1_000_000 {
		r.complain("%s is not a whole number from 1 to 1,000,000", name)
		return usual
	}
	return n
}

func (r *reader) namespace() string {
	if name := r.getenv("METRICS_NAMESPACE"); name != "" {
		return name
	}
	return "Colophon"
}

func (r *reader) address(name string) string {
	value := r.need(name)
	if value != "" && !isAddress(value) {
		r.complain("%s is not an address", name)
	}
	return value
}

// publicAddress is where links lead. In production that is never plain HTTP: links
// carry no secret, but who follows one sends a token.
func (r *reader) publicAddress(name string, stage Stage) string {
	value := r.getenv(name)
	if stage == Production && strings.HasPrefix(strings.ToLower(value), "http:") {
		r.complain("%s begins with http://, which production refuses. Set the stack's parameter PublicAddress to an https:// address", name)
	}
	if value != "" && !isAddress(value) {
		r.complain("%s is not an address that links can begin with", name)
	}
	return strings.TrimRight(value, "/")
}

func isAddress(value string) bool {
	u, err := url.Parse(value)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" &&
		u.User == nil && u.RawQuery == "" && u.Fragment == "" && !u.ForceQuery
}
