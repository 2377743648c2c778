package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"colophon/internal/access"
	"colophon/internal/enginetest"
	"colophon/internal/store"
)

const publicAddress = "https://colophon.example"

// worldConfig says what a run is put up with.
type worldConfig struct {
	Projects          int
	Drafts            int // documents that each project has before the run
	Destinations      int // of each project
	Way               func(project, destination int) string
	Bare              int     // projects of the bare client
	Conflicts         float64 // share of the api's transactions that are refused for a conflict
	Units             bool
	Concurrency, Slow int
	StreamInterval    time.Duration
}

// world is all that a run is put up with, running.
type world struct {
	worldConfig
	dir          string
	engine       *enginetest.Engine
	table        *dynamodb.Client
	queues       *sqs.Client
	content      string // tables
	delivery     string
	bareContent  string
	bareDelivery string
	urls         map[string]string // of queues, by name
	processes    map[string]*process
	token        string
	projects     []project
	bareProjects []project
}

// The queues' names.
const (
	nameQueue      = "queue"
	nameSlow       = "slow"
	nameDead       = "dead"
	nameOnFailure  = "on-failure"
	visibilityTime = "30"
)

var functionNames = []string{"api", "outbox-stream", "deliver", "sweep"}

// newWorld starts everything but the load. What it returns is to be ended, with
// an error too.
func newWorld(ctx context.Context, c worldConfig) (w *world, err error) {
	w = &world{worldConfig: c, processes: map[string]*process{}, urls: map[string]string{}}
	if w.dir, err = os.MkdirTemp("", "colophon-bench-"); err != nil {
		return w, err
	}
	if w.engine, err = enginetest.Start(); err != nil {
		return w, err
	}
	w.table = w.engine.Client()
	w.content, w.delivery = enginetest.RandomName("content"), enginetest.RandomName("delivery")
	w.bareContent, w.bareDelivery = enginetest.RandomName("content"), enginetest.RandomName("delivery")
	if err := enginetest.CreateTables(ctx, w.table, w.content, w.delivery); err != nil {
		return w, err
	}
	if err := enginetest.CreateTables(ctx, w.table, w.bareContent, w.bareDelivery); err != nil {
		return w, err
	}
	engines, err := w.startQueues(ctx)
	if err != nil {
		return w, err
	}
	if w.token, err = w.makeToken(ctx, w.content, ""); err != nil {
		return w, err
	}
	table := w.engine.Address
	if c.Conflicts > 0 {
		p, err := w.startChild("conflicts", "conflicts", conflictsConfig{table, c.Conflicts}, nil)
		if err != nil {
			return w, err
		}
		table = p.address
	}
	environment := w.environment(engines)
	for _, name := range functionNames {
		own := environment(w.content, w.delivery, w.engine.Address)
		if name == "api" {
			own = environment(w.content, w.delivery, table)
		}
		if _, err := w.startChild(name, "function", functionConfig{name, c.Units}, own); err != nil {
			return w, err
		}
	}
	if _, err := w.startChild("receiver", "receiver", nil, nil); err != nil {
		return w, err
	}
	if _, err := w.startChild("clients", "clients", clientsConfig{w.address("api"), w.address("receiver"), w.token}, nil); err != nil {
		return w, err
	}
	described, err := w.table.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &w.delivery})
	if err != nil {
		return w, err
	}
	if _, err := w.startChild("mappings", "mappings", mappingsConfig{
		Streams: w.engine.Address, Queues: engines.queues, StreamARN: *described.Table.LatestStreamArn,
		OutboxStream: w.address("outbox-stream"), Deliver: w.address("deliver"), Sweep: w.address("sweep"),
		Queue: w.urls[nameQueue], SlowQueue: w.urls[nameSlow], OnFailure: w.urls[nameOnFailure],
		QueueName: nameQueue, SlowQueueName: nameSlow,
		Concurrency: c.Concurrency, SlowConcurrency: c.Slow, StreamInterval: c.StreamInterval, SweepInterval: time.Minute,
	}, nil); err != nil {
		return w, err
	}
	if w.projects, err = prepare(ctx, newGateway(w.address("api"), w.token), c.Projects, c.Drafts, c.Destinations, w.receiverAddress); err != nil {
		return w, err
	}
	if c.Bare > 0 {
		token, err := w.makeToken(ctx, w.bareContent, "")
		if err != nil {
			return w, err
		}
		if _, err := w.startChild("bare", "bare", bareConfig{token}, environment(w.bareContent, w.bareDelivery, w.engine.Address)); err != nil {
			return w, err
		}
		if w.bareProjects, err = prepare(ctx, newGateway(w.address("bare"), token), c.Bare, c.Drafts, 1, w.receiverAddress); err != nil {
			return w, err
		}
	}
	return w, ask(patient, w.address("mappings"), "/start", nil, nil)
}

