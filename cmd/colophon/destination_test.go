package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestASecretIsRevokedByItsPositionOverTheDestinationThatWasRead(t *testing.T) {
	t.Setenv("COLOPHON_TOKEN", "clp_good")
	for _, row := range []struct{ words, requests string }{
		{"", "POST If-Match="},
		{"--position 2", `GET If-Match= POST If-Match="7"`},
	} {
		var requests []string
		api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			requests = append(requests, r.Method+" If-Match="+r.Header.Get("If-Match"))
			if r.Method == http.MethodPost {
				w.WriteHeader(http.StatusNoContent)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("ETag", `"7"`)
			fmt.Fprint(w, `{"id":"dst_a","name":"Site","url":"https://a.example/","state":"active","etag":"\"7\"","createdAt":"2026-03-01T12:00:00.000Z","updatedAt":"2026-03-01T12:00:00.000Z","project":"prj_a","slow":false,"damaged":false,"headers":[]}`)
		}))
		var output bytes.Buffer
		root := newRoot()
		root.SetArgs(append(strings.Fields("destination revoke-old-secret prj_a dst_a "+row.words), "--api", api.URL))
		root.SetOut(&output)
		root.SetErr(&output)
		if err := root.ExecuteContext(t.Context()); err != nil {
			t.Errorf("%q: %v", row.words, err)
		}
		api.Close()
		if got := strings.Join(requests, " "); got != row.requests {
			t.Errorf("%q: requested %s, want %s", row.words, got, row.requests)
		}
	}
}
