package sim

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	"colophon/internal/content"
	"colophon/internal/delivery"
	"colophon/internal/destination"
	"colophon/internal/failure"
	"colophon/internal/killpoint"
	"colophon/internal/ratelimit"
	"colophon/internal/store"
	"colophon/internal/webhook"
)

// asked is what a person is about while the api works for them.
type asked struct {
	over int64 // a forced redelivery: the newest release that they saw
}

// person does things through the api, and looks before most of them.
type person struct {
	w       *World
	process *process
}

func (w *World) newPerson(name string) *person {
	return &person{w: w, process: w.newProcess(name, rolePeople)}
}

// pauses between two things that a person does.
var pauses = [...]moment{
	0, 10 * time.Millisecond, 100 * time.Millisecond, time.Second, 3 * time.Second, 10 * time.Second, 20 * time.Second,
	time.Minute, 3 * time.Minute, 20 * time.Minute,
}

func (p *person) rest() {
	p.w.pause(pauses[p.w.choices.below(choosePause, len(pauses))])
}

// api runs a request on a process of the api function, which can be killed. It
// says whether there was an answer.
func (p *person) api(over int64, do func(ctx context.Context, api *process)) bool {
	w := p.w
	parent := w.current
	api := w.newProcess("api for "+p.process.name, rolePeople)
	api.mortal = true
	answered := false
	api.release = func() { w.calendar.add(event{at: w.now, task: parent}) }
	request := w.begin(api, w.latency(), func() {
		w.step()
		do(w.invocation(api, 29*time.Second), api)
		w.mishap()
		answered = !api.abandoned
		w.retire(api)
	}, nil)
	request.asked = &asked{over: over}
	w.wait()
	return answered
}

// clock is the content service's, on one process.
type clock struct {
	w *World
	p *process
}

func (c clock) Now() time.Time { return c.p.clock() }

func (c clock) Sleep(ctx context.Context, d time.Duration) error { return c.w.sleep(ctx, d) }

// withoutBlobs leaves documents' content out: nothing of it is announced.
type withoutBlobs struct{ *store.Contents }

func (withoutBlobs) PutBlob(context.Context, string, content.Hash, []byte) (bool, error) {
	return false, nil
}

func (w *World) contents(p *process) *content.Service {
	kept, err := store.NewContents(store.ContentsConfig{Engine: w.engine(), ContentTable: contentTable, DeliveryTable: deliveryTable})
	if err != nil {
		panic(err)
	}
	config := content.Config{
		Store: withoutBlobs{kept}, Announce: w.announce, PublicAddress: "https://colophon.example", Clock: clock{w, p},
		Random:    func() string { return w.text(26) },
		Publishes: ratelimit.PerMinute(1000, 60_000), // people of these worlds know no measure
		Jitter:    func(most time.Duration) time.Duration { return time.Duration(w.jitter() * float64(most)) },
	}
	if w.mutant.Contents != nil {
		w.mutant.Contents(w, &config)
	}
	s, err := content.New(config)
	if err != nil {
		panic(err)
	}
	return s
}

// text is random, of letters and digits that every id may have.
func (w *World) text(length int) string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	b := make([]byte, length)
	_, _ = w.Read(b)
	for i := range b {
		b[i] = letters[int(b[i])%len(letters)]
	}
	return string(b)
}

// announce makes what the api makes.
func (w *World) announce(a content.Announcement) (string, []byte, error) {
	id, err := webhook.NewID(w)
	if err != nil {
		return "", nil, err
	}
	body, err := webhook.Release{
		Project: webhook.Project{ID: a.Project, Name: a.ProjectName}, Number: a.Release,
		Documents: int(a.Documents), Message: a.Message, URL: a.URL,
	}.Body(a.At)
	return id, body, err
}

