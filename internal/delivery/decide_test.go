package delivery_test

import (
	"reflect"
	"testing"
	"time"

	"colophon/internal/delivery"
)

var (
	now  = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	here = delivery.Destination{Project: "prj_a", ID: "dst_a"}
)

func key(release int64) delivery.Key {
	return delivery.Key{Destination: here, Release: release}
}

// queued is a fresh delivery; with changes it.
func queued(release int64, with ...func(*delivery.Delivery)) *delivery.Delivery {
	d := &delivery.Delivery{
		Key: key(release), Status: delivery.Queued, Round: 1, WebhookID: "msg_x", Body: []byte("{}"),
		TryAt: now.Add(-time.Second), CreatedAt: now.Add(-time.Second), SweepAt: now.Add(2 * time.Minute),
	}
	for _, change := range with {
		change(d)
	}
	return d
}

func is(status delivery.Status) func(*delivery.Delivery) {
	return func(d *delivery.Delivery) { d.Status = status }
}

func lostTries(tries int64) func(*delivery.Delivery) {
	return func(d *delivery.Delivery) { d.Tries, d.Lost = tries, tries }
}

func because(reason delivery.Reason) func(*delivery.Delivery) {
	return func(d *delivery.Delivery) { d.Reason = reason }
}

func forcedOver(release int64) func(*delivery.Delivery) {
	return func(d *delivery.Delivery) { d.Over = release }
}

func due(in time.Duration) func(*delivery.Delivery) {
	return func(d *delivery.Delivery) { d.TryAt = now.Add(in) }
}

func faulty(f delivery.Fault) func(*delivery.Delivery) {
	return func(d *delivery.Delivery) { d.Fault = f }
}

func endedAsUnreadable(d *delivery.Delivery) {
	d.Status, d.Reason = delivery.Failed, delivery.Unreadable
}

func heldFor(release int64, leaseLeft time.Duration) *delivery.Holder {
	return &delivery.Holder{
		Token: "t1", Release: release, Round: 1, Attempt: 1,
		Since: now.Add(leaseLeft - delivery.LeaseTime), Until: now.Add(leaseLeft),
	}
}

func slot(with ...func(*delivery.Slot)) delivery.Slot {
	s := delivery.Slot{State: delivery.SlotActive, Version: 7}
	for _, change := range with {
		change(&s)
	}
	return s
}

func holder(h *delivery.Holder) func(*delivery.Slot) {
	return func(s *delivery.Slot) { s.Holder = h }
}

func sentThrough(release int64) func(*delivery.Slot) {
	return func(s *delivery.Slot) { s.SentThrough = release }
}

func in(state delivery.SlotState) func(*delivery.Slot) {
	return func(s *delivery.Slot) { s.State = state }
}

func slow(s *delivery.Slot) { s.Slow = true }

