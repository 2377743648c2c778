//go:build stack

package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"colophon/client"
)

func TestFiveTriesWithTheirTimesUnderAClockThatIsMoved(t *testing.T) {
	r := newReceiver(t, http.StatusInternalServerError)
	p := newProject(t, r)
	release := p.publish()
	var moved time.Duration
	for try, wait := range []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute} {
		r.next(t)
		var d client.Delivery
		eventually(t, fmt.Sprintf("try %d is recorded", try+1), func() bool {
			d = p.delivery(release)
			return d.Tries == int64(try+1)
		}, func() string { return fmt.Sprintf("%d tries", d.Tries) })
		last := d.Attempts[len(d.Attempts)-1]
		if got := d.TryAt.Value.Sub(last.At); got < wait || got > wait+wait/20+10*time.Second {
			t.Errorf("try %d follows %v after try %d, want %v and up to 5 %% more", try+2, got, try+1, wait)
		}
		// Past the try's time, and past what the sweeper waits for a message that is
		// on its way: a short wait rides on the message, which real time holds back.
		moved += wait + wait/20 + 3*time.Minute
		running.moveClock(t, moved)
		running.sweep(t)
	}
	r.next(t)
	d := p.becomes(release, client.DeliveryStateFailed)
	if d.Tries != 5 || len(d.Attempts) != 5 || len(r.requests()) != 5 {
		t.Errorf("%d tries, %d attempts, %d requests", d.Tries, len(d.Attempts), len(r.requests()))
	}
	for _, got := range r.requests() {
		if got.id() != d.WebhookId || got.Body != r.requests()[0].Body {
			t.Error("the tries differ in id or body")
		}
	}
}

func TestALostStreamRecordIsHealedByTheSweeperAndItsReplaySendsNothing(t *testing.T) {
	mapping := running.mapping(t, "OutboxStreamFunction", "")
	running.enable(t, mapping, false)
	t.Cleanup(func() { running.enable(t, mapping, true) })
	r := newReceiver(t)
	p := newProject(t, r)
	release := p.publish()
	running.moveClock(t, 3*time.Minute)
	running.sweep(t)
	r.next(t)
	p.becomes(release, client.DeliveryStateDelivered)

	// The record comes after all, and a release behind it shows that it was read.
	running.enable(t, mapping, true)
	p.becomes(p.publish(), client.DeliveryStateDelivered)
	if got := r.requests(); len(got) != 2 || got[0].release() != 1 || got[1].release() != 2 {
		t.Errorf("%d requests arrived, want one for each release", len(got))
	}
}

func TestALostMessageIsHealedByTheSweeper(t *testing.T) {
	mapping := running.mapping(t, "DeliverFunction", queueName(running.Outputs["QueueUrl"]))
	running.enable(t, mapping, false)
	t.Cleanup(func() { running.enable(t, mapping, true) })
	r := newReceiver(t)
	p := newProject(t, r)
	release := p.publish()
	queue := running.Outputs["QueueUrl"]
	eventually(t, "the message is on the queue and taken away", func() bool {
		return takeAway(t, queue, p.id)
	}, func() string { return "it is not there" })
	running.enable(t, mapping, true)
	running.moveClock(t, 3*time.Minute)
	running.sweep(t)
	r.next(t)
	p.becomes(release, client.DeliveryStateDelivered)
	eventually(t, "the figure says that a delivery was due for three minutes", func() bool {
		return slices.ContainsFunc(running.figures(t, "SweepLogs", "OldestDueSeconds"), func(seconds float64) bool {
			return seconds >= 180 && seconds < 600
		})
	}, func() string { return fmt.Sprint(running.figures(t, "SweepLogs", "OldestDueSeconds")) })
}

func TestADeadLetterThatIsReturnedIsDelivered(t *testing.T) {
	mapping := running.mapping(t, "DeliverFunction", queueName(running.Outputs["QueueUrl"]))
	running.enable(t, mapping, false)
	t.Cleanup(func() { running.enable(t, mapping, true) })
	r := newReceiver(t)
	p := newProject(t, r)
	release := p.publish()
	queue, dead := running.Outputs["QueueUrl"], running.Outputs["DeadLetterQueueUrl"]
	eventually(t, "the message is on the queue and taken away", func() bool { return takeAway(t, queue, p.id) }, func() string { return "" })
	body := fmt.Sprintf(`{"v":1,"project":%q,"destination":%q,"release":%d}`, p.id, p.hooks[0], release)
	_, err := running.queues.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &dead, MessageBody: &body})
	must(t, err)
	running.enable(t, mapping, true)

	if out := command(t, "redrive"); !strings.Contains(out, body) {
		t.Errorf("redrive does not show the letter: %s", out)
	}
	if got := r.requests(); len(got) != 0 {
		t.Errorf("%d requests although the letter was only looked at", len(got))
	}
	command(t, "redrive", "--return")
	r.next(t)
	p.becomes(release, client.DeliveryStateDelivered)
}

