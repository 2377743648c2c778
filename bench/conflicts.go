package main

import (
	"bytes"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
)

// conflictsConfig says what stands between the api function and the table.
type conflictsConfig struct {
	Engine string
	Share  float64 // of transactions that are refused for a conflict
}

// conflictsRole stands before the table and refuses some transactions as DynamoDB
// does where another is at work on one of the items: the local engine knows no
// such conflicts.
func conflictsRole(config []byte, mux *http.ServeMux) error {
	var c conflictsConfig
	if err := json.Unmarshal(config, &c); err != nil {
		return err
	}
	engine, err := url.Parse("http://" + c.Engine)
	if err != nil {
		return err
	}
	through := httputil.NewSingleHostReverseProxy(engine)
	through.Transport = &http.Transport{MaxIdleConnsPerHost: 512}
	var injected atomic.Int64
	mux.HandleFunc("/injected", func(w http.ResponseWriter, r *http.Request) { writeJSON(w, injected.Load()) })
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".TransactWriteItems") || rand.Float64() >= c.Share {
			through.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(r.Body)
		var asked struct{ TransactItems []json.RawMessage }
		if err != nil || json.Unmarshal(body, &asked) != nil || !bytes.Contains(body, []byte(`"META"`)) {
			r.Body = io.NopCloser(bytes.NewReader(body))
			through.ServeHTTP(w, r)
			return
		}
		injected.Add(1)
		type reason struct {
			Code    string
			Message string `json:",omitempty"`
		}
		reasons := make([]reason, len(asked.TransactItems))
		reasons[0] = reason{"TransactionConflict", "Transaction is ongoing for the item"}
		for i := range reasons[1:] {
			reasons[i+1].Code = "None"
		}
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).Encode(map[string]any{
			"__type":              "com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
			"Message":             "Transaction cancelled, please refer cancellation reasons for specific reasons",
			"CancellationReasons": reasons,
		})
	})
	return nil
}
