package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"colophon/internal/delivery"
	"colophon/internal/outbox"
)

// usedBy is what publishes, deliveries and saves used, measured: the units that
// the table said it charged, and the bytes that the functions wrote to their logs.
type usedBy struct {
	Destinations int
	// A publish of drafts that have changed, everything that the api function calls.
	PublishRead, PublishWrite float64
	PublishTrips              float64 // one after another
	// One delivery, everything that deliver calls.
	DeliveryRead, DeliveryWrite float64
	DeliveryTrips               float64
	// A saved document.
	SaveRead, SaveWrite float64
	// Logs, in bytes.
	APILog, StreamLog, DeliverLog float64 // of one publish, of one publish, of one delivery
}

// used measures with a number of destinations: forced publishes alone, and
// publishes with a save before each, which write a part of the manifest too.
func used(ctx context.Context, destinations, publishes int) (usedBy, error) {
	measured := func(saves int) (*run, error) {
		s := base("cost", options{projects: 4})
		s.world.Destinations, s.world.Units = destinations, true
		s.plan = plan{Clients: 1, Publishes: publishes, Await: true, Keyed: true, Saves: saves}
		r := perform(ctx, s)
		if len(r.faults) > 0 {
			return nil, fmt.Errorf("measure what a publish uses: %s", strings.Join(r.faults, "; "))
		}
		return r, nil
	}
	// The first publish of a project writes the manifest's part; afterwards only publishes after saves do.
	alone, err := measured(0)
	if err != nil {
		return usedBy{}, err
	}
	saved, err := measured(1)
	if err != nil {
		return usedBy{}, err
	}
	n := float64(publishes)
	d := n * float64(destinations)
	reads := alone.used("api", "GetItem").Read + alone.used("api", "Query").Read
	commit := alone.used("api", "TransactWriteItems").Write
	puts := saved.used("api", "PutItem") // the document's content and the manifest's part, one of each
	part := puts.Write / float64(puts.Number)
	delivery := func(of func(calls) float64) (sum float64) {
		for _, call := range []string{"Query", "GetItem", "UpdateItem", "TransactWriteItems"} {
			sum += of(alone.used("deliver", call))
		}
		return sum / d
	}
	return usedBy{
		Destinations: destinations,
		PublishRead:  reads / n, PublishWrite: commit/n + part,
		PublishTrips:  float64(alone.used("api", "GetItem").Number+alone.used("api", "Query").Number+alone.used("api", "TransactWriteItems").Number)/n + 1,
		DeliveryRead:  delivery(func(c calls) float64 { return c.Read }),
		DeliveryWrite: delivery(func(c calls) float64 { return c.Write }),
		DeliveryTrips: delivery(func(c calls) float64 { return float64(c.Number) }),
		SaveRead:      (saved.used("api", "GetItem").Read + saved.used("api", "Query").Read + saved.used("api", "BatchGetItem").Read - reads) / n,
		SaveWrite:     puts.Write/n - part + (saved.used("api", "TransactWriteItems").Write-commit)/n,
		APILog:        math.Round(alone.logBytes("api") / n),
		StreamLog:     math.Round(alone.logBytes("outbox-stream") / n),
		DeliverLog:    math.Round(alone.logBytes("deliver") / d),
	}, nil
}

func (r *run) used(function, call string) calls {
	after, before := r.after_.counted[function].Calls[call], r.before.counted[function].Calls[call]
	return calls{after.Number - before.Number, after.Read - before.Read, after.Write - before.Write}
}

func (r *run) logBytes(function string) float64 {
	return float64(r.after_.logged[function] - r.before.logged[function])
}

// Prices are AWS's public on-demand prices for us-east-1 in dollars, as of
// pricesOf; other regions differ by up to a third.
const (
	pricesOf = "2026-11-30"

	priceWrite     = 0.625        // a million write units (DynamoDB standard, on demand)
	priceRead      = 0.125        // a million read units
	priceStorage   = 0.25         // a GB and month
	priceBackup    = 0.20         // a GB and month, point-in-time recovery
	priceREST      = 3.50         // a million requests (API Gateway REST, the first 333 million)
	priceHTTP      = 1.00         // a million requests (API Gateway HTTP)
	priceQueue     = 0.40         // a million requests (SQS standard)
	priceInvoke    = 0.20         // a million invocations (Lambda)
	priceCompute   = 0.0000133334 // a GB second (Lambda, arm64)
	priceLog       = 0.50         // a GB taken in (CloudWatch Logs, standard)
	priceKey       = 1.00         // a key and month (KMS)
	priceKeyCall   = 3.00         // a million calls
	priceAlarm     = 0.10         // a standard alarm and month
	priceMetric    = 0.30         // a custom metric and month
	priceOut       = 0.09         // a GB to the internet
	priceWriteHour = 0.00065      // a provisioned write unit and hour
	logOverhead    = 26           // bytes that CloudWatch adds to an event

	millionTimes = 1e6
	giga         = 1e9
	sweepMetrics = 3 // that are written each minute
	monthMinutes = 43_800
	monthHours   = 730
)

