package runtime

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
)

// MetricsConfig is what Metrics need.
type MetricsConfig struct {
	Writer    io.Writer // the function's standard output
	Namespace string    // CloudWatch's
	Clock     func() time.Time
}

func (c MetricsConfig) validate() error {
	if c.Writer == nil || c.Namespace == "" || c.Clock == nil {
		return errors.New("runtime: metrics need a writer, a namespace and a clock")
	}
	return nil
}

// Metrics writes figures in CloudWatch's embedded metric format: a line of the
// function's log from which CloudWatch takes them, without dimensions.
type Metrics struct {
	c  MetricsConfig
	mu sync.Mutex // lines stay whole
}

// NewMetrics makes Metrics.
func NewMetrics(c MetricsConfig) (*Metrics, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &Metrics{c: c}, nil
}

// Emit writes figures by name, all in one line. A name's end says its unit:
// …Milliseconds, …Seconds, anything else is a count.
func (m *Metrics) Emit(figures map[string]float64) {
	if len(figures) == 0 {
		return
	}
	line := make(map[string]any, len(figures)+1)
	metrics := make([]embeddedMetric, 0, len(figures))
	for name, value := range figures {
		line[name] = value
		metrics = append(metrics, embeddedMetric{name, unitOf(name)})
	}
	slices.SortFunc(metrics, func(a, b embeddedMetric) int { return strings.Compare(a.Name, b.Name) })
	line["_aws"] = embedded{
		Timestamp:         m.c.Clock().UnixMilli(),
		CloudWatchMetrics: []directive{{Namespace: m.c.Namespace, Dimensions: [][]string{{}}, Metrics: metrics}},
	}
	text, err := json.Marshal(line)
	if err != nil { // a figure that is no number
		text = fmt.Appendf(nil, `{"level":"ERROR","message":"metrics could not be written: %T"}`, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	_, _ = m.c.Writer.Write(append(text, '\n')) // nowhere is left to say that standard output is broken
}

func unitOf(name string) string {
	for _, unit := range []string{"Milliseconds", "Seconds"} {
		if strings.HasSuffix(name, unit) {
			return unit
		}
	}
	return "Count"
}

// The embedded metric format, as CloudWatch's specification names its parts.
type (
	embedded struct {
		Timestamp         int64 // milliseconds
		CloudWatchMetrics []directive
	}
	directive struct {
		Namespace  string
		Dimensions [][]string
		Metrics    []embeddedMetric
	}
	embeddedMetric struct{ Name, Unit string }
)