func (w *world) address(name string) string { return w.processes[name].address }

func (w *world) receiverAddress(project, number, place int) string {
	way := wayOK
	if w.Way != nil {
		way = w.Way(project, number)
	}
	return fmt.Sprintf("http://%s/%s/%d", w.address("receiver"), way, place)
}

func (w *world) startChild(name, role string, config any, env []string) (*process, error) {
	output, err := os.Create(filepath.Join(w.dir, name+".log"))
	if err != nil {
		return nil, err
	}
	p, err := startProcess(name, role, config, append([]string{"PATH=/nowhere", "TMPDIR=" + os.TempDir()}, env...), output)
	if err != nil {
		output.Close()
		return nil, err
	}
	w.processes[name] = p
	return p, nil
}

// engines are the addresses that the functions are given.
type engines struct{ queues, key string }

func (w *world) startQueues(ctx context.Context) (engines, error) {
	p, err := w.startChild("queues", "queues", nil, nil)
	if err != nil {
		return engines{}, err
	}
	var address string
	if err := ask(patient, p.address, "/address", nil, &address); err != nil {
		return engines{}, err
	}
	given := credentials.NewStaticCredentialsProvider("local", "local", "")
	w.queues = sqs.New(sqs.Options{Region: region, BaseEndpoint: aws.String("http://" + address), Credentials: given})
	for _, name := range []string{nameDead, nameOnFailure, nameQueue, nameSlow} {
		attributes := map[string]string{"VisibilityTimeout": visibilityTime}
		if name == nameQueue || name == nameSlow {
			attributes["RedrivePolicy"] = `{"deadLetterTargetArn":"arn:aws:sqs:` + region + `:000000000000:` + nameDead + `","maxReceiveCount":100}`
		}
		made, err := w.queues.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes})
		if err != nil {
			return engines{}, fmt.Errorf("make queue: %w", err)
		}
		w.urls[name] = *made.QueueUrl
	}
	keys := kms.New(kms.Options{Region: region, BaseEndpoint: aws.String("http://" + address), Credentials: given})
	made, err := keys.CreateKey(ctx, nil)
	if err != nil {
		return engines{}, fmt.Errorf("make key: %w", err)
	}
	return engines{address, *made.KeyMetadata.KeyId}, nil
}

// environment gives a function's environment, as the template does.
func (w *world) environment(e engines) func(content, delivery, table string) []string {
	return func(content, delivery, table string) []string {
		return []string{
			"AWS_LAMBDA_FUNCTION_MEMORY_SIZE=256", // the template's; api has 512
			"AWS_REGION=" + region, "AWS_ACCESS_KEY_ID=local", "AWS_SECRET_ACCESS_KEY=local",
			"AWS_ENDPOINT_URL_DYNAMODB=http://" + table, "AWS_ENDPOINT_URL_SQS=http://" + e.queues, "AWS_ENDPOINT_URL_KMS=http://" + e.queues,
			"AWS_LAMBDA_LOG_FORMAT=JSON", "AWS_LAMBDA_LOG_LEVEL=INFO",
			"CONTENT_TABLE=" + content, "DELIVERY_TABLE=" + delivery, "SEALING_KEY_ID=" + e.key,
			"DELIVERY_STREAM_ARN=arn:aws:dynamodb:" + region + ":000000000000:table/" + delivery + "/stream/1",
			"QUEUE_URL=" + w.urls[nameQueue], "SLOW_QUEUE_URL=" + w.urls[nameSlow],
			"DEAD_LETTER_QUEUE_URL=" + w.urls[nameDead], "ON_FAILURE_QUEUE_URL=" + w.urls[nameOnFailure],
			"PUBLIC_ADDRESS=" + publicAddress, "COLOPHON_ENVIRONMENT=staging", "ALLOW_LOOPBACK_RECEIVERS=true", "METRICS_NAMESPACE=Colophon",
			"PUBLISH_BURST=1000000", "PUBLISHES_PER_MINUTE=1000000", // what is measured is the system, not its limits
			"TOKEN_REQUEST_BURST=1000000", "TOKEN_REQUESTS_PER_MINUTE=1000000", // one token makes all the load
		}
	}
}

