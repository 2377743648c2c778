package sim

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"colophon/internal/delivery"
	"colophon/internal/killpoint"
)

// transitMost is how long bytes that left are under way. It stands for what
// internal/egress sees to: an attempt's bytes arrive before the attempt ends and
// within its lease, or never. No byte is written later than SilenceBeforeEnd
// before the lease's end, and closing the socket throws away what has not left.
const transitMost = delivery.SilenceBeforeEnd

// answerKind is how a receiver, or the way to it, treats a request.
type answerKind struct {
	class    delivery.Class
	status   int
	arrives  bool // the request reaches it
	retry    bool // with a Retry-After
	noAnswer bool // it takes longer than anybody waits
}

// answerKinds are in the order of how plain they are.
var answerKinds = []answerKind{
	{class: delivery.ClassDelivered, status: 200, arrives: true},
	{class: delivery.ClassDelivered, status: 204, arrives: true},
	{class: delivery.ClassUnavailable, status: 500, arrives: true},
	{class: delivery.ClassTimeout, arrives: true, noAnswer: true},
	{class: delivery.ClassUnavailable, status: 503, arrives: true, retry: true},
	{class: delivery.ClassUnavailable, status: 429, arrives: true, retry: true},
	{class: delivery.ClassReset, arrives: true},
	{class: delivery.ClassReset},
	{class: delivery.ClassTimeout, noAnswer: true},
	{class: delivery.ClassRefused, status: 404, arrives: true},
	{class: delivery.ClassRefused, status: 302, arrives: true},
	{class: delivery.ClassGone, status: 410, arrives: true},
	{class: delivery.ClassBadAnswer, arrives: true},
	{class: delivery.ClassNotHTTP, arrives: true},
	{class: delivery.ClassLongHeaders, arrives: true},
	{class: delivery.ClassConnect},
	{class: delivery.ClassTLS},
	{class: delivery.ClassDNS},
	{class: delivery.ClassBlocked},
	{class: delivery.ClassSealed},
}

// connects says whether a connection stands with this kind.
func (k answerKind) connects() bool {
	switch k.class {
	case delivery.ClassConnect, delivery.ClassTLS, delivery.ClassDNS, delivery.ClassBlocked, delivery.ClassSealed:
		return false
	}
	return true
}

// receiver is who a destination's address belongs to. Its mood lasts: one that
// is down stays down for some attempts.
type receiver struct {
	mood   answerKind
	left   int
	slow   bool
	sealed bool // its secrets can never be opened
}

func (r *receiver) treat(c *choices) answerKind {
	if r.left == 0 {
		r.mood = answerKinds[0]
		if c.below(chooseReceiver, 5) > 1 {
			r.mood = answerKinds[c.below(chooseReceiver, len(answerKinds))]
		}
		r.left = 1 + c.below(chooseReceiver, 6)
		r.slow = c.below(chooseReceiver, 4) == 3
	}
	r.left--
	return r.mood
}

// sender sends over the simulated wire, under the rules of internal/egress: the
// wall clock is asked at every write.
type sender struct {
	w       *World
	process *process
}

// Open opens secrets: a call to the key service.
func (s *sender) Open(_ context.Context, d delivery.Destination, _ delivery.Settings) (delivery.Opened, error) {
	w := s.w
	w.step()
	w.travel()
	if w.happens(faultPanic) {
		panic(errInjected)
	}
	if w.happens(faultSeal) || w.receiver(d).sealed {
		w.tell("%s cannot open the secrets", s.process.name)
		w.back()
		return delivery.Opened{}, errors.New("key service does not answer")
	}
	w.back()
	return delivery.Opened{}, nil
}

// errInjected is a panic of the world's own making.
var errInjected = errors.New("a panic that was put in")

// Send makes one attempt.
func (s *sender) Send(_ context.Context, sending delivery.Sending) delivery.Outcome {
	w := s.w
	w.step()
	t := w.current
	w.passes(killpoint.BeforeSend)
	began := w.now
	o := s.send(t, sending)
	o.Elapsed = w.now - began
	if t.claim != nil {
		t.claim.told = o.Class
	}
	w.tell("%s hears of release %d: %s%s", s.process.name, sending.Delivery.Release, o.Class, status(o.Status))
	w.passes(killpoint.AfterSend)
	w.mishap()
	return o
}

