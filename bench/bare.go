package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"colophon/internal/content"
	"colophon/internal/delivery"
	"colophon/internal/function/api"
	"colophon/internal/runtime"
	"colophon/internal/store"
	"colophon/internal/webhook"
)

// bareConfig is the bare client's. Its tables are its own, on the same engine,
// with the same stream and index.
type bareConfig struct{ Token string }

// mix is what the bare client does again and again, and for how long.
type mix struct {
	Clients  int
	Saves    int // documents saved before each publish, as the clients of the run do
	Narrow   bool
	Keyed    bool
	Duration time.Duration
	Projects []project
}

// whoID is as long as a token's id: the items are as large as the api's.
const whoID = "tok_abcdefghijklmnop"

// rate is what it came to.
type rate struct {
	Wholes  int64 // whole publishes with their deliveries
	Calls   int64 // table calls
	Seconds float64
	Faults  int64
}

func (r rate) perSecond() float64 {
	if r.Seconds == 0 {
		return 0
	}
	return float64(r.Wholes) / r.Seconds
}

// bareRole makes the very table calls of a publish and its delivery, with the same
// items and through the same SDK, one after another, and nothing else: no
// request, no event, no queue, no receiver. What it reaches is what the engine
// can carry.
func bareRole(config []byte, mux *http.ServeMux) error {
	var c bareConfig
	if err := json.Unmarshal(config, &c); err != nil {
		return err
	}
	main, err := api.New(os.Getenv, nil) // for the preparation alone
	if err != nil {
		return err
	}
	handler := lambda.NewHandler(main.Handle)
	mux.HandleFunc("POST /invoke", func(w http.ResponseWriter, r *http.Request) {
		var event json.RawMessage
		if err := json.NewDecoder(r.Body).Decode(&event); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		out, err := handler.Invoke(r.Context(), event)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_, _ = w.Write(out)
	})
	tables, err := runtime.AWS(os.Getenv, "dynamodb")
	if err != nil {
		return err
	}
	engine, err := store.NewDynamo(store.DynamoConfig{Client: store.NewClient(tables)})
	if err != nil {
		return err
	}
	b := &bare{token: sha256.Sum256([]byte(c.Token))}
	if b.tokens, err = store.NewTokens(store.TokensConfig{Engine: engine, Table: os.Getenv("CONTENT_TABLE")}); err != nil {
		return err
	}
	b.contents, err = store.NewContents(store.ContentsConfig{Engine: engine, ContentTable: os.Getenv("CONTENT_TABLE"), DeliveryTable: os.Getenv("DELIVERY_TABLE")})
	if err != nil {
		return err
	}
	b.deliveries, err = store.NewDeliveries(store.DeliveriesConfig{Engine: engine, Table: os.Getenv("DELIVERY_TABLE"), Clock: time.Now})
	if err != nil {
		return err
	}
	mux.HandleFunc("/run", func(w http.ResponseWriter, r *http.Request) {
		var m mix
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		writeJSON(w, b.run(m))
	})
	return nil
}

type bare struct {
	token      [sha256.Size]byte
	tokens     *store.Tokens
	contents   *store.Contents
	deliveries *store.Deliveries
	number     atomic.Int64
}

// run keeps each project to one client, so that nothing is refused.
func (b *bare) run(m mix) rate {
	var all sync.WaitGroup
	var wholes, calls, faults atomic.Int64
	began := time.Now()
	end := began.Add(m.Duration)
	for client := range m.Clients {
		all.Go(func() {
			for at := client; time.Now().Before(end); at += m.Clients {
				if at >= len(m.Projects) {
					at = client
				}
				n, err := b.whole(context.Background(), m, m.Projects[at])
				calls.Add(int64(n))
				if err != nil {
					if faults.Add(1) == 1 {
						fmt.Fprintln(os.Stderr, "bare client:", err)
					}
					continue
				}
				wholes.Add(1)
			}
		})
	}
	all.Wait()
	return rate{wholes.Load(), calls.Load(), time.Since(began).Seconds(), faults.Load()}
}

