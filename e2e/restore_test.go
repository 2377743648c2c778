//go:build restore

package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	cloudformationtypes "github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"colophon/client"
	"colophon/internal/enginetest"
)

// stackName is the local stack's.
const stackName = "colophon-local"

func TestMain(m *testing.M) {
	if os.Getenv("AWS_ENDPOINT_URL") == "" {
		fmt.Fprintln(os.Stderr, "e2e: AWS_ENDPOINT_URL names no running LocalStack: use `make test-restore`")
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// Nothing that the first try left is in the second one's way: tables and key have
// CloudFormation's names, and all else is deleted with the stack.
func TestAFirstDeploymentThatFailedIsDoneAgain(t *testing.T) {
	settings := aws.Config{
		Region: os.Getenv("AWS_REGION"), BaseEndpoint: aws.String(os.Getenv("AWS_ENDPOINT_URL")),
		Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	}
	stacks, tables, functions := cloudformation.NewFromConfig(settings), dynamodb.NewFromConfig(settings), lambda.NewFromConfig(settings)

	// More than the account has to give, as in a new account of AWS: the api function is made, and then refused.
	out, err := deploy(t, "ApiReservedConcurrency=950")
	if err == nil || !strings.Contains(out, "ApiFunction (AWS::Lambda::Function)") || !strings.Contains(out, "UnreservedConcurrentExecution") {
		t.Fatalf("the deployment did not fail for the api's concurrency: %v", err)
	}
	described, err := stacks.DescribeStacks(t.Context(), &cloudformation.DescribeStacksInput{StackName: aws.String(stackName)})
	must(t, err)
	if status := described.Stacks[0].StackStatus; status != cloudformationtypes.StackStatusRollbackComplete {
		t.Fatalf("the stack is %s", status)
	}
	if out, err = deploy(t); err == nil {
		t.Fatalf("a stack whose first deployment failed was updated: %s", out)
	}

	_, err = stacks.DeleteStack(t.Context(), &cloudformation.DeleteStackInput{StackName: described.Stacks[0].StackId})
	must(t, err)
	must(t, cloudformation.NewStackDeleteCompleteWaiter(stacks, func(o *cloudformation.StackDeleteCompleteWaiterOptions) {
		o.MinDelay, o.MaxDelay = 100*time.Millisecond, time.Second
	}).Wait(t.Context(), &cloudformation.DescribeStacksInput{StackName: described.Stacks[0].StackId}, longest))
	kept, err := tables.ListTables(t.Context(), &dynamodb.ListTablesInput{})
	must(t, err)
	left, err := functions.ListFunctions(t.Context(), &lambda.ListFunctionsInput{})
	must(t, err)
	if len(left.Functions) != 0 {
		t.Errorf("%d functions outlived their stack, the first one %s", len(left.Functions), *left.Functions[0].FunctionName)
	}

	s := deployed(t)
	for _, name := range []string{"ContentTableName", "DeliveryTableName"} {
		if slices.Contains(kept.TableNames, s.Outputs[name]) {
			t.Errorf("%s is one of the first try's", s.Outputs[name])
		}
	}
	r := newReceiver(t)
	p := newProject(t, r)
	p.becomes(p.publish(), client.DeliveryStateDelivered)
	if got := r.next(t); got.release() != 1 {
		t.Errorf("release %d arrived", got.release())
	}
}

func TestARestoredPairOfTablesComesInByFourParameters(t *testing.T) {
	before := deployed(t)
	failing, steady := newReceiver(t), newReceiver(t)
	tried, untried := newProject(t, failing), newProject(t, steady)
	for _, p := range []*project{tried, untried} {
		p.becomes(p.publish(), client.DeliveryStateDelivered)
	}
	failing.answers(http.StatusServiceUnavailable)
	tried.publish()
	eventually(t, "a try of the second release is recorded", func() bool { return tried.delivery(2).Tries > 0 }, func() string { return "" })

	// The writers stop, while one project's release was tried in vain and another one's not at all.
	mappings := []string{
		before.mapping(t, "OutboxStreamFunction", ""),
		before.mapping(t, "DeliverFunction", queueName(before.Outputs["QueueUrl"])),
		before.mapping(t, "DeliverFunction", queueName(before.Outputs["SlowQueueUrl"])),
	}
	for _, mapping := range mappings {
		before.enable(t, mapping, false)
	}
	untried.publish()
	api := aws.String(before.Resources["ApiFunction"])
	_, err := before.lambda.PutFunctionConcurrency(t.Context(), &lambda.PutFunctionConcurrencyInput{FunctionName: api, ReservedConcurrentExecutions: aws.Int32(0)})
	must(t, err)
	const content, deliveries = "restored-content", "restored-delivery"
	must(t, enginetest.RestoreTable(t.Context(), before.tables, before.Outputs["ContentTableName"], content))
	must(t, enginetest.RestoreTable(t.Context(), before.tables, before.Outputs["DeliveryTableName"], deliveries))

	parameters := prepare(t, content, deliveries)
	if again := prepare(t, content, deliveries); again != parameters {
		t.Errorf("prepared again: %s, before: %s", again, parameters)
	}
	after := deployed(t, strings.Fields(parameters)...)
	after.isKeptByATemplateThatIsHeldToIt(t)
	_, err = after.lambda.DeleteFunctionConcurrency(t.Context(), &lambda.DeleteFunctionConcurrencyInput{FunctionName: api})
	must(t, err)
	after.isBefore(t, before, map[string]string{"ContentTableName": content, "DeliveryTableName": deliveries})
	_, err = before.client(t).GetProject(t.Context(), client.GetProjectParams{Project: tried.id})
	if problem := client.AsProblem(err); problem == nil || problem.StatusCode != http.StatusUnauthorized {
		t.Errorf("a token from before the restore is taken: %v", err)
	}

	// What was pending is announced as it was, and in order. Its stream records are not in the new stream, so the sweeper
	// finds it.
	failing.answers(http.StatusNoContent)
	for _, mapping := range mappings[1:] {
		after.enable(t, mapping, true)
	}
	after.moveClock(t, 10*time.Minute)
	after.sweep(t)
	for _, p := range []*project{tried, untried} {
		p.api = after.client(t)
		p.becomes(2, client.DeliveryStateDelivered)
	}
	forwarded := after.forwarded(t)
	for _, p := range []*project{tried, untried} {
		if release := p.publish(); release != 3 {
			t.Errorf("release %d follows release 2", release)
		}
		p.becomes(3, client.DeliveryStateDelivered)
	}
	eventually(t, "the new table's stream is forwarded", func() bool { return after.forwarded(t) > forwarded }, func() string { return "" })
	failing.gotEachOnceInOrder(t, 3, tried.secret[0])
	steady.gotEachOnceInOrder(t, 3, untried.secret[0])
	if got := steady.requests(); len(got) != 3 {
		t.Errorf("%d requests arrived where none failed, want 3", len(got))
	}
	for _, queue := range []string{"DeadLetterQueueUrl", "OnFailureQueueUrl"} {
		if left := after.standing(t, after.Outputs[queue], ""); len(left) > 0 {
			t.Errorf("%s has %v", queue, left)
		}
	}
}

// isBefore checks that the stack is the one that it was, but for its tables, which
// are the given ones: the address, the key and the queues stay, the old tables are kept.
func (s *stack) isBefore(t *testing.T, before *stack, given map[string]string) {
	t.Helper()
	if s.API != before.API {
		t.Errorf("the API moved from %s to %s", before.API, s.API)
	}
	for name, value := range before.Outputs {
		want, isGiven := given[name]
		switch {
		case isGiven:
			_, err := s.tables.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &value})
			if err != nil {
				t.Errorf("the replaced table was not kept: %v", err)
			}
		case name == "DeliveryStreamArn":
			table, err := s.tables.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String(given["DeliveryTableName"])})
			must(t, err)
			want = aws.ToString(table.Table.LatestStreamArn)
		default:
			want = value
		}
		if s.Outputs[name] != want {
			t.Errorf("%s is %s, want %s", name, s.Outputs[name], want)
		}
	}
	var sources []string
	eventually(t, "the stream's function has one mapping, from the new table's stream", func() bool {
		list, err := s.lambda.ListEventSourceMappings(t.Context(), &lambda.ListEventSourceMappingsInput{FunctionName: aws.String(s.Resources["OutboxStreamFunction"])})
		must(t, err)
		sources = nil
		for _, mapping := range list.EventSourceMappings {
			if aws.ToString(mapping.State) != "Deleting" { // LocalStack leaves one that was off in this state
				sources = append(sources, aws.ToString(mapping.EventSourceArn))
			}
		}
		return slices.Equal(sources, []string{s.Outputs["DeliveryStreamArn"]})
	}, func() string { return fmt.Sprint(sources) })
}