// The rows stand in the order of the protocol's table, in its words.
func TestDecide(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		read     string
		slot     delivery.Slot
		n, m     *delivery.Delivery // m nil: n is the newest
		receives int
		slow     bool
		left     time.Duration
		clock    delivery.ClockOffset
		want     delivery.Decision
	}{
		{
			read: "the host's clock is off, and a lease looks over to it: left to another host",
			slot: slot(holder(heldFor(5, -time.Minute))), n: queued(5), clock: ahead, want: delivery.ClockOff{},
		},
		{
			read: "the host's clock is off, and the slot is free: left to another host",
			slot: slot(), n: queued(5), clock: ahead, want: delivery.ClockOff{},
		},
		{
			read: "the host was frozen while it read: its message comes back in a moment",
			slot: slot(holder(heldFor(5, -time.Minute))), n: queued(5), clock: froze, want: delivery.Leave{},
		},
		{
			read: "the host's clock is right: as without a clock to compare with",
			slot: slot(), n: queued(5), clock: sound, want: delivery.Claim{Delivery: *queued(5)},
		},
		{
			read: "slot unreadable: nothing can be sent from it",
			slot: delivery.Slot{Unreadable: true}, n: queued(5),
			want: delivery.EndUnreadable{Key: key(5)},
		},
		{
			read: "slot unreadable, and n of an unknown version: wait a minute",
			slot: delivery.Slot{Unreadable: true}, n: queued(5, faulty(delivery.FaultUnknownVersion)),
			want: delivery.Wait{For: time.Minute},
		},
		{
			read: "slot held, lease over by more than a second: settle",
			slot: slot(holder(heldFor(5, -1001*time.Millisecond))), n: queued(5),
			want: delivery.Settle{Holder: *heldFor(5, -1001*time.Millisecond)},
		},
		{
			read: "slot held, lease over, the delivery that rang has ended: settle all the same",
			slot: slot(holder(heldFor(5, -time.Minute))), n: queued(4, is(delivery.Skipped)), m: queued(5),
			want: delivery.Settle{Holder: *heldFor(5, -time.Minute)},
		},
		{
			read: "slot held, lease over by less than clocks may differ: wait",
			slot: slot(holder(heldFor(5, -999*time.Millisecond))), n: queued(5),
			want: delivery.Wait{For: time.Second},
		},
		{
			read: "the delivery is missing: acknowledge",
			slot: slot(), want: delivery.Acknowledge{},
		},
		{
			read: "the delivery is delivered: acknowledge",
			slot: slot(), n: queued(5, is(delivery.Delivered)), want: delivery.Acknowledge{},
		},
		{
			read: "the delivery is failed: acknowledge",
			slot: slot(), n: queued(5, is(delivery.Failed)), want: delivery.Acknowledge{},
		},
		{
			read: "the delivery is skipped, and the slot is held: acknowledge",
			slot: slot(holder(heldFor(6, time.Second))), n: queued(5, is(delivery.Skipped)), m: queued(6),
			want: delivery.Acknowledge{},
		},
		{
			read: "n of an unknown version: wait a minute, neither ended nor parked",
			slot: slot(), n: queued(5, faulty(delivery.FaultUnknownVersion)), want: delivery.Wait{For: time.Minute},
		},
		{
			read: "m of an unknown version: wait a minute",
			slot: slot(), n: queued(5), m: queued(6, faulty(delivery.FaultUnknownVersion)),
			want: delivery.Wait{For: time.Minute},
		},
		{
			read: "n unreadable: it ends",
			slot: slot(), n: queued(5, faulty(delivery.FaultUnreadable)), want: delivery.EndUnreadable{Key: key(5)},
		},
		{
			read: "n not forced and a newer one was claimed: plain skip",
			slot: slot(sentThrough(6)), n: queued(5), m: queued(6),
			want: delivery.SkipPlain{Delivery: *queued(5), Successor: 6},
		},
		{
			read: "a newer one was claimed and is being sent: plain skip, no waiting",
			slot: slot(sentThrough(6), holder(heldFor(6, 10*time.Second))), n: queued(5), m: queued(6),
			want: delivery.SkipPlain{Delivery: *queued(5), Successor: 6},
		},
		{
			read: "m newer and terminal: plain skip",
			slot: slot(), n: queued(5), m: queued(6, is(delivery.Failed)),
			want: delivery.SkipPlain{Delivery: *queued(5), Successor: 6},
		},
		{
			read: "m newer and terminal, a still newer one was claimed: superseded by the higher",
			slot: slot(sentThrough(7)), n: queued(5), m: queued(6, is(delivery.Delivered)),
			want: delivery.SkipPlain{Delivery: *queued(5), Successor: 7},
		},
		{
			read: "the newest claimed one expired from the table: plain skip by what the slot says",
			slot: slot(sentThrough(9)), n: queued(5), want: delivery.SkipPlain{Delivery: *queued(5), Successor: 9},
		},
		{
			read: "slot held, lease not over, first time: wait 1 s",
			slot: slot(holder(heldFor(5, 10*time.Second))), n: queued(5), receives: 1,
			want: delivery.Wait{For: time.Second},
		},
		{
			read: "slot held, lease not over, again: wait 2 s",
			slot: slot(holder(heldFor(5, 10*time.Second))), n: queued(6), receives: 2,
			want: delivery.Wait{For: 2 * time.Second},
		},
		{
			read: "slot held, the lease ends within 2 s: wait until then",
			slot: slot(holder(heldFor(5, 500*time.Millisecond))), n: queued(6), receives: 2,
			want: delivery.Wait{For: 1500 * time.Millisecond},
		},
		{
			read: "being sent when a newer one is published: left to end",
			slot: slot(sentThrough(5), holder(heldFor(5, 10*time.Second))), n: queued(5), m: queued(6), receives: 1,
			want: delivery.Wait{For: time.Second},
		},
		{
			read: "being sent when a newer one is found unreadable and ends: left to end",
			slot: slot(sentThrough(5), holder(heldFor(5, 10*time.Second))), n: queued(5), m: queued(6, endedAsUnreadable), receives: 1,
			want: delivery.Wait{For: time.Second},
		},
		{
			read: "n forced over x, and m is newer than x: checked skip",
			slot: slot(sentThrough(6)), n: queued(5, forcedOver(6)), m: queued(7),
			want: delivery.EndChecked{
				Delivery: *queued(5, forcedOver(6)), Status: delivery.Skipped, Reason: delivery.Superseded, Successor: 7,
			},
		},
		{
			read: "n forced over x, and one newer than x was claimed: checked skip",
			slot: slot(sentThrough(7)), n: queued(5, forcedOver(6)), m: queued(6, is(delivery.Delivered)),
			want: delivery.EndChecked{
				Delivery: *queued(5, forcedOver(6)), Status: delivery.Skipped, Reason: delivery.Superseded, Successor: 7,
			},
		},
		{
			read: "n forced, superseded, but the slot is held: wait first",
			slot: slot(sentThrough(7), holder(heldFor(7, 10*time.Second))), n: queued(5, forcedOver(6)), m: queued(7), receives: 1,
			want: delivery.Wait{For: time.Second},
		},
		{
			read: "m newer, and ended as unreadable without the slot's say: checked skip",
			slot: slot(), n: queued(5), m: queued(6, is(delivery.Failed), because(delivery.Unreadable)),
			want: delivery.EndChecked{
				Delivery: *queued(5), Status: delivery.Skipped, Reason: delivery.Superseded, Successor: 6,
			},
		},
		{
			read: "m unreadable: it ends, then n is decided about again",
			slot: slot(), n: queued(5), m: queued(6, faulty(delivery.FaultUnreadable)),
			want: delivery.EndUnreadable{Key: key(6)},
		},
		{
			read: "slot removed: checked skip of the newest",
			slot: slot(in(delivery.SlotRemoved)), n: queued(5), m: queued(6),
			want: delivery.EndChecked{Delivery: *queued(6), Status: delivery.Skipped, Reason: delivery.Removed},
		},
		{
			read: "slot missing counts as removed",
			slot: delivery.Slot{State: delivery.SlotRemoved}, n: queued(5),
			want: delivery.EndChecked{Delivery: *queued(5), Status: delivery.Skipped, Reason: delivery.Removed},
		},
		{
			read: "slot paused: checked skip of the newest",
			slot: slot(in(delivery.SlotPaused)), n: queued(5), m: queued(6),
			want: delivery.EndChecked{Delivery: *queued(6), Status: delivery.Skipped, Reason: delivery.Paused},
		},
		{
			read: "slot paused, n forced: checked skip of n",
			slot: slot(in(delivery.SlotPaused), sentThrough(6)), n: queued(5, forcedOver(6)), m: queued(6, is(delivery.Delivered)),
			want: delivery.EndChecked{
				Delivery: *queued(5, forcedOver(6)), Status: delivery.Skipped, Reason: delivery.Paused,
			},
		},
		{
			read: "slot paused while the newest is being sent: it is left to end",
			slot: slot(in(delivery.SlotPaused), sentThrough(6), holder(heldFor(6, 10*time.Second))), n: queued(6), receives: 1,
			want: delivery.Wait{For: time.Second},
		},
		{
			read: "our own faults for a day: it fails with that reason",
			slot: slot(), n: queued(5, func(d *delivery.Delivery) { d.Ours = delivery.Ours{Count: 99, Since: now.Add(-24 * time.Hour)} }),
			want: delivery.EndChecked{
				Delivery: *queued(5, func(d *delivery.Delivery) { d.Ours = delivery.Ours{Count: 99, Since: now.Add(-24 * time.Hour)} }),
				Status:   delivery.Failed, Reason: delivery.OurFault,
			},
		},
		{
			read: "k's try is due within 2 min: wait by visibility",
			slot: slot(), n: queued(5, is(delivery.Retrying), due(2*time.Minute)), want: delivery.Wait{For: 2 * time.Minute},
		},
		{
			read: "k's try is due later: acknowledge, the sweeper has it",
			slot: slot(), n: queued(5, is(delivery.Retrying), due(2*time.Minute+time.Millisecond)), want: delivery.Park{},
		},
		{
			read: "from the fast queue, and the slot is slow: to the slow queue",
			slot: slot(slow), n: queued(5), want: delivery.ToSlowQueue{},
		},
		{
			read: "from the fast queue for the sixth time: claimed, for a shortage of the table brings it back too",
			slot: slot(), n: queued(5), receives: 6, want: delivery.Claim{Delivery: *queued(5)},
		},
		{
			read: "from the fast queue, two of its tries were lost: to the slow queue, where it is alone",
			slot: slot(), n: queued(5, lostTries(2)), want: delivery.ToSlowQueue{},
		},
		{
			read: "from the fast queue, one of its tries was lost: claimed",
			slot: slot(), n: queued(5, lostTries(1)), want: delivery.Claim{Delivery: *queued(5, lostTries(1))},
		},
		{
			read: "from the slow queue, slow and two of its tries lost: claimed",
			slot: slot(slow), n: queued(5, lostTries(2)), slow: true, want: delivery.Claim{Delivery: *queued(5, lostTries(2))},
		},
		{
			read: "less than 13 s left in this invocation: leave the message",
			slot: slot(), n: queued(5), left: 13*time.Second - 1, want: delivery.Leave{},
		},
		{
			read: "otherwise: claim the newest, whichever rang",
			slot: slot(sentThrough(4)), n: queued(5), m: queued(6), want: delivery.Claim{Delivery: *queued(6)},
		},
		{
			read: "forced over the newest: claim the one that was forced",
			slot: slot(sentThrough(6)), n: queued(5, forcedOver(6)), m: queued(6, is(delivery.Delivered)),
			want: delivery.Claim{Delivery: *queued(5, forcedOver(6))},
		},
		{
			read: "the newest is due again while an older one that was forced waits: each by its own ring",
			slot: slot(sentThrough(6)), n: queued(6, is(delivery.Retrying)), want: delivery.Claim{Delivery: *queued(6, is(delivery.Retrying))},
		},
	} {
		t.Run(row.read, func(t *testing.T) {
			t.Parallel()
			s := delivery.Situation{
				Reading:     delivery.Reading{Key: key(5), Slot: row.slot, Newest: row.m, Rang: row.n, Clock: row.clock},
				OnSlowQueue: row.slow, Receives: max(row.receives, 1), Left: row.left,
			}
			if row.m == nil {
				s.Newest = row.n
			}
			if row.left == 0 {
				s.Left = delivery.FunctionTime
			}
			if got := delivery.Decide(s, now); !reflect.DeepEqual(got, row.want) {
				t.Errorf("decided %#v, want %#v", got, row.want)
			}
		})
	}
}