// What the machine here cannot measure: how long AWS's own calls take. They are
// the usual times within a region and decide the compute line alone.
const (
	tripTime     = 0.005 // seconds, a table call
	commitTime   = 0.010 // seconds, a transaction
	sendTime     = 0.008 // seconds, a message
	receiverTime = 0.100 // seconds, a receiver's answer from afar, handshake included
	ownTime      = 0.010 // seconds, our own work of an invocation on the share of a processor that 256 MB buy
	accessLog    = 230   // bytes of the gateway's access log for a request, by the template's format
	requestOut   = 1_500 // bytes of an attempt on the wire, TLS included
	itemsKept    = 3_000 // bytes that a publish with one delivery leaves in the tables
)

// priceList has the prices that differ from us-east-1's. AWS's price lists could not
// be reached when they were written: they are to be compared before they are relied on.
type priceList struct {
	name                                              string
	write, read, storage, backup, rest, logs, compute float64 // compute: times us-east-1's
}

var regions = []priceList{
	{"us-east-1 (N. Virginia)", priceWrite, priceRead, priceStorage, priceBackup, priceREST, priceLog, 1},
	{"eu-west-1 (Ireland)", 0.705, 0.141, 0.283, 0.226, 3.50, 0.57, 1},
	{"eu-central-1 (Frankfurt)", 0.7625, 0.1525, 0.306, 0.245, 3.70, 0.63, 1},
}

// in is a bill of us-east-1 with another region's prices.
func (r priceList) in(bill []line) (sum float64) {
	for _, l := range bill {
		switch l.name {
		case "REST API":
			sum += l.dollars * r.rest / priceREST
		case "tables, writing":
			sum += l.dollars * r.write / priceWrite
		case "tables, reading", "sweeper's reads":
			sum += l.dollars * r.read / priceRead
		case "logs", "sweeper's log":
			sum += l.dollars * r.logs / priceLog
		case "functions, compute", "sweeper's function":
			sum += l.dollars * r.compute
		default: // the same everywhere
			sum += l.dollars
		}
	}
	return sum
}

// metrics are all that the functions write (docs/operations.md, "Figures").
var metrics = []string{
	delivery.FigureDelivered, delivery.FigureFailed, delivery.FigureSkipped, delivery.FigureRetries, delivery.FigureOurFaults,
	delivery.FigureTableFailures, delivery.FigureClock, delivery.MetricOldSeals,
	delivery.FigureLate, delivery.FigureAttemptTime, delivery.FigurePublishToDelivered,
	outbox.FigureForwarded, outbox.FigureSetAside, outbox.FigureSwept, outbox.FigureUnsent, outbox.FigureFirst, outbox.FigureOldestDue,
}

// line is one line of a bill.
type line struct {
	name    string
	dollars float64 // for a million publishes
	of      string
}

// bill makes the bill for a million publishes with their deliveries, each alone:
// no batch carries two.
func (u usedBy) bill() []line {
	d := float64(u.Destinations)
	batches := math.Ceil(d / 10) // of messages, and of deliveries that one invocation works on
	writes, reads := u.PublishWrite+d*u.DeliveryWrite, u.PublishRead+d*u.DeliveryRead
	apiTime := (u.PublishTrips-1)*tripTime + commitTime + ownTime
	deliverTime := 2*tripTime + commitTime + receiverTime + ownTime
	compute := 0.5*apiTime + 0.25*(batches*sendTime+ownTime) + 0.25*batches*deliverTime
	logs := accessLog + u.APILog + u.StreamLog + d*u.DeliverLog + logOverhead*(4+2*d)
	return []line{
		{"REST API", priceREST, "1 request"},
		{"tables, writing", writes * priceWrite, fmt.Sprintf("%s units: %s publish, %s × %s delivery", number(writes), number(u.PublishWrite), number(d), number(u.DeliveryWrite))},
		{"tables, reading", reads * priceRead, fmt.Sprintf("%s units: %s publish, %s × %s delivery", number(reads), number(u.PublishRead), number(d), number(u.DeliveryRead))},
		{"queue", 3 * batches * priceQueue, fmt.Sprintf("%s requests: sent, received, deleted", number(3*batches))},
		{"functions, invocations", (2 + batches) * priceInvoke, fmt.Sprintf("%s: api, outbox-stream, deliver", number(2+batches))},
		{"functions, compute", compute * millionTimes * priceCompute, fmt.Sprintf("%.4f GB s", compute)},
		{"logs", logs * millionTimes / giga * priceLog, fmt.Sprintf("%.0f bytes", logs)},
	}
}