func (w *World) destinations(p *process) *destination.Service {
	kept, err := store.NewDestinations(store.DestinationsConfig{Engine: w.engine(), ContentTable: contentTable, DeliveryTable: deliveryTable})
	if err != nil {
		panic(err)
	}
	s, err := destination.New(destination.Config{
		Store: kept, History: kept, Sealer: sealer{}, ParseTarget: func(_ context.Context, raw string) (*url.URL, error) { return url.Parse(raw) }, Clock: p.clock, Random: w, Sleep: w.sleep,
	})
	if err != nil {
		panic(err)
	}
	return s
}

// sealer seals nothing: no receiver here checks a signature.
type sealer struct{}

func (sealer) Seal(_ context.Context, _ delivery.Binding, plain []byte) (delivery.Sealed, error) {
	return delivery.Sealed{Bytes: plain, Context: delivery.SealedForPurpose}, nil
}

// publish is a publisher's work: so many releases, each asked for until the
// answer is clear. Some have a key and no force: a draft is saved for them first.
func (p *person) publish(releases int) {
	w := p.w
	for i := range releases {
		p.rest()
		request := content.PublishRequest{Message: "news", Force: true, Who: p.process.name}
		if w.choices.below(chooseAction, 4) > 0 {
			request.IdempotencyKey = p.process.name + "-" + strconv.Itoa(i)
			request.Force = w.choices.below(chooseAction, 2) == 0
		}
		if !request.Force {
			p.save(p.process.name + " has news " + strconv.Itoa(i))
		}
		for range 4 {
			used := w.check.used(request.IdempotencyKey)
			var published content.Published
			var err error
			answered := p.api(0, func(ctx context.Context, api *process) {
				published, err = w.contents(api).Publish(ctx, w.project, request)
				w.passes(killpoint.AfterCommit)
			})
			if answered && err == nil {
				w.check.published(w.project, request.IdempotencyKey, used, published)
				break
			}
			if answered {
				w.check.notPublished(request.IdempotencyKey, used, err)
				expected := []failure.Code{content.CodeBusy, content.CodeUnavailable, content.CodeUnknownOutcome}
				if !request.Force { // another publish may have had the draft, or it was not saved
					expected = append(expected, content.CodeNothingToPublish)
				}
				w.expect("publish", err, expected...)
			}
			if request.IdempotencyKey == "" {
				break // they look, rather than publish twice
			}
			p.rest()
		}
	}
}

// save saves the project's one document, once: what was not saved, or is saved
// late, makes a publish without force one that may have nothing to publish.
func (p *person) save(text string) {
	w := p.w
	var err error
	if p.api(0, func(ctx context.Context, api *process) {
		_, err = w.contents(api).PutDocument(ctx, w.project, content.Save{Path: "news.md", Content: []byte(text), Who: p.process.name})
	}) {
		w.tell("%s has saved a draft: %v", p.process.name, err == nil)
		w.expect("save a draft", err, content.CodeBusy, content.CodeUnavailable, content.CodeUnknownOutcome)
	}
}

// expect lets only those refusals pass that people must live with.
func (w *World) expect(doing string, err error, codes ...failure.Code) {
	var refusal *failure.Error
	if err == nil || errors.As(err, &refusal) && slices.Contains(codes, refusal.Code) {
		return
	}
	w.violate(ruleUsable, "%s: %v", doing, err)
}

// operate is an operator's work: so many looks, each with a deed or none.
func (p *person) operate(deeds int) {
	w := p.w
	for range deeds {
		p.rest()
		deed := w.choices.below(chooseAction, 10)
		known := w.known[w.choices.below(chooseAction, len(w.known))]
		newest := w.check.at(known).newest
		release := newest - int64(w.choices.below(chooseAction, 3))
		key := delivery.Key{Destination: known, Release: release}
		switch deed {
		case 1, 2:
			p.redeliver(key)
		case 3, 4:
			p.tryNow(key)
		case 5:
			p.on("pause", known, func(ctx context.Context, s *destination.Service) error {
				_, err := s.Pause(ctx, known.Project, known.ID)
				return err
			})
		case 6, 7:
			p.resume(known)
		case 8:
			p.redrive()
		case 9:
			switch w.choices.below(chooseAction, 6) {
			case 4:
				p.on("remove", known, func(ctx context.Context, s *destination.Service) error {
					return s.Remove(ctx, known.Project, known.ID)
				})
			case 5:
				p.add()
			}
		}
	}
}