func TestReadingIsTornWhenADeliveryIsOlderThanTheSlotSays(t *testing.T) {
	t.Parallel()
	last := func(release, rev int64) func(*delivery.Slot) {
		return func(s *delivery.Slot) { s.LastRelease, s.LastRev = release, rev }
	}
	rev := func(rev int64) func(*delivery.Delivery) { return func(d *delivery.Delivery) { d.Rev = rev } }
	for _, row := range []struct {
		read string
		r    delivery.Reading
		torn bool
	}{
		{"slot and newest agree", delivery.Reading{Slot: slot(last(6, 2)), Newest: queued(6, rev(2))}, false},
		{"newest is older than the slot's last word", delivery.Reading{Slot: slot(last(6, 2)), Newest: queued(6, rev(1))}, true},
		{"the one that rang is older", delivery.Reading{Slot: slot(last(5, 2)), Newest: queued(6), Rang: queued(5, rev(1))}, true},
		{"newest is newer than the slot", delivery.Reading{Slot: slot(last(6, 2)), Newest: queued(6, rev(3))}, false},
		{"the slot speaks of another", delivery.Reading{Slot: slot(last(4, 9)), Newest: queued(6), Rang: queued(5)}, false},
		{"a release was claimed that the query did not show", delivery.Reading{Slot: slot(sentThrough(7)), Newest: queued(6)}, true},
	} {
		t.Run(row.read, func(t *testing.T) {
			t.Parallel()
			if got := row.r.Torn(); got != row.torn {
				t.Errorf("torn: %v, want %v", got, row.torn)
			}
		})
	}
}