// isKeptByATemplateThatIsHeldToIt deploys what make deploy does where all prompts are
// answered by Enter: the template's defaults.
func (s *stack) isKeptByATemplateThatIsHeldToIt(t *testing.T) {
	t.Helper()
	folder := t.TempDir()
	template, err := os.ReadFile("../template.yaml")
	must(t, err)
	held := filepath.Join(folder, "template.yaml")
	must(t, os.WriteFile(held, template, 0o600))
	command := exec.CommandContext(t.Context(), "go", "run", "./deploy/tables", "-stack", stackName, "-region", os.Getenv("AWS_REGION"), folder)
	command.Dir = ".."
	out, err := command.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "ContentTableName="+s.Outputs["ContentTableName"]) {
		t.Fatalf("the template is not held to the stack's tables: %v\n%s", err, out)
	}
	if out, err := deployFrom(t, held); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	now, err := open()
	must(t, err)
	for _, name := range []string{"ContentTableName", "DeliveryTableName", "DeliveryStreamArn", "SealingKeyArn"} {
		if now.Outputs[name] != s.Outputs[name] {
			t.Errorf("%s went from %s to %s", name, s.Outputs[name], now.Outputs[name])
		}
	}
}

// forwarded counts the log lines of the stream's function that say so.
func (s *stack) forwarded(t *testing.T) (n int) {
	t.Helper()
	for _, line := range s.lines(t, "OutboxStreamLogs") {
		if strings.Contains(line, "forwarded") {
			n++
		}
	}
	return n
}

