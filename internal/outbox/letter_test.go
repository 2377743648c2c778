package outbox_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"colophon/internal/outbox"
)

func newDeadLetters(t testing.TB, dead string, queue *outbox.Sender) *outbox.DeadLetters {
	t.Helper()
	client := queueClient()
	d, err := outbox.NewDeadLetters(outbox.DeadLettersConfig{
		QueueURL: dead, Queue: queue, Receive: receive,
		Delete: client.DeleteMessage, ChangeVisibility: client.ChangeMessageVisibility,
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// receive does not wait: this engine hides nothing from a short poll.
func receive(ctx context.Context, in *sqs.ReceiveMessageInput, _ ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	in.WaitTimeSeconds = 0
	return queueClient().ReceiveMessage(ctx, in)
}

func look(t testing.TB, d *outbox.DeadLetters, most int) []outbox.DeadLetter {
	t.Helper()
	letters, err := d.Look(t.Context(), most)
	if err != nil {
		t.Fatal(err)
	}
	return letters
}

// office is a queue and its dead-letter queue.
type office struct {
	*outbox.DeadLetters
	queue, dead string
	sends       *faultySends // from the dead-letter queue back
	aside       *outbox.Sender
}

func newOffice(t testing.TB) *office {
	t.Helper()
	o := &office{queue: newQueue(t, nil), dead: newQueue(t, nil)}
	o.sends = &faultySends{send: queueClient().SendMessageBatch}
	o.aside = newSender(t, o.dead, queueClient().SendMessageBatch)
	o.DeadLetters = newDeadLetters(t, o.dead, newSender(t, o.queue, o.sends.SendMessageBatch))
	return o
}

func (o *office) setAside(t testing.TB, body, reason string) {
	t.Helper()
	if err := o.aside.SetAside(t.Context(), outbox.Letter{Body: body, Reason: reason, Source: "deliver"}); err != nil {
		t.Fatal(err)
	}
}

const readable = `{"v":1,"project":"p1","destination":"d1","release":6}`

func TestADeadLetterIsShownWithItsReasonAndWhoSetItAside(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.setAside(t, readable, "panic")
	letters := look(t, o.DeadLetters, 10)
	if len(letters) != 1 {
		t.Fatalf("shown: %+v", letters)
	}
	l := letters[0]
	if l.ID == "" || l.Body != readable || l.Reason != "panic" || l.Source != "deliver" || l.SentAt.IsZero() || l.Receives != 1 {
		t.Errorf("shown: %+v", l)
	}
	if m, err := l.Message(); err != nil || m.Release != 6 {
		t.Errorf("read as %+v, %v", m, err)
	}
}

func TestALetterThatSQSMovedAfterTooManyReceivesNamesItsQueue(t *testing.T) {
	t.Parallel()
	dead := newQueue(t, nil)
	arn := attribute(t, dead, types.QueueAttributeNameQueueArn)
	queue := newQueue(t, map[string]string{
		"VisibilityTimeout": "0", "RedrivePolicy": `{"deadLetterTargetArn":"` + arn + `","maxReceiveCount":"1"}`,
	})
	sender := newSender(t, queue, queueClient().SendMessageBatch)
	if unsent := sender.Send(t.Context(), messages(1)); len(unsent) > 0 {
		t.Fatal(unsent)
	}
	for range 3 {
		if _, err := queueClient().ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &queue}); err != nil {
			t.Fatal(err)
		}
	}
	d := newDeadLetters(t, dead, sender)
	d.Receive = func(ctx context.Context, in *sqs.ReceiveMessageInput, _ ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
		out, err := receive(ctx, in)
		if err == nil {
			for _, m := range out.Messages { // SQS says it, this engine does not
				m.Attributes["DeadLetterQueueSourceArn"] = attribute(t, queue, types.QueueAttributeNameQueueArn)
			}
		}
		return out, err
	}
	letters := look(t, d, 10)
	if len(letters) != 1 || letters[0].Reason != "" || letters[0].Source == "" || !strings.HasSuffix(queue, "/"+letters[0].Source) {
		t.Errorf("shown: %+v", letters)
	}
}

func attribute(t testing.TB, url string, name types.QueueAttributeName) string {
	t.Helper()
	out, err := queueClient().GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{
		QueueUrl: &url, AttributeNames: []types.QueueAttributeName{name},
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.Attributes[string(name)]
}

func TestAReturnedLetterIsOnTheQueueAndNoLongerADeadLetter(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.setAside(t, readable, "panic")
	if err := o.Return(t.Context(), look(t, o.DeadLetters, 10)[0]); err != nil {
		t.Fatal(err)
	}
	if got := takeMessages(t, o.queue); !slices.Equal(got, []string{"d1/6"}) {
		t.Errorf("on the queue: %v", got)
	}
	if n := attribute(t, o.dead, types.QueueAttributeNameApproximateNumberOfMessagesNotVisible); n != "0" {
		t.Errorf("%s dead letters are left", n)
	}
}

func TestALetterThatWouldOnlyComeBackIsNotReturned(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{"unreadable": "hello", "of a newer version": `{"v":2}`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t)
			o.setAside(t, body, "not a JSON object")
			letter := look(t, o.DeadLetters, 10)[0]
			if err := o.Return(t.Context(), letter); err == nil {
				t.Error("returned")
			}
			if got := take(t, o.queue); len(got) > 0 {
				t.Errorf("on the queue: %v", got)
			}
			if err := o.Leave(t.Context(), letter); err != nil {
				t.Fatal(err)
			}
			if got := look(t, o.DeadLetters, 10); len(got) != 1 || got[0].Body != body {
				t.Errorf("dead letters: %+v", got)
			}
		})
	}
}

