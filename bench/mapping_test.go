package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func records(sequences ...string) []streamRecord {
	var batch []streamRecord
	for _, s := range sequences {
		batch = append(batch, streamRecord{raw: json.RawMessage(fmt.Sprintf(`{"dynamodb":{"SequenceNumber":%q}}`, s)), sequence: s, rings: true})
	}
	return batch
}

func TestAStreamsBatchIsRepeatedFromTheLowestFailure(t *testing.T) {
	t.Parallel()
	batch := records("1", "2", "3")
	for answer, want := range map[string]int{
		``: 3, `{}`: 3, `{"batchItemFailures":[]}`: 3, `null`: 3,
		`{"batchItemFailures":[{"itemIdentifier":"3"},{"itemIdentifier":"2"}]}`: 1,
		`{"batchItemFailures":[{"itemIdentifier":"1"}]}`:                        0,
		`{"batchItemFailures":[{"itemIdentifier":"9"}]}`:                        0, // names none of them
		`{"batchItemFailures":[{"itemIdentifier":""}]}`:                         0,
		`no JSON`: 0,
	} {
		if got := lowestFailure([]byte(answer), batch); got != want {
			t.Errorf("%s: from %d, want %d", answer, got, want)
		}
	}
}

func TestTheFilterPassesWhatRingsWithANumber(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]bool{
		`{"dynamodb":{"SequenceNumber":"1","NewImage":{"ring":{"N":"5"}}}}`: true,
		`{"dynamodb":{"SequenceNumber":"1","NewImage":{"ring":{"S":"5"}}}}`: false,
		`{"dynamodb":{"SequenceNumber":"1","NewImage":{}}}`:                 false,
		`{"dynamodb":{"SequenceNumber":"1"}}`:                               false,
		`"x"`:                                                               false,
	} {
		if got := readStreamRecord([]byte(raw)); got.rings != want {
			t.Errorf("%s: %v", raw, got.rings)
		}
	}
}

func TestAQueuesBatchIsDeletedButForWhatIsReported(t *testing.T) {
	t.Parallel()
	batch := []message{{MessageId: "a"}, {MessageId: "b"}}
	for answer, want := range map[string]string{
		``: "", `{}`: "", `{"batchItemFailures":[]}`: "",
		`{"batchItemFailures":[{"itemIdentifier":"b"}]}`: "b",
		`{"batchItemFailures":[{"itemIdentifier":"z"}]}`: "all", // Lambda takes it for a failure of the whole
		`{"batchItemFailures":[{"itemIdentifier":""}]}`:  "all",
		`no JSON`: "all",
	} {
		kept, ok := reported([]byte(answer), batch)
		got := strings.Join(slices.Collect(func(yield func(string) bool) {
			for _, m := range batch {
				if kept[m.MessageId] && !yield(m.MessageId) {
					return
				}
			}
		}), ",")
		if !ok {
			got = "all"
		}
		if got != want {
			t.Errorf("%q keeps %q, want %q", answer, got, want)
		}
	}
}

// A function that fails while a record that it cannot bear is among its batch.
func TestABatchThatFailsAsAWholeIsHalvedAndTheRestIsGivenUp(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var seen, letters []string
	function := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), `"poison"`) {
			http.Error(w, "panic", http.StatusInternalServerError)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		for part := range strings.SplitSeq(string(body), `"SequenceNumber":`) {
			if name, _, ok := strings.Cut(strings.TrimPrefix(part, `"`), `"`); ok && !strings.Contains(part, "Records") {
				seen = append(seen, name)
			}
		}
	}))
	defer function.Close()
	queues := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		letters = append(letters, string(body))
		_, _ = io.WriteString(w, "{}")
	}))
	defer queues.Close()
	m := &streamMapping{
		counters: &counters{}, queues: queueService(strings.TrimPrefix(queues.URL, "http://")), onFailure: "q", wait: func(int) {},
		function: invoker{function.Client(), strings.TrimPrefix(function.URL, "http://"), time.Minute},
	}
	m.hand(t.Context(), records("1", "2", "poison", "4"), 0)
	if !slices.Equal(seen, []string{"1", "2", "4"}) {
		t.Errorf("handed over were %q", seen)
	}
	if len(letters) != 1 || !strings.Contains(letters[0], "poison") || m.givenUp.Load() != 1 {
		t.Errorf("given up were %q", letters)
	}
}
