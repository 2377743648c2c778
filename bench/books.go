package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// ledger is what the tables say after a run.
type ledger struct {
	Projects []ledgerProject
}

type ledgerProject struct {
	ID           string
	Seq          int64
	Releases     []int64 // in the order of their keys
	Destinations []ledgerDestination
}

type ledgerDestination struct {
	destination
	Deliveries []ledgerDelivery // in the order of their releases
}

// ledgerDelivery is a delivery item, as far as the books need it.
type ledgerDelivery struct {
	Release   int64
	Status    string
	Reason    string
	Successor int64
	WebhookID string
	Body      [8]byte // of its SHA-256
	Tries     int64
	Attempts  int64
	Lost      int64
	Due       bool // still in the sweep index
	Forced    bool
}

// balance is what the books came to. Faults is empty where they balance.
type balance struct {
	Releases, Deliveries                int
	Delivered, Failed, Skipped, Pending int
	Requests                            int // that receivers got
	Repeats                             int // of them, with an id that was answered with 2xx before
	OlderAfterNewer                     int
	Lost                                int // attempts whose outcome nobody recorded
	Faults                              []string
	hidden                              int
}

const faultsShown = 20

func (b *balance) fault(format string, args ...any) {
	if len(b.Faults) >= faultsShown {
		b.hidden++
		return
	}
	b.Faults = append(b.Faults, fmt.Sprintf(format, args...))
}

// balanceBooks holds three books against each other: what clients were told,
// what the tables say, and what receivers got. allEnd: each delivery has ended.
func balanceBooks(clients []published, projects []project, l ledger, receipts []receipt, allEnd bool) balance {
	var b balance
	b.clientsAgainstTable(clients, projects, l)
	got := map[int][]receipt{}
	for _, r := range receipts {
		got[r.Place] = append(got[r.Place], r)
	}
	ids := map[string]string{}
	b.Requests = len(receipts)
	for _, p := range l.Projects {
		b.Releases += len(p.Releases)
		for _, d := range p.Destinations {
			b.destination(p, d, got[d.Place], ids, allEnd)
			delete(got, d.Place)
		}
	}
	for place, strays := range got {
		b.fault("%d requests came to address %d, which no destination has", len(strays), place)
	}
	if b.hidden > 0 {
		b.Faults = append(b.Faults, fmt.Sprintf("and %d more", b.hidden))
	}
	return b
}

// clientsAgainstTable: each release that a client was told of is there, told to
// one client only, and a project's numbers have no gap.
func (b *balance) clientsAgainstTable(clients []published, projects []project, l ledger) {
	told := make([]map[int64]int, len(projects))
	for i := range told {
		told[i] = map[int64]int{}
	}
	for _, p := range clients {
		if !p.Failed {
			told[p.Project][p.Release]++
		}
	}
	for i, p := range l.Projects {
		for n, release := range p.Releases {
			if release != int64(n+1) {
				b.fault("%s: release %d stands where %d should", p.ID, release, n+1)
				break
			}
		}
		if p.Seq != int64(len(p.Releases)) {
			b.fault("%s: its last release is %d and it has %d", p.ID, p.Seq, len(p.Releases))
		}
		for release, times := range told[i] {
			if release < 1 || release > p.Seq {
				b.fault("%s: a client was told of release %d, which is not there", p.ID, release)
			}
			if times > 1 {
				b.fault("%s: %d clients were told of release %d", p.ID, times, release)
			}
		}
	}
}

// destination: one delivery for each release, each ended once, with the requests
// that its item tells of, under its own id and body, and never an older release
// after a newer one.
func (b *balance) destination(p ledgerProject, d ledgerDestination, receipts []receipt, ids map[string]string, allEnd bool) {
	if len(d.Deliveries) != len(p.Releases) {
		b.fault("%s/%s: %d releases and %d deliveries", p.ID, d.ID, len(p.Releases), len(d.Deliveries))
	}
	byRelease := map[int64][]receipt{}
	var newest int64
	answered := map[string]bool{}
	for _, r := range receipts {
		if r.Project != p.ID {
			b.fault("%s/%s: got a release of %s", p.ID, d.ID, r.Project)
			continue
		}
		if r.Release < newest {
			b.OlderAfterNewer++
			b.fault("%s/%s: release %d came after %d", p.ID, d.ID, r.Release, newest)
		}
		newest = max(newest, r.Release)
		if answered[r.ID] {
			b.Repeats++
		}
		if r.Status >= 200 && r.Status < 300 {
			answered[r.ID] = true
		}
		byRelease[r.Release] = append(byRelease[r.Release], r)
	}
	for i, one := range d.Deliveries {
		b.Deliveries++
		name := fmt.Sprintf("%s/%s/%d", p.ID, d.ID, one.Release)
		if one.Release != int64(i+1) {
			b.fault("%s stands where release %d should", name, i+1)
		}
		if other, used := ids[one.WebhookID]; used || one.WebhookID == "" {
			b.fault("%s has the id of %s", name, other)
		}
		ids[one.WebhookID] = name
		b.delivery(name, one, byRelease[one.Release], i == len(d.Deliveries)-1, int64(len(p.Releases)), allEnd)
		delete(byRelease, one.Release)
	}
	for release := range byRelease {
		b.fault("%s/%s: got release %d, which the table does not know", p.ID, d.ID, release)
	}
}

