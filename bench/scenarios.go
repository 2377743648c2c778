package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// The size of what is published in, the same for all that do not say otherwise.
const (
	manyProjects = 512
	manyDrafts   = 4
)

// base is what most scenarios have: 512 projects with four documents and one
// destination each, the template's concurrency.
func base(name string, o options) scenario {
	return scenario{
		name: name, profile: o.profile,
		world: worldConfig{
			Projects: cmp.Or(o.projects, manyProjects), Drafts: manyDrafts, Destinations: 1,
			Concurrency: 200, Slow: 50, StreamInterval: 5 * time.Millisecond,
		},
		plan:  plan{Clients: cmp.Or(o.clients, 24), Keyed: true},
		drain: 5 * time.Minute,
	}
}

// withBare adds the bare client: projects of its own, and its time.
func (s scenario) withBare(o options, usual time.Duration) scenario {
	s.bare = usual
	if o.bare >= 0 {
		s.bare = o.bare
	}
	if s.bare > 0 {
		s.world.Bare = 64
	}
	return s
}

var scenarios = map[string]func(options) []scenario{
	"steady": func(o options) []scenario {
		s := base("steady", o).withBare(o, 0)
		s.plan.Rate, s.plan.Duration, s.plan.Publishes = cmp.Or(o.rate, 40), cmp.Or(o.duration, 5*time.Minute), 0
		s.judge = judgeSteady
		if s.plan.Rate != 40 {
			s.name = fmt.Sprintf("steady-%g", s.plan.Rate)
		}
		return []scenario{s}
	},
	"burst": func(o options) []scenario {
		s := base("burst", o).withBare(o, 8*time.Second)
		s.plan.Clients = cmp.Or(o.clients, 64)
		s.plan.Await = true
		s.plan.Publishes, s.plan.Duration = amount(o, 10_000)
		s.judge = judgeBurst
		return []scenario{s}
	},
	"million": func(o options) []scenario {
		s := base("million", o).withBare(o, 8*time.Second)
		s.plan.Await, s.plan.Saves = true, 4
		s.plan.Publishes, s.plan.Duration = amount(o, 200_000)
		s.judge = judgeMillion
		return []scenario{s}
	},
	"hot": func(o options) []scenario {
		s := base("hot", o)
		s.world.Projects, s.world.Units = 1, true
		s.plan.Clients = cmp.Or(o.clients, 8)
		s.plan.Publishes, s.plan.Duration = amount(o, 2_000)
		s.judge = judgeHot
		return []scenario{s}
	},
	"conflicts": func(o options) []scenario {
		s := base("conflicts", o)
		s.world.Projects, s.world.Units, s.world.Conflicts = 1, true, 0.2
		s.plan.Clients = cmp.Or(o.clients, 8)
		s.plan.Publishes, s.plan.Duration = amount(o, 2_000)
		s.judge = judgeHot
		return []scenario{s}
	},
	"wide": func(o options) []scenario {
		s := base("wide", o)
		s.world.Projects, s.world.Destinations = cmp.Or(o.projects, 16), 50
		s.plan.Clients, s.plan.Await = cmp.Or(o.clients, 4), true
		s.plan.Publishes, s.plan.Duration = amount(o, 200)
		s.judge = judgeWide
		return []scenario{s}
	},
	"hanging": hanging,
	"flaky": func(o options) []scenario {
		s := base("flaky", o)
		s.world.Way = func(int, int) string { return wayFlaky }
		s.plan.Rate, s.plan.Duration = cmp.Or(o.rate, 40), cmp.Or(o.duration, time.Minute)
		return []scenario{s}
	},
	"restart": func(o options) []scenario {
		s := base("restart", o)
		s.plan.Await = true
		s.plan.Publishes, s.plan.Duration = amount(o, 20_000)
		s.during = killer(10*time.Second, "deliver", "api", "outbox-stream", "deliver", "sweep")
		s.judge = judgeRestart
		return []scenario{s}
	},
	"units": func(o options) []scenario {
		var all []scenario
		for _, destinations := range []int{1, 3, 50} {
			s := base(fmt.Sprintf("units-%d", destinations), o)
			s.world.Projects, s.world.Destinations, s.world.Units = cmp.Or(o.projects, 8), destinations, true
			s.plan.Clients, s.plan.Await = 2, true
			s.plan.Publishes, s.plan.Duration = amount(o, 100)
			s.judge = judgeUnits
			all = append(all, s)
		}
		return all
	},
}

