package storetest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"pgregory.net/rapid"

	"colophon/internal/failure"
	"colophon/internal/store"
)

// Engine is the suite for the engine itself: what a Condition holds for, what
// Changes make of an item, which reasons a transaction gives, what a query shows.
// fresh gives a place with empty tables that nobody else writes to.
func Engine(t *testing.T, fresh func(t *testing.T) Place) {
	for name, test := range map[string]func(*testing.T, Place){
		"AConditionHoldsForWhatItSays":               conditions,
		"ChangesMakeOfAnItemWhatTheySay":             changes,
		"AnyConditionIsJudgedAsItsValueSays":         anyCondition,
		"AnyChangesAreMadeAsTheirValueSays":          anyChanges,
		"AnyTransactionIsDoneOrRefusedAsAWhole":      anyTransaction,
		"ATransactionsTokenMakesItsRepeatHarmless":   repeats,
		"ATokenIsForOneTransaction":                  otherTransaction,
		"AQueryReadsARangeInOrderAndPages":           ranges,
		"TheSweepIndexShowsKeysOfThoseInIt":          indexed,
		"MissingItemsAreLeftOut":                     absent,
		"APutReplacesTheWholeItem":                   replaced,
		"AWriteThroughWhatIsNoMapIsRefusedUnwritten": throughNoMap,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, fresh(t))
		})
	}
}

func key(sk string) store.Key { return store.Key{PK: "engine", SK: sk} }

// put writes an item, or takes it away where it is nil.
func put(t fataler, place Place, k store.Key, item store.Item) {
	w := store.Write{Table: place.Content, Key: k, Put: item}
	if item == nil {
		w.Put, w.Delete = nil, true
	}
	if _, err := place.Engine.Write(context.Background(), w); err != nil {
		t.Fatalf("put %v: %v", k, err)
	}
}

func get(t fataler, place Place, k store.Key) store.Item {
	item, err := place.Engine.Get(context.Background(), place.Content, k)
	if err != nil {
		t.Fatalf("get %v: %v", k, err)
	}
	return item
}