func total(bill []line) (sum float64) {
	for _, l := range bill {
		sum += l.dollars
	}
	return sum
}

// idle is what a month without a single request costs.
func idle(alarms int) []line {
	const sweeps, sweepUnits = monthMinutes, 32 // 64 queries of an index, half a unit each
	const polls = 2 * 5 * 3 * monthMinutes      // two queues, five long polls each, three a minute
	return []line{
		{"key", priceKey, "1 key"},
		{"alarms", float64(alarms) * priceAlarm, fmt.Sprintf("%d alarms", alarms)},
		{"sweeper's reads", sweeps * sweepUnits * priceRead / millionTimes, "64 queries a minute, half a unit each"},
		{"sweeper's function", sweeps*priceInvoke/millionTimes + sweeps*0.25*0.2*priceCompute, "one invocation of 0.2 s a minute at 256 MB"},
		{"queues' polls", polls * priceQueue / millionTimes, "five long polls a queue, at most 20 s each"},
		{"sweeper's metrics", sweepMetrics * priceMetric, "3 that are written each minute"},
		{"sweeper's log", sweeps * 500 * priceLog / giga, "500 bytes a minute"},
	}
}

// costMeasured is where the measured figures are kept, costPage the page made of them.
const (
	costMeasured = "docs/benchmarks/cost.json"
	costPage     = "docs/cost.md"
)

// costs measures anew and writes both.
func costs(ctx context.Context) error {
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	var all []usedBy
	for _, destinations := range []int{1, 3, 50} {
		u, err := used(ctx, destinations, 40)
		if err != nil {
			return err
		}
		all = append(all, u)
	}
	data, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(root, folderName), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(root, costMeasured), append(data, '\n'), 0o644); err != nil {
		return err
	}
	alarms, err := alarmsOf(filepath.Join(root, "template.yaml"))
	if err != nil {
		return err
	}
	page := costText(all, alarms)
	fmt.Print(page)
	return os.WriteFile(filepath.Join(root, costPage), []byte(page), 0o644)
}

func alarmsOf(template string) (int, error) {
	text, err := os.ReadFile(template)
	if err != nil {
		return 0, err
	}
	return strings.Count(string(text), "Type: AWS::CloudWatch::Alarm"), nil
}

