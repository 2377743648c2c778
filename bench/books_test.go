package main

import (
	"strings"
	"testing"
)

// A small run in which all went well: two releases, two destinations.
func goodBooks() (clients []published, projects []project, l ledger, receipts []receipt) {
	projects = []project{{ID: "p", Destinations: []destination{{"a", 0}, {"b", 1}}}}
	clients = []published{{Release: 1}, {Release: 2}}
	one := func(release int64, id string) ledgerDelivery {
		return ledgerDelivery{Release: release, Status: "delivered", WebhookID: id, Attempts: 1, Tries: 1, Body: [8]byte{byte(release)}}
	}
	l = ledger{Projects: []ledgerProject{{ID: "p", Seq: 2, Releases: []int64{1, 2}, Destinations: []ledgerDestination{
		{destination{"a", 0}, []ledgerDelivery{one(1, "a1"), one(2, "a2")}},
		{destination{"b", 1}, []ledgerDelivery{one(1, "b1"), one(2, "b2")}},
	}}}}
	got := func(place int, release int64, id string) receipt {
		return receipt{Place: place, ID: id, Project: "p", Release: release, Attempt: 1, Status: 204, Body: [8]byte{byte(release)}}
	}
	receipts = []receipt{got(0, 1, "a1"), got(1, 1, "b1"), got(0, 2, "a2"), got(1, 2, "b2")}
	return clients, projects, l, receipts
}

func TestBooksOfARunInWhichAllWentWellBalance(t *testing.T) {
	t.Parallel()
	b := changed(t, func(*[]published, *ledger, *[]receipt) {})
	if len(b.Faults) > 0 || b.Releases != 2 || b.Deliveries != 4 || b.Delivered != 4 || b.Requests != 4 {
		t.Errorf("got %+v", b)
	}
}

func changed(t *testing.T, change func(*[]published, *ledger, *[]receipt)) balance {
	t.Helper()
	clients, projects, l, receipts := goodBooks()
	change(&clients, &l, &receipts)
	return balanceBooks(clients, projects, l, receipts, true)
}

func TestWhatGoesWrongIsFoundInTheBooks(t *testing.T) {
	t.Parallel()
	first := func(l *ledger) *ledgerDelivery { return &l.Projects[0].Destinations[0].Deliveries[0] }
	second := func(l *ledger) *ledgerDelivery { return &l.Projects[0].Destinations[0].Deliveries[1] }
	for name, test := range map[string]struct {
		change func(*[]published, *ledger, *[]receipt)
		says   string
	}{
		"a release that a client was told of is not there": {func(c *[]published, _ *ledger, _ *[]receipt) { *c = append(*c, published{Release: 3}) }, "not there"},
		"two clients were told of one release":             {func(c *[]published, _ *ledger, _ *[]receipt) { *c = append(*c, published{Release: 2}) }, "were told"},
		"a number is left out":                             {func(_ *[]published, l *ledger, _ *[]receipt) { l.Projects[0].Releases[1] = 3 }, "stands where 2"},
		"the project counts other releases":                {func(_ *[]published, l *ledger, _ *[]receipt) { l.Projects[0].Seq = 3 }, "its last release"},
		"a delivery is missing": {func(_ *[]published, l *ledger, _ *[]receipt) {
			d := &l.Projects[0].Destinations[0]
			d.Deliveries = d.Deliveries[:1]
		}, "2 releases and 1 deliveries"},
		"a delivered one was not received":        {func(_ *[]published, _ *ledger, r *[]receipt) { *r = (*r)[:3] }, "nothing was received"},
		"an older release came after a newer one": {func(_ *[]published, _ *ledger, r *[]receipt) { (*r)[0], (*r)[2] = (*r)[2], (*r)[0] }, "came after"},
		"it came under another id":                {func(_ *[]published, _ *ledger, r *[]receipt) { (*r)[0].ID = "other" }, "another id"},
		"it came with another body":               {func(_ *[]published, _ *ledger, r *[]receipt) { (*r)[0].Body[3]++ }, "another body"},
		"an id is shared":                         {func(_ *[]published, l *ledger, r *[]receipt) { second(l).WebhookID, (*r)[2].ID = "a1", "a1" }, "has the id of"},
		"more came than the table knows of":       {func(_ *[]published, _ *ledger, r *[]receipt) { *r = append((*r)[:1:1], *r...) }, "attempts"},
		"one has not ended": {func(_ *[]published, l *ledger, _ *[]receipt) {
			second(l).Status, second(l).Due = "retrying", true
		}, "has not ended"},
		"one has ended and is still to be swept": {func(_ *[]published, l *ledger, _ *[]receipt) { first(l).Due = true }, "sweep index"},
		"the newest was skipped": {func(_ *[]published, l *ledger, _ *[]receipt) {
			second(l).Status, second(l).Reason, second(l).Successor = "skipped", "superseded", 2
		}, "is the newest"},
		"one was skipped for nothing": {func(_ *[]published, l *ledger, r *[]receipt) {
			first(l).Status, first(l).Reason = "skipped", "superseded"
		}, "was skipped"},
		"a stranger's release came":      {func(_ *[]published, _ *ledger, r *[]receipt) { (*r)[3].Project = "q" }, "got a release of q"},
		"an unknown address was called":  {func(_ *[]published, _ *ledger, r *[]receipt) { (*r)[3].Place = 7 }, "no destination has"},
		"a release came that nobody has": {func(_ *[]published, _ *ledger, r *[]receipt) { *r = append(*r, receipt{Project: "p", Release: 9}) }, "does not know"},
	} {
		if b := changed(t, test.change); !strings.Contains(strings.Join(b.Faults, "\n"), test.says) {
			t.Errorf("%s: the faults are %q", name, b.Faults)
		}
	}
}

func TestARepeatIsCountedAndNoFault(t *testing.T) {
	t.Parallel()
	b := changed(t, func(_ *[]published, l *ledger, r *[]receipt) {
		l.Projects[0].Destinations[0].Deliveries[0].Attempts = 2
		*r = append((*r)[:1:1], *r...)
	})
	if len(b.Faults) > 0 || b.Repeats != 1 || b.OlderAfterNewer != 0 {
		t.Errorf("got %+v", b)
	}
}