// fataler is a *testing.T or a *rapid.T.
type fataler interface {
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

// sample has an attribute of each type that we write.
func sample() store.Item {
	return store.Item{
		"text": store.Text("b"), "number": store.Number(5), "flag": store.Flag(true), "bytes": store.Bytes([]byte("b")),
		"list": store.Texts([]string{"x"}), "map": store.Map(store.Item{
			"text": store.Text("b"), "inner": store.Map(store.Item{"number": store.Number(5)}),
		}),
	}
}

func conditions(t *testing.T, place Place) {
	put(t, place, key("there"), sample())
	text, number, missing := store.At("text"), store.At("number"), store.At("missing")
	inner := store.At("map", "inner", "number")
	for _, row := range []struct {
		name  string
		c     store.Condition
		there bool // it holds for the sample
		none  bool // and for an item that does not exist
	}{
		{"none", store.Condition{}, true, true},
		{"an attribute exists", store.Exists(text), true, false},
		{"a missing one exists", store.Exists(missing), false, false},
		{"the key exists", store.Exists(store.At("pk")), true, false},
		{"an attribute is absent", store.Absent(text), false, true},
		{"a missing one is absent", store.Absent(missing), true, true},
		{"an entry exists", store.Exists(inner), true, false},
		{"an entry of a missing map exists", store.Exists(store.At("missing", "x")), false, false},
		{"an entry of a missing map is absent", store.Absent(store.At("missing", "x")), true, true},
		{"an entry of a text exists", store.Exists(store.At("text", "x")), false, false},
		{"an entry of a text is absent", store.Absent(store.At("text", "x")), true, true},
		{"equal texts", store.Equal(text, store.Text("b")), true, false},
		{"other texts", store.Equal(text, store.Text("c")), false, false},
		{"equal numbers", store.Equal(number, store.Number(5)), true, false},
		{"a text equals a number", store.Equal(text, store.Number(5)), false, false},
		{"a number equals its text", store.Equal(number, store.Text("5")), false, false},
		{"equal flags", store.Equal(store.At("flag"), store.Flag(true)), true, false},
		{"other flags", store.Equal(store.At("flag"), store.Flag(false)), false, false},
		{"equal bytes", store.Equal(store.At("bytes"), store.Bytes([]byte("b"))), true, false},
		{"bytes equal a text", store.Equal(store.At("bytes"), store.Text("b")), false, false},
		{"equal lists", store.Equal(store.At("list"), store.Texts([]string{"x"})), true, false},
		{"other lists", store.Equal(store.At("list"), store.Texts([]string{"x", "y"})), false, false},
		{"equal maps", store.Equal(store.At("map", "inner"), store.Map(store.Item{"number": store.Number(5)})), true, false},
		{"other maps", store.Equal(store.At("map", "inner"), store.Map(store.Item{"number": store.Number(6)})), false, false},
		{"equal entries", store.Equal(inner, store.Number(5)), true, false},
		{"a missing one equals", store.Equal(missing, store.Text("b")), false, false},
		{"a number is less", store.Less(number, store.Number(6)), true, false},
		{"a number is not less than itself", store.Less(number, store.Number(5)), false, false},
		{"numbers are ordered as numbers", store.Less(number, store.Number(10)), true, false},
		{"texts are ordered by bytes", store.Less(text, store.Text("ba")), true, false},
		{"bytes are ordered", store.Less(store.At("bytes"), store.Bytes([]byte("c"))), true, false},
		{"a text is less than a number", store.Less(text, store.Number(6)), false, false},
		{"a missing one is less", store.Less(missing, store.Number(6)), false, false},
		{"a number is at least itself", store.AtLeast(number, store.Number(5)), true, false},
		{"a number is at least a larger one", store.AtLeast(number, store.Number(6)), false, false},
		{"a missing one is at least", store.AtLeast(missing, store.Number(0)), false, false},
		{"both", store.All(store.Exists(text), store.Absent(missing)), true, false},
		{"not both", store.All(store.Exists(text), store.Exists(missing)), false, false},
		{"one of two", store.Any(store.Exists(missing), store.Exists(text)), true, false},
		{"none of two", store.Any(store.Exists(missing), store.Equal(text, store.Text("c"))), false, false},
		{"not", store.Not(store.Exists(missing)), true, true},
		{"not equal, where it is missing", store.Not(store.Equal(missing, store.Text("b"))), true, true},
		{"and within or", store.Any(store.All(store.Exists(missing), store.Exists(text)), store.Equal(number, store.Number(5))), true, false},
		{"not of or", store.Not(store.Any(store.Exists(missing), store.Exists(text))), false, true},
	} {
		for _, item := range []struct {
			key   store.Key
			holds bool
		}{{key("there"), row.there}, {key("none"), row.none}} {
			before := get(t, place, item.key)
			if got := row.c.Holds(before); got != item.holds {
				t.Errorf("%s, %s: the value says %v, want %v", row.name, item.key.SK, got, item.holds)
			}
			err := place.Engine.Transact(context.Background(), "", []store.Write{
				{Table: place.Content, Key: item.key, Check: true, If: row.c},
			})
			if row.c.Holds(nil) && reflect.DeepEqual(row.c, store.Condition{}) {
				continue // a check of nothing is no request that anybody makes
			}
			judgeRefusal(t, row.name, err, item.holds, before)
		}
	}
}

// judgeRefusal compares one write's answer with whether its condition holds.
func judgeRefusal(t fataler, what string, err error, holds bool, before store.Item) {
	if holds {
		if err != nil {
			t.Errorf("%s: the engine says %v", what, err)
		}
		return
	}
	refused := store.AsRefused(err)
	if refused == nil || refused.Reasons[0].Code != store.CodeCondition {
		t.Errorf("%s: the engine says %v, want a refused condition", what, err)
		return
	}
	if !reflect.DeepEqual(refused.Reasons[0].Old, before) {
		t.Errorf("%s: the refusal shows %v, there was %v", what, refused.Reasons[0].Old, before)
	}
}

func changes(t *testing.T, place Place) {
	x := store.Text("x")
	for i, row := range []struct {
		name    string
		before  store.Item
		changes []store.Change
		after   store.Item
	}{
		{"an item is made", nil, []store.Change{store.Set(store.At("a"), x)}, store.Item{"a": x}},
		{"an attribute is made", store.Item{"b": x}, []store.Change{store.Set(store.At("a"), x)}, store.Item{"a": x, "b": x}},
		{"an attribute is replaced", store.Item{"a": store.Number(1)}, []store.Change{store.Set(store.At("a"), x)}, store.Item{"a": x}},
		{"an entry is made", store.Item{"m": store.Map(store.Item{})}, []store.Change{store.Set(store.At("m", "3"), x)},
			store.Item{"m": store.Map(store.Item{"3": x})}},
		{"two entries are made and one goes", store.Item{"m": store.Map(store.Item{"1": x})},
			[]store.Change{store.Set(store.At("m", "2"), x), store.Set(store.At("m", "3"), x), store.Remove(store.At("m", "1"))},
			store.Item{"m": store.Map(store.Item{"2": x, "3": x})}},
		{"one goes", store.Item{"a": x, "b": x}, []store.Change{store.Remove(store.At("a"))}, store.Item{"b": x}},
		{"a missing one goes", store.Item{"b": x}, []store.Change{store.Remove(store.At("a"))}, store.Item{"b": x}},
		{"a missing entry goes", store.Item{"m": store.Map(store.Item{"b": x})}, []store.Change{store.Remove(store.At("m", "a"))},
			store.Item{"m": store.Map(store.Item{"b": x})}},
		{"a number is added to", store.Item{"n": store.Number(41)}, []store.Change{store.Add(store.At("n"), 1)}, store.Item{"n": store.Number(42)}},
		{"a missing number is added to", nil, []store.Change{store.Add(store.At("n"), 1)}, store.Item{"n": store.Number(1)}},
		{"all kinds at once", store.Item{"a": x, "n": store.Number(1), "m": store.Map(store.Item{"k": x})},
			[]store.Change{
				store.Set(store.At("m", "l"), x), store.Remove(store.At("a")), store.Add(store.At("n"), -3), store.Set(store.At("b"), x),
			},
			store.Item{"n": store.Number(-2), "m": store.Map(store.Item{"k": x, "l": x}), "b": x}},
	} {
		k := key(strconv.Itoa(i))
		if row.before != nil {
			put(t, place, k, row.before)
		}
		item, err := place.Engine.Write(context.Background(), store.Write{Table: place.Content, Key: k, Changes: row.changes})
		if err != nil {
			t.Errorf("%s: %v", row.name, err)
			continue
		}
		row.after["pk"], row.after["sk"] = store.Text(k.PK), store.Text(k.SK)
		if !reflect.DeepEqual(item, row.after) || !reflect.DeepEqual(get(t, place, k), row.after) {
			t.Errorf("%s: %v, want %v", row.name, item, row.after)
		}
	}
}

// names that random items have; each may be missing or of any type.
var names = []string{"a", "b", "m", "n"}

func drawValue(depth int) *rapid.Generator[store.Value] {
	return rapid.Custom(func(t *rapid.T) store.Value {
		kinds := 4
		if depth > 0 {
			kinds = 6
		}
		switch rapid.IntRange(0, kinds-1).Draw(t, "type") {
		case 0:
			return store.Text(rapid.SampledFrom([]string{"", "a", "b", "é", "10", "9"}).Draw(t, "text"))
		case 1:
			return store.Number(rapid.SampledFrom([]int64{-1, 0, 1, 9, 10, 1 << 53, 1<<53 + 1}).Draw(t, "number"))
		case 2:
			return store.Flag(rapid.Bool().Draw(t, "flag"))
		case 3:
			return store.Bytes(rapid.SliceOfN(rapid.Byte(), 1, 2).Draw(t, "bytes"))
		case 4:
			return store.Texts(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b"}), 0, 2).Draw(t, "list"))
		default:
			return store.Map(drawItem(depth-1).Draw(t, "map"))
		}
	})
}

func drawItem(depth int) *rapid.Generator[store.Item] {
	return rapid.MapOfN(rapid.SampledFrom(names), drawValue(depth), 0, len(names))
}

func drawPath() *rapid.Generator[store.Path] {
	return rapid.Custom(func(t *rapid.T) store.Path {
		length := rapid.SampledFrom([]int{1, 1, 1, 2, 3}).Draw(t, "length")
		return store.At(rapid.SliceOfN(rapid.SampledFrom(names), length, length).Draw(t, "path")...)
	})
}

// drawCondition gives conditions that are about what an item has, half of the time.
func drawCondition(depth int, item store.Item) *rapid.Generator[store.Condition] {
	return rapid.Custom(func(t *rapid.T) store.Condition {
		kinds := 5
		if depth > 0 {
			kinds = 8
		}
		path := drawPath().Draw(t, "path")
		have := at(item, path)
		about := have != nil && rapid.Bool().Draw(t, "about what is there")
		ordered := func() store.Value {
			switch have.(type) {
			case *types.AttributeValueMemberS, *types.AttributeValueMemberN, *types.AttributeValueMemberB:
				if about {
					return have
				}
			}
			return drawOrdered().Draw(t, "value")
		}
		switch rapid.IntRange(0, kinds-1).Draw(t, "operator") {
		case 0:
			return store.Exists(path)
		case 1:
			return store.Absent(path)
		case 2:
			if about {
				return store.Equal(path, have)
			}
			return store.Equal(path, drawValue(1).Draw(t, "value"))
		case 3:
			return store.Less(path, ordered())
		case 4:
			return store.AtLeast(path, ordered())
		case 5:
			return store.Not(drawCondition(depth-1, item).Draw(t, "part"))
		case 6:
			return store.All(rapid.SliceOfN(drawCondition(depth-1, item), 1, 3).Draw(t, "parts")...)
		default:
			return store.Any(rapid.SliceOfN(drawCondition(depth-1, item), 1, 3).Draw(t, "parts")...)
		}
	})
}

// at is what an item has at a path; nil: nothing.
func at(item store.Item, path store.Path) store.Value {
	var value store.Value
	for _, name := range path {
		if value = item[name]; value == nil {
			return nil
		}
		m, ok := value.(*types.AttributeValueMemberM)
		if !ok {
			m = &types.AttributeValueMemberM{}
		}
		item = m.Value
	}
	return value
}

// drawOrdered gives values of the types that have an order in DynamoDB.
func drawOrdered() *rapid.Generator[store.Value] {
	return rapid.Custom(func(t *rapid.T) store.Value {
		switch rapid.IntRange(0, 2).Draw(t, "type") {
		case 0:
			return store.Text(rapid.SampledFrom([]string{"", "a", "b", "é", "10", "9"}).Draw(t, "text"))
		case 1:
			return store.Number(rapid.SampledFrom([]int64{-1, 0, 1, 9, 10, 1 << 53, 1<<53 + 1}).Draw(t, "number"))
		default:
			return store.Bytes(rapid.SliceOfN(rapid.Byte(), 1, 2).Draw(t, "bytes"))
		}
	})
}

// drawChanges gives changes of which no path is another's beginning: DynamoDB
// refuses others, and adds to whole attributes only.
func drawChanges() *rapid.Generator[[]store.Change] {
	return rapid.Custom(func(t *rapid.T) []store.Change {
		var changes []store.Change
		for _, name := range names {
			path := store.At(name)
			switch rapid.IntRange(0, 4).Draw(t, "change of "+name) {
			case 0:
				changes = append(changes, store.Set(path, drawValue(1).Draw(t, "value")))
			case 1:
				changes = append(changes, store.Remove(path))
			case 2:
				changes = append(changes, store.Add(path, rapid.Int64Range(-3, 3).Draw(t, "number")))
			case 3:
				changes = append(changes, store.Set(path.Then("a"), drawValue(1).Draw(t, "value")), store.Remove(path.Then("b")))
			}
		}
		if len(changes) == 0 {
			changes = append(changes, store.Remove(store.At("z")))
		}
		return changes
	})
}

func anyCondition(t *testing.T, place Place) {
	rapid.Check(t, func(t *rapid.T) {
		k := key("any")
		put(t, place, k, rapid.OneOf(rapid.Just(store.Item(nil)), drawItem(2)).Draw(t, "item"))
		before := get(t, place, k)
		c := drawCondition(2, before).Draw(t, "condition")
		_, err := place.Engine.Write(context.Background(), store.Write{
			Table: place.Content, Key: k, If: c, Changes: []store.Change{store.Set(store.At("z"), store.Number(1))},
		})
		judgeRefusal(t, "a write", err, c.Holds(before), before)
	})
}

func anyChanges(t *testing.T, place Place) {
	rapid.Check(t, func(t *rapid.T) {
		k := key("any")
		put(t, place, k, rapid.OneOf(rapid.Just(store.Item(nil)), drawItem(2)).Draw(t, "item"))
		before := get(t, place, k)
		changes := drawChanges().Draw(t, "changes")
		item, err := place.Engine.Write(context.Background(), store.Write{Table: place.Content, Key: k, Changes: changes})
		after := get(t, place, k)
		want, fault := store.Apply(before, changes)
		if fault != nil {
			if err == nil || store.AsRefused(err) != nil || errors.Is(err, failure.ErrUnknown) || errors.Is(err, failure.ErrUnavailable) {
				t.Fatalf("the value says %v, the engine %v", fault, err)
			}
			want = before
		} else {
			want["pk"], want["sk"] = store.Text(k.PK), store.Text(k.SK)
			if err != nil || !reflect.DeepEqual(item, want) {
				t.Fatalf("the engine says %v, %v; want %v", item, err, want)
			}
		}
		if !reflect.DeepEqual(after, want) {
			t.Fatalf("there is %v, want %v", after, want)
		}
	})
}

func drawWrite(place Place, k store.Key) *rapid.Generator[store.Write] {
	return rapid.Custom(func(t *rapid.T) store.Write {
		w := store.Write{Table: rapid.SampledFrom([]string{place.Content, place.Delivery}).Draw(t, "table"), Key: k}
		w.If = drawCondition(1, sample()).Draw(t, "condition")
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			w.Put = drawItem(1).Draw(t, "item")
		case 1:
			w.Changes = []store.Change{store.Set(store.At("z"), drawValue(1).Draw(t, "value")), store.Remove(store.At("a"))}
		case 2:
			w.Delete = true
		case 3:
			w.Check = true
		}
		if rapid.IntRange(0, 2).Draw(t, "easily") > 0 {
			w.If = store.Any(w.If, store.Not(w.If))
		}
		return w
	})
}

func anyTransaction(t *testing.T, place Place) {
	judge := Judge(t, place.Engine)
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 4).Draw(t, "writes")
		writes := make([]store.Write, n)
		for i := range writes {
			writes[i] = drawWrite(place, key(fmt.Sprint("tx", i))).Draw(t, "write")
		}
		_ = judge.Transact(context.Background(), "", writes) // the judge says what is wrong with it
	})
}

