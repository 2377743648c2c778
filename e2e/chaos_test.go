//go:build stack

package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"colophon/client"
	"colophon/internal/killpoint"
)

// environment is one process of a function, as the local stack lists it.
type environment struct {
	Function string `json:"function"`
	PID      int    `json:"pid"`
	State    string `json:"state"`
}

func (s *stack) processes(t testing.TB) []environment {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.Environments, nil)
	must(t, err)
	answer, err := http.DefaultClient.Do(q)
	must(t, err)
	defer answer.Body.Close()
	var list []environment
	must(t, json.NewDecoder(answer.Body).Decode(&list))
	return list
}

// chaos is what happened while processes were killed.
type chaos struct {
	t        testing.TB
	projects []*project
	hooks    []*receiver
	releases []atomic.Int64 // the highest that was answered, by project

	pointKills, randomKills map[string]int
}

// TestNothingIsLostOrOutOfOrderWhileFunctionsAreKilled publishes while function
// processes are killed at each named point and at random moments.
// COLOPHON_KILLS says how often; `make chaos` does it 200 times.
func TestNothingIsLostOrOutOfOrderWhileFunctionsAreKilled(t *testing.T) {
	kills := 10
	if text := os.Getenv("COLOPHON_KILLS"); text != "" {
		var err error
		kills, err = strconv.Atoi(text)
		must(t, err)
	}
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	c := &chaos{t: t, pointKills: map[string]int{}, randomKills: map[string]int{}, releases: make([]atomic.Int64, 4)}
	for range c.releases {
		r := newReceiver(t)
		r.says = func(n int, _ request) int {
			if n%10 == 9 { // some tries fail besides
				return http.StatusServiceUnavailable
			}
			return http.StatusNoContent
		}
		c.hooks = append(c.hooks, r)
		c.projects = append(c.projects, newProject(t, r))
	}

	publishing, stop := context.WithCancel(t.Context())
	var publishers sync.WaitGroup
	for i := range c.projects {
		publishers.Add(1)
		go func() {
			defer publishers.Done()
			c.publishUntil(publishing, i)
		}()
	}
	points := killpoint.Names()
	for i := range kills {
		if i < len(points) || random.IntN(2) == 0 {
			c.killAt(points[i%len(points)])
		} else {
			c.killAny(random)
		}
	}
	stop()
	publishers.Wait()
	c.judge(seed)
}

// publishUntil publishes one release after another and asks again with the same
// key until it is told that it was done.
func (c *chaos) publishUntil(ctx context.Context, i int) {
	p := c.projects[i]
	for n := 1; ctx.Err() == nil; n++ {
		params := client.PublishReleaseParams{Project: p.id, IdempotencyKey: client.NewOptString(fmt.Sprintf("%s-%d", p.id, n))}
		ask := client.NewOptPublish(client.Publish{Force: client.NewOptBool(true), Message: client.NewOptString(strconv.Itoa(n))})
		var release *client.ReleaseHeaders
		for try := 0; ; try++ {
			var err error
			if release, err = p.api.PublishRelease(c.t.Context(), ask, params); err == nil {
				break
			}
			if try == 100 {
				c.t.Errorf("publish %d of project %d never succeeded: %v", n, i, err)
				return
			}
		}
		if release.Response.Number != int64(n) {
			c.t.Errorf("publish %d of project %d made release %d: a repeat made another", n, i, release.Response.Number)
			return
		}
		c.releases[i].Store(int64(n))
	}
}

// killAt orders a death at a point and waits until somebody died there.
func (c *chaos) killAt(point killpoint.Name) {
	order := filepath.Join(running.orders, "kill-"+string(point))
	must(c.t, os.WriteFile(order, nil, 0o600))
	defer os.Remove(order)
	eventually(c.t, "somebody dies at "+string(point), func() bool {
		_, err := os.Stat(order)
		return os.IsNotExist(err)
	}, func() string { return "nobody passed it" })
	c.pointKills[string(point)]++
}

// killAny kills a process of any function wherever it is.
func (c *chaos) killAny(random *rand.Rand) {
	for range 100 {
		var alive []environment
		for _, e := range running.processes(c.t) {
			if e.PID > 0 {
				alive = append(alive, e)
			}
		}
		if len(alive) == 0 {
			continue
		}
		victim := alive[random.IntN(len(alive))]
		if syscall.Kill(victim.PID, syscall.SIGKILL) == nil {
			c.randomKills[victim.Function]++
			return
		}
	}
	c.t.Error("there was no process to kill")
}

// judge waits until every delivery has ended and compares what receivers saw with
// what the table says.
func (c *chaos) judge(seed uint64) {
	published, sent, resent := int64(0), 0, 0
	for i, p := range c.projects {
		newest := c.releases[i].Load()
		published += newest
		p.becomes(newest, client.DeliveryStateDelivered)
		bodies := map[string]string{}
		accepted := map[int64]bool{}
		highest := int64(0)
		for _, q := range c.hooks[i].requests() {
			sent++
			if body, again := bodies[q.id()]; again {
				resent++
				if body != q.Body {
					c.t.Errorf("project %d: id %s came with two bodies", i, q.id())
				}
			}
			bodies[q.id()] = q.Body
			accepted[q.release()] = true
			if q.release() < highest {
				c.t.Errorf("project %d: release %d arrived after %d", i, q.release(), highest)
			}
			highest = max(highest, q.release())
		}
		ids := map[string]bool{}
		for release := int64(1); release <= newest; release++ {
			var d client.Delivery
			eventually(c.t, fmt.Sprintf("release %d of project %d ends", release, i), func() bool {
				d = p.delivery(release)
				return d.State != client.DeliveryStateQueued && d.State != client.DeliveryStateRetrying
			}, func() string { return string(d.State) })
			switch {
			case d.State == client.DeliveryStateDelivered && !accepted[release]:
				c.t.Errorf("project %d: release %d is delivered and never arrived", i, release)
			case d.State == client.DeliveryStateSkipped && (d.Reason.Value != "superseded" || d.Successor.Value <= release):
				c.t.Errorf("project %d: release %d is skipped: %s by %d", i, release, d.Reason.Value, d.Successor.Value)
			case d.State == client.DeliveryStateFailed:
				c.t.Errorf("project %d: release %d failed: %v", i, release, d.Timeline)
			}
			if ids[d.WebhookId] {
				c.t.Errorf("project %d: an id is shared", i)
			}
			ids[d.WebhookId] = true
		}
	}
	c.t.Logf("seed %d: %d releases, %d requests, %d of them repeats of an id; kills at points %v, at random moments %v",
		seed, published, sent, resent, c.pointKills, c.randomKills)
}
