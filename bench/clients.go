package main

import (
	"context"
	"encoding/gob"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// project is one that load is put on.
type project struct {
	ID           string
	Destinations []destination
}

// destination is one of a project: its place is the number in its address.
type destination struct {
	ID    string
	Place int
}

// plan says what the clients do.
type plan struct {
	Rate      float64       // whole publishes begun a second, whatever becomes of them; 0: Clients, each as fast as it goes
	Clients   int           // with Rate: how many may be under way at most before the run counts as failed
	Duration  time.Duration // 0: Publishes
	Publishes int           // 0: Duration
	Saves     int           // documents saved before each publish; 0: the publish is forced
	Await     bool          // a client goes on when all destinations have the release
	Keyed     bool          // with an idempotency key
	Projects  []project
}

// clientsConfig says where the clients ask.
type clientsConfig struct{ API, Receiver, Token string }

// published is one whole publish as its client saw it. Times are nanoseconds
// since 1970.
type published struct {
	Project  int // its place in the plan
	Release  int64
	Intended int64 // when it was to begin
	Began    int64
	Asked    int64 // when the publish itself was asked for
	Ended    int64
	Again    int // requests that were asked again
	Failed   bool
}

// outcome is what a run of clients came to. Histograms are in microseconds.
type outcome struct {
	Published     []published
	Requests      int64
	Again         int64
	Faults        map[string]int // of what was asked again or given up, by status or kind
	Save, Publish *hdrhistogram.Snapshot
	MostUnderWay  int64
}

// latencies are kept from a microsecond to two minutes, to three digits.
func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, 120_000_000, 3) }

// clientsRole is the machines and people that publish.
func clientsRole(config []byte, mux *http.ServeMux) error {
	var c clientsConfig
	if err := json.Unmarshal(config, &c); err != nil {
		return err
	}
	mux.HandleFunc("/run", func(w http.ResponseWriter, r *http.Request) {
		var p plan
		if err := json.NewDecoder(r.Body).Decode(&p); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		run := &clients{plan: p, gateway: newGateway(c.API, c.Token), save: newHistogram(), publish: newHistogram(), faults: map[string]int{}, arrivals: newArrivals()}
		if p.Await {
			stop, err := run.listen(c.Receiver)
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			defer stop()
		}
		run.run()
		_ = gob.NewEncoder(w).Encode(run.outcome()) // the parent that does not listen is gone
	})
	return nil
}

type clients struct {
	plan
	gateway *gateway
	number  atomic.Int64 // of the next whole publish
	under   atomic.Int64
	most    atomic.Int64
	asked   atomic.Int64

	mu            sync.Mutex
	published     []published
	save, publish *hdrhistogram.Histogram
	faults        map[string]int

	arrivals arrivals
}

func (c *clients) outcome() outcome {
	again := int64(0)
	for _, p := range c.published {
		again += int64(p.Again)
	}
	return outcome{
		Published: c.published, Requests: c.asked.Load(), Again: again, Faults: c.faults,
		Save: c.save.Export(), Publish: c.publish.Export(), MostUnderWay: c.most.Load(),
	}
}

func (c *clients) run() {
	if c.Rate > 0 {
		c.openLoop()
		return
	}
	var all sync.WaitGroup
	end := time.Now().Add(c.Duration)
	for range c.Clients {
		all.Go(func() {
			for {
				n := c.number.Add(1) - 1
				if c.Publishes > 0 && n >= int64(c.Publishes) || c.Duration > 0 && !time.Now().Before(end) {
					return
				}
				c.whole(n, time.Now())
			}
		})
	}
	all.Wait()
}

// openLoop begins a publish at each instant of the rate, however the ones before
// it fare: latency counts from that instant.
func (c *clients) openLoop() {
	var all sync.WaitGroup
	began := time.Now()
	for n := int64(0); ; n++ {
		at := began.Add(time.Duration(float64(n) / c.Rate * float64(time.Second)))
		if c.Publishes > 0 && n >= int64(c.Publishes) || c.Duration > 0 && at.Sub(began) >= c.Duration {
			break
		}
		time.Sleep(time.Until(at))
		all.Go(func() { c.whole(n, at) })
	}
	all.Wait()
}

