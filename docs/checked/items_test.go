package checked_test

import (
	"context"
	"crypto/sha256"
	"go/ast"
	"go/token"
	"go/types"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	dynamodb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"colophon/internal/access"
	"colophon/internal/content"
	"colophon/internal/delivery"
	"colophon/internal/destination"
	"colophon/internal/ratelimit"
	"colophon/internal/sim"
	"colophon/internal/store"
	"colophon/internal/store/storetest"
)

// itemNames are the stored items, each attribute with its type: those that the
// store's suites and a token's life write to the simulator's tables. What the
// store could write and nobody wrote is a fault of this list.
func itemNames(t *testing.T, s *source, add func(kind, name string)) {
	t.Helper()
	constants := storeConstants(t, s)
	parts := map[string]bool{} // of keys, that do not stand for a value
	for text := range constants {
		for part := range strings.SplitSeq(text, "#") {
			parts[part] = true
		}
	}
	r := &recorder{seen: map[string]bool{}, constants: constants, parts: parts}
	t.Run("items", func(t *testing.T) {
		fresh := func(*testing.T) storetest.Place {
			return storetest.Place{
				Engine: &recording{Engine: sim.NewTables("content", "delivery"), recorder: r}, Content: "content", Delivery: "delivery",
			}
		}
		storetest.Contents(t, fresh)
		storetest.Destinations(t, fresh)
		storetest.Sweep(t, fresh)
		writeTokens(t, fresh(t))
		writeByWorker(t, fresh(t))
	})
	for name := range r.seen {
		if key, isKey := strings.CutSuffix(name, " pk S"); isKey {
			add("key", key)
		} else if !strings.HasSuffix(name, " sk S") {
			add("attribute", name)
		}
	}
	for text := range constants {
		if !r.met(text) && text != store.SweepIndex {
			t.Errorf("the store has the name %q, and nothing that the suites of internal/store/storetest write has it: let one write it", text)
		}
	}
	add("index", store.SweepIndex)
}

// storeConstants are the texts that the store declares: every name of an
// attribute, or a part of a key. It holds the store to declaring each.
func storeConstants(t *testing.T, s *source) map[string]bool {
	const element = "github.com/aws/aws-sdk-go-v2/service/dynamodb/types.AttributeValue"
	const path = "colophon/internal/store"
	constants := map[string]bool{}
	declared := s.packages[path]
	if declared == nil {
		t.Fatal("there is no package " + path)
	}
	for _, name := range declared.Scope().Names() {
		c, ok := declared.Scope().Lookup(name).(*types.Const)
		if ok && types.Default(c.Type()) == types.Typ[types.String] {
			text, err := strconv.Unquote(c.Val().ExactString())
			must(t, err)
			constants[text] = true
		}
	}
	s.each(func(p *types.Package, n ast.Node) {
		for _, key := range s.mapKeys(n, element) {
			if !constants[key] {
				t.Errorf("%s: the attribute %q is not one of the store's constants", s.at(n), key)
			}
		}
		// A name that is passed on is one of the constants too.
		call, isCall := n.(*ast.CallExpr)
		if !isCall || p.Path() != path {
			return
		}
		for i, argument := range call.Args {
			literal, ok := argument.(*ast.BasicLit)
			if ok && literal.Kind == token.STRING && parameter(s, call, i) == "name" {
				t.Errorf("%s: %s is passed as a name, and is not one of the store's constants", s.at(n), literal.Value)
			}
		}
	})
	return constants
}

// parameter is the name of the parameter that a call's argument is for, singular.
func parameter(s *source, call *ast.CallExpr, i int) string {
	signature, ok := s.info.Types[call.Fun].Type.(*types.Signature)
	if !ok || signature.Params().Len() == 0 {
		return ""
	}
	return strings.TrimSuffix(signature.Params().At(min(i, signature.Params().Len()-1)).Name(), "s")
}