func (b *balance) delivery(name string, d ledgerDelivery, receipts []receipt, isNewest bool, newest int64, allEnd bool) {
	accepted := 0
	for _, r := range receipts {
		if r.ID != d.WebhookID || r.Body != d.Body {
			b.fault("%s: came under another id or with another body", name)
		}
		if r.Status >= 200 && r.Status < 300 {
			accepted++
		}
	}
	b.Lost += int(d.Lost)
	if terminal := d.Status == "delivered" || d.Status == "failed" || d.Status == "skipped"; terminal == d.Due {
		b.fault("%s is %s and its place in the sweep index says otherwise", name, d.Status)
	}
	if int64(len(receipts)) > d.Attempts {
		b.fault("%s: %d requests came and it tells of %d attempts", name, len(receipts), d.Attempts)
	}
	switch d.Status {
	case "delivered":
		b.Delivered++
		if accepted == 0 {
			b.fault("%s is delivered and nothing was received", name)
		}
	case "failed":
		b.Failed++
	case "skipped":
		b.Skipped++
		if isNewest {
			b.fault("%s is the newest and was skipped", name)
		}
		if d.Reason != "superseded" || d.Successor <= 0 || d.Successor > newest {
			b.fault("%s was skipped: %s by %d", name, d.Reason, d.Successor)
		}
	default:
		b.Pending++
		if allEnd {
			b.fault("%s has not ended: %s", name, d.Status)
		}
	}
}

// readLedger reads the books of the tables, strongly.
func (w *world) readLedger(ctx context.Context) (ledger, error) {
	l := ledger{Projects: make([]ledgerProject, len(w.projects))}
	for i, p := range w.projects {
		read, err := w.readProject(ctx, p)
		if err != nil {
			return l, err
		}
		l.Projects[i] = read
	}
	return l, nil
}

func (w *world) readProject(ctx context.Context, p project) (ledgerProject, error) {
	out := ledgerProject{ID: p.ID}
	meta, err := w.table.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &w.content, ConsistentRead: aws.Bool(true),
		Key: map[string]types.AttributeValue{"pk": text("P#" + p.ID), "sk": text("META")},
	})
	if err != nil {
		return out, fmt.Errorf("read project: %w", err)
	}
	out.Seq = numberOf(meta.Item["seq"])
	releases, err := w.rangeOf(ctx, w.content, "P#"+p.ID, "REL#", "REL$")
	if err != nil {
		return out, err
	}
	for _, item := range releases {
		out.Releases = append(out.Releases, numberOf(item["release"]))
	}
	for _, d := range p.Destinations {
		items, err := w.rangeOf(ctx, w.delivery, "P#"+p.ID+"#D#"+d.ID, "R#", "R$")
		if err != nil {
			return out, err
		}
		of := ledgerDestination{destination: d}
		for _, item := range items {
			one, err := readDelivery(item)
			if err != nil {
				return out, err
			}
			of.Deliveries = append(of.Deliveries, one)
		}
		out.Destinations = append(out.Destinations, of)
	}
	return out, nil
}

func readDelivery(item map[string]types.AttributeValue) (ledgerDelivery, error) {
	out := ledgerDelivery{
		Status: textOf(item["status"]), Reason: textOf(item["reason"]), Successor: numberOf(item["successor"]),
		WebhookID: textOf(item["webhookId"]), Tries: numberOf(item["tries"]), Attempts: numberOf(item["numbered"]),
		Lost: numberOf(item["lost"]), Due: item["sweepShard"] != nil, Forced: item["force"] != nil,
	}
	if _, err := fmt.Sscanf(textOf(item["sk"]), "R#%d", &out.Release); err != nil {
		return out, fmt.Errorf("read delivery %q: %w", textOf(item["sk"]), err)
	}
	body := []byte(textOf(item["body"]))
	if b, ok := item["body"].(*types.AttributeValueMemberB); ok {
		body = b.Value
	}
	sum := sha256.Sum256(body)
	out.Body = [8]byte(sum[:8])
	return out, nil
}

func textOf(v types.AttributeValue) string {
	if s, ok := v.(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

func numberOf(v types.AttributeValue) int64 {
	if n, ok := v.(*types.AttributeValueMemberN); ok {
		number, err := strconv.ParseInt(n.Value, 10, 64)
		if err == nil {
			return number
		}
	}
	return 0
}

func (w *world) rangeOf(ctx context.Context, table, pk, from, to string) ([]map[string]types.AttributeValue, error) {
	var items []map[string]types.AttributeValue
	pages := dynamodb.NewQueryPaginator(w.table, &dynamodb.QueryInput{
		TableName: &table, ConsistentRead: aws.Bool(true),
		KeyConditionExpression:    aws.String("pk = :pk AND sk BETWEEN :from AND :to"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":pk": text(pk), ":from": text(from), ":to": text(to)},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("read a range of %s: %w", pk, err)
		}
		items = append(items, page.Items...)
	}
	return items, nil
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

// receiptTimes gives how long each destination's first receipt of a release came
// after its publish was to be asked for, in their order.
func receiptTimes(clients []published, projects []project, receipts []receipt, only func(published) bool) []time.Duration {
	type place struct {
		project string
		release int64
	}
	first := map[place]map[int]int64{}
	for _, r := range receipts {
		if r.Status < 200 || r.Status >= 300 {
			continue
		}
		at := place{r.Project, r.Release}
		if first[at] == nil {
			first[at] = map[int]int64{}
		}
		if _, seen := first[at][r.Place]; !seen {
			first[at][r.Place] = r.At
		}
	}
	var times []time.Duration
	for _, p := range clients {
		if p.Failed || only != nil && !only(p) {
			continue
		}
		for _, at := range first[place{projects[p.Project].ID, p.Release}] {
			times = append(times, time.Duration(at-p.Asked))
		}
	}
	slices.Sort(times)
	return times
}

// percentile gives the value that a share of the sorted times do not pass.
func percentile(sorted []time.Duration, share float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(share*float64(len(sorted))))]
}
