package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"time"

	"github.com/go-analyze/charts"
)

// result is a run as it is kept.
type result struct {
	Scenario string
	Began    time.Time
	Seconds  float64
	Commit   string
	Engine   string
	Settings string
	Machine  string
	Load     string // of the machine before the run
	Note     string `json:",omitempty"`
	Balanced bool
	Faults   []string `json:",omitempty"`
	Figures  []figure
}

func newResult(scenario string, began time.Time, o options, loadBefore string) result {
	return result{
		Scenario: scenario, Began: began.UTC().Truncate(time.Second), Seconds: time.Since(began).Round(time.Second).Seconds(),
		Commit: commit(), Machine: machine(), Load: loadBefore, Note: o.note,
	}
}

func (r *run) result(o options, loadBefore string) result {
	out := newResult(r.name, r.began, o, loadBefore)
	out.Engine = "dynoxide (patched, its file in " + os.TempDir() + "), kumo"
	p, w := r.plan, r.world
	var s []string
	if p.Rate > 0 {
		s = append(s, fmt.Sprintf("open loop, %s/s for %v", number(p.Rate), p.Duration))
	} else {
		s = append(s, fmt.Sprintf("closed loop, %d clients", p.Clients))
		if p.Publishes > 0 {
			s = append(s, fmt.Sprintf("%d publishes", p.Publishes))
		} else {
			s = append(s, fmt.Sprintf("for %v", p.Duration))
		}
		if p.Await {
			s = append(s, "each waits for its receipt")
		}
	}
	s = append(s, fmt.Sprintf("%d projects, %d documents, %d destination(s)", w.Projects, w.Drafts, w.Destinations))
	if p.Saves > 0 {
		s = append(s, fmt.Sprintf("%d saves before each publish", p.Saves))
	}
	if w.Conflicts > 0 {
		s = append(s, fmt.Sprintf("%s of transactions refused", number(w.Conflicts)))
	}
	if w.Units {
		s = append(s, "units asked for")
	}
	out.Settings = strings.Join(s, "; ")
	out.Balanced = len(r.faults) == 0
	out.Faults, out.Figures = r.faults, r.figures
	return out
}

func (r result) print(w io.Writer) {
	fmt.Fprintf(w, "\n%s (%s, %s, load before: %s)\n", r.Scenario, r.Settings, r.Commit, r.Load)
	for _, f := range r.Figures {
		fmt.Fprintf(w, "  %s\n", strings.ReplaceAll(f.String(), "**", ""))
	}
	for _, fault := range r.Faults {
		fmt.Fprintf(w, "  FAULT: %s\n", fault)
	}
	if r.Balanced {
		fmt.Fprintln(w, "  the books balance")
	}
}

// Where results are kept, from the module's root.
const (
	pageName   = "docs/benchmarks.md"
	folderName = "docs/benchmarks"
	rowsMark   = "<!-- rows -->"
)

// keep writes the result as JSON, draws it where there was load, and adds its row.
func (r result) keep(of *run) error {
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	name := r.Began.Format("20060102-150405") + "-" + r.Scenario
	folder := filepath.Join(root, folderName)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, name+".json"), append(data, '\n'), 0o644); err != nil {
		return err
	}
	if of != nil && len(of.clients.Published) > 0 {
		if err := of.draw(filepath.Join(folder, name)); err != nil {
			return err
		}
	}
	return writePage(root)
}

// writePage makes the part of the page behind its mark of all results that are kept.
func writePage(root string) error {
	page := filepath.Join(root, pageName)
	text, err := os.ReadFile(page)
	if err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	before, _, found := strings.Cut(string(text), rowsMark+"\n")
	if !found {
		return fmt.Errorf("write the page: %s has no line %q", page, rowsMark)
	}
	results, err := readResults(filepath.Join(root, folderName))
	if err != nil {
		return err
	}
	return os.WriteFile(page, []byte(before+rowsMark+"\n"+rows(results)), 0o644)
}

// kept is a result with the name that it is kept under.
type kept struct {
	result
	name  string
	drawn bool
}