// whole is one whole publish: the saves, the publish and, where it is awaited,
// the arrival of the release everywhere.
func (c *clients) whole(n int64, intended time.Time) {
	for under := c.under.Add(1); ; {
		most := c.most.Load()
		if under <= most || c.most.CompareAndSwap(most, under) {
			break
		}
	}
	defer c.under.Add(-1)
	place := int(n % int64(len(c.Projects)))
	p := c.Projects[place]
	record := published{Project: place, Intended: intended.UnixNano(), Began: time.Now().UnixNano()}
	for i := range c.Saves {
		text := fmt.Sprintf("# Chapter %d\n\nThis is what publish %d says, and it says it in a sentence or two, as documents do.\n", i, n)
		began := time.Now()
		if i == 0 {
			began = intended
		}
		_, again, err := c.persist(saveDocument(p.ID, fmt.Sprintf("guide/chapter-%02d.md", i), text))
		record.Again += again
		if err != nil {
			record.Failed = true
		}
		c.note(c.save, time.Since(began))
	}
	asked := time.Now()
	if c.Saves == 0 {
		asked = intended
	}
	key := ""
	if c.Keyed {
		key = fmt.Sprintf("bench-%d-%d", n, intended.UnixNano())
	}
	record.Asked = asked.UnixNano()
	body, again, err := c.persist(publish(p.ID, "Opening hours in December", key, c.Saves == 0))
	record.Again += again
	c.note(c.publish, time.Since(asked))
	record.Ended = time.Now().UnixNano()
	var said struct{ Number int64 }
	if err != nil || json.Unmarshal([]byte(body), &said) != nil || said.Number == 0 {
		record.Failed = true
	}
	record.Release = said.Number
	c.mu.Lock()
	c.published = append(c.published, record)
	c.mu.Unlock()
	if c.Await && !record.Failed {
		c.arrivals.await(p.Destinations, said.Number)
	}
}

func (c *clients) note(h *hdrhistogram.Histogram, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = h.RecordValue(min(max(1, took.Microseconds()), 119_000_000)) // within the histogram's bounds
}

// givesUp is how long a client asks for one thing.
const givesUp = time.Minute

// persist asks, and asks again where a careful client does: with the same key.
func (c *clients) persist(r request) (body string, again int, err error) {
	until := time.Now().Add(givesUp)
	for {
		c.asked.Add(1)
		answer, err := c.gateway.ask(context.Background(), r)
		if err == nil {
			return answer.Body, again, nil
		}
		kind := "out of reach"
		if answered, ok := err.(*statusError); ok {
			kind = fmt.Sprintf("%d %s", answered.status, problemCode(answered.body))
		}
		c.mu.Lock()
		c.faults[kind]++
		c.mu.Unlock()
		if !mayAsk(err) || time.Now().After(until) {
			return "", again, err
		}
		again++
		time.Sleep(100 * time.Millisecond)
	}
}

func problemCode(body string) string {
	var problem struct{ Code string }
	_ = json.Unmarshal([]byte(body), &problem) // no code then
	return problem.Code
}

// listen follows the receiver's receipts.
func (c *clients) listen(receiver string) (stop func(), err error) {
	ctx, cancel := context.WithCancel(context.Background())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+receiver+"/receipts", nil)
	if err != nil {
		cancel()
		return nil, err
	}
	answer, err := patient.Do(r)
	if err != nil {
		cancel()
		return nil, err
	}
	go told(answer.Body, func(got receipt) {
		if got.Status >= 200 && got.Status < 300 {
			c.arrivals.arrived(got.Place, got.Release)
		}
	})
	return func() { cancel(); answer.Body.Close() }, nil
}

// arrivals tell how far each destination has come: it has a release when it got
// that or a newer one.
type arrivals struct {
	mu      sync.Mutex
	through map[int]int64
	waiting map[int][]arrival
}

// arrival is waited for; came is told once.
type arrival struct {
	release int64
	came    chan<- struct{}
}

func newArrivals() arrivals {
	return arrivals{through: map[int]int64{}, waiting: map[int][]arrival{}}
}

func (a *arrivals) arrived(place int, release int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.through[place] = max(a.through[place], release)
	still := a.waiting[place][:0]
	for _, one := range a.waiting[place] {
		if one.release > a.through[place] {
			still = append(still, one)
			continue
		}
		one.came <- struct{}{}
	}
	a.waiting[place] = still
}

// awaits is how long a client waits for a release's arrival before it goes on.
const awaits = 2 * time.Minute

// await waits until all destinations have a release.
func (a *arrivals) await(destinations []destination, release int64) {
	came := make(chan struct{}, len(destinations))
	missing := 0
	a.mu.Lock()
	for _, d := range destinations {
		if a.through[d.Place] < release {
			a.waiting[d.Place] = append(a.waiting[d.Place], arrival{release, came})
			missing++
		}
	}
	a.mu.Unlock()
	over := time.NewTimer(awaits)
	defer over.Stop()
	for range missing {
		select {
		case <-came:
		case <-over.C:
			return
		}
	}
}