// clock is what the wire asks at every write.
func (s *sender) clock() func() time.Time {
	if s.w.mutant.Unguarded {
		return func() time.Time { return time.Time{} }
	}
	return s.process.clock
}

func status(n int) string {
	if n == 0 {
		return ""
	}
	return " " + strconv.Itoa(n)
}

func (s *sender) send(t *task, sending delivery.Sending) delivery.Outcome {
	w := s.w
	w.mishap()
	began := w.now
	clock := s.clock()
	if !clock().Before(sending.NotAfter) {
		return delivery.Outcome{Class: delivery.ClassTimeout, Received: delivery.NotReceived, Unsent: true}
	}
	if w.happens(faultOurs) {
		return delivery.Outcome{Class: delivery.ClassOurs, Detail: "put in", Received: delivery.NotReceived}
	}
	if w.happens(faultPanic) {
		panic(errInjected)
	}
	r := w.receiver(sending.Delivery.Destination)
	kind := r.treat(w.choices)
	connect := w.latency()
	if r.slow {
		connect += moment(w.choices.below(chooseReceiver, 30)) * 100 * time.Millisecond
	}
	w.pause(connect)
	w.mishap()
	if !kind.connects() {
		return delivery.Outcome{Class: kind.class, Received: delivery.NotReceived}
	}
	part := false // of the request left
	for parts := 1 + w.choices.below(chooseOrder, 2); parts > 0; parts-- {
		if !clock().Before(sending.NotAfter) {
			if part {
				return delivery.Outcome{Class: delivery.ClassTimeout, Received: delivery.MayHave}
			}
			return delivery.Outcome{Class: delivery.ClassTimeout, Received: delivery.NotReceived, Unsent: true}
		}
		part = true
		w.passes(killpoint.MidSend)
		if parts > 1 {
			w.mishap()
			w.pause(w.latency())
		}
	}
	w.step()
	c := t.claim
	w.check.sent(s.process, c, sending)
	transit := w.latency()
	if r.slow || w.choices.below(chooseLatency, 8) == 7 {
		transit = moment(w.choices.below(chooseLatency, 20)) * transitMost / 20
	}
	left := max(delivery.AttemptTime-(w.now-began), 0)
	arrives := kind.arrives && transit <= left
	if w.mutant.LateBytes {
		arrives, transit = kind.arrives, 20*transit
	}
	if arrives {
		w.calendar.add(event{at: w.now + transit, do: func() { w.check.arrived(c, sending) }})
	}
	answered := transit + w.latency()
	if r.slow {
		answered += moment(w.choices.below(chooseReceiver, 14)) * time.Second
	}
	if kind.noAnswer || answered > left {
		w.pause(left)
		w.mishap()
		return delivery.Outcome{Class: delivery.ClassTimeout, Received: delivery.MayHave}
	}
	w.pause(answered)
	w.mishap()
	o := delivery.Outcome{Class: kind.class, Status: kind.status, Received: delivery.MayHave}
	if kind.status > 0 {
		o.Received = delivery.Answered
	}
	if kind.retry {
		o.RetryAfter = w.retryAfter()
	}
	return o
}

// retryAfter is what receivers send: seconds, dates, nonsense.
func (w *World) retryAfter() string {
	now := w.start.Add(w.now)
	switch n := w.choices.below(chooseRetry, 10); n {
	case 0:
		return ""
	case 1, 2, 3:
		return strconv.Itoa([...]int{1, 90, 600}[n-1])
	case 4:
		return "86400"
	case 5:
		return "-5"
	case 6:
		return "99999999999999999999"
	case 7:
		return now.Add(20 * time.Minute).UTC().Format(http.TimeFormat)
	case 8:
		return now.Add(-time.Hour).UTC().Format(time.RFC850)
	default:
		return "soon"
	}
}
