package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// knobs are what an operator can turn, at first as the template and a new
// account have them.
type knobs struct {
	GatewayRate    float64 // requests a second that the stage takes
	AccountGateway float64 // and all APIs of the account and region
	Concurrency    float64 // invocations at once, of the account
	TableUnits     float64 // write units a second of a table
	Shards         float64 // of the delivery table's stream
	Parallel       float64 // batches of a shard forwarded at once
	Deliver        float64 // the queue's MaximumConcurrency
	Receiver       float64 // seconds that a receiver takes
}

// AWS's published quotas and rates of growth.
const (
	partitionUnits   = 1_000  // write units a second of one partition
	newTableUnits    = 4_000  // of a new on-demand table, twice its former peak afterwards
	tableQuota       = 40_000 // write units of an on-demand table, by default
	concurrencyQuota = 1_000  // of an account, by default
	newConcurrency   = 10     // of a new one, until it is raised
	gatewayQuota     = 10_000 // requests a second of an account
	sandboxRamp      = 100    // sandboxes a second that one function gains at most (1,000 each 10 s)
	mappingStart     = 5      // invocations at once with which a queue's mapping begins
	mappingRamp      = 5      // that it gains a second (300 a minute)
	inFlightMost     = 120_000
	keyQuota         = 10_000 // calls of KMS a second in most regions
	batchOfStream    = 100
	batchOfQueue     = 10
)

func asDeployed() knobs {
	return knobs{
		GatewayRate: 200, AccountGateway: gatewayQuota, Concurrency: concurrencyQuota, TableUnits: newTableUnits,
		Shards: 4, Parallel: 1, Deliver: 5, Receiver: receiverTime,
	}
}

// asNew are the same in an account whose quota of concurrency nobody has raised.
func asNew() knobs {
	k := asDeployed()
	k.Concurrency = newConcurrency
	return k
}

func opened() knobs {
	return knobs{
		GatewayRate: 12_000, AccountGateway: 12_000, Concurrency: 5_000, TableUnits: 120_000,
		Shards: 60, Parallel: 2, Deliver: 1_000, Receiver: receiverTime,
	}
}

const concurrencyLimit = "the account's concurrency"

// limit is one thing that stops growth.
type limit struct {
	name string
	at   float64 // publishes a second with one destination each
	knob string
	sees string
}

// Times of the functions' invocations, from docs/cost.md's assumptions.
func (u usedBy) apiTime() float64       { return (u.PublishTrips-1)*tripTime + commitTime + ownTime }
func (k knobs) deliverTime() float64    { return 2*tripTime + commitTime + k.Receiver + ownTime }
func forwardTime(n float64) float64     { return math.Ceil(n/batchOfQueue)*sendTime + ownTime }
func (k knobs) perShard() float64       { return k.Parallel * batchOfStream / forwardTime(batchOfStream) }
func (k knobs) deliverRate() float64    { return k.Deliver * batchOfQueue / k.deliverTime() }
func (u usedBy) ofDelivery() float64    { return u.PublishWrite - 1 - 6 + u.DeliveryWrite } // of the publish: all but META, the release, the key (6) and the part (1)
func (u usedBy) ofContent() float64     { return 6 + 1 }
func (k knobs) inFlight() float64       { return inFlightMost / k.deliverTime() }
func (u usedBy) oneProject() float64    { return 1 / (2*tripTime + commitTime + 0.2*ownTime) }
func (k knobs) oneDestination() float64 { return 1 / k.deliverTime() }

