package outbox

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// The message attributes of a letter.
const (
	attrReason = "reason"
	attrSource = "source"
)

const (
	longestBody   = 64 << 10 // bytes of a letter's body that are kept; no message of ours is as long
	longestReason = 256
)

// Letter is what is set aside for a person to look at.
type Letter struct {
	Body   string
	Reason string // in our own words
	Source string // who set it aside
}

// SetAside puts a letter on the sender's queue: the dead-letter queue, or the
// on-failure queue of the stream.
func (s *Sender) SetAside(ctx context.Context, l Letter) error {
	body := sendable(l.Body, longestBody)
	unsent := s.sendEntries(ctx, []types.SendMessageBatchRequestEntry{{
		MessageBody: &body,
		MessageAttributes: map[string]types.MessageAttributeValue{
			attrReason: textAttribute(l.Reason),
			attrSource: textAttribute(l.Source),
		},
	}})
	if len(unsent) > 0 {
		return fmt.Errorf("set aside: %w", unsent[0].Err)
	}
	return nil
}

func textAttribute(s string) types.MessageAttributeValue {
	s = sendable(s, longestReason)
	return types.MessageAttributeValue{DataType: aws.String("String"), StringValue: &s}
}

// Times of looking at dead letters.
const (
	lookTime = 2 * time.Minute // for which what was looked at is hidden from others
	lookWait = 1 * time.Second // long polling: a short poll asks a part of SQS's servers only
)

// DeadLetter is a message of the dead-letter queue.
type DeadLetter struct {
	ID       string
	Body     string
	Reason   string // empty where SQS moved it after too many receives
	Source   string // who set it aside, or the queue that it came from
	SentAt   time.Time
	Receives int // of the dead-letter queue: how often it was looked at

	receipt string
}

// Message reads the letter's body as what it once was. Its errors are Decode's.
func (l DeadLetter) Message() (Message, error) { return Decode(l.Body) }

// DeadLettersConfig is what DeadLetters needs; the three calls are methods of
// *sqs.Client.
type DeadLettersConfig struct {
	QueueURL         string  // the dead-letter queue
	Queue            *Sender // that letters return to
	Receive          func(context.Context, *sqs.ReceiveMessageInput, ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error)
	Delete           func(context.Context, *sqs.DeleteMessageInput, ...func(*sqs.Options)) (*sqs.DeleteMessageOutput, error)
	ChangeVisibility func(context.Context, *sqs.ChangeMessageVisibilityInput, ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityOutput, error)
}

func (c DeadLettersConfig) validate() error {
	if c.QueueURL == "" || c.Queue == nil || c.Receive == nil || c.Delete == nil || c.ChangeVisibility == nil {
		return errors.New("outbox: dead letters' config is not complete")
	}
	return nil
}

// DeadLetters looks at what was set aside, and returns or drops it.
type DeadLetters struct{ DeadLettersConfig }

// NewDeadLetters makes DeadLetters.
func NewDeadLetters(c DeadLettersConfig) (*DeadLetters, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &DeadLetters{c}, nil
}

// Look receives up to most letters and hides them from others for two minutes.
// Whoever is done with one returns, drops or leaves it. With an error come the
// letters that were received before it.
func (d *DeadLetters) Look(ctx context.Context, most int) ([]DeadLetter, error) {
	var letters []DeadLetter
	places := map[string]int{} // of letters, by id
	for len(letters) < most {
		out, err := d.Receive(ctx, &sqs.ReceiveMessageInput{
			QueueUrl:                    &d.QueueURL,
			MaxNumberOfMessages:         int32(min(most-len(letters), 10)),
			VisibilityTimeout:           int32(lookTime / time.Second),
			WaitTimeSeconds:             int32(lookWait / time.Second),
			MessageAttributeNames:       []string{attrReason, attrSource},
			MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
		})
		if err != nil {
			return letters, fmt.Errorf("receive dead letters: %w", err)
		}
		fresh := 0
		for _, m := range out.Messages {
			l := deadLetter(m)
			if place, twice := places[l.ID]; twice { // in spite of its visibility; the newer receipt is the one that counts
				letters[place] = l
				continue
			}
			places[l.ID] = len(letters)
			letters = append(letters, l)
			fresh++
		}
		if fresh == 0 {
			return letters, nil
		}
	}
	return letters, nil
}

func deadLetter(m types.Message) DeadLetter {
	l := DeadLetter{
		ID: aws.ToString(m.MessageId), Body: aws.ToString(m.Body), receipt: aws.ToString(m.ReceiptHandle),
		Reason: aws.ToString(m.MessageAttributes[attrReason].StringValue),
		Source: aws.ToString(m.MessageAttributes[attrSource].StringValue),
	}
	if arn := m.Attributes[string(types.MessageSystemAttributeNameDeadLetterQueueSourceArn)]; l.Source == "" && arn != "" {
		l.Source = arn[strings.LastIndexByte(arn, ':')+1:]
	}
	if ms, err := strconv.ParseInt(m.Attributes[string(types.MessageSystemAttributeNameSentTimestamp)], 10, 64); err == nil {
		l.SentAt = time.UnixMilli(ms).UTC()
	}
	l.Receives, _ = strconv.Atoi(m.Attributes[string(types.MessageSystemAttributeNameApproximateReceiveCount)])
	return l
}

// Return puts a letter back on the queue and then deletes it: killed between the
// two it rings twice, never not at all. A letter that this build cannot read is
// refused with Decode's error: it would only come back.
func (d *DeadLetters) Return(ctx context.Context, l DeadLetter) error {
	m, err := l.Message()
	if err != nil {
		return err
	}
	if unsent := d.Queue.Send(ctx, []Message{m}); len(unsent) > 0 {
		return fmt.Errorf("return dead letter: %w", unsent[0].Err)
	}
	return d.Drop(ctx, l)
}

// Drop deletes a letter. Its delivery is not ended by that: the sweeper goes on
// ringing for it.
func (d *DeadLetters) Drop(ctx context.Context, l DeadLetter) error {
	_, err := d.Delete(ctx, &sqs.DeleteMessageInput{QueueUrl: &d.QueueURL, ReceiptHandle: &l.receipt})
	if err != nil {
		return fmt.Errorf("delete dead letter: %w", err)
	}
	return nil
}

// Leave shows a letter to others again at once.
func (d *DeadLetters) Leave(ctx context.Context, l DeadLetter) error {
	_, err := d.ChangeVisibility(ctx, &sqs.ChangeMessageVisibilityInput{
		QueueUrl: &d.QueueURL, ReceiptHandle: &l.receipt, VisibilityTimeout: 0,
	})
	if err != nil {
		return fmt.Errorf("leave dead letter: %w", err)
	}
	return nil
}

// sendable makes a text that SQS takes: it refuses most control characters and
// an empty body.
func sendable(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		if r == '\t' || r == '\n' || r == '\r' || 0x20 <= r && r <= 0xD7FF || 0xE000 <= r && r <= 0xFFFD || r >= 0x10000 {
			return r
		}
		return '\uFFFD'
	}, s)
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "")
	}
	if s == "" {
		return "-"
	}
	return s
}