func TestALetterWhoseReturnFailsStaysADeadLetter(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.setAside(t, readable, "panic")
	o.sends.fail = errors.New("down")
	letter := look(t, o.DeadLetters, 10)[0]
	if err := o.Return(t.Context(), letter); err == nil {
		t.Error("returned")
	}
	if err := o.Leave(t.Context(), letter); err != nil {
		t.Fatal(err)
	}
	if got := look(t, o.DeadLetters, 10); len(got) != 1 {
		t.Errorf("dead letters: %+v", got)
	}
}

func TestADroppedLetterIsGoneAndNothingIsOnTheQueue(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.setAside(t, "hello", "not a JSON object")
	if err := o.Drop(t.Context(), look(t, o.DeadLetters, 10)[0]); err != nil {
		t.Fatal(err)
	}
	if n := attribute(t, o.dead, types.QueueAttributeNameApproximateNumberOfMessagesNotVisible); n != "0" {
		t.Errorf("%s dead letters are left", n)
	}
	if got := take(t, o.queue); len(got) > 0 {
		t.Errorf("on the queue: %v", got)
	}
}

func TestLookShowsEachLetterOnceAndHidesItFromOthersMeanwhile(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	for range 13 {
		o.setAside(t, readable, "panic")
	}
	first, rest := look(t, o.DeadLetters, 12), look(t, o.DeadLetters, 12)
	if len(first) != 12 || len(rest) != 1 {
		t.Errorf("shown: %d, then %d", len(first), len(rest))
	}
	ids := map[string]bool{}
	for _, l := range append(first, rest...) {
		ids[l.ID] = true
	}
	if len(ids) != 13 {
		t.Errorf("%d letters", len(ids))
	}
}

func TestALetterThatIsReceivedTwiceIsShownOnceAndCanBeDropped(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	for range 2 {
		o.setAside(t, readable, "panic")
	}
	o.Receive = func(ctx context.Context, in *sqs.ReceiveMessageInput, _ ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
		in.MaxNumberOfMessages = 2
		out, err := receive(ctx, in)
		if err != nil {
			return nil, err
		}
		// What SQS may do, and this engine does not: the messages come again, under new receipts.
		for _, m := range out.Messages {
			if _, err := queueClient().ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{
				QueueUrl: in.QueueUrl, ReceiptHandle: m.ReceiptHandle,
			}); err != nil {
				return nil, err
			}
		}
		again, err := receive(ctx, in)
		if err != nil {
			return nil, err
		}
		out.Messages = append(out.Messages, again.Messages...)
		return out, nil
	}
	letters := look(t, o.DeadLetters, 10)
	if len(letters) != 2 || letters[0].ID == letters[1].ID {
		t.Fatalf("shown: %+v", letters)
	}
	for _, l := range letters {
		if err := o.Drop(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
	if got := take(t, o.dead); len(got) > 0 {
		t.Errorf("dead letters: %v", got)
	}
}

func TestALookThatFailsHandsOverWhatItHasReceived(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	for range 11 {
		o.setAside(t, readable, "panic")
	}
	asked := 0
	o.Receive = func(ctx context.Context, in *sqs.ReceiveMessageInput, _ ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
		if asked++; asked == 2 {
			return nil, errors.New("down")
		}
		return receive(ctx, in)
	}
	if letters, err := o.Look(t.Context(), 20); err == nil || len(letters) != 10 {
		t.Errorf("%d letters, %v", len(letters), err)
	}
}

// SQS refuses most control characters, an empty body and an empty attribute; a
// letter that it refused would bring its message back for ever.
func TestAnythingCanBeSetAside(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 50_000)
	for _, body := range []string{"", "\x00\x1b[31m", "a\xffb", "\ufffe\uffff", long} {
		var sent types.SendMessageBatchRequestEntry
		sender := newSender(t, "http://queue", func(_ context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
			sent = in.Entries[0]
			return accepted(in), nil
		})
		if err := sender.SetAside(t.Context(), outbox.Letter{Body: body, Reason: body}); err != nil {
			t.Fatal(err)
		}
		reason := aws.ToString(sent.MessageAttributes["reason"].StringValue)
		for _, text := range []string{*sent.MessageBody, reason, aws.ToString(sent.MessageAttributes["source"].StringValue)} {
			if text == "" || !utf8.ValidString(text) || len(text) > 64<<10 {
				t.Errorf("%.20q is sent as %.20q, %d bytes", body, text, len(text))
			}
			for _, r := range text {
				if r < 0x20 && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF {
					t.Errorf("%.20q is sent with %U", body, r)
				}
			}
		}
		if len(reason) > 256 {
			t.Errorf("a reason of %d bytes", len(reason))
		}
	}
}