// limits gives the limits in the order in which they are met.
func (k knobs) limits(u usedBy) []limit {
	all := []limit{
		{"one project's META item: publishes of a project commit one after another", u.oneProject(),
			"none: several projects. A project's partition would carry " + number(partitionUnits/u.ofContent()) + "/s at most in any case",
			"p99 of POST …/releases grows, then 503 with Retry-After; ConditionalCheckFailedRequests and TransactionConflict of the content table"},
		{"one destination: one announcement at a time", k.oneDestination(),
			"none, by design: what comes faster is superseded",
			"deliveries shown as skipped, superseded; ApproximateAgeOfOldestMessage stays low"},
		{"the stage's throttle", k.GatewayRate, "ApiRateLimit, ApiBurstLimit", "429 with Retry-After from the gateway; 4XXError of the API"},
		{"the delivery table's write units as an on-demand table begins", k.TableUnits / u.ofDelivery(),
			"warm throughput before a launch; the account's quota of " + number(tableQuota) + " a table, raised on request",
			"WriteThrottleEvents; publishes slow down and end as 503; the worker's records are repeated within the lease; " +
				"messages wait 1 to 30 s on their queue, TableFailures (alarm), and become dead letters after 100 receives, about 48 minutes"},
		{"the content table's write units as an on-demand table begins", k.TableUnits / u.ofContent(), "as above", "as above"},
		{"the account's gateway quota", k.AccountGateway, "a raised quota", "429 for all APIs of the account"},
		{concurrencyLimit, k.Concurrency / (u.apiTime() + forwardTime(1)/batchOfStream + k.deliverTime()/batchOfQueue),
			"a raised quota; ApiReservedConcurrency keeps deliveries from taking what editors need (I7)",
			"Throttles of the functions; 5XXError of the API"},
		{"stream shards, each in order", k.Shards * k.perShard(),
			"StreamParallelization; more shards come with the table's partitions", "IteratorAge grows (alarm), Forwarded stays flat"},
		{"deliver's concurrency", k.deliverRate(), "DeliverConcurrency", "ApproximateNumberOfMessagesVisible and PublishToDelivered grow; Throttles do not"},
		{"messages in flight", k.inFlight(), "more queues: not built; waits of more than two minutes leave the queue by design",
			"OverLimit from ReceiveMessage, ApproximateNumberOfMessagesNotVisible at " + number(inFlightMost)},
		{"calls of the key, where each delivery opens anew", keyQuota, "a raised quota; busy destinations are remembered for five minutes",
			"OurFaults (alarm), deliveries wait and come back by the sweeper"},
		{"the sweep index: 64 values, two units a delivery", 64 * partitionUnits / 2, "SweepShards, which may only grow", "WriteThrottleEvents of the index"},
	}
	slices.SortStableFunc(all, func(a, b limit) int { return int(math.Round(a.at - b.at)) })
	return all
}

// simulated is what a load that begins at once and stays came to.
type simulated struct {
	Rate    float64
	Refused float64 // share of publishes refused over the whole time
	Backlog float64 // most announcements that waited, stream and queue together
	Settled int     // seconds until nothing waits longer than a second; -1: never
	Longest float64 // seconds that an announcement waited at most
	Where   string  // where most waited
}

// simulate lets a rate fall on a stack at rest, second by second: the gateway
// lets through, sandboxes and mappings grow as AWS has them grow, and what cannot
// be done waits, in the stream or in the queue.
func simulate(k knobs, u usedBy, rate float64, seconds int) simulated {
	out := simulated{Rate: rate, Settled: -1}
	var stream, queue, refused, accepted float64
	sandboxes, pollers := 10.0, float64(mappingStart)
	units := k.TableUnits
	for second := range seconds {
		deliverBusy := math.Min(pollers, k.Deliver)
		room := math.Max(0, k.Concurrency-deliverBusy-k.Shards*k.Parallel)
		sandboxes = math.Min(sandboxes+sandboxRamp, room)
		through := slices.Min([]float64{rate, k.GatewayRate, k.AccountGateway, sandboxes / u.apiTime(), units / u.ofDelivery(), units / u.ofContent()})
		refused += rate - through
		accepted += through
		stream += through
		forwarded := math.Min(stream, k.Shards*k.perShard())
		stream -= forwarded
		queue += forwarded
		delivered := slices.Min([]float64{queue, deliverBusy * batchOfQueue / k.deliverTime(), inFlightMost / k.deliverTime()})
		queue -= delivered
		pollers = math.Min(pollers+mappingRamp, k.Deliver)
		waits := stream/(k.Shards*k.perShard()) + queue/math.Max(1, deliverBusy*batchOfQueue/k.deliverTime())
		if waits > out.Longest {
			out.Longest = waits
		}
		if waiting := stream + queue; waiting > out.Backlog {
			out.Backlog, out.Where = waiting, "queue"
			if stream > queue {
				out.Where = "stream"
			}
		}
		switch {
		case waits > 1:
			out.Settled = -1
		case out.Settled < 0:
			out.Settled = second
		}
	}
	out.Refused = refused / (refused + accepted)
	return out
}

const scalePage = "docs/scale.md"

// scale writes the page.
func scale() error {
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	page, err := scaleText(root)
	if err != nil {
		return err
	}
	fmt.Print(page)
	return os.WriteFile(filepath.Join(root, scalePage), []byte(page), 0o644)
}

