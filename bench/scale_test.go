package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestTheScalePageIsMadeOfItsFigures(t *testing.T) {
	t.Parallel()
	root, _ := measuredCosts(t)
	want, err := scaleText(root)
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, scalePage))
	if err != nil || string(page) != want {
		t.Errorf("docs/scale.md is not what its figures make (%v): run `go run ./bench scale`", err)
	}
}

func TestWhatTheStackCarriesWaitsOnlyWhileItGrows(t *testing.T) {
	t.Parallel()
	_, all := measuredCosts(t)
	u := all[0]
	if s := simulate(asDeployed(), u, 40, 900); s.Refused > 0 || s.Settled < 0 || s.Longest > 1 {
		t.Errorf("40 a second: %+v", s)
	}
	if s := simulate(asDeployed(), u, 1_000, 900); s.Refused < 0.5 {
		t.Errorf("1,000 a second through a stage that takes 200: %+v", s)
	}
	if s := simulate(opened(), u, 10_000, 900); s.Settled <= 0 || s.Backlog < 1 {
		t.Errorf("10,000 a second at once: %+v", s)
	}
	few := opened()
	few.Deliver = 2
	if s := simulate(few, u, 1_000, 900); s.Settled >= 0 || s.Where != "queue" {
		t.Errorf("with two delivering: %+v", s)
	}
	narrow := opened()
	narrow.Shards = 1
	if s := simulate(narrow, u, 10_000, 900); s.Settled >= 0 || s.Where != "stream" {
		t.Errorf("with one shard: %+v", s)
	}
}
