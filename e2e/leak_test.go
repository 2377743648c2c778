//go:build stack

package e2e_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"colophon/client"
)

// internal/leaktest searches all that is written; this one what the deployed
// processes and their platform write into the functions' logs.
func TestTheFunctionsLogsHoldNothingOfSecretsAddressesAndReceivers(t *testing.T) {
	t.Parallel()
	const mark = "leakedonthestack"
	answered := make(chan string, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answered <- r.Header.Get("Authorization") + " " + r.URL.RawQuery
		w.Header().Set("Location", "https://"+mark+".example/")
		w.Header().Set("X-Answer", mark)
		w.WriteHeader(http.StatusFound)
		_, _ = io.WriteString(w, mark)
	}))
	t.Cleanup(receiver.Close)
	p := newProject(t)
	created, err := p.api.CreateDestination(t.Context(), &client.NewDestination{
		Name: "marked", URL: receiver.URL + "/?" + mark,
		Headers: client.NewOptNewDestinationHeaders(client.NewDestinationHeaders{"Authorization": mark}),
	}, client.CreateDestinationParams{Project: p.id})
	must(t, err)
	p.hooks = []string{created.Response.Destination.ID}
	_, err = p.api.CreateDestination(t.Context(), &client.NewDestination{Name: "refused", URL: "https://" + mark + "@10.0.0.1/"},
		client.CreateDestinationParams{Project: p.id})
	if client.AsProblem(err) == nil {
		t.Fatalf("a bad address: %v", err)
	}
	d := p.becomes(p.publish(), client.DeliveryStateFailed)
	if got, want := <-answered, mark+" "+mark; got != want {
		t.Fatalf("the receiver got %q", got)
	}
	tryCommand(t, "doctor", p.id, p.hooks[0])

	marks := []string{mark, strings.TrimPrefix(created.Response.Secret, "whsec_"), running.token, strings.TrimPrefix(receiver.URL, "http://")}
	var lines []string
	eventually(t, "the attempt's line is in the log", func() bool {
		lines = running.allLines(t)
		return slices.ContainsFunc(lines, func(line string) bool {
			return strings.Contains(line, d.Destination) && strings.Contains(line, "refused")
		})
	}, func() string { return fmt.Sprintf("searched: %d lines", len(lines)) })
	for _, line := range lines {
		for _, mark := range marks {
			if strings.Contains(line, mark) {
				t.Errorf("%q stands in a log: %s", mark, line)
			}
		}
	}
}

// allLines are those of all functions' logs, as "function: line".
func (s *stack) allLines(t *testing.T) (lines []string) {
	t.Helper()
	for _, function := range []string{"ApiLogs", "OutboxStreamLogs", "DeliverLogs", "SweepLogs"} {
		for _, line := range s.lines(t, function) {
			lines = append(lines, function+": "+line)
		}
	}
	return lines
}