func scaleText(root string) (string, error) {
	data, err := os.ReadFile(filepath.Join(root, costMeasured))
	if err != nil {
		return "", err
	}
	var all []usedBy
	if err := json.Unmarshal(data, &all); err != nil || len(all) == 0 {
		return "", fmt.Errorf("read %s: %w", costMeasured, err)
	}
	u := all[0]
	var b strings.Builder
	fmt.Fprintf(&b, `# Past one machine

On paper, from the units and round trips measured for [cost.md](cost.md), AWS's published quotas and the times that page
assumes; nothing here was run on AWS. Made by `+"`go run ./bench scale`"+`; a test holds the page to its figures. All rates are
publishes a second with one destination each; %d destinations divide those of tables, stream and queue by about as much.

## What is met first, as the template has it

In an account with AWS's default quota of %s for concurrency:

| publishes/s | limit | knob | what an operator sees |
| ---: | --- | --- | --- |
`, 3, number(concurrencyQuota))
	writeLimits(&b, asDeployed().limits(u))
	for _, l := range asNew().limits(u) {
		if l.name == concurrencyLimit {
			fmt.Fprintf(&b, `
A **new account** may have a concurrency of %s until it is raised. Then that is met at %s publishes a second, and deliver at
its bound of %s leaves what is left to the api and the others. Ask for the quota first (Service Quotas, AWS Lambda,
"Concurrent executions"), then raise DeliverConcurrency.
`, number(newConcurrency), number(l.at), number(asNew().Deliver))
		}
	}
	k := opened()
	fmt.Fprintf(&b, `
The first two do not hold up the whole: they belong to one project and to one destination.

## For 10,000 publishes a second

ApiRateLimit %s, the account's gateway quota %s, concurrency %s, table quotas %s write units (warmed before the launch; the
delivery table then has about %s partitions, and so as many shards), StreamParallelization %s, DeliverConcurrency %s:

| publishes/s | limit | knob | what an operator sees |
| ---: | --- | --- | --- |
`, number(k.GatewayRate), number(k.AccountGateway), number(k.Concurrency), number(k.TableUnits), number(k.Shards), number(k.Parallel), number(k.Deliver))
	writeLimits(&b, k.limits(u))
	b.WriteString(`
## A load that begins at once

A simulation, second by second over fifteen minutes, of a load that falls on a stack at rest: the gateway refuses what is
over its rate, sandboxes come at 100 a second, the queue's mapping begins with 5 invocations and gains 300 a minute, and
what cannot be done waits in the stream or in the queue. What waits is late, never lost; an older release that waits is
superseded where a newer one comes, which the simulation leaves out.

| knobs | publishes/s | refused | most that waited | where | longest wait | settled after |
| --- | ---: | ---: | ---: | --- | ---: | ---: |
`)
	slow := opened()
	slow.Receiver = 1
	for _, c := range []struct {
		name  string
		knobs knobs
		rates []float64
	}{
		{"as deployed", asDeployed(), []float64{40, 200, 1_000}},
		{"opened", opened(), []float64{1_000, 5_000, 10_000}},
		{"opened, receivers take 1 s", slow, []float64{1_000, 10_000}},
	} {
		for _, rate := range c.rates {
			s := simulate(c.knobs, u, rate, 900)
			settled := fmt.Sprintf("%d s", s.Settled)
			if s.Settled < 0 {
				settled = "never"
			}
			where := s.Where
			if s.Backlog < 1 {
				where = ""
			}
			fmt.Fprintf(&b, "| %s | %s | %.0f %% | %.0f | %s | %.1f s | %s |\n", c.name, number(rate), 100*s.Refused, s.Backlog, where, s.Longest, settled)
		}
	}
	fmt.Fprintf(&b, `
Slow receivers are what comes next after the quotas: at 1 s an answer, %s invocations carry %.0f deliveries a second and hold
%.0f messages in flight. Then the answer is a higher DeliverConcurrency; a destination that takes longer than 2 s leaves for
the slow queue by itself.

Past that: several stacks, by project. Nothing is shared between projects but the token table and the list of projects, so
a project lives in one stack and stays there; one region writes, never two.
`, number(slow.Deliver), slow.deliverRate(), slow.deliverRate()*slow.deliverTime())
	return b.String(), nil
}

func writeLimits(b *strings.Builder, limits []limit) {
	for _, l := range limits {
		fmt.Fprintf(b, "| %.0f | %s | %s | %s |\n", l.at, l.name, l.knob, l.sees)
	}
}