// makeToken makes a token as the command does.
func (w *world) makeToken(ctx context.Context, table, project string) (string, error) {
	engine, err := store.NewDynamo(store.DynamoConfig{Client: w.table})
	if err != nil {
		return "", err
	}
	tokens, err := store.NewTokens(store.TokensConfig{Engine: engine, Table: table})
	if err != nil {
		return "", err
	}
	service, err := access.New(access.Config{Tokens: tokens})
	if err != nil {
		return "", err
	}
	_, token, err := service.CreateToken(ctx, access.NewToken{Name: "bench", Role: access.Admin, Project: project, AllProjects: project == ""})
	return token, err
}

// prepare makes projects with documents and destinations, through the API.
func prepare(ctx context.Context, g *gateway, projects, drafts, destinations int, receiver func(project, number, place int) string) ([]project, error) {
	made := make([]project, projects)
	faults := make([]error, projects)
	var all sync.WaitGroup
	free := make(chan struct{}, 8)
	for n := range made {
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			made[n], faults[n] = prepareProject(ctx, g, n, drafts, destinations, receiver)
		})
	}
	all.Wait()
	return made, errors.Join(faults...)
}

func prepareProject(ctx context.Context, g *gateway, n, drafts, destinations int, receiver func(project, number, place int) string) (project, error) {
	type identified struct{ ID string }
	p, err := askFor[identified](ctx, g, postJSON("/projects", map[string]string{"name": fmt.Sprintf("Handbook %d", n)}))
	if err != nil {
		return project{}, err
	}
	made := project{ID: p.ID}
	for i := range drafts {
		if _, err := g.ask(ctx, saveDocument(p.ID, fmt.Sprintf("guide/chapter-%02d.md", i), fmt.Sprintf("# Chapter %d\n", i))); err != nil {
			return project{}, err
		}
	}
	for i := range destinations {
		place := n*destinations + i
		d, err := askFor[struct{ Destination identified }](ctx, g, postJSON("/projects/"+p.ID+"/destinations", map[string]string{
			"name": fmt.Sprintf("Website %d", i), "url": receiver(n, i, place),
		}))
		if err != nil {
			return project{}, err
		}
		made.Destinations = append(made.Destinations, destination{d.Destination.ID, place})
	}
	return made, nil
}

// end ends every process and removes what they left.
func (w *world) end() {
	for _, p := range w.processes {
		p.stop()
		p.output.Close()
	}
	if w.engine != nil {
		w.engine.Stop()
	}
	os.RemoveAll(w.dir)
}

// alive says whether all processes still run.
func (w *world) alive() error {
	for _, p := range w.processes {
		if err := p.alive(); err != nil {
			return err
		}
	}
	return nil
}

// usages reads what each process has used, the engine among them.
func (w *world) usages() map[string]usage {
	all := map[string]usage{"engine": usageOf(w.engine.Process), "parent": usageOf(os.Getpid()), machineName: machineUsage()}
	for name, p := range w.processes {
		all[name] = p.usage()
	}
	return all
}

// logged is how many bytes a function wrote to its log.
func (w *world) logged(name string) int64 {
	info, err := os.Stat(filepath.Join(w.dir, name+".log"))
	if err != nil {
		return 0
	}
	return info.Size()
}

func (w *world) counted(name string) (c counted, err error) {
	return c, ask(patient, w.address(name), "/counted", nil, &c)
}

func (w *world) memory(name string) (m memory, err error) {
	return m, ask(patient, w.address(name), "/memory", nil, &m)
}

// pending counts deliveries that have not ended: those in the sweep index.
func (w *world) pending(ctx context.Context) (int, error) {
	n := 0
	pages := dynamodb.NewScanPaginator(w.table, &dynamodb.ScanInput{
		TableName: &w.delivery, IndexName: aws.String("sweep"), Select: "COUNT",
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return 0, err
		}
		n += int(page.Count)
	}
	return n, nil
}

// queued counts the messages of a queue, those in flight too.
func (w *world) queued(ctx context.Context, name string) (int, error) {
	url := w.urls[name]
	out, err := w.queues.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []sqstypes.QueueAttributeName{"All"}})
	if err != nil {
		return 0, err
	}
	var visible, hidden int
	fmt.Sscan(out.Attributes["ApproximateNumberOfMessages"], &visible)
	fmt.Sscan(out.Attributes["ApproximateNumberOfMessagesNotVisible"], &hidden)
	return visible + hidden, nil
}
