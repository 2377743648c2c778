package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// examine runs doctor against an API whose examination goes through these states.
func examine(t *testing.T, findings []map[string]string, states ...string) (code int, said string) {
	t.Helper()
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := int(asked.Add(1))
		if want := map[bool]string{true: "POST /projects/prj_a/destinations/dst_a/doctor", false: "GET /projects/prj_a/destinations/dst_a/doctor/x"}[n == 1]; r.Method+" "+r.URL.Path != want {
			t.Errorf("asked %s %s, want %s", r.Method, r.URL.Path, want)
		}
		status, found := http.StatusOK, []map[string]string{}
		if n == 1 {
			status = http.StatusAccepted
		}
		state := states[min(n, len(states))-1]
		if state == "delivered" || state == "failed" {
			found = findings
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(map[string]any{
			"id": "x", "project": "prj_a", "destination": "dst_a", "state": state, "findings": found,
			"createdAt": "2026-03-09T07:00:00.000Z", "link": "/x",
		})
	}))
	t.Cleanup(server.Close)
	var out bytes.Buffer
	root := newRoot()
	root.SetArgs([]string{"doctor", "prj_a", "dst_a", "--api", server.URL, "--token", "clp_a"})
	root.SetOut(&out)
	root.SetErr(&out)
	if err := root.ExecuteContext(t.Context()); err != nil {
		fmt.Fprintln(&out, "colophon: "+explain(err))
		code = exitCode(err)
	}
	return code, out.String()
}

func finding(check, verdict, words string) map[string]string {
	return map[string]string{"check": check, "verdict": verdict, "words": words}
}

func TestDoctorShowsWhatWasFound(t *testing.T) {
	t.Parallel()
	found := []map[string]string{finding("name", "good", "It is known."), finding("clock", "warning", "It is late.")}
	code, said := examine(t, found, "waiting", "sending", "delivered")
	if code != exitDone || !strings.Contains(said, "It is known.") || !strings.Contains(said, "It is late.") || !strings.Contains(said, "warning") {
		t.Errorf("exit code %d:\n%s", code, said)
	}
	found = append(found, finding("answer", "bad", "It was refused."))
	if code, said = examine(t, found, "failed"); code != exitUndelivered || !strings.Contains(said, "It was refused.") {
		t.Errorf("refused: exit code %d:\n%s", code, said)
	}
	if code, said = examine(t, found, "delivered"); code != exitUndelivered { // a clock that is far off, say
		t.Errorf("a bad finding: exit code %d:\n%s", code, said)
	}
	if code, said = examine(t, found, "waiting", "not-sent"); code != exitUndelivered || !strings.Contains(said, "two minutes") {
		t.Errorf("not sent: exit code %d:\n%s", code, said)
	}
	if code, said = examine(t, found, "unknown"); code != exitUndelivered || !strings.Contains(said, "ask for another") {
		t.Errorf("unknown: exit code %d:\n%s", code, said)
	}
}