// amount says how much: a duration where one is given.
func amount(o options, usual int) (publishes int, duration time.Duration) {
	if o.duration > 0 {
		return o.publishes, o.duration
	}
	return cmp.Or(o.publishes, usual), 0
}

func judgeSteady(r *run) {
	publish := hdrhistogram.Import(r.clients.Publish)
	times := receiptTimes(r.clients.Published, r.w.projects, r.receipts, nil)
	if r.plan.Rate == 40 {
		r.atMost("publish p99 at 40/s", float64(publish.ValueAtQuantile(99))/1000, "ms", 15)
		r.atMost("publish to receipt p50 at 40/s", milliseconds(percentile(times, 0.50)), "ms", 25)
		r.atMost("publish to receipt p99 at 40/s", milliseconds(percentile(times, 0.99)), "ms", 60)
		r.atMost("own processor time per publish at 40/s", r.value("own processor time per publish"), "ms", 3)
	}
	r.figure("most publishes under way", float64(r.clients.MostUnderWay), "")
}

func judgeBurst(r *run) {
	r.atMost("own processor time per publish at full load", r.value("own processor time per publish"), "ms", 1.5)
}

func judgeMillion(r *run) {
	publish, save := hdrhistogram.Import(r.clients.Publish), hdrhistogram.Import(r.clients.Save)
	publish.Merge(save)
	r.figure("requests", float64(r.clients.Requests), "")
	r.atLeast("requests per second in all", float64(r.clients.Requests)/r.done.at.Sub(r.before.at).Seconds(), "", 680)
	r.atMost("p99 of all requests", float64(publish.ValueAtQuantile(99))/1000, "ms", 200)
	// The receiver and the clients keep books, which grow; nothing else may.
	for _, name := range append([]string{"engine", "queues", "mappings"}, functionNames...) {
		if early := r.value("memory of " + name + " early"); early > 0 {
			r.atMost("memory of "+name+" late ÷ early", r.value("memory of "+name+" late")/early, "", 1.25)
		}
	}
}

func judgeHot(r *run) {
	tries := float64(r.after_.counted["api"].Calls["Query"].Number - r.before.counted["api"].Calls["Query"].Number)
	releases := float64(len(r.clients.Published))
	r.figure("tries of a publish", tries/releases, "")
	r.figure("share of tries that met a moved project", (tries-releases)/tries, "")
	if p := r.w.processes["conflicts"]; p != nil {
		var injected int64
		if err := ask(patient, p.address, "/injected", nil, &injected); err != nil {
			r.faults = append(r.faults, err.Error())
		}
		r.figure("conflicts injected", float64(injected), "")
	}
}

func judgeWide(r *run) {
	seconds := r.done.at.Sub(r.before.at).Seconds()
	r.figure("deliveries per second", float64(r.balance.Deliveries)/seconds, "")
	r.figure("own processor time per delivery", r.value("own processor time per publish")*float64(len(r.clients.Published))/float64(r.balance.Deliveries), "ms")
}

func judgeRestart(r *run) {
	times := receiptTimes(r.clients.Published, r.w.projects, r.receipts, nil)
	r.figure("kills", float64(len(r.kills)), "")
	r.atMost("slowest publish to receipt", milliseconds(percentile(times, 1))/1000, "s", 35)
	per5000 := float64(r.balance.Repeats) / float64(len(r.clients.Published)) * 5000
	r.atMost("repeats in 5,000", per5000, "", 10)
	r.figure("attempts whose outcome is unknown", float64(r.balance.Lost), "")
}

