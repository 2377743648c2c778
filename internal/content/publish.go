package content

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"colophon/internal/killpoint"
	"colophon/internal/retry"
	"colophon/internal/text"
)

// writersAtOnce bounds how many parts of a manifest are written side by side.
const writersAtOnce = 16

// publication is one request on its way to a release.
type publication struct {
	PublishRequest
	project string
	request Hash
}

// Publish makes a release of the drafts as they are, with one delivery for each
// destination, in one transaction. Who looked away while others published looks
// again: at the project, and after it at the drafts.
func (s *Service) Publish(ctx context.Context, project string, r PublishRequest) (Published, error) {
	pub, err := s.accept(project, r)
	if err != nil {
		return Published{}, err
	}
	var read *Project // nil: it has to be read
	t := s.newTrial()
	for {
		release, moved, err := s.try(ctx, t, pub, read)
		if err == nil {
			return Published{Release: release}, nil
		}
		var used *usedError
		switch {
		case errors.As(err, &used):
			return s.replay(ctx, t, pub, used.Use)
		case moved != nil:
			read = moved
		case errors.Is(err, ErrBusy), errors.Is(err, ErrUnavailable):
			read = nil
		default:
			return Published{}, pub.explain(err)
		}
		if !t.Again(ctx) {
			return Published{}, pub.explain(err)
		}
	}
}

// byteOrderMark is what some editors put before a text's first character.
const byteOrderMark = "\ufeff"

// accept checks a request.
func (s *Service) accept(project string, r PublishRequest) (publication, error) {
	r.Message = strings.ReplaceAll(r.Message, "\r\n", "\n")
	asked := r.Message
	r.Message = strings.TrimPrefix(r.Message, byteOrderMark)
	if err := checkText("message", r.Message, LongestMessage, text.Prose); err != nil {
		return publication{}, err
	}
	if err := checkKey(r.IdempotencyKey); err != nil {
		return publication{}, err
	}
	if !IsProjectID(project) {
		return publication{}, NoSuchProject()
	}
	if s.c.PublicAddress != "" {
		r.BaseURL = s.c.PublicAddress
	}
	base, err := checkAddress(r.BaseURL)
	if err != nil {
		return publication{}, fmt.Errorf("publish: the request's own address is %w", err)
	}
	r.BaseURL = base
	// What was asked, and not what the drafts were: a repeat is the same request.
	// Its message is as it came, or a repeat of what an earlier build took would differ.
	request, err := json.Marshal(struct {
		Message string
		Force   bool
	}{asked, r.Force})
	if err != nil {
		return publication{}, fmt.Errorf("publish: %w", err)
	}
	return publication{PublishRequest: r, project: project, request: HashOf(request)}, nil
}

// try reads, decides and commits once. moved is the project as it stands, where
// the commit was refused because it had moved.
func (s *Service) try(ctx context.Context, t *retry.Loop, pub publication, read *Project) (release Release, moved *Project, err error) {
	if read == nil {
		p, err := s.c.Store.Project(ctx, pub.project)
		if errors.Is(err, ErrMissing) {
			return Release{}, nil, NoSuchProject()
		}
		if err != nil {
			return Release{}, nil, err
		}
		read = &p
	}
	// After the project: what the last release held is in here, or was deleted since.
	drafts, err := s.c.Store.ListDrafts(ctx, pub.project, "", MostDocuments+1)
	if err != nil {
		return Release{}, nil, err
	}
	parts := cut(documents(drafts))
	if refusal := pub.worthless(*read, drafts, parts); refusal != nil {
		moved, err := s.unlessUsed(ctx, pub, *read, refusal)
		return Release{}, moved, err
	}
	full, wait := s.c.Publishes.Take(read.PublishesFull, s.now())
	if wait > 0 {
		return Release{}, nil, s.unlessReadAsUsed(ctx, pub, s.publishedTooOften(wait))
	}
	if err := s.putParts(ctx, pub.project, parts, read.Manifest); err != nil {
		return Release{}, nil, err
	}
	commit, err := s.commit(pub, *read, drafts, parts)
	if err != nil {
		return Release{}, nil, err
	}
	commit.PublishesFull = full
	err = s.settled(ctx, t, func(token string) error {
		commit.Release.Token = token
		return s.c.Store.Commit(ctx, token, commit)
	})
	var refusal *Refusal
	if errors.As(err, &refusal) {
		if refusal.Use != nil {
			return Release{}, nil, &usedError{*refusal.Use}
		}
		return Release{}, refusal.Project, err
	}
	if err == nil {
		killpoint.At(killpoint.AfterCommit)
	}
	return commit.Release, nil, err
}

// worthless says why the drafts make no release; nil: they do.
func (pub publication) worthless(read Project, drafts []Draft, parts []part) *Error {
	switch {
	case len(drafts) > MostDocuments:
		return refuse(CodeTooManyDocuments, "A release holds at most %d documents, and this project has more. Delete some and publish again.", MostDocuments)
	case pub.Force || !slices.Equal(hashes(parts), read.Manifest):
		return nil
	case read.Seq == 0:
		return refuse(CodeNothingToPublish, "This project has no documents yet. Save one first, or publish with force.")
	}
	return refuse(CodeNothingToPublish, "Nothing has changed since release %d. Save a change first, or publish with force.", read.Seq)
}

