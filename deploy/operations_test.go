package deploy_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"colophon/internal/delivery"
	"colophon/internal/outbox"
)

func TestTheOperationsPageNamesEachKnobAlarmQueueAndFigure(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "docs", "operations.md"))
	if err != nil {
		t.Fatal(err)
	}
	var named []string
	loaded := load(t)
	for parameter := range section(loaded.Transformed, "Parameters") {
		named = append(named, parameter)
	}
	for id, kind := range consistsOf {
		if kind == "AWS::CloudWatch::Alarm" || kind == "AWS::SQS::Queue" {
			named = append(named, id)
		}
	}
	named = append(named,
		delivery.FigureDelivered, delivery.FigureFailed, delivery.FigureSkipped, delivery.FigureRetries,
		delivery.FigureOurFaults, delivery.FigureTableFailures, delivery.FigureClock, delivery.FigureLate, delivery.FigureAttemptTime, delivery.FigurePublishToDelivered,
		outbox.FigureForwarded, outbox.FigureSetAside, outbox.FigureSwept, outbox.FigureUnsent, outbox.FigureFirst, outbox.FigureOldestDue)
	for _, name := range named {
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("docs/operations.md does not name %s", name)
		}
	}
}