func counted(place Place, n int64, c store.Condition) []store.Write {
	return []store.Write{
		{Table: place.Content, Key: key("count"), Changes: []store.Change{store.Add(store.At("n"), n)}, If: c},
		{Table: place.Delivery, Key: key("other"), Changes: []store.Change{store.Add(store.At("n"), n)}},
	}
}

func repeats(t *testing.T, place Place) {
	ctx, token := context.Background(), rand.Text()
	// Refused once, its token is as good as new.
	if err := place.Engine.Transact(ctx, token, counted(place, 1, store.Exists(store.At("pk")))); store.AsRefused(err) == nil {
		t.Fatalf("over a missing item: %v", err)
	}
	put(t, place, key("count"), store.Item{})
	for range 3 {
		if err := place.Engine.Transact(ctx, token, counted(place, 1, store.Exists(store.At("pk")))); err != nil {
			t.Fatal(err)
		}
	}
	if got := get(t, place, key("count"))["n"]; !reflect.DeepEqual(got, store.Number(1)) {
		t.Errorf("asked for three times, it was done %v times", got)
	}
	if err := place.Engine.Transact(ctx, rand.Text(), counted(place, 1, store.Condition{})); err != nil {
		t.Fatal(err)
	}
	if got := get(t, place, key("count"))["n"]; !reflect.DeepEqual(got, store.Number(2)) {
		t.Errorf("under another token: %v", got)
	}
}