// whole makes the calls of one whole publish and its deliveries, and counts them.
// Narrow leaves out the token's read, which each request of the API begins with.
func (b *bare) whole(ctx context.Context, m mix, p project) (calls int, err error) {
	number := b.number.Add(1)
	authenticate := func() error {
		if m.Narrow {
			return nil
		}
		calls++
		_, err := b.tokens.Token(ctx, b.token)
		return err
	}
	for i := range m.Saves {
		if err := authenticate(); err != nil {
			return calls, err
		}
		n, err := b.save(ctx, p.ID, i, number)
		if calls += n; err != nil {
			return calls, err
		}
	}
	if err := authenticate(); err != nil {
		return calls, err
	}
	calls++
	read, err := b.contents.Project(ctx, p.ID)
	if err != nil {
		return calls, err
	}
	calls++
	drafts, err := b.contents.ListDrafts(ctx, p.ID, "", content.MostDocuments+1)
	if err != nil {
		return calls, err
	}
	commit := content.Commit{Read: read, Release: content.Release{
		Project: read.ID, Number: read.Seq + 1, Message: "Opening hours in December", Who: "bench", WhoID: whoID, At: time.Now(),
		Documents: int64(len(drafts)), Manifest: read.Manifest, Destinations: read.Destinations, Token: rand.Text(),
	}}
	if m.Saves > 0 { // the manifest has changed
		part := fmt.Appendf(nil, "manifest of %s after %d: %v", p.ID, number, drafts)
		calls++
		if _, err := b.contents.PutBlob(ctx, p.ID, content.HashOf(part), part); err != nil {
			return calls, err
		}
		commit.Release.Manifest = []content.Hash{content.HashOf(part)}
	}
	if m.Keyed {
		commit.Use = content.Use{Key: rand.Text(), Release: commit.Release.Number, ExpiresAt: time.Now().Add(content.KeyTime)}
	}
	for _, d := range read.Destinations {
		body, err := webhook.Release{
			Project: webhook.Project{ID: p.ID, Name: read.Name}, Number: commit.Release.Number, Documents: len(drafts),
			Message: commit.Release.Message, URL: fmt.Sprintf("%s/projects/%s/releases/%d", publicAddress, p.ID, commit.Release.Number),
		}.Body(commit.Release.At)
		if err != nil {
			return calls, err
		}
		id, err := webhook.NewID(rand.Reader)
		if err != nil {
			return calls, err
		}
		commit.Deliveries = append(commit.Deliveries, content.NewDelivery{Destination: d, WebhookID: id, Body: body})
	}
	calls++
	if err := b.contents.Commit(ctx, commit.Release.Token, commit); err != nil {
		return calls, err
	}
	for _, d := range read.Destinations {
		n, err := b.deliver(ctx, delivery.Key{Destination: delivery.Destination{Project: p.ID, ID: d}, Release: commit.Release.Number})
		if calls += n; err != nil {
			return calls, err
		}
	}
	return calls, nil
}

func (b *bare) save(ctx context.Context, project string, chapter int, number int64) (calls int, err error) {
	path := fmt.Sprintf("guide/chapter-%02d.md", chapter)
	text := fmt.Appendf(nil, "# Chapter %d\n\nThis is what publish %d says, and it says it in a sentence or two, as documents do.\n", chapter, number)
	drafts, _, err := b.contents.Drafts(ctx, project, []string{path})
	if err != nil {
		return 1, err
	}
	var there content.Draft // none, if it is missing: then the save is refused, as ever
	if len(drafts) > 0 {
		there = drafts[0]
	}
	hash := content.HashOf(text)
	if _, err := b.contents.PutBlob(ctx, project, hash, text); err != nil {
		return 2, err
	}
	if err := b.contents.AddUsage(ctx, project, int64(len(text))); err != nil {
		return 3, err
	}
	return 4, b.contents.ChangeDraft(ctx, rand.Text(), content.DraftChange{
		Project: project, Over: there.Version, Draft: content.Draft{
			Document: content.Document{Path: path, Hash: hash, Size: int64(len(text)), Type: "text/markdown"},
			Version:  there.Version + 1, Who: "bench", WhoID: whoID, At: time.Now(),
		},
	})
}

func (b *bare) deliver(ctx context.Context, k delivery.Key) (calls int, err error) {
	read, err := b.deliveries.Read(ctx, k)
	if err != nil {
		return 1, err
	}
	if read.Rang == nil {
		return 1, fmt.Errorf("no delivery of release %d", k.Release)
	}
	now := time.Now()
	h := delivery.Holder{
		Token: rand.Text(), Release: k.Release, Round: 1, Attempt: read.Rang.Numbered + 1, Since: now, Until: now.Add(delivery.LeaseTime),
	}
	slot, err := b.deliveries.Claim(ctx, k.Destination, read.Slot, h)
	if err != nil {
		return 2, err
	}
	return 3, b.deliveries.Record(ctx, delivery.Recording{
		Delivery: *read.Rang, Slot: slot, Holder: h, Request: rand.Text(),
		Transition: delivery.AfterAttempt(*read.Rang, h, delivery.Outcome{
			Class: delivery.ClassOfStatus(204), Status: 204, Received: delivery.Answered, Elapsed: 3 * time.Millisecond,
		}, time.Now(), 0),
	})
}