// answers is the status of all answers from now on.
func (r *receiver) answers(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.says = func(int, request) int { return status }
}

// gotEachOnceInOrder checks what a receiver got in all: the releases up to the last
// in order, each under an id of its own, with the same body at each try, and signed
// with the destination's secret.
func (r *receiver) gotEachOnceInOrder(t *testing.T, last int64, secret string) {
	t.Helper()
	hook, err := webhooks.NewWebhook(secret)
	must(t, err)
	var order []int64
	first, releases := map[int64]request{}, map[string]int64{}
	for _, got := range r.requests() {
		release := got.release()
		if err := hook.VerifyIgnoringTimestamp([]byte(got.Body), got.Header); err != nil {
			t.Errorf("release %d is not signed with the destination's secret: %v", release, err)
		}
		if earlier, isRetry := first[release]; !isRetry {
			order, first[release] = append(order, release), got
		} else if got.id() != earlier.id() || got.Body != earlier.Body {
			t.Errorf("release %d came as %s %s and then as %s %s", release, earlier.id(), earlier.Body, got.id(), got.Body)
		} else if order[len(order)-1] != release {
			t.Errorf("release %d came again after release %d", release, order[len(order)-1])
		}
		if other, isTaken := releases[got.id()]; isTaken && other != release {
			t.Errorf("releases %d and %d have one id", other, release)
		}
		releases[got.id()] = release
	}
	for i := range last {
		if int64(len(order)) != last || order[i] != i+1 {
			t.Errorf("releases arrived as %v, want 1 to %d", order, last)
			return
		}
	}
}

// deploy brings the template onto the LocalStack of the tests, as `make up` does, and gives what it printed.
func deploy(t *testing.T, parameters ...string) (string, error) {
	t.Helper()
	return deployFrom(t, "template.yaml", parameters...)
}

func deployFrom(t *testing.T, template string, parameters ...string) (string, error) {
	t.Helper()
	endpoint, err := url.Parse(os.Getenv("AWS_ENDPOINT_URL"))
	must(t, err)
	arguments := []string{"up", "--port", endpoint.Port(), "--functions", "build/killpoints", "--template", template}
	for _, p := range parameters {
		arguments = append(arguments, "--parameter", p)
	}
	command := exec.CommandContext(t.Context(), "localstack/stack", arguments...)
	command.Dir = ".."
	out, err := command.CombinedOutput()
	t.Logf("localstack/stack %s:\n%s", strings.Join(arguments, " "), out)
	return string(out), err
}

func deployed(t *testing.T, parameters ...string) *stack {
	t.Helper()
	if _, err := deploy(t, parameters...); err != nil {
		t.Fatal(err)
	}
	s, err := open()
	must(t, err)
	must(t, s.obey(t.Context(), t.TempDir()))
	running = s
	return s
}

// prepare runs the command and gives the parameters that it prints.
func prepare(t *testing.T, content, deliveries string) string {
	t.Helper()
	command := exec.CommandContext(context.WithoutCancel(t.Context()), "go", "run", "./cmd/colophon", "restore", "prepare",
		"--stack", stackName, "--content-table", content, "--delivery-table", deliveries)
	command.Dir = ".."
	var out, said bytes.Buffer
	command.Stdout, command.Stderr = &out, &said
	err := command.Run()
	t.Logf("colophon restore prepare: %v\n%s%s", err, &said, &out)
	must(t, err)
	return strings.TrimSpace(out.String())
}
