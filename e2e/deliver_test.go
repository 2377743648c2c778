//go:build stack

package e2e_test

import (
	"testing"
	"time"

	"colophon/client"
	"colophon/internal/killpoint"
)

// These tests give orders to functions that all share, so they run one after
// another and before those that run side by side.

func TestOnlyTheNewestIsSentAfterAnOutageOfTheWorker(t *testing.T) {
	mapping := running.mapping(t, "DeliverFunction", queueName(running.Outputs["QueueUrl"]))
	running.enable(t, mapping, false)
	enabled := false
	t.Cleanup(func() {
		if !enabled {
			running.enable(t, mapping, true)
		}
	})
	r := newReceiver(t)
	p := newProject(t, r)
	p.publish()
	p.publish()
	running.enable(t, mapping, true)
	enabled = true
	p.becomes(2, client.DeliveryStateDelivered)
	d := p.becomes(1, client.DeliveryStateSkipped)
	if d.Reason.Value != "superseded" || d.Successor.Value != 2 {
		t.Errorf("release 1: %s by %d", d.Reason.Value, d.Successor.Value)
	}
	for _, got := range r.requests() {
		if got.release() != 2 {
			t.Errorf("release %d was sent", got.release())
		}
	}
}

func TestAWorkerKilledBetweenSendAndRecordComesBackWithTheSameIDAndBody(t *testing.T) {
	died := running.kill(t, killpoint.AfterSend)
	r := newReceiver(t)
	p := newProject(t, r)
	release := p.publish()
	first := r.next(t)
	second := r.next(t)
	if !died() {
		t.Fatal("the process was not killed")
	}
	if first.id() != second.id() || first.Body != second.Body {
		t.Errorf("first %s %s, second %s %s", first.id(), first.Body, second.id(), second.Body)
	}
	if apart := second.At.Sub(first.At); apart < 10*time.Second {
		t.Errorf("the second came %v after the first, inside its lease", apart)
	}
	d := p.becomes(release, client.DeliveryStateDelivered)
	if len(d.Attempts) != 2 || d.Attempts[0].Class != "unknown" || d.Attempts[1].Class != "delivered" {
		t.Errorf("attempts %+v", d.Attempts)
	}
}
