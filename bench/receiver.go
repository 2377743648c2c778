package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/gob"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// receipt is one request that a receiver got.
type receipt struct {
	Place   int // of the destination, as its address says
	ID      string
	Project string
	Release int64
	Attempt int64
	Body    [8]byte // of its SHA-256
	At      int64   // nanoseconds since 1970, when all of it was there
	Status  int     // answered with; 0: it was left hanging
}

// The ways in which a receiver behaves, the first part of its address's path.
const (
	wayOK    = "ok"
	wayHang  = "hang"
	wayFlaky = "flaky" // every third request of a destination is answered with 503
)

// book is what all receivers of a run got, in the order in which they got it.
type book struct {
	mu        sync.Mutex
	receipts  []receipt
	requests  map[int]int
	healed    atomic.Bool
	listeners map[chan receipt]bool
}

// receiverRole receives announcements: /<way>/<place>.
func receiverRole(_ []byte, mux *http.ServeMux) error {
	b := &book{requests: map[int]int{}, listeners: map[chan receipt]bool{}}
	mux.HandleFunc("POST /{way}/{place}", b.receive)
	mux.HandleFunc("/heal", func(http.ResponseWriter, *http.Request) { b.healed.Store(true) })
	mux.HandleFunc("/receipts", b.tell)
	mux.HandleFunc("/book", func(w http.ResponseWriter, r *http.Request) {
		b.mu.Lock()
		defer b.mu.Unlock()
		_ = gob.NewEncoder(w).Encode(b.receipts) // the parent that does not listen is gone
	})
	return nil
}

func (b *book) receive(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // not received
	}
	at := time.Now()
	place, err := strconv.Atoi(r.PathValue("place"))
	if err != nil {
		http.NotFound(w, r)
		return
	}
	var said struct {
		Data struct {
			Project struct{ ID string }
			Release int64
		}
	}
	if json.Unmarshal(body, &said) != nil {
		http.Error(w, "not an announcement", http.StatusBadRequest)
		return
	}
	attempt, _ := strconv.ParseInt(r.Header.Get("colophon-attempt"), 10, 64)
	sum := sha256.Sum256(body)
	got := receipt{
		Place: place, ID: r.Header.Get("webhook-id"), Project: said.Data.Project.ID, Release: said.Data.Release,
		Attempt: attempt, Body: [8]byte(sum[:8]), At: at.UnixNano(), Status: http.StatusNoContent,
	}
	way := r.PathValue("way")
	b.mu.Lock()
	b.requests[place]++
	switch {
	case way == wayHang && !b.healed.Load():
		got.Status = 0
	case way == wayFlaky && b.requests[place]%3 == 0:
		got.Status = http.StatusServiceUnavailable
	}
	b.receipts = append(b.receipts, got)
	for listener := range b.listeners {
		listener <- got // a listener takes all it gets
	}
	b.mu.Unlock()
	if got.Status == 0 {
		<-r.Context().Done()
		return
	}
	w.WriteHeader(got.Status)
}

// tell writes a line for each receipt as it comes: place, project, release, status.
func (b *book) tell(w http.ResponseWriter, r *http.Request) {
	news := make(chan receipt, 1<<16)
	b.mu.Lock()
	b.listeners[news] = true
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		delete(b.listeners, news)
		b.mu.Unlock()
	}()
	out := http.NewResponseController(w)
	w.WriteHeader(http.StatusOK)
	_ = out.Flush()
	for {
		select {
		case <-r.Context().Done():
			return
		case got := <-news:
			for more := true; more; {
				fmt.Fprintf(w, "%d %s %d %d\n", got.Place, got.Project, got.Release, got.Status)
				select {
				case got = <-news:
				default:
					more = false
				}
			}
			if out.Flush() != nil {
				return
			}
		}
	}
}

// told reads what tell writes.
func told(r io.Reader, each func(receipt)) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		var got receipt
		if _, err := fmt.Sscan(strings.TrimSpace(lines.Text()), &got.Place, &got.Project, &got.Release, &got.Status); err == nil {
			each(got)
		}
	}
}