// costText is the page.
func costText(all []usedBy, alarms int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `# What it costs

Made by `+"`go run ./bench cost`"+`: units, requests and log bytes are measured, prices are AWS's public on-demand prices for
us-east-1 as of %s, in dollars. A test measures again and holds this page to it.

Everything is counted as if each publish came alone: no batch carries two, which is the dearest way. Items are under 1 KB,
each delivery succeeds at once, four documents in the draft, an idempotency key with each publish.

## A million publishes

| line |`, pricesOf)
	for _, u := range all {
		fmt.Fprintf(&b, " %d destination%s | share |", u.Destinations, plural(u.Destinations))
	}
	b.WriteString(" one publish, one destination |\n| --- |")
	b.WriteString(strings.Repeat(" ---: | ---: |", len(all)) + " --- |\n")
	bills := make([][]line, len(all))
	for i, u := range all {
		bills[i] = u.bill()
	}
	for i, l := range bills[0] {
		fmt.Fprintf(&b, "| %s |", l.name)
		for _, bill := range bills {
			fmt.Fprintf(&b, " %.2f | %.0f %% |", bill[i].dollars, 100*bill[i].dollars/total(bill))
		}
		fmt.Fprintf(&b, " %s |\n", l.of)
	}
	b.WriteString("| **together** |")
	for _, bill := range bills {
		fmt.Fprintf(&b, " **%.2f** | |", total(bill))
	}
	one := total(bills[0])
	b.WriteString(" |\n")
	fmt.Fprintf(&b, `
Goal: at most 18 dollars with one destination. Reached: %.2f.

Not in it, because it hangs on the traffic and not on the publish:

- Opening secrets: 3.00 a million calls of the key. A sandbox of deliver remembers a secret for five minutes, so a busy
  destination costs next to nothing; where each delivery meets a sandbox that has not seen its destination, up to 3.00 for
  each destination (%.2f in all with one).
- Storage: about %.1f GB a month for a million publishes with one destination, %.2f with point-in-time recovery, until
  deliveries expire after 90 days.
- Bytes to receivers: %.2f a destination.
- A saved document: %s write units, %s read units and a request, so %.2f a million, log and compute left out.
- Retries: each further attempt is %s write units, %s read unit, and 3 requests of the queue.
- A superseded release: 2 write units instead of a delivery's %s.
- Custom metrics: %.2f a month for each that is written, by the hours in which it is: up to %.2f for those that traffic writes
  besides the sweeper's. The gateway's metrics for each method, which nothing here uses, are off.
- The tables' encryption under the account's AWS managed key (SSEEnabled): %.2f a million calls of KMS, which DynamoDB makes
  once in five minutes for each caller and table while there is traffic: cents a month. It is kept for what it shows in
  CloudTrail.

The compute line alone is not measured here: it takes %.0f ms for a table call, %.0f ms for a transaction, %.0f ms for a
receiver's answer, and %.0f ms of own work an invocation on the processor share of 256 MB.

## A month without any request

| line | dollars | |
| --- | ---: | --- |
`, one, one+priceKeyCall,
		itemsKept*millionTimes/giga, itemsKept*millionTimes/giga*(priceStorage+priceBackup), requestOut*millionTimes/giga*priceOut,
		number(all[0].SaveWrite), number(all[0].SaveRead), priceREST+all[0].SaveWrite*priceWrite+all[0].SaveRead*priceRead,
		number(all[0].DeliveryWrite), number(all[0].DeliveryRead), number(all[0].DeliveryWrite),
		priceMetric, float64(len(metrics)-sweepMetrics)*priceMetric, priceKeyCall,
		1000*tripTime, 1000*commitTime, 1000*receiverTime, 1000*ownTime)
	for _, l := range idle(alarms) {
		fmt.Fprintf(&b, "| %s | %.2f | %s |\n", l.name, l.dollars, l.of)
	}
	fmt.Fprintf(&b, "| **together** | **%.2f** | free tiers not counted |\n", total(idle(alarms)))
	fmt.Fprintf(&b, `
The key is rotated each year, and each of the first two rotations adds %.2f a month. Tables and key that a deleted stack left
cost their storage and the key's %.2f until they are deleted.

## In other regions

| region | a million publishes, 1 destination | a month without any request | a GB and month in the tables, with recovery |
| --- | ---: | ---: | ---: |
`, priceKey, priceKey)
	for _, r := range regions {
		fmt.Fprintf(&b, "| %s | %.2f | %.2f | %.2f |\n", r.name, r.in(bills[0]), r.in(idle(alarms)), r.storage+r.backup)
	}
	b.WriteString("\nThe prices are in `bench/cost.go`, by region. Those of regions other than us-east-1 were **not** compared with AWS's price\nlists, which could not be reached: compare them before you rely on a cent.\n")
	u := all[0]
	writes := u.PublishWrite + u.DeliveryWrite
	const busy = 0.7
	provisioned := writes * (priceWrite - priceWriteHour/3600/busy*millionTimes)
	http := priceREST - priceHTTP
	index := 2 * priceWrite
	log := (u.APILog + u.StreamLog + u.DeliverLog + 5*logOverhead) * millionTimes / giga * priceLog
	fmt.Fprintf(&b, `
## What would bring it to 16, and to 10

With one destination, from %.2f:

| change | saves | then | what is lost by it |
| --- | ---: | ---: | --- |
| HTTP API instead of REST | %.2f | %.2f | the gateway's own answers in the API's form (429, 413, 5xx), throttling by method, request ids in access logs as they are now |
| provisioned write units with auto scaling, %.0f %% busy | %.2f | %.2f | nothing to pay at rest, and bursts: what comes faster than the scaling waits or is refused with 503; worth it from about ten publishes a second, day and night |
| functions' logs from WARN on | %.2f | %.2f | the line per attempt; alarms keep their metrics only if those are written otherwise |
| no sweep index | %.2f | %.2f | the net under stream and queue (I5), and waits of more than two minutes: not done |

The first alone reaches 16; the first two reach 10. Two were looked at and left: a record without a transaction (one
unit for each item less, and a result could be written by a token that lost the slot: I2), and no idempotency key
(2 units less; the caller may leave it out).
`, one, http, one-http, 100*busy, provisioned, one-http-provisioned, log, one-http-provisioned-log, index, one-http-provisioned-log-index)
	return b.String()
}

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}
