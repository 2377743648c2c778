package outbox

import (
	"context"
	"log/slog"
)

// Metrics writes figures for the alarms and dashboards.
type Metrics interface {
	Emit(figures map[string]float64)
}

// The names of the figures; the template's alarms use them.
const (
	FigureForwarded = "Forwarded"       // messages that the stream put on the queue
	FigureSetAside  = "RecordsSetAside" // stream records that could not be read
	FigureSwept     = "Swept"           // deliveries that the sweeper rang for
	FigureUnsent    = "SweptUnsent"     // that it could not ring for
	// FigureFirst counts first notifications that the sweeper had to make. The sweeper
	// heals a stream mapping that is off within minutes, so nothing else shows it. It is
	// written where it is not 0: a metric costs for each hour in which it is written.
	FigureFirst     = "FirstNotificationsBySweeper"
	FigureOldestDue = "OldestDueSeconds" // how long the most overdue of them was due; 0: none is
)

// ReportForwarded makes one structured line of each batch, and figures.
func ReportForwarded(log *slog.Logger, metrics Metrics) func(context.Context, Forwarded) {
	return func(ctx context.Context, f Forwarded) {
		level := slog.LevelInfo
		attrs := []slog.Attr{
			slog.String("trace", f.Trace), slog.Int("records", f.Records), slog.Int("sent", f.Sent),
			slog.Int("silent", f.Silent), slog.Int("setAside", f.SetAside), slog.Int("left", f.Left),
		}
		if f.Cause != nil {
			level = slog.LevelError
			attrs = append(attrs, slog.Any("error", f.Cause))
		} else if f.SetAside > 0 {
			level = slog.LevelWarn
		}
		log.LogAttrs(ctx, level, "forwarded", attrs...)
		figures := map[string]float64{FigureForwarded: float64(f.Sent)}
		if f.SetAside > 0 {
			figures[FigureSetAside] = float64(f.SetAside)
		}
		metrics.Emit(figures)
	}
}

// ReportSwept makes one structured line of each sweep, and figures.
func ReportSwept(log *slog.Logger, metrics Metrics) func(context.Context, Swept) {
	return func(ctx context.Context, s Swept) {
		level := slog.LevelInfo
		attrs := []slog.Attr{
			slog.String("trace", s.Trace), slog.Int("queries", s.Queries), slog.Int("sent", s.Sent),
			slog.Int("unsent", s.Unsent), slog.Int("first", s.First), slog.Int("passed", s.Passed), slog.Int("unreadable", s.Unreadable),
			slog.Int("faults", s.Faults), slog.Bool("complete", s.Complete),
			slog.Float64("oldestDueSeconds", s.OldestDue.Seconds()), slog.Int64("milliseconds", s.Took.Milliseconds()),
		}
		if s.Unreadable > 0 || !s.Complete {
			level = slog.LevelWarn
		}
		if s.Stray != "" {
			attrs = append(attrs, slog.String("stray", s.Stray))
		}
		if s.Cause != nil {
			level = slog.LevelError
			attrs = append(attrs, slog.Any("error", s.Cause))
		}
		log.LogAttrs(ctx, level, "swept", attrs...)
		figures := map[string]float64{FigureSwept: float64(s.Sent), FigureUnsent: float64(s.Unsent)}
		if s.First > 0 {
			figures[FigureFirst] = float64(s.First)
		}
		if s.OldestDue > 0 || s.Complete && s.Faults == 0 { // a sweep that saw not all does not say that nothing is due
			figures[FigureOldestDue] = s.OldestDue.Seconds()
		}
		metrics.Emit(figures)
	}
}
