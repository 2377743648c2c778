package outbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"colophon/internal/killpoint"
)

// sendMost is how many messages one SendMessageBatch takes (SQS API reference).
const sendMost = 10

// SendBatch is the one call that sending needs: (*sqs.Client).SendMessageBatch.
type SendBatch func(context.Context, *sqs.SendMessageBatchInput, ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error)

// SenderConfig is what a Sender needs.
type SenderConfig struct {
	QueueURL  string
	SendBatch SendBatch
}

func (c SenderConfig) validate() error {
	if c.QueueURL == "" || c.SendBatch == nil {
		return errors.New("outbox: a sender needs a queue and a way to send")
	}
	return nil
}

// Sender puts messages on one queue, ten at a time.
type Sender struct{ SenderConfig }

// NewSender makes a Sender.
func NewSender(c SenderConfig) (*Sender, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &Sender{c}, nil
}

// Unsent is a message that is not known to be on the queue. It may be there all
// the same, for an answer can be lost: sending it again rings twice, which is
// harmless.
type Unsent struct {
	Index int // in what was to be sent
	Err   error
}

// errNotAsked marks messages behind a request that failed.
var errNotAsked = errors.New("not sent: a request before it failed")

// Send sends the messages in order and returns those that are not known to be
// sent, by ascending index; none is success. Behind a request that failed as a
// whole nothing more is asked of the queue.
func (s *Sender) Send(ctx context.Context, messages []Message) []Unsent {
	var unsent []Unsent
	entries := make([]types.SendMessageBatchRequestEntry, 0, len(messages))
	places := make([]int, 0, len(messages)) // of the entries in messages
	for i, m := range messages {
		body, err := m.Encode()
		if err != nil {
			unsent = append(unsent, Unsent{Index: i, Err: err})
			continue
		}
		entries = append(entries, types.SendMessageBatchRequestEntry{MessageBody: &body})
		places = append(places, i)
	}
	for _, failed := range s.sendEntries(ctx, entries) {
		unsent = append(unsent, Unsent{Index: places[failed.Index], Err: failed.Err})
	}
	slices.SortFunc(unsent, func(a, b Unsent) int { return a.Index - b.Index })
	return unsent
}

func (s *Sender) sendEntries(ctx context.Context, entries []types.SendMessageBatchRequestEntry) []Unsent {
	var unsent []Unsent
	for start := 0; start < len(entries); start += sendMost {
		end := min(start+sendMost, len(entries))
		failed, err := s.request(ctx, entries[start:end])
		if err != nil {
			for i := start; i < len(entries); i++ {
				if i == end {
					err = errNotAsked
				}
				unsent = append(unsent, Unsent{Index: i, Err: err})
			}
			return unsent
		}
		for _, f := range failed {
			unsent = append(unsent, Unsent{Index: start + f.Index, Err: f.Err})
		}
	}
	return unsent
}

// request sends up to ten entries. An entry that the answer names in neither of
// its lists counts as unsent.
func (s *Sender) request(ctx context.Context, entries []types.SendMessageBatchRequestEntry) ([]Unsent, error) {
	for i := range entries {
		id := strconv.Itoa(i)
		entries[i].Id = &id
	}
	killpoint.At(killpoint.BeforeEnqueue)
	out, err := s.SendBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &s.QueueURL, Entries: entries})
	killpoint.At(killpoint.AfterEnqueue)
	if err != nil {
		return nil, fmt.Errorf("send messages: %w", err)
	}
	sent := make(map[string]bool, len(entries))
	for _, entry := range out.Successful {
		sent[aws.ToString(entry.Id)] = true
	}
	codes := make(map[string]string)
	for _, entry := range out.Failed {
		codes[aws.ToString(entry.Id)] = aws.ToString(entry.Code)
	}
	var unsent []Unsent
	for i, entry := range entries {
		if !sent[*entry.Id] {
			unsent = append(unsent, Unsent{Index: i, Err: fmt.Errorf("send messages: entry refused: %q", codes[*entry.Id])})
		}
	}
	return unsent, nil
}
