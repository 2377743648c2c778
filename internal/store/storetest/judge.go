package storetest

import (
	"context"
	"reflect"
	"testing"

	"colophon/internal/store"
)

// Judge wraps an engine and holds it to the store's own evaluation: each write is
// refused exactly where a Condition does not hold on the item as it stood, for
// the writes that it does not hold for, and leaves what the Changes make of it.
// It reads before and after each write, so nobody else may write meanwhile.
func Judge(t *testing.T, engine store.Engine) store.Engine {
	return &judge{Engine: engine, t: t, done: map[string]bool{}}
}

type judge struct {
	store.Engine
	t    *testing.T
	done map[string]bool // tokens of transactions that were carried out
}

func (j *judge) Write(ctx context.Context, w store.Write) (store.Item, error) {
	before := j.read(ctx, w)
	item, err := j.Engine.Write(ctx, w)
	after := j.verdict(ctx, []store.Write{w}, []store.Item{before}, err)
	if err == nil && w.Changes != nil && !reflect.DeepEqual(item, after[0]) {
		j.t.Errorf("an update of %v returned %v, which is not the item", w.Key, item)
	}
	return item, err
}

func (j *judge) Transact(ctx context.Context, token string, writes []store.Write) error {
	before := make([]store.Item, len(writes))
	for i, w := range writes {
		before[i] = j.read(ctx, w)
	}
	err := j.Engine.Transact(ctx, token, writes)
	if token != "" && j.done[token] {
		if err != nil {
			j.t.Errorf("a repeat of transaction %s: %v", token, err)
		}
		for i, w := range writes {
			if after := j.read(ctx, w); !reflect.DeepEqual(after, before[i]) {
				j.t.Errorf("a repeat of transaction %s changed %v", token, w.Key)
			}
		}
		return err
	}
	j.verdict(ctx, writes, before, err)
	if err == nil && token != "" {
		j.done[token] = true
	}
	return err
}

func (j *judge) read(ctx context.Context, w store.Write) store.Item {
	j.t.Helper()
	item, err := j.Engine.Get(ctx, w.Table, w.Key)
	if err != nil {
		j.t.Fatalf("the judge reads %v: %v", w.Key, err)
	}
	return item
}

// verdict compares what an engine did with what the values say, and returns the
// items as they are now.
func (j *judge) verdict(ctx context.Context, writes []store.Write, before []store.Item, err error) []store.Item {
	j.t.Helper()
	refused := store.AsRefused(err)
	if err != nil && refused == nil {
		j.t.Errorf("neither done nor refused: %v", err)
	}
	held := true
	for i, w := range writes {
		holds := w.If.Holds(before[i])
		held = held && holds
		if refused == nil {
			continue
		}
		if (refused.Reasons[i].Code == store.CodeCondition) == holds {
			j.t.Errorf("write %d, to %v: the condition holds is %v, the engine says %q", i, w.Key, holds, refused.Reasons[i].Code)
		}
		if !holds && !reflect.DeepEqual(refused.Reasons[i].Old, before[i]) {
			j.t.Errorf("write %d, to %v: the refusal shows %v, the item was %v", i, w.Key, refused.Reasons[i].Old, before[i])
		}
	}
	if held != (err == nil) {
		j.t.Errorf("all conditions hold is %v, the engine says %v", held, err)
	}
	after := make([]store.Item, len(writes))
	for i, w := range writes {
		after[i] = j.read(ctx, w)
		want := before[i]
		if err == nil {
			want = j.outcome(w, before[i])
		}
		if !reflect.DeepEqual(after[i], want) {
			j.t.Errorf("write %d, to %v:\n left %v\n want %v", i, w.Key, after[i], want)
		}
	}
	return after
}

func (j *judge) outcome(w store.Write, before store.Item) store.Item {
	j.t.Helper()
	base := before
	switch {
	case w.Check:
		return before
	case w.Delete:
		return nil
	case w.Put != nil:
		base = w.Put
	}
	item, err := store.Apply(base, w.Changes)
	if err != nil {
		j.t.Errorf("a write to %v that the engine carried out: %v", w.Key, err)
	}
	item["pk"], item["sk"] = store.Text(w.Key.PK), store.Text(w.Key.SK)
	return item
}