func writeTokens(t *testing.T, place storetest.Place) {
	t.Helper()
	tokens, err := store.NewTokens(store.TokensConfig{Engine: place.Engine, Table: place.Content})
	must(t, err)
	hash, now := sha256.Sum256([]byte("token")), time.UnixMilli(1795995000123)
	must(t, tokens.AddToken(t.Context(), hash, access.Token{ID: "tok_1", Name: "ci", Role: access.Editor, Ending: "abcd", CreatedAt: now, ExpiresAt: now.Add(time.Hour)}))
	must(t, tokens.RecordUse(t.Context(), hash, now, now))
	_, err = tokens.TakeRequest(t.Context(), hash, time.Time{}, now, ratelimit.PerMinute(1, 1))
	must(t, err)
}

// writeByWorker writes what a worker writes where something goes wrong.
func writeByWorker(t *testing.T, place storetest.Place) {
	t.Helper()
	now := time.UnixMilli(1795995000123)
	worker, err := store.NewDeliveries(store.DeliveriesConfig{Engine: place.Engine, Table: place.Delivery, Clock: func() time.Time { return now }})
	must(t, err)
	contents, err := store.NewContents(store.ContentsConfig{Engine: place.Engine, ContentTable: place.Content, DeliveryTable: place.Delivery})
	must(t, err)
	people, err := store.NewDestinations(store.DestinationsConfig{Engine: place.Engine, ContentTable: place.Content, DeliveryTable: place.Delivery})
	must(t, err)
	ctx, d := t.Context(), delivery.Destination{Project: "prj_1", ID: "dst_1"}
	project := content.Project{ID: d.Project, Name: "One", Version: 1, CreatedAt: now}
	must(t, contents.AddProject(ctx, "1", project))
	must(t, people.Commit(ctx, "2", destination.Adding{
		Destination: d, ProjectVersion: 1, IDs: []string{d.ID}, Settings: delivery.Settings{Name: "One", URL: "https://example.com", Version: 1, CreatedAt: now, UpdatedAt: now},
	}))
	project.Version = 2
	must(t, contents.Commit(ctx, "3", content.Commit{
		Read: project, Release: content.Release{Project: d.Project, Number: 1, At: now, Token: "3"},
		Deliveries: []content.NewDelivery{{Destination: d.ID, WebhookID: "msg_1", Body: []byte("{}")}},
	}))
	key := delivery.Key{Destination: d, Release: 1}
	read := func() delivery.Reading {
		r, err := worker.Read(ctx, key)
		must(t, err)
		return r
	}
	must(t, worker.CountOurs(ctx, *read().Rang))
	attempt := func(by delivery.Writer, n int64) delivery.Transition {
		return delivery.Transition{Status: delivery.Retrying, At: now, FirstTryAt: now, TryAt: now, SweepAt: now, Tries: n, Attempt: delivery.Attempt{
			Number: n, Round: 1, Token: "token", By: by, At: now, Class: delivery.ClassTimeout, Detail: "while connecting", Received: delivery.MayHave,
		}}
	}
	holder := delivery.Holder{Token: "token", Release: 1, Round: 1, Attempt: 1, Since: now, Until: now}
	slot, err := worker.Claim(ctx, d, read().Slot, holder)
	must(t, err)
	must(t, worker.Settle(ctx, delivery.Settlement{Request: "4", Destination: d, Slot: slot, Delivery: read().Rang, Transition: attempt(delivery.BySettle, 1)}))
	must(t, worker.NoteLate(ctx, key, 1, "token", "it answered 200 after its lease"))
	holder.Attempt = 2
	slot, err = worker.Claim(ctx, d, read().Slot, holder)
	must(t, err)
	must(t, worker.Record(ctx, delivery.Recording{
		Request: "5", Slot: slot, Holder: holder, Delivery: *read().Rang, Transition: attempt(delivery.ByRecord, 2), Slow: true,
	}))
}