func otherTransaction(t *testing.T, place Place) {
	ctx, token := context.Background(), rand.Text()
	if err := place.Engine.Transact(ctx, token, counted(place, 1, store.Condition{})); err != nil {
		t.Fatal(err)
	}
	err := place.Engine.Transact(ctx, token, counted(place, 2, store.Condition{}))
	if err == nil || store.AsRefused(err) != nil || errors.Is(err, failure.ErrUnknown) {
		t.Errorf("another transaction under the token: %v", err)
	}
	if got := get(t, place, key("count"))["n"]; !reflect.DeepEqual(got, store.Number(1)) {
		t.Errorf("after it: %v", got)
	}
}

func skOf(item store.Item) string {
	sk, ok := item["sk"].(*types.AttributeValueMemberS)
	if !ok {
		return "no sk"
	}
	return sk.Value
}

// read reads a whole query, page after page.
func read(t *testing.T, place Place, q store.Query) (sks []string) {
	t.Helper()
	for range 100 {
		page, err := place.Engine.Query(context.Background(), q)
		if err != nil {
			t.Fatal(err)
		}
		if q.Limit > 0 && len(page.Items) > int(q.Limit) {
			t.Errorf("a page of %d, the limit is %d", len(page.Items), q.Limit)
		}
		for _, item := range page.Items {
			sks = append(sks, skOf(item))
		}
		if q.After = page.Last; q.After == nil {
			return sks
		}
	}
	t.Fatal("pages without an end")
	return nil
}