// on asks the api for one thing about a destination.
func (p *person) on(doing string, d delivery.Destination, do func(ctx context.Context, s *destination.Service) error) bool {
	return p.over(0, doing, d, do)
}

func (p *person) over(newest int64, doing string, d delivery.Destination, do func(ctx context.Context, s *destination.Service) error) bool {
	w := p.w
	w.tell("%s asks: %s %s", p.process.name, doing, w.check.at(d).name)
	var err error
	answered := p.api(newest, func(ctx context.Context, api *process) { err = do(ctx, w.destinations(api)) })
	if !answered {
		return false
	}
	if w.check.damaged(d) { // just now, perhaps: then the answer is an internal error, and clear the next time
		return err == nil
	}
	w.expect(doing, err, destination.CodeNotFound, destination.CodeRemoved, destination.CodePaused, destination.CodeNotEnded,
		destination.CodeEnded, destination.CodeBeingSent, destination.CodeNotNewest, destination.CodeNewer,
		destination.CodeTooOften, destination.CodeBusy, destination.CodeUnknown, destination.CodeUnavailable, destination.CodeUnreadable)
	return err == nil
}

// redeliver looks at a delivery, thinks, and asks for it again: by force over
// what the page showed where that is newer.
func (p *person) redeliver(key delivery.Key) {
	var page destination.Delivery
	if !p.on("look at release "+strconv.FormatInt(key.Release, 10)+" for", key.Destination, func(ctx context.Context, s *destination.Service) (err error) {
		page, err = s.Delivery(ctx, key)
		return err
	}) {
		return
	}
	if p.w.choices.below(chooseAction, 3) == 2 {
		p.rest()
	}
	ask := destination.Redelivery{}
	if page.Newest > key.Release {
		ask = destination.Redelivery{Force: true, Over: page.Newest}
	}
	doing := fmt.Sprintf("redeliver release %d", key.Release)
	if ask.Force {
		doing += fmt.Sprintf(" by force over %d", ask.Over)
	}
	p.over(ask.Over, doing+" to", key.Destination, func(ctx context.Context, s *destination.Service) error {
		_, err := s.Redeliver(ctx, key, ask)
		return err
	})
}

func (p *person) tryNow(key delivery.Key) {
	p.on(fmt.Sprintf("try release %d now for", key.Release), key.Destination, func(ctx context.Context, s *destination.Service) error {
		_, err := s.TryNow(ctx, key)
		return err
	})
}

// resume takes the offer to send the newest release, where there is one.
func (p *person) resume(d delivery.Destination) {
	var resumed destination.Resumed
	if p.on("resume", d, func(ctx context.Context, s *destination.Service) (err error) {
		resumed, err = s.Resume(ctx, d.Project, d.ID)
		return err
	}) && resumed.SendNewest {
		p.redeliver(delivery.Key{Destination: d, Release: resumed.Newest})
	}
}

// redrive puts dead letters back.
func (p *person) redrive() {
	w := p.w
	letters := w.dead.messages
	w.dead.messages = nil
	for _, m := range letters {
		if m.body != poison {
			w.tell("%s returns the dead letter for %s", p.process.name, w.named(m.body))
			w.queue.put(m.body, w.latency())
		}
	}
}

func (p *person) add() {
	var added destination.Added
	d := delivery.Destination{Project: p.w.project}
	if p.on("add another beside", p.w.known[0], func(ctx context.Context, s *destination.Service) (err error) {
		added, err = s.Add(ctx, d.Project, destination.Addition{Name: "more", URL: "https://receiver.example/hook"})
		return err
	}) {
		d.ID = added.Destination.ID
		p.w.known = append(p.w.known, d)
	}
}