// recorder notes what the store itself wrote.
type recorder struct {
	constants, parts map[string]bool
	mu               sync.Mutex
	seen             map[string]bool
}

// recording is an engine whose writes are noted.
type recording struct {
	store.Engine
	recorder *recorder
}

func (r *recording) Write(ctx context.Context, w store.Write) (store.Item, error) {
	before := r.read(ctx, []store.Write{w})
	item, err := r.Engine.Write(ctx, w)
	r.note(ctx, []store.Write{w}, before)
	return item, err
}

func (r *recording) Transact(ctx context.Context, token string, writes []store.Write) error {
	before := r.read(ctx, writes)
	err := r.Engine.Transact(ctx, token, writes)
	r.note(ctx, writes, before)
	return err
}

func (r *recording) read(ctx context.Context, writes []store.Write) (items []store.Item) {
	for _, w := range writes {
		item, _ := r.Get(ctx, w.Table, w.Key)
		items = append(items, item)
	}
	return items
}

// note notes the attributes that a write of the store changed: the suites put
// damaged items there themselves.
func (r *recording) note(ctx context.Context, writes []store.Write, before []store.Item) {
	if !calledByStore() {
		return
	}
	for i, after := range r.read(ctx, writes) {
		sk := r.recorder.form(writes[i].Key.SK)
		if after == nil || writes[i].Table == "delivery" && sk == "…" { // malformed, by a suite
			continue
		}
		changed := store.Item{}
		for name, value := range after {
			if !reflect.DeepEqual(before[i][name], value) {
				changed[name] = value
			}
		}
		r.recorder.item(writes[i].Table+" "+r.recorder.form(writes[i].Key.PK)+" "+sk, changed)
	}
}

func calledByStore() bool {
	callers := make([]uintptr, 30)
	frames := runtime.CallersFrames(callers[:runtime.Callers(0, callers)])
	for {
		frame, more := frames.Next()
		if strings.HasPrefix(frame.Function, "colophon/internal/store.") {
			return true
		}
		if !more {
			return false
		}
	}
}

// form is a key with … for what differs from item to item.
func (r *recorder) form(key string) string {
	parts := strings.Split(key, "#")
	for i, part := range parts {
		switch {
		case len(part) == 12 && strings.Trim(part, "0123456789") == "":
			parts[i] = "<12 digits>"
		case !r.parts[part]:
			parts[i] = "…"
		}
	}
	return strings.Join(parts, "#")
}

func (r *recorder) item(prefix string, item store.Item) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.attributes(prefix+" ", item)
}

func (r *recorder) attributes(prefix string, item store.Item) {
	for name, value := range item {
		if _, err := strconv.Atoi(name); err == nil {
			name = "…" // an attempt's number
		}
		path := prefix + name
		switch v := value.(type) {
		case *dynamodb.AttributeValueMemberM:
			r.seen[path+" M"] = true
			r.attributes(path+".", v.Value)
		case *dynamodb.AttributeValueMemberL:
			r.seen[path+" L"] = true
			for _, entry := range v.Value {
				if m, ok := entry.(*dynamodb.AttributeValueMemberM); ok {
					r.attributes(path+"[].", m.Value)
				}
			}
		case *dynamodb.AttributeValueMemberS:
			r.seen[path+" S"] = true
		case *dynamodb.AttributeValueMemberN:
			r.seen[path+" N"] = true
		case *dynamodb.AttributeValueMemberB:
			r.seen[path+" B"] = true
		case *dynamodb.AttributeValueMemberBOOL:
			r.seen[path+" BOOL"] = true
		}
	}
}

// met says whether a name is in what was written.
func (r *recorder) met(text string) bool {
	for seen := range r.seen {
		for _, word := range strings.FieldsFunc(seen, func(c rune) bool { return strings.ContainsRune(" .[]", c) }) {
			if word == text || strings.Contains(word, "#") && strings.Contains(word, text) {
				return true
			}
		}
	}
	return false
}
