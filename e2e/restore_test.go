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
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
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

// deploy brings the template onto the LocalStack of the tests, as `make up` does, and gives what it printed.
func deploy(t *testing.T, parameters ...string) (string, error) {
	t.Helper()
	endpoint, err := url.Parse(os.Getenv("AWS_ENDPOINT_URL"))
	must(t, err)
	arguments := []string{"up", "--port", endpoint.Port(), "--functions", "build/killpoints"}
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

func TestARestoredPairOfTablesComesInByFourParameters(t *testing.T) {
	deployed(t)
	before := running
	r := newReceiver(t)
	p := newProject(t, r)
	if release := p.publish(); p.becomes(release, client.DeliveryStateDelivered).Tries != 1 {
		t.Errorf("release %d took more than one try", release)
	}
	r.next(t)

	// The writers stop while a release is pending, and both tables are restored to that moment.
	stream := before.mapping(t, "OutboxStreamFunction", "")
	work := before.mapping(t, "DeliverFunction", queueName(before.Outputs["QueueUrl"]))
	before.enable(t, stream, false)
	before.enable(t, work, false)
	pending := p.publish()
	const content, deliveries = "restored-content", "restored-delivery"
	must(t, enginetest.RestoreTable(t.Context(), before.tables, before.Outputs["ContentTableName"], content))
	must(t, enginetest.RestoreTable(t.Context(), before.tables, before.Outputs["DeliveryTableName"], deliveries))

	parameters := prepare(t, content, deliveries)
	if again := prepare(t, content, deliveries); again != parameters {
		t.Errorf("prepared again: %s, before: %s", again, parameters)
	}
	if !strings.Contains(parameters, "SealingKeyArn="+before.Outputs["SealingKeyArn"]) {
		t.Errorf("the key is another: %s", parameters)
	}

	after := deployed(t, strings.Fields(parameters)...)
	if after.API != before.API || after.Outputs["ApiUrl"] != before.Outputs["ApiUrl"] {
		t.Errorf("the API moved from %s to %s", before.API, after.API)
	}
	for _, name := range []string{"ContentTableName", "DeliveryTableName"} {
		if after.Outputs[name] == before.Outputs[name] {
			t.Errorf("%s is still %s", name, after.Outputs[name])
		}
		table := before.Outputs[name]
		if _, err := after.tables.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &table}); err != nil {
			t.Errorf("the replaced table was not kept: %v", err)
		}
	}
	if after.Outputs["SealingKeyArn"] != before.Outputs["SealingKeyArn"] {
		t.Errorf("the key is %s, and was %s", after.Outputs["SealingKeyArn"], before.Outputs["SealingKeyArn"])
	}
	_, err := before.client(t).GetProject(t.Context(), client.GetProjectParams{Project: p.id})
	if problem := client.AsProblem(err); problem == nil || problem.StatusCode != http.StatusUnauthorized {
		t.Errorf("a token from before the restore is taken: %v", err)
	}

	// What was pending is announced, once and as it was; what is published now comes after it. Its stream record is not in
	// the new stream, so the sweeper finds it.
	p.api = after.client(t)
	if work = after.mapping(t, "DeliverFunction", queueName(after.Outputs["QueueUrl"])); work != "" {
		after.enable(t, work, true)
	}
	after.moveClock(t, 3*time.Minute)
	after.sweep(t)
	p.becomes(pending, client.DeliveryStateDelivered)
	next := p.publish()
	if next != pending+1 {
		t.Errorf("release %d follows release %d", next, pending)
	}
	p.becomes(next, client.DeliveryStateDelivered)
	ids := map[string]bool{}
	hook, err := webhooks.NewWebhook(p.secret[0])
	must(t, err)
	got := r.requests()
	for i, request := range got {
		ids[request.id()] = true
		if request.release() != int64(i+1) {
			t.Errorf("request %d is release %d", i+1, request.release())
		}
		if err := hook.VerifyIgnoringTimestamp([]byte(request.Body), request.Header); err != nil {
			t.Errorf("release %d is not signed with the secret of before: %v", request.release(), err)
		}
	}
	if len(got) != 3 || len(ids) != 3 {
		t.Errorf("%d requests of %d ids arrived, want one for each of three releases", len(got), len(ids))
	}
	lines := after.lines(t, "OutboxStreamLogs")
	if !strings.Contains(strings.Join(lines, "\n"), "forwarded") {
		t.Error("the new table's stream is read by nobody")
	}
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