func ranges(t *testing.T, place Place) {
	all := []string{"LIMIT", "R#000000000001", "R#000000000002", "R#000000000010", "SETTINGS", "SLOT", "T#a"}
	for _, sk := range slices.Backward(all) {
		put(t, place, key(sk), store.Item{})
	}
	put(t, place, store.Key{PK: "another", SK: "R#000000000003"}, store.Item{})
	reversed := slices.Clone(all)
	slices.Reverse(reversed)
	for _, row := range []struct {
		name     string
		from, to string
		want     []string
	}{
		{"all", "", "", all},
		{"from a key on", "R#000000000002", "", all[2:]},
		{"up to a key", "", "SETTINGS", all[:5]},
		{"between keys that are there", "R#000000000002", "SLOT", all[2:6]},
		{"between keys that are not", "R#000000000003", "S", all[3:4]},
		{"where nothing is", "X", "Z", nil},
	} {
		q := store.Query{Table: place.Content, PK: store.Text("engine")}
		if row.from != "" {
			q.From = store.Text(row.from)
		}
		if row.to != "" {
			q.To = store.Text(row.to)
		}
		for _, limit := range []int32{0, 1, 2, 3, 100} {
			q.Limit, q.Descending = limit, false
			same(t, row.name, read(t, place, q), row.want)
			q.Descending = true
			want := slices.Clone(row.want)
			slices.Reverse(want)
			same(t, row.name+", downwards", read(t, place, q), want)
		}
	}
}