// takeAway deletes a project's message from a queue and leaves the others.
func takeAway(t *testing.T, queue, project string) bool {
	t.Helper()
	out, err := running.queues.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{
		QueueUrl: &queue, MaxNumberOfMessages: 10, WaitTimeSeconds: 1, VisibilityTimeout: 1,
	})
	must(t, err)
	found := false
	for _, m := range out.Messages {
		if !strings.Contains(aws.ToString(m.Body), project) {
			continue
		}
		_, err := running.queues.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: &queue, ReceiptHandle: m.ReceiptHandle})
		must(t, err)
		found = true
	}
	return found
}

func TestRetryAfterIsAskedAndUsed(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	r.says = func(n int, _ request) int { return http.StatusTooManyRequests }
	r.answerHeader("Retry-After", "120")
	p := newProject(t, r)
	d := p.becomes(p.publish(), client.DeliveryStateRetrying)
	a := d.Attempts[0]
	if a.RetryAfterAsked.Value != 120 || a.RetryAfterUsed.Value != 120 {
		t.Errorf("asked %d s, used %d s, want 120 of both", a.RetryAfterAsked.Value, a.RetryAfterUsed.Value)
	}
	if got := d.TryAt.Value.Sub(a.At); got < 2*time.Minute || got > 2*time.Minute+10*time.Second {
		t.Errorf("the next try is %v after the last", got)
	}
}

func TestAnOlderReleaseNeedsForceAndIsRefusedWithoutIt(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	p := newProject(t, r)
	p.becomes(p.publish(), client.DeliveryStateDelivered)
	p.becomes(p.publish(), client.DeliveryStateDelivered)
	redeliver := func(ask client.Redeliver) (*client.Delivery, error) {
		return p.api.Redeliver(t.Context(), client.NewOptRedeliver(ask), client.RedeliverParams{Project: p.id, Destination: p.hooks[0], Release: 1})
	}
	_, err := redeliver(client.Redeliver{})
	if problem := client.AsProblem(err); problem == nil || problem.StatusCode != http.StatusConflict || problem.Response.Newest.Value != 2 {
		t.Errorf("without force: %v, want 409 that names release 2", err)
	}
	_, err = redeliver(client.Redeliver{Force: client.NewOptBool(true), Over: client.NewOptInt64(1)})
	if problem := client.AsProblem(err); problem == nil || problem.StatusCode != http.StatusConflict {
		t.Errorf("forced over what is not the newest: %v, want 409", err)
	}
	_, err = redeliver(client.Redeliver{Force: client.NewOptBool(true), Over: client.NewOptInt64(2)})
	must(t, err)
	eventually(t, "release 1 arrives again", func() bool { return len(r.requests()) == 3 }, func() string { return "" })
	got := r.requests()
	if got[2].release() != 1 || got[2].id() != got[0].id() || got[2].Body != got[0].Body {
		t.Errorf("arrived release %d with id %s", got[2].release(), got[2].id())
	}
}

func TestWhatIsPublishedWhilePausedIsSkippedVisiblyAndTheCurrentReleaseIsSentOnResume(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	p := newProject(t, r)
	where := client.PauseDestinationParams{Project: p.id, Destination: p.hooks[0]}
	_, err := p.api.PauseDestination(t.Context(), where)
	must(t, err)
	p.publish()
	d := p.becomes(1, client.DeliveryStateSkipped)
	if d.Reason.Value != "paused" {
		t.Errorf("release 1 is skipped: %s", d.Reason.Value)
	}
	p.becomes(p.publish(), client.DeliveryStateSkipped)
	resumed, err := p.api.ResumeDestination(t.Context(), client.ResumeDestinationParams(where))
	must(t, err)
	if resumed.Offer.Value != 2 {
		t.Fatalf("resume offers release %d, want 2", resumed.Offer.Value)
	}
	_, err = p.api.Redeliver(t.Context(), client.OptRedeliver{}, client.RedeliverParams{Project: p.id, Destination: p.hooks[0], Release: 2})
	must(t, err)
	if got := r.next(t); got.release() != 2 {
		t.Errorf("release %d arrived", got.release())
	}
	p.becomes(2, client.DeliveryStateDelivered)
}

