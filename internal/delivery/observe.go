package delivery

import (
	"context"
	"log/slog"
	"time"
)

// EventKind says what happened.
type EventKind string

// The kinds of events.
const (
	EventAttempt EventKind = "attempt" // an attempt was recorded, or settled
	EventLate    EventKind = "late"    // a result came after its lease
	EventEnded   EventKind = "ended"   // a delivery ended without an attempt
	EventTest    EventKind = "test"    // a test send ended
	EventFault   EventKind = "fault"   // a fault of our own
	EventTable   EventKind = "table"   // a call to the table failed, and the message waits
	EventClock   EventKind = "clock"   // this host's clock is off, and it left a delivery to another
)

// Event is one thing that a worker did: what logs and metrics are made of.
type Event struct {
	Kind       EventKind
	At         time.Time
	Ring       Ring
	Delivery   Delivery   // as it was before
	Transition Transition // of an attempt; its Status, Reason and Successor of an end
	Test       string     // of a test send: its id; the Transition has its Attempt alone
	Doing      string     // of a fault, or a call to the table
	Err        error      // of either; for the operator's log only
	Counted    bool       // a fault that was counted on its delivery
	Clock      ClockOffset
}

func (a *answering) observe(ctx context.Context, e Event) {
	e.Ring, e.At = a.ring, a.Clock()
	a.Observe(ctx, e)
}

func (a *answering) ended(ctx context.Context, err error, d Delivery, status Status, reason Reason, successor int64) {
	if err == nil {
		a.observe(ctx, Event{Kind: EventEnded, Delivery: d, Transition: Transition{
			Status: status, Reason: reason, Successor: successor,
		}})
	}
}

func (a *answering) fault(ctx context.Context, doing string, err error, counted bool) {
	a.observe(ctx, Event{Kind: EventFault, Delivery: a.inWork(), Doing: doing, Err: err, Counted: counted})
}

func (a *answering) tableFailed(ctx context.Context, doing string, err error) {
	a.observe(ctx, Event{Kind: EventTable, Delivery: a.inWork(), Doing: doing, Err: err})
}

func (a *answering) inWork() Delivery {
	if a.working != nil {
		return *a.working
	}
	return Delivery{Key: a.ring.Key}
}

// Metrics writes figures for the alarms and dashboards.
type Metrics interface {
	Emit(figures map[string]float64)
}

// Report makes one structured line of each event, and figures: nothing in either
// names an address, a header or a receiver's bytes.
func Report(log *slog.Logger, metrics Metrics) func(context.Context, Event) {
	return func(ctx context.Context, e Event) {
		d, t := e.Delivery, e.Transition
		attrs := []slog.Attr{
			slog.String("project", d.Project), slog.String("destination", d.ID), slog.Int64("release", d.Release),
			slog.String("trace", e.Ring.Trace), slog.Bool("slowQueue", e.Ring.OnSlowQueue),
		}
		level := slog.LevelInfo
		switch e.Kind {
		case EventAttempt, EventLate:
			a := t.Attempt
			attrs = append(attrs, slog.Int64("attempt", a.Number), slog.Int64("round", a.Round),
				slog.String("class", string(a.Class)), slog.Int("status", a.Status), slog.String("detail", a.Detail),
				slog.String("received", string(a.Received)), slog.Int64("milliseconds", a.Elapsed.Milliseconds()),
				slog.String("by", string(a.By)), slog.String("state", string(t.Status)), slog.Int64("tries", t.Tries))
			if t.Asked > 0 {
				attrs = append(attrs, slog.Duration("asked", t.Asked), slog.Duration("used", t.Used))
			}
		case EventTest:
			a := t.Attempt
			attrs = append(attrs, slog.String("test", e.Test), slog.String("class", string(a.Class)), slog.Int("status", a.Status),
				slog.String("detail", a.Detail), slog.String("received", string(a.Received)),
				slog.Int64("milliseconds", a.Elapsed.Milliseconds()))
		case EventEnded:
			attrs = append(attrs, slog.String("state", string(t.Status)), slog.String("reason", string(t.Reason)),
				slog.Int64("successor", t.Successor))
		case EventFault:
			level = slog.LevelError
			attrs = append(attrs, slog.String("doing", e.Doing), slog.Any("error", e.Err), slog.Int64("faults", d.Ours.Count+1))
		case EventTable:
			level = slog.LevelWarn
			attrs = append(attrs, slog.String("doing", e.Doing), slog.Any("error", e.Err), slog.Int("receives", e.Ring.Receives))
		case EventClock:
			level = slog.LevelError
			attrs = append(attrs, slog.Int64("aheadAtLeast", -e.Clock.Most.Milliseconds()), slog.Int64("aheadAtMost", -e.Clock.Least.Milliseconds()))
		}
		log.LogAttrs(ctx, level, string(e.Kind), attrs...)
		if figures := e.figures(); len(figures) > 0 {
			metrics.Emit(figures)
		}
	}
}

// The names of the figures; the template's alarms use them.
const (
	FigureDelivered          = "Delivered"
	FigureFailed             = "Failed"
	FigureSkipped            = "Skipped"
	FigureRetries            = "Retries"
	FigureOurFaults          = "OurFaults"     // that were counted on a delivery
	FigureTableFailures      = "TableFailures" // calls to the table that failed, where a message waits for it
	FigureLate               = "LateResults"
	MetricOldSeals           = "OldSealsOpened" // values opened under SealedForDestination: "colophon destination reseal" ends them
	FigureAttemptTime        = "AttemptMilliseconds"
	FigurePublishToDelivered = "PublishToDeliveredMilliseconds"
	FigureClock              = "ClockOutOfBounds"
)

func (e Event) figures() map[string]float64 {
	f := map[string]float64{}
	switch e.Kind {
	case EventFault:
		if e.Counted {
			f[FigureOurFaults] = 1
		}
		return f
	case EventTable:
		f[FigureTableFailures] = 1
		return f
	case EventLate:
		f[FigureLate] = 1
		return f
	case EventClock:
		f[FigureClock] = 1
		return f
	case EventAttempt:
		if e.Transition.Attempt.By == ByRecord {
			f[FigureAttemptTime] = float64(e.Transition.Attempt.Elapsed.Milliseconds())
		}
	}
	switch e.Transition.Status {
	case Delivered:
		f[FigureDelivered] = 1
		if e.Delivery.Round == 1 {
			f[FigurePublishToDelivered] = float64(e.At.Sub(e.Delivery.CreatedAt).Milliseconds())
		}
	case Failed:
		f[FigureFailed] = 1
	case Skipped:
		f[FigureSkipped] = 1
	case Retrying:
		f[FigureRetries] = 1
	}
	return f
}