func indexed(t *testing.T, place Place) {
	for i, row := range []store.Item{
		{"sweepShard": store.Number(3), "sweepAt": store.Number(30), "body": store.Text("not shown")},
		{"sweepShard": store.Number(3), "sweepAt": store.Number(10)},
		{"sweepShard": store.Number(3), "sweepAt": store.Number(20)},
		{"sweepShard": store.Number(4), "sweepAt": store.Number(10)},
		{"sweepShard": store.Number(3)},
		{"sweepAt": store.Number(10)},
		{},
	} {
		if _, err := place.Engine.Write(context.Background(), store.Write{
			Table: place.Delivery, Key: key(strconv.Itoa(i)), Put: row,
		}); err != nil {
			t.Fatal(err)
		}
	}
	q := store.Query{Table: place.Delivery, Index: store.SweepIndex, PK: store.Number(3)}
	for _, limit := range []int32{0, 1, 2} {
		q.Limit, q.To = limit, nil
		same(t, "a shard", read(t, place, q), []string{"1", "2", "0"})
		q.To = store.Number(20)
		same(t, "what is due", read(t, place, q), []string{"1", "2"})
	}
	q.Limit = 0
	page, err := place.Engine.Query(context.Background(), q)
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range page.Items {
		if len(item) != 4 || item["pk"] == nil || item["sweepAt"] == nil {
			t.Errorf("the index shows %v, want keys alone", item)
		}
	}
	if _, err := place.Engine.Write(context.Background(), store.Write{
		Table: place.Delivery, Key: key("1"), Changes: []store.Change{store.Remove(store.At("sweepShard"))},
	}); err != nil {
		t.Fatal(err)
	}
	same(t, "after one has left", read(t, place, q), []string{"2"})
}