func judgeUnits(r *run) {
	n := float64(len(r.clients.Published))
	d := float64(r.balance.Deliveries)
	write := r.used("api", "TransactWriteItems").Write / n
	if r.world.Destinations == 1 {
		r.atMost("write units of a publish", write, "", 9)
	} else {
		r.figure("write units of a publish", write, "")
	}
	r.atMost("write units of a delivery", (r.used("deliver", "UpdateItem").Write+r.used("deliver", "TransactWriteItems").Write)/d, "", 6)
	r.atMost("read units of a delivery", (r.used("deliver", "Query").Read+r.used("deliver", "GetItem").Read)/d, "", 1)
	r.figure("queue requests of a publish", float64(r.mapped.Receives-r.mapped.EmptyReceives+r.mapped.Deletes)/n, "received and deleted")
	r.figure("stream batches of a publish", float64(r.mapped.StreamBatches)/n, "")
	r.figure("deliver batches of a publish", float64(r.mapped.Batches)/n, "")
}

// value finds a figure.
func (r *run) value(name string) float64 {
	for _, f := range r.figures {
		if f.Name == name {
			return f.Value
		}
	}
	return 0
}

// hanging: 50 projects whose destinations hang, beside one that is healthy. The
// healthy one publishes throughout; for the first half it is alone.
func hanging(o options) []scenario {
	const hangs = 50
	s := base("hanging", o)
	s.world.Projects = hangs + 1
	s.world.Way = func(project, _ int) string {
		if project == 0 {
			return wayOK
		}
		return wayHang
	}
	half := cmp.Or(o.duration, time.Minute)
	var beside outcome
	var from time.Time
	s.plan.Rate, s.plan.Duration = cmp.Or(o.rate, 5), 2*half
	s.during = func(ctx context.Context, r *run) error {
		wait := time.NewTimer(half)
		defer wait.Stop()
		select {
		case <-wait.C:
		case <-ctx.Done():
			return nil
		}
		from = time.Now()
		// Each of the fifty is published once every fifteen seconds.
		p := plan{Rate: hangs / 15.0, Duration: half, Keyed: true, Projects: r.w.projects[1:]}
		return r.load(context.WithoutCancel(ctx), p, &beside) // begun, it is seen to its end
	}
	s.after = func(ctx context.Context, r *run) error {
		for _, p := range beside.Published {
			p.Project++
			r.clients.Published = append(r.clients.Published, p)
		}
		return heal(ctx, r)
	}
	s.judge = func(r *run) {
		healthy := func(p published) bool { return p.Project == 0 }
		alone := receiptTimes(r.clients.Published, r.w.projects, r.receipts, func(p published) bool { return healthy(p) && p.Intended < from.UnixNano() })
		with := receiptTimes(r.clients.Published, r.w.projects, r.receipts, func(p published) bool { return healthy(p) && p.Intended >= from.UnixNano() })
		a, w := milliseconds(percentile(alone, 0.99)), milliseconds(percentile(with, 0.99))
		r.figure("healthy, alone: p99", a, "ms")
		r.figure("healthy, beside 50 that hang: p99", w, "ms")
		r.figure("healthy, alone: p50", milliseconds(percentile(alone, 0.5)), "ms")
		r.figure("healthy, beside 50 that hang: p50", milliseconds(percentile(with, 0.5)), "ms")
		r.atMost("healthy p99 beside ÷ alone", w/a, "", 2)
		r.figure("messages over the slow queue", float64(r.mapped.Slow), "")
		r.figure("deliver invocations at once", float64(r.mapped.MostAtOnce), "at most")
	}
	s.first = true
	return []scenario{s}
}