// readResults reads what is kept, the newest first.
func readResults(folder string) ([]kept, error) {
	files, err := filepath.Glob(filepath.Join(folder, "2*.json"))
	if err != nil {
		return nil, err
	}
	var all []kept
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read results: %w", err)
		}
		one := kept{name: strings.TrimSuffix(filepath.Base(file), ".json")}
		if err := json.Unmarshal(data, &one.result); err != nil {
			return nil, fmt.Errorf("read results: %s: %w", file, err)
		}
		_, err = os.Stat(filepath.Join(folder, one.name+"-latency.svg"))
		one.drawn = err == nil
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b kept) int { return strings.Compare(b.name, a.name) })
	return all, nil
}

// rows are the goals, as the newest run of each scenario met them, and a row for
// every run.
func rows(results []kept) string {
	var b strings.Builder
	b.WriteString("\n## Goals, by the newest run of each scenario\n\n| figure | value | goal | run |\n| --- | ---: | --- | --- |\n")
	seen := map[string]bool{}
	for _, r := range results {
		if seen[r.Scenario+r.rateOf()] {
			continue
		}
		seen[r.Scenario+r.rateOf()] = true
		for _, f := range r.Figures {
			if f.Goal == "" || f.Name == "older after newer" && f.Met {
				continue
			}
			verdict := "met"
			if !f.Met {
				verdict = "**missed**"
			}
			fmt.Fprintf(&b, "| %s | %s | %s, %s | [%s](benchmarks/%s.json) |\n", f.Name, strings.TrimSpace(number(f.Value)+" "+f.Unit), f.Goal, verdict, r.Scenario, r.name)
		}
	}
	b.WriteString("\n\"Older after newer\" is 0 in every run whose books balance, or it fails.\n")
	b.WriteString("\n## Runs, the newest first\n\nAll figures of a run stand in its JSON.\n\n| run | commit, engine | settings | machine | books | figures |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, r := range results {
		b.WriteString(r.row())
	}
	return b.String()
}

// rateOf tells open loops of different rates apart.
func (r result) rateOf() string {
	rate, _, _ := strings.Cut(r.Settings, " for ")
	if strings.HasPrefix(rate, "open loop") {
		return rate
	}
	return ""
}

func (r kept) row() string {
	verdict := "balance"
	if !r.Balanced {
		verdict = "**FAILED**: " + strings.ReplaceAll(strings.Join(r.Faults, "; "), "\n", " ")
	}
	run := fmt.Sprintf("[%s](benchmarks/%s.json) %s", r.Scenario, r.name, r.Began.Format("2006-01-02 15:04"))
	if r.drawn {
		run += fmt.Sprintf(", [latency](benchmarks/%s-latency.svg), [rate](benchmarks/%s-rate.svg)", r.name, r.name)
	}
	conditions := r.Machine + "; load before " + r.Load
	if r.Note != "" {
		conditions += "; " + r.Note
	}
	var shown []string
	for _, f := range r.Figures {
		if slices.ContainsFunc(onPage, func(prefix string) bool { return strings.HasPrefix(f.Name, prefix) }) || f.Goal != "" {
			shown = append(shown, strings.TrimSpace(f.Name+" "+strings.TrimSpace(number(f.Value)+" "+f.Unit)))
		}
	}
	cell := func(s string) string { return strings.ReplaceAll(s, "|", "\\|") }
	return fmt.Sprintf("| %s | %s, %s | %s | %s | %s | %s |\n", run, r.Commit, r.Engine, cell(r.Settings), cell(conditions), cell(verdict), cell(strings.Join(shown, "; ")))
}

// onPage are the beginnings of the figures without a goal that stand in a row.
var onPage = []string{
	"publishes", "requests", "publish p", "publish to", "save p", "delivered", "skipped", "failed", "repeats", "asked again",
	"bare client before", "bare client after", "rate ÷", "own processor", "processor time of engine", "processors that others", "pace",
	"tries", "share", "conflicts", "deliveries per", "healthy", "messages over", "kills", "attempts whose", "write units", "read units",
	"init of", "first answer of", "zip of",
}