func absent(t *testing.T, place Place) {
	put(t, place, key("1"), store.Item{"a": store.Number(1)})
	put(t, place, key("3"), store.Item{"a": store.Number(3)})
	if item := get(t, place, key("2")); item != nil {
		t.Errorf("a missing item is %v", item)
	}
	items, err := place.Engine.BatchGet(context.Background(), place.Content, []store.Key{key("1"), key("2"), key("3")})
	if err != nil {
		t.Fatal(err)
	}
	var sks []string
	for _, item := range items {
		sks = append(sks, skOf(item))
	}
	slices.Sort(sks)
	same(t, "those that are there", sks, []string{"1", "3"})
}

func replaced(t *testing.T, place Place) {
	put(t, place, key("1"), store.Item{"a": store.Number(1), "b": store.Number(1)})
	put(t, place, key("1"), store.Item{"b": store.Number(2)})
	same(t, "the item", get(t, place, key("1")), store.Item{
		"pk": store.Text("engine"), "sk": store.Text("1"), "b": store.Number(2),
	})
}

func throughNoMap(t *testing.T, place Place) {
	before := store.Item{"text": store.Text("x"), "n": store.Text("x")}
	for i, changes := range [][]store.Change{
		{store.Set(store.At("missing", "a"), store.Number(1))},
		{store.Set(store.At("text", "a"), store.Number(1))},
		{store.Remove(store.At("text", "a"))},
		{store.Remove(store.At("missing", "a"))},
		{store.Add(store.At("n"), 1)},
		{store.Set(store.At("a"), store.Number(1)), store.Remove(store.At("a"))},
		{store.Set(store.At("a", "b"), store.Number(1)), store.Remove(store.At("a"))},
	} {
		k := key(strconv.Itoa(i))
		put(t, place, k, before)
		if _, err := store.Apply(before, changes); err == nil {
			t.Errorf("changes %d: the value is applied", i)
		}
		_, err := place.Engine.Write(context.Background(), store.Write{Table: place.Content, Key: k, Changes: changes})
		if err == nil || store.AsRefused(err) != nil || errors.Is(err, failure.ErrUnknown) || errors.Is(err, failure.ErrUnavailable) {
			t.Errorf("changes %d: %v, want a request that is refused for what it is", i, err)
		}
		after := get(t, place, k)
		delete(after, "pk")
		delete(after, "sk")
		same(t, "the item", after, before)
	}
}
