package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"
)

func measuredCosts(t *testing.T) (root string, all []usedBy) {
	t.Helper()
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(root, costMeasured))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	return root, all
}

func TestTheCostPageIsMadeOfWhatWasMeasured(t *testing.T) {
	t.Parallel()
	root, all := measuredCosts(t)
	alarms, err := alarmsOf(filepath.Join(root, "template.yaml"))
	if err != nil || alarms == 0 {
		t.Fatal(alarms, err)
	}
	page, err := os.ReadFile(filepath.Join(root, costPage))
	if err != nil {
		t.Fatal(err)
	}
	if string(page) != costText(all, alarms) {
		t.Error("docs/cost.md is not what its figures make: run `go run ./bench cost`")
	}
}

func TestAMillionPublishesCostAtMostEighteenDollars(t *testing.T) {
	t.Parallel()
	_, all := measuredCosts(t)
	if len(all) != 3 || all[0].Destinations != 1 {
		t.Fatalf("measured are %+v", all)
	}
	if sum := total(all[0].bill()); sum > 18 || sum < 5 {
		t.Errorf("a million publishes with one destination cost %.2f", sum)
	}
}

func TestWhatThePageSaysIsUsedIsUsed(t *testing.T) {
	t.Parallel()
	_, all := measuredCosts(t)
	for _, said := range all[:2] {
		got, err := used(t.Context(), said.Destinations, 12)
		if err != nil {
			t.Fatal(err)
		}
		near := func(a, b float64) bool { return math.Abs(a-b) <= 0.1*b }
		// A log line's length varies with the digits of its times.
		if !near(got.APILog, said.APILog) || !near(got.StreamLog, said.StreamLog) || !near(got.DeliverLog, said.DeliverLog) {
			t.Errorf("%d destinations: logs are %v, %v and %v bytes, the page says %v, %v and %v: run `go run ./bench cost`",
				said.Destinations, got.APILog, got.StreamLog, got.DeliverLog, said.APILog, said.StreamLog, said.DeliverLog)
		}
		got.APILog, got.StreamLog, got.DeliverLog = said.APILog, said.StreamLog, said.DeliverLog
		if got != said {
			t.Errorf("used are\n%+v and the page says\n%+v: run `go run ./bench cost`", got, said)
		}
	}
}
