package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// figure is one thing that a run measured.
type figure struct {
	Name  string
	Value float64
	Unit  string
	Goal  string `json:",omitempty"` // in words; empty: none
	Met   bool   `json:",omitempty"`
}

func (f figure) String() string {
	text := fmt.Sprintf("%s %s", f.Name, number(f.Value))
	if f.Unit != "" {
		text += " " + f.Unit
	}
	switch {
	case f.Goal != "" && f.Met:
		text += " (goal " + f.Goal + ": met)"
	case f.Goal != "":
		text += " (goal " + f.Goal + ": **missed**)"
	}
	return text
}

func number(v float64) string {
	switch {
	case v == float64(int64(v)):
		return strconv.FormatInt(int64(v), 10)
	case v >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

func (r *run) figure(name string, value float64, unit string) {
	r.figures = append(r.figures, figure{Name: name, Value: value, Unit: unit})
}

// atMost and atLeast are figures with a goal.
func (r *run) atMost(name string, value float64, unit string, goal float64) {
	r.figures = append(r.figures, figure{name, value, unit, "≤ " + number(goal), value <= goal})
}

func (r *run) atLeast(name string, value float64, unit string, goal float64) {
	r.figures = append(r.figures, figure{name, value, unit, "≥ " + number(goal), value >= goal})
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// ours are the processes whose work is the product's; all else is engine, load
// and what AWS would do.
var ours = functionNames

// notOfTheRun are among usages and no part of a run.
var notOfTheRun = []string{"parent", "bare", machineName}

// measure makes the figures that every run has.
func (r *run) measure() {
	n := float64(len(r.clients.Published))
	seconds := r.done.at.Sub(r.before.at).Seconds()
	b := r.balance
	r.figure("publishes", n, "")
	r.figure("publishes per second", n/seconds, "")
	r.figure("requests per second", float64(r.clients.Requests)/seconds, "")
	publish := hdrhistogram.Import(r.clients.Publish)
	r.figure("publish p50", float64(publish.ValueAtQuantile(50))/1000, "ms")
	r.figure("publish p99", float64(publish.ValueAtQuantile(99))/1000, "ms")
	if r.plan.Saves > 0 {
		save := hdrhistogram.Import(r.clients.Save)
		r.figure("save p50", float64(save.ValueAtQuantile(50))/1000, "ms")
		r.figure("save p99", float64(save.ValueAtQuantile(99))/1000, "ms")
	}
	times := receiptTimes(r.clients.Published, r.w.projects, r.receipts, nil)
	r.figure("publish to receipt p50", milliseconds(percentile(times, 0.50)), "ms")
	r.figure("publish to receipt p99", milliseconds(percentile(times, 0.99)), "ms")
	r.figure("delivered", float64(b.Delivered), "")
	r.figure("skipped", float64(b.Skipped), "")
	r.figure("failed", float64(b.Failed), "")
	r.figure("repeats", float64(b.Repeats), "")
	r.figure("asked again", float64(r.clients.Again), "")
	for _, kind := range sortedKeys(r.clients.Faults) {
		r.figure("asked again or given up: "+kind, float64(r.clients.Faults[kind]), "")
	}
	r.atMost("older after newer", float64(b.OlderAfterNewer), "", 0)
	r.ratios(n, seconds)
	r.costs(n)
	r.holdings()
	r.figure("processors that others used", r.others(), "")
	for i, when := range []string{"before", "after"} {
		r.figure("pace of the processor "+when, r.paces[i], "ms for a fixed piece of work")
	}
}

// ratios set the run's rate beside the bare client's.
func (r *run) ratios(n, seconds float64) {
	if len(r.barely) != 4 {
		return
	}
	whole := (r.barely[0].perSecond() + r.barely[2].perSecond()) / 2
	narrow := (r.barely[1].perSecond() + r.barely[3].perSecond()) / 2
	r.figure("bare client before", r.barely[0].perSecond(), "/s")
	r.figure("bare client after", r.barely[2].perSecond(), "/s")
	r.figure("table calls of the bare client", float64(r.barely[0].Calls)/float64(max(1, r.barely[0].Wholes)), "per publish")
	r.atLeast("rate ÷ bare rate, same calls", n/seconds/whole, "", 0.8)
	wholes := float64(max(1, r.barely[0].Wholes+r.barely[2].Wholes))
	r.figure("processor time of the bare client", milliseconds(r.barely[0].client+r.barely[2].client)/wholes, "ms per publish")
	r.figure("processor time of engine under the bare client", milliseconds(r.barely[0].engine+r.barely[2].engine)/wholes, "ms per publish")
	r.figure("bare client without tokens' reads", narrow, "/s")
	r.figure("rate ÷ bare rate without tokens' reads", n/seconds/narrow, "")
}

// costs are what a publish and a delivery used.
func (r *run) costs(n float64) {
	spent := map[string]time.Duration{}
	var own time.Duration
	for name, u := range r.after_.usages {
		spent[name] = u.CPU - r.before.usages[name].CPU
		if slices.Contains(ours, name) {
			own += spent[name]
		}
	}
	r.figure("own processor time per publish", milliseconds(own)/n, "ms")
	for _, name := range sortedKeys(spent) {
		if !slices.Contains(notOfTheRun, name) {
			r.figure("processor time of "+name, milliseconds(spent[name])/n, "ms per publish")
		}
	}
	deliveries := float64(max(1, r.balance.Deliveries))
	for _, name := range measuredMemory {
		calls := float64(r.after_.counted[name].Invocations - r.before.counted[name].Invocations)
		if calls <= 0 || len(r.kills) > 0 {
			continue
		}
		before, after := r.before.memory[name], r.after_.memory[name]
		what := "per invocation"
		if name == "deliver" {
			calls, what = deliveries, "per delivery"
		}
		r.figure("allocations of "+name, float64(after.Allocations-before.Allocations)/calls, what)
		r.figure("bytes allocated by "+name, float64(after.Bytes-before.Bytes)/calls, what)
	}
	for _, name := range functionNames {
		r.figure("log of "+name, float64(r.after_.logged[name]-r.before.logged[name])/n, "bytes per publish")
	}
	if !r.world.Units || len(r.kills) > 0 {
		return
	}
	for _, name := range []string{"api", "deliver"} {
		per, what := n, "per publish"
		if name == "deliver" {
			per, what = deliveries, "per delivery"
		}
		for _, call := range sortedKeys(r.after_.counted[name].Calls) {
			before, after := r.before.counted[name].Calls[call], r.after_.counted[name].Calls[call]
			made := float64(after.Number - before.Number)
			if made == 0 {
				continue
			}
			r.figure(name+" "+call, made/per, what)
			r.figure(name+" "+call+" read units", (after.Read-before.Read)/per, what)
			r.figure(name+" "+call+" write units", (after.Write-before.Write)/per, what)
		}
	}
}

// holdings say whether memory stays flat: the largest resident set in the second
// and in the last tenth of the run.
func (r *run) holdings() {
	if len(r.samples) < 20 {
		return
	}
	tenth := len(r.samples) / 10
	for _, name := range sortedKeys(r.samples[0].usages) {
		if slices.Contains(notOfTheRun, name) {
			continue
		}
		largest := func(samples []sample) (most int64) {
			for _, s := range samples {
				most = max(most, s.usages[name].Resident)
			}
			return most
		}
		const mega = 1 << 20
		r.figure("memory of "+name+" early", float64(largest(r.samples[tenth:2*tenth]))/mega, "MB")
		r.figure("memory of "+name+" late", float64(largest(r.samples[len(r.samples)-tenth:]))/mega, "MB")
	}
}

// others is how many processors were busy with anything but this run.
func (r *run) others() float64 {
	var mine time.Duration
	for name, u := range r.done.usages {
		mine += u.CPU - r.before.usages[name].CPU
	}
	seconds := r.done.at.Sub(r.before.at).Seconds()
	busy := r.done.usages[machineName].CPU - r.before.usages[machineName].CPU
	mine -= busy
	return max(0, (busy-mine).Seconds()/seconds)
}

// machineName stands for all of the machine among usages.
const machineName = "machine"

// machineUsage is the time that all processors were busy (proc(5)).
func machineUsage() usage {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return usage{}
	}
	line, _, _ := strings.Cut(string(text), "\n")
	var ticks int64
	for i, field := range strings.Fields(line)[1:] {
		if i == 3 || i == 4 || i > 7 { // idle, waiting for disks; guests are counted among users
			continue
		}
		n, _ := strconv.ParseInt(field, 10, 64)
		ticks += n
	}
	return usage{CPU: time.Duration(ticks) * time.Second / 100}
}