// publishedTooOften refuses a publish, forced or not: each is announced to all of
// the project's destinations.
func (s *Service) publishedTooOften(wait time.Duration) *Error {
	e := refuse(CodeTooOften, "This project was published %d times in a short while. Wait %d seconds and publish again; what was saved meanwhile is in that release.",
		s.c.Publishes.Burst, int(wait.Seconds()))
	e.RetryAfter = wait
	return e
}

// unlessUsed gives a refusal, but not before the key was looked up: a repeat
// gets the answer of the first. A transaction's items are not seen all at once, and
// the project can show a release whose key does not read as used yet; so both are
// compared in one transaction. moved is the project as it is, where it was not as read.
func (s *Service) unlessUsed(ctx context.Context, pub publication, read Project, refusal *Error) (moved *Project, err error) {
	if pub.IdempotencyKey == "" {
		return nil, refusal
	}
	err = s.c.Store.CheckUnused(ctx, read, pub.IdempotencyKey, s.now())
	var refused *Refusal
	switch {
	case err == nil:
		return nil, refusal
	case errors.As(err, &refused) && refused.Use != nil:
		return nil, &usedError{*refused.Use}
	case refused != nil:
		return refused.Project, err
	}
	return nil, err
}

// unlessReadAsUsed is for a refusal that ends by waiting, and of which many come at
// once: it reads and writes no units. A key that does not read as used yet is
// answered the next time.
func (s *Service) unlessReadAsUsed(ctx context.Context, pub publication, refusal *Error) error {
	if pub.IdempotencyKey == "" {
		return refusal
	}
	use, err := s.c.Store.Use(ctx, pub.project, pub.IdempotencyKey)
	switch {
	case errors.Is(err, ErrMissing):
		return refusal
	case err != nil:
		return err
	case use.Over(s.c.Clock.Now()):
		return refusal
	}
	return &usedError{use}
}

// Over says whether the key may be used for something else.
func (u Use) Over(now time.Time) bool { return u.ExpiresAt.Before(now) }

// usedError leads to the answer of the request that used the key first.
type usedError struct{ Use }

func (*usedError) Error() string { return "the key was used" }

func documents(drafts []Draft) []Document {
	list := make([]Document, len(drafts))
	for i, d := range drafts {
		list[i] = d.Document
	}
	return list
}

// putParts writes the parts that the last manifest had not: a put that finds its
// content there is paid for by its size all the same.
func (s *Service) putParts(ctx context.Context, project string, parts []part, have []Hash) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wait sync.WaitGroup
	free := make(chan struct{}, writersAtOnce)
	for _, p := range parts {
		if slices.Contains(have, p.hash) {
			continue
		}
		free <- struct{}{}
		wait.Go(func() {
			defer func() { <-free }()
			if _, err := s.c.Store.PutBlob(ctx, project, p.hash, p.data); err != nil {
				cancel(err)
			}
		})
	}
	wait.Wait()
	return context.Cause(ctx)
}

// commit makes all that a publish writes.
func (s *Service) commit(pub publication, read Project, drafts []Draft, parts []part) (Commit, error) {
	release := Release{
		Project: read.ID, Number: read.Seq + 1, Message: pub.Message, Who: pub.Who, WhoID: pub.WhoID, At: s.now(),
		Documents: int64(len(drafts)), Manifest: hashes(parts), Destinations: read.Destinations,
	}
	for _, d := range drafts {
		release.Bytes += d.Size
	}
	c := Commit{Read: read, Release: release}
	if pub.IdempotencyKey != "" {
		c.Use = Use{Key: pub.IdempotencyKey, Request: pub.request, Release: release.Number, ExpiresAt: release.At.Add(KeyTime)}
	}
	for _, destination := range read.Destinations {
		id, body, err := s.c.Announce(Announcement{
			Project: read.ID, ProjectName: read.Name, Release: release.Number, Documents: release.Documents,
			Message: release.Message, At: release.At,
			URL: fmt.Sprintf("%s/projects/%s/releases/%d", pub.BaseURL, read.ID, release.Number),
		})
		if err != nil {
			return Commit{}, fmt.Errorf("announce release %d: %w", release.Number, err)
		}
		c.Deliveries = append(c.Deliveries, NewDelivery{Destination: destination, WebhookID: id, Body: body})
	}
	return c, nil
}

// replay answers a request whose key was used.
func (s *Service) replay(ctx context.Context, t *retry.Loop, pub publication, use Use) (Published, error) {
	if use.Request != pub.request {
		return Published{}, refuse(CodeIdempotencyMismatch, "This idempotency key was used for another request, which made release %d. Choose a new key for a new request.", use.Release)
	}
	release, err := s.c.Store.Release(ctx, pub.project, use.Release)
	// A transaction's items are not seen all at once: the key can be there already.
	for errors.Is(err, ErrMissing) && t.Again(ctx) {
		release, err = s.c.Store.Release(ctx, pub.project, use.Release)
	}
	if err != nil {
		return Published{}, Explain("read the release that the key made", err)
	}
	return Published{Release: release, Replayed: true}, nil
}

func (pub publication) explain(err error) error {
	if !errors.Is(err, ErrUnknown) {
		return Explain("publish", err)
	}
	message := "It is not known whether this was published, because the table did not answer. Ask again with the same idempotency key: it makes no second release."
	if pub.IdempotencyKey == "" {
		message = "It is not known whether this was published, because the table did not answer. Look at the newest release before you ask again, and send an idempotency key from then on."
	}
	return &Error{Code: CodeUnknownOutcome, Message: message, Cause: fmt.Errorf("publish: %w", err)}
}
