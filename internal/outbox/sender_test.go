package outbox_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"colophon/internal/outbox"
)

func messages(n int) []outbox.Message {
	all := make([]outbox.Message, n)
	for i := range all {
		all[i] = outbox.Message{Destination: destination("d1"), Release: int64(i + 1)}
	}
	return all
}

func indexes(unsent []outbox.Unsent) []int {
	var at []int
	for _, u := range unsent {
		at = append(at, u.Index)
	}
	return at
}

func TestMessagesAreSentTenAtATime(t *testing.T) {
	t.Parallel()
	url := newQueue(t, nil)
	sends := &faultySends{send: queueClient().SendMessageBatch}
	if unsent := newSender(t, url, sends.SendMessageBatch).Send(t.Context(), messages(23)); len(unsent) > 0 {
		t.Fatalf("unsent: %v", unsent)
	}
	if sends.requests != 3 {
		t.Errorf("%d requests", sends.requests)
	}
	if got := takeMessages(t, url); len(got) != 23 || len(slices.Compact(got)) != 23 {
		t.Errorf("on the queue: %v", got)
	}
}

func TestSendingNothingAsksNothing(t *testing.T) {
	t.Parallel()
	sends := &faultySends{fail: errors.New("asked")}
	if unsent := newSender(t, "http://queue", sends.SendMessageBatch).Send(t.Context(), nil); len(unsent) > 0 || sends.requests > 0 {
		t.Errorf("%d requests, unsent %v", sends.requests, unsent)
	}
}

func TestEntriesThatFailAreToldByIndexAndTheOthersAreSent(t *testing.T) {
	t.Parallel()
	for name, silent := range map[string]bool{"named as failed": false, "missing from the answer": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := newQueue(t, nil)
			sends := &faultySends{send: queueClient().SendMessageBatch, refuse: ofRelease(4, 17), silent: silent}
			unsent := newSender(t, url, sends.SendMessageBatch).Send(t.Context(), messages(23))
			if !slices.Equal(indexes(unsent), []int{3, 16}) {
				t.Errorf("unsent: %v", unsent)
			}
			if got := takeMessages(t, url); len(got) != 21 || slices.Contains(got, "d1/4") || slices.Contains(got, "d1/17") {
				t.Errorf("on the queue: %v", got)
			}
		})
	}
}

func TestBehindARequestThatFailedAsAWholeNothingIsAsked(t *testing.T) {
	t.Parallel()
	down := errors.New("down")
	requests := 0
	send := func(ctx context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
		if requests++; requests == 2 {
			return nil, down
		}
		return queueClient().SendMessageBatch(ctx, in)
	}
	url := newQueue(t, nil)
	unsent := newSender(t, url, send).Send(t.Context(), messages(35))
	if requests != 2 {
		t.Errorf("%d requests", requests)
	}
	var want []int
	for i := 10; i < 35; i++ {
		want = append(want, i)
	}
	if !slices.Equal(indexes(unsent), want) {
		t.Errorf("unsent: %v", indexes(unsent))
	}
	if !errors.Is(unsent[0].Err, down) || errors.Is(unsent[10].Err, down) {
		t.Errorf("the first request's messages: %v, those behind it: %v", unsent[0].Err, unsent[10].Err)
	}
	if got := takeMessages(t, url); len(got) != 10 {
		t.Errorf("on the queue: %v", got)
	}
}

func TestAMessageThatNamesNothingIsToldByIndexAndTheOthersAreSent(t *testing.T) {
	t.Parallel()
	url := newQueue(t, nil)
	all := messages(12)
	all[0].Release, all[5].Destination.ID = 0, "a#b"
	unsent := newSender(t, url, queueClient().SendMessageBatch).Send(t.Context(), all)
	if !slices.Equal(indexes(unsent), []int{0, 5}) {
		t.Fatalf("unsent: %v", unsent)
	}
	var unreadable *outbox.UnreadableError
	if !errors.As(unsent[1].Err, &unreadable) {
		t.Errorf("got %v", unsent[1].Err)
	}
	if got := takeMessages(t, url); len(got) != 10 {
		t.Errorf("on the queue: %v", got)
	}
}

func TestASenderWithoutAQueueIsNotMade(t *testing.T) {
	t.Parallel()
	for i, c := range []outbox.SenderConfig{{}, {QueueURL: "http://queue"}, {SendBatch: queueClient().SendMessageBatch}} {
		if _, err := outbox.NewSender(c); err == nil {
			t.Error("made of " + strconv.Itoa(i))
		}
	}
}