func TestAPoisonousMessageGoesToTheDeadLettersAndNineInnocentsSpendNoTryOnIt(t *testing.T) {
	// While nobody takes messages, all ten come together: one batch takes them.
	mapping := running.mapping(t, "DeliverFunction", queueName(running.Outputs["QueueUrl"]))
	running.enable(t, mapping, false)
	t.Cleanup(func() { running.enable(t, mapping, true) })
	r := newReceiver(t)
	p := newProject(t)
	for i := range 9 {
		p.add(fmt.Sprintf("innocent %d", i), r.URL)
	}
	queue, poison := running.Outputs["QueueUrl"], fmt.Sprintf(`{"v":1,"poison":%q}`, p.id)
	_, err := running.queues.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &queue, MessageBody: &poison})
	must(t, err)
	release := p.publish()
	eventually(t, "ten messages are on the queue", func() bool { return waiting(t, queue) >= 10 }, func() string { return "" })
	running.enable(t, mapping, true)

	var list *client.DeliveryList
	eventually(t, "all nine are delivered", func() bool {
		list, err = p.api.ListReleaseDeliveries(t.Context(), client.ListReleaseDeliveriesParams{Project: p.id, Release: release})
		must(t, err)
		for _, d := range list.Deliveries {
			if d.State != client.DeliveryStateDelivered {
				return false
			}
		}
		return len(list.Deliveries) == 9
	}, func() string { return "" })
	for _, d := range list.Deliveries {
		if d.Tries != 1 {
			t.Errorf("%s spent %d tries", d.DestinationName, d.Tries)
		}
	}
	eventually(t, "the poison is a dead letter with its reason", func() bool {
		letter := deadLetter(t, func(body string) bool { return body == poison })
		return letter != nil && aws.ToString(letter.MessageAttributes["reason"].StringValue) != ""
	}, func() string { return "" })
}

// waiting is how many messages of a queue nobody has taken.
func waiting(t *testing.T, queue string) int {
	t.Helper()
	out, err := running.queues.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{
		QueueUrl: &queue, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameApproximateNumberOfMessages},
	})
	must(t, err)
	n, err := strconv.Atoi(out.Attributes[string(types.QueueAttributeNameApproximateNumberOfMessages)])
	must(t, err)
	return n
}

// deadLetter looks for a dead letter and shows it to others again at once.
func deadLetter(t *testing.T, is func(body string) bool) *types.Message {
	t.Helper()
	dead := running.Outputs["DeadLetterQueueUrl"]
	out, err := running.queues.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{
		QueueUrl: &dead, MaxNumberOfMessages: 10, VisibilityTimeout: 0, MessageAttributeNames: []string{"All"},
	})
	must(t, err)
	for _, m := range out.Messages {
		if is(aws.ToString(m.Body)) {
			return &m
		}
	}
	return nil
}

func TestMetricsAreWrittenWhereCloudWatchReadsThem(t *testing.T) {
	t.Parallel()
	p, refusing := newProject(t, newReceiver(t, http.StatusServiceUnavailable, http.StatusNoContent)), newProject(t, newReceiver(t, http.StatusBadRequest))
	p.becomes(p.publish(), client.DeliveryStateRetrying)
	p.becomes(p.publish(), client.DeliveryStateDelivered)
	p.becomes(1, client.DeliveryStateSkipped)
	refusing.becomes(refusing.publish(), client.DeliveryStateFailed)
	running.sweep(t)
	for function, names := range map[string][]string{
		"OutboxStreamLogs": {"Forwarded"},
		"DeliverLogs":      {"Delivered", "Failed", "Skipped", "Retries", "AttemptMilliseconds", "PublishToDeliveredMilliseconds"},
		"SweepLogs":        {"Swept", "OldestDueSeconds"},
	} {
		for _, name := range names {
			eventually(t, name+" is in the log of "+function, func() bool {
				return len(running.figures(t, function, name)) > 0
			}, func() string { return "" })
		}
	}
}

// figures are a figure's values in a function's log, read out of its lines in the
// embedded metric format as CloudWatch does it.
func (s *stack) figures(t *testing.T, function, name string) (values []float64) {
	t.Helper()
	for _, text := range s.lines(t, function) {
		var line map[string]json.RawMessage
		if json.Unmarshal([]byte(text), &line) != nil || line["_aws"] == nil || line[name] == nil {
			continue
		}
		var value float64
		must(t, json.Unmarshal(line[name], &value))
		var embedded struct {
			Timestamp         int64
			CloudWatchMetrics []struct {
				Namespace string
				Metrics   []struct{ Name, Unit string }
			}
		}
		must(t, json.Unmarshal(line["_aws"], &embedded))
		named := false
		for _, directive := range embedded.CloudWatchMetrics {
			for _, metric := range directive.Metrics {
				named = named || directive.Namespace != "" && metric.Name == name && metric.Unit != ""
			}
		}
		if value < 0 || embedded.Timestamp == 0 || !named {
			t.Errorf("%s is written as %s", name, text)
		}
		values = append(values, value)
	}
	return values
}