// draw plots latency and rate over time, a point a second.
func (r *run) draw(path string) error {
	arrived := map[string]int64{}
	for _, got := range r.receipts {
		key := fmt.Sprint(got.Project, " ", got.Release)
		if _, seen := arrived[key]; !seen && got.Status >= 200 && got.Status < 300 {
			arrived[key] = got.At
		}
	}
	began := r.before.at.UnixNano()
	span := int(r.done.at.Sub(r.before.at).Seconds())
	if span < 2 {
		return nil
	}
	width := max(1, span/300) // seconds a point stands for
	points := span/width + 1
	publishes, receipts := make([][]time.Duration, points), make([][]time.Duration, points)
	rates := [][]float64{make([]float64, points), make([]float64, points)}
	for _, p := range r.clients.Published {
		if at := int((p.Intended-began)/1e9) / width; at >= 0 && at < points {
			publishes[at] = append(publishes[at], time.Duration(p.Ended-p.Asked))
			rates[0][at] += 1 / float64(width)
			if p.Project < len(r.w.projects) {
				if got, ok := arrived[fmt.Sprint(r.w.projects[p.Project].ID, " ", p.Release)]; ok {
					receipts[at] = append(receipts[at], time.Duration(got-p.Asked))
				}
			}
		}
	}
	for _, got := range r.receipts {
		if at := int((got.At-began)/1e9) / width; at >= 0 && at < points {
			rates[1][at] += 1 / float64(width)
		}
	}
	latencies := make([][]float64, 4)
	for _, times := range [][][]time.Duration{publishes, receipts} {
		for i := range times {
			slices.Sort(times[i])
		}
	}
	for i := range points {
		latencies[0] = append(latencies[0], milliseconds(percentile(publishes[i], 0.5)))
		latencies[1] = append(latencies[1], milliseconds(percentile(publishes[i], 0.99)))
		latencies[2] = append(latencies[2], milliseconds(percentile(receipts[i], 0.5)))
		latencies[3] = append(latencies[3], milliseconds(percentile(receipts[i], 0.99)))
	}
	if err := plot(path+"-latency.svg", r.name+": latency in ms, by second", width, latencies, "publish p50", "publish p99", "receipt p50", "receipt p99"); err != nil {
		return err
	}
	return plot(path+"-rate.svg", r.name+": rate per second", width, rates, "publishes", "requests to receivers")
}

func plot(path, title string, width int, values [][]float64, names ...string) error {
	labels := make([]string, len(values[0]))
	for i := range labels {
		labels[i] = fmt.Sprint(i * width)
	}
	o := charts.NewLineChartOptionWithData(values)
	o.Title.Text = title
	o.XAxis.Labels = labels
	o.Legend = charts.LegendOption{SeriesNames: names, Offset: charts.OffsetStr{Left: charts.PositionRight}}
	o.LineStrokeWidth = 1.2
	o.Symbol = charts.Symbol{Shape: charts.SymbolNone}
	p := charts.NewPainter(charts.PainterOptions{OutputFormat: charts.ChartOutputSVG, Width: 900, Height: 360})
	if err := p.LineChart(o); err != nil {
		return fmt.Errorf("plot %s: %w", path, err)
	}
	drawn, err := p.Bytes()
	if err != nil {
		return fmt.Errorf("plot %s: %w", path, err)
	}
	return os.WriteFile(path, drawn, 0o644)
}

func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no go.mod above the working directory")
		}
		dir = parent
	}
}

// commit is the one that is checked out; + says that the functions' source differs.
func commit() string {
	hash, err := exec.Command("git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	text := string(bytes.TrimSpace(hash))
	if exec.Command("git", "diff", "--quiet", "HEAD", "--", ":/internal", ":/functions").Run() != nil {
		text += "+"
	}
	return text
}

func machine() string {
	model := goruntime.GOARCH
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}
	return fmt.Sprintf("%d × %s, %s", goruntime.NumCPU(), model, goruntime.Version())
}

// loadAverage is the machine's, of the last minute.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}
