package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"sort"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"colophon/internal/delivery"
	"colophon/internal/failure"
	"colophon/internal/store"
)

// The names of both tables and of the attributes that the world itself looks at.
const (
	contentTable  = "content-table"
	deliveryTable = "delivery-table"
)

// callTime is how long the tables' client waits for an answer.
const callTime = 3 * time.Second

// tokenTime is for how long DynamoDB knows a transaction's token.
const tokenTime = 10 * time.Minute

// cell is the place of one item.
type cell struct {
	key  store.Key
	item store.Item   // as readers see it; nil: none
	lock *transaction // committed, and not visible here yet
}

// table keeps partitions, each sorted.
type table struct {
	name       string
	partitions map[string][]*cell
}

func (t *table) find(k store.Key) *cell {
	cells := t.partitions[k.PK]
	i := sort.Search(len(cells), func(i int) bool { return cells[i].key.SK >= k.SK })
	if i < len(cells) && cells[i].key.SK == k.SK {
		return cells[i]
	}
	return nil
}

func (t *table) place(k store.Key) *cell {
	cells := t.partitions[k.PK]
	i := sort.Search(len(cells), func(i int) bool { return cells[i].key.SK >= k.SK })
	if i < len(cells) && cells[i].key.SK == k.SK {
		return cells[i]
	}
	c := &cell{key: k}
	cells = append(cells, nil)
	copy(cells[i+1:], cells[i:])
	cells[i] = c
	t.partitions[k.PK] = cells
	return c
}

// change is one item's part in what was written.
type change struct {
	table    string
	key      store.Key
	old, new store.Item
}

// checked says whether the item was asked about, and not written.
func (ch *change) checked() bool {
	return reflect.ValueOf(ch.old).Pointer() == reflect.ValueOf(ch.new).Pointer()
}

// transaction is one that is decided and becomes visible item by item: readers
// see it in part, writers meet a conflict.
type transaction struct {
	changes []change
	cells   []*cell
}

// used is a token that a transaction was carried out under.
type used struct {
	at     moment
	writes []store.Write
	open   moment // all of it is visible from then on
}

// tables is the simulated DynamoDB: strong reads that are not isolated from
// transactions, conditional writes, an index that lags behind, a stream.
type tables struct {
	w        *World
	delivery string // the name of the table that has the index and the stream
	byName   map[string]*table
	tokens   map[string]used
	index    index
	outage   moment // most calls are refused until then
	queries  int    // of the index, that found nothing: no step
}

// NewTables are tables without faults, waits and rules: an engine for tests.
func NewTables(content, delivery string) store.Engine {
	w := newWorld(again(tapes{}), &threads{}, mutant{}, nil)
	w.current = &task{process: &process{world: w, name: "test"}}
	w.choices.calm, w.check = true, nil
	t := newTables(w, content, delivery)
	return t
}

func newTables(w *World, content, delivery string) *tables {
	t := &tables{w: w, delivery: delivery, byName: map[string]*table{}, tokens: map[string]used{}}
	for _, name := range []string{content, delivery} {
		t.byName[name] = &table{name: name, partitions: map[string][]*cell{}}
	}
	t.index.last = map[store.Key]moment{}
	return t
}

func (t *tables) table(name string) *table {
	found := t.byName[name]
	if found == nil {
		panic("sim: no table " + name)
	}
	return found
}

// errors of a request that never reached the table, or whose answer never came.
var (
	errThrottled = fmt.Errorf("throttled: %w", failure.ErrThrottled)
	errDeadline  = fmt.Errorf("the invocation's time is over: %w", failure.ErrUnavailable)
	errNoAnswer  = fmt.Errorf("no answer: %w", failure.ErrUnknown)
	errMismatch  = errors.New("the token was used for another transaction")
)

// reach is a request's way to the table.
func (t *tables) reach(ctx context.Context) error {
	w := t.w
	w.step()
	w.travel()
	if deadline, ok := ctx.Deadline(); ok && !w.current.process.clock().Before(deadline) && w.choices.below(chooseOrder, 2) == 0 {
		return errDeadline
	}
	if w.now < t.outage && w.choices.below(faultOutage, 5) > 0 {
		return errThrottled
	}
	if w.happens(faultOutage) {
		t.outage = w.now + moment(w.choices.below(faultOutage, 30)+1)*time.Second
		w.tell("the tables are short of units until %v", t.outage)
	}
	if w.happens(faultThrottle) {
		return errThrottled
	}
	if w.happens(faultSlowCall) {
		wait := moment(w.choices.below(faultSlowCall, 40)) * 100 * time.Millisecond
		w.pause(min(wait, callTime))
		if wait > callTime {
			return fmt.Errorf("timed out: %w", failure.ErrUnavailable)
		}
	}
	return nil
}

// Get reads one item.
func (t *tables) Get(ctx context.Context, name string, k store.Key) (store.Item, error) {
	if err := t.reach(ctx); err != nil {
		return nil, err
	}
	var item store.Item
	if c := t.table(name).find(k); c != nil {
		item = c.item
	}
	t.w.back()
	return item, nil
}

// BatchGet reads items one by one.
func (t *tables) BatchGet(ctx context.Context, name string, keys []store.Key) ([]store.Item, error) {
	if err := t.reach(ctx); err != nil {
		return nil, err
	}
	torn := t.w.happens(faultTorn)
	items := make([]store.Item, 0, len(keys))
	for i, k := range keys {
		if torn && i > 0 {
			t.w.pause(t.w.latency())
		}
		if c := t.table(name).find(k); c != nil && c.item != nil {
			items = append(items, c.item)
		}
	}
	t.w.back()
	return items, nil
}

// Query reads a range. A torn one reads each item at its own moment, in the
// order of the range.
func (t *tables) Query(ctx context.Context, q store.Query) (store.Page, error) {
	if q.Index != "" {
		return t.queryIndex(ctx, q)
	}
	p := t.w.current.process
	asked, stood := p.clock(), p.stood
	if err := t.reach(ctx); err != nil {
		return store.Page{}, err
	}
	if p.stood == stood && p.alone() { // were it set back by just as much as it stood still, nothing would show it
		t.w.current.turns = t.w.turnClock(p)
	}
	torn := t.w.happens(faultTorn)
	if torn || t.underWay(q) {
		t.w.counts.Torn++
		t.w.tell("%s reads %s while it may be changing", t.w.current.process.name, t.w.check.called(textOf(q.PK)))
	}
	if q.Table == t.delivery && textOf(q.To) == "SLOT" && q.After == nil {
		t.w.current.read = t.w.now
	}
	limit := t.limit(q)
	from, to := textOf(q.From), textOf(q.To)
	after := textOf(q.After["sk"])
	pk := textOf(q.PK)
	page := store.Page{Items: make([]store.Item, 0, 4)}
	if limit == 0 {
		page.Last = q.After
	}
	for limit != 0 {
		c := t.following(t.table(q.Table).partitions[pk], after, from, to, q.To != nil, q.Descending)
		if c == nil {
			break
		}
		after = c.key.SK
		if c.item == nil {
			continue
		}
		page.Items = append(page.Items, c.item)
		if len(page.Items) == limit {
			page.Last = store.Item{"pk": store.Text(pk), "sk": store.Text(after)}
			break
		}
		if torn {
			t.w.pause(t.w.latency())
		}
	}
	date := t.w.start.Add(t.w.now).Truncate(time.Second)
	t.w.back()
	t.w.current.turns = false
	page.Clock = delivery.MeasureClock(date, asked, p.clock())
	return page, nil
}

// limit is how many items a query's page holds: DynamoDB may end one early, after
// any item, and with none where it goes on from another page.
func (t *tables) limit(q store.Query) int {
	limit := math.MaxInt
	if q.Limit > 0 {
		limit = int(q.Limit)
	}
	if !t.w.happens(faultShort) {
		return limit
	}
	t.w.tell("%s gets a short page", t.w.current.process.name)
	least := 1
	if q.After != nil {
		least = 0
	}
	return min(limit, least+t.w.choices.below(faultShort, 3))
}

// underWay says whether a transaction is visible in part where a query reads.
func (t *tables) underWay(q store.Query) bool {
	for _, c := range t.table(q.Table).partitions[textOf(q.PK)] {
		if c.lock != nil {
			return true
		}
	}
	return false
}

// following is the cell behind after in a range; an empty after is its beginning.
func (t *tables) following(cells []*cell, after, from, to string, bounded, descending bool) *cell {
	if descending {
		i := len(cells)
		if bounded {
			i = sort.Search(len(cells), func(i int) bool { return cells[i].key.SK > to })
		}
		if after != "" {
			i = min(i, sort.Search(len(cells), func(i int) bool { return cells[i].key.SK >= after }))
		}
		if i == 0 || cells[i-1].key.SK < from {
			return nil
		}
		return cells[i-1]
	}
	i := sort.Search(len(cells), func(i int) bool { return cells[i].key.SK >= from })
	if after != "" {
		i = max(i, sort.Search(len(cells), func(i int) bool { return cells[i].key.SK > after }))
	}
	if i == len(cells) || bounded && cells[i].key.SK > to {
		return nil
	}
	return cells[i]
}

// fate is what becomes of a write beside being carried out.
type fate int

const (
	fateDone fate = iota
	fateConflict
	fateNotDone // and nobody tells
	fateNoAnswer
	fateLate  // it is carried out after its sender has given up
	fateTwice // the client asks again by itself
	fateShortOfUnits
)

func (t *tables) fate(r request) fate {
	w := t.w
	switch {
	case w.happens(faultConflict):
		return fateConflict
	case len(r.writes) > 1 && w.happens(faultShortOfUnits):
		return fateShortOfUnits
	case w.happens(faultUnknown):
		return fateNotDone + fate(w.choices.below(faultUnknown, 3))
	case w.happens(faultTwice):
		return fateTwice
	}
	return fateDone
}

// lateness is how long a request can be under way after its sender gave up.
func (t *tables) lateness() moment {
	steps := [...]moment{100 * time.Millisecond, time.Second, 5 * time.Second, 10 * time.Second, 13 * time.Second, 20 * time.Second, time.Minute}
	return steps[t.w.choices.below(faultUnknown, len(steps))]
}

// request is a write, or several of one transaction.
type request struct {
	token  string // of a transaction
	writes []store.Write
	read   moment        // at which its sender had begun to read what it writes
	off    time.Duration // of its sender's clock, when it was sent
}

// Write carries one write out and returns the item as it made it.
func (t *tables) Write(ctx context.Context, write store.Write) (store.Item, error) {
	if write.Check {
		panic("sim: a check outside of a transaction")
	}
	item, err := t.ask(ctx, request{writes: []store.Write{write}})
	if err != nil || write.Changes == nil {
		return nil, err
	}
	return item, nil
}

// Transact carries all writes out or none.
func (t *tables) Transact(ctx context.Context, token string, writes []store.Write) error {
	if token == "" { // the SDK makes one for each call
		t.w.tokens++
		token = "sdk-" + strconv.Itoa(t.w.tokens)
	}
	_, err := t.ask(ctx, request{token: token, writes: writes})
	return err
}

// ask asks for a write and does with it what fate wants.
func (t *tables) ask(ctx context.Context, r request) (item store.Item, err error) {
	w := t.w
	r.off = w.current.process.off
	givenBack := t.givenBack(r)
	if err := t.reach(ctx); err != nil {
		if err == errThrottled {
			return nil, err
		}
		return nil, errNoAnswer
	}
	if givenBack != nil && w.happens(faultGiveBack) {
		w.tell("token %s cannot be given back just now", givenBack.token)
		givenBack.refuse()
		w.back()
		return nil, &store.Refused{Reasons: []store.Reason{{Code: store.CodeConflict}}}
	}
	r.read = w.current.read
	visible := moment(0) // from now, until all of it can be seen
	switch t.fate(r) {
	case fateDone:
		item, visible, err = t.carryOut(w.current, r)
	case fateConflict:
		refused := &store.Refused{Reasons: make([]store.Reason, len(r.writes))}
		refused.Reasons[w.choices.below(faultConflict, len(r.writes))].Code = store.CodeConflict
		err = refused
	case fateShortOfUnits:
		err = t.shortOfUnits(len(r.writes))
	case fateNotDone:
		visible, err = callTime, errNoAnswer
	case fateNoAnswer:
		_, _, _ = t.carryOut(w.current, r)
		visible, err = callTime, errNoAnswer
	case fateLate:
		origin := w.current
		w.calendar.add(event{at: w.now + callTime + t.lateness(), do: func() {
			w.tell("a write of %s arrives late", origin.process.name)
			_, _, _ = t.carryOut(origin, r)
		}})
		visible, err = callTime, errNoAnswer
	case fateTwice:
		_, _, _ = t.carryOut(w.current, r)
		w.pause(2*time.Second + w.latency())
		item, visible, err = t.carryOut(w.current, r)
	}
	if visible > 0 {
		w.pause(visible)
	}
	w.back()
	return item, err
}

// shortOfUnits cancels a transaction for one of its items or for several, another
// of them perhaps for a conflict.
func (t *tables) shortOfUnits(writes int) error {
	refused := &store.Refused{Reasons: make([]store.Reason, writes)}
	first := t.w.choices.below(faultShortOfUnits, writes)
	other := [...]store.Code{store.CodeNone, store.CodeThrottled, store.CodeConflict}[t.w.choices.below(faultShortOfUnits, 3)]
	refused.Reasons[(first+1)%writes].Code = other
	refused.Reasons[first].Code = store.CodeThrottled
	return refused
}

var giveBack = []store.Change{store.Remove(store.At("holder")), store.Add(store.At("version"), 1)}

// givenBack is the claim that a request gives back; nil where it does not.
func (t *tables) givenBack(r request) *claim {
	if t.w.check == nil || len(r.writes) != 1 || !reflect.DeepEqual(r.writes[0].Changes, giveBack) {
		return nil
	}
	key := r.writes[0].Key
	c := t.table(r.writes[0].Table).find(key)
	if c == nil {
		return nil
	}
	cl := t.w.check.byKey(key.PK).claims[textOf(mapOf(c.item["holder"])["token"])]
	if cl == nil || cl.process != t.w.current.process {
		return nil
	}
	cl.refused = false // it is asked for again
	return cl
}

// carryOut does what DynamoDB does with a request, at once. What a transaction
// wrote may become visible later.
func (t *tables) carryOut(origin *task, r request) (item store.Item, visible moment, err error) {
	if r.token != "" {
		if before, ok := t.tokens[r.token]; ok && t.w.now-before.at < tokenTime {
			if !reflect.DeepEqual(before.writes, r.writes) {
				t.w.violate(ruleOneToken, "%s uses a token again for another transaction", origin.process.name)
				return nil, 0, errMismatch
			}
			if before.open > t.w.now { // TransactionInProgressException
				return nil, 0, errNoAnswer
			}
			return nil, 0, nil
		}
	}
	reasons := make([]store.Reason, len(r.writes))
	tx := &transaction{changes: make([]change, len(r.writes)), cells: make([]*cell, len(r.writes))}
	refused := false
	for i, write := range r.writes {
		c := t.table(write.Table).place(write.Key)
		switch {
		case c.lock != nil:
			reasons[i].Code, refused = store.CodeConflict, true
		case !write.If.Holds(c.item):
			reasons[i], refused = store.Reason{Code: store.CodeCondition, Old: c.item}, true
		}
		tx.cells[i] = c
		tx.changes[i] = change{table: write.Table, key: write.Key, old: c.item, new: c.item}
	}
	if refused {
		return nil, 0, &store.Refused{Reasons: reasons}
	}
	for i, write := range r.writes {
		if tx.changes[i].new, err = outcome(write, tx.changes[i].old); err != nil {
			if t.w.check == nil || !t.w.check.damagedAt(write.Key) {
				t.w.violate(ruleValid, "%s: %v", origin.process.name, err)
			}
			return nil, 0, err
		}
	}
	if t.w.check != nil {
		t.w.check.committed(origin, r, tx.changes)
	}
	visible = t.show(tx)
	if r.token != "" {
		t.tokens[r.token] = used{at: t.w.now, writes: r.writes, open: t.w.now + visible}
	}
	return tx.changes[0].new, visible, nil
}

// outcome is the item as a write makes it.
func outcome(write store.Write, old store.Item) (store.Item, error) {
	var item store.Item
	switch {
	case write.Check:
		return old, nil
	case write.Delete:
		return nil, nil
	case write.Put != nil:
		item = make(store.Item, len(write.Put)+2)
		maps.Copy(item, write.Put)
	default:
		var err error
		if item, err = store.Apply(old, write.Changes); err != nil {
			return nil, err
		}
	}
	item["pk"], item["sk"] = store.Text(write.Key.PK), store.Text(write.Key.SK)
	return item, nil
}

// show makes a transaction's items visible: mostly all at once, sometimes one by
// one in any order, which is what a torn read meets. It says when it is done.
func (t *tables) show(tx *transaction) moment {
	w := t.w
	order := make([]int, len(tx.cells))
	for i := range order {
		order[i] = i
	}
	if len(order) == 1 || !w.happens(faultSplit) {
		for _, i := range order {
			t.set(tx.cells[i], tx.changes[i])
		}
		return 0
	}
	w.tell("what was just written becomes visible item by item")
	for i := len(order) - 1; i > 0; i-- {
		j := i - w.choices.below(faultSplit, i+1)
		order[i], order[j] = order[j], order[i]
	}
	gaps := [...]moment{0, time.Millisecond, 3 * time.Millisecond, 10 * time.Millisecond, 50 * time.Millisecond, 200 * time.Millisecond, time.Second}
	at := moment(0)
	for _, i := range order {
		tx.cells[i].lock = tx
		at += gaps[w.choices.below(faultSplit, len(gaps))]
		w.calendar.add(event{at: w.now + at, do: func() {
			tx.cells[i].lock = nil
			t.set(tx.cells[i], tx.changes[i])
		}})
	}
	return at
}

// set makes a change visible to readers, to the index and to the stream.
func (t *tables) set(c *cell, ch change) {
	c.item = ch.new
	if ch.table != t.delivery {
		return
	}
	if ch.old == nil && t.w.check != nil {
		t.w.check.shown(c.key)
	}
	t.index.follow(t.w, c)
	if _, rings := ch.new["ring"]; rings {
		t.w.stream.append(c.key, ch.old == nil)
	}
}

// expire takes a delivery away that has ended, as the table does after its time:
// months later, not minutes, and so without asking what else is there.
func (t *tables) expire(k store.Key) {
	c := t.table(t.delivery).find(k)
	if c == nil || c.lock != nil || c.item["expiresAt"] == nil {
		return
	}
	t.w.check.expired(k)
	c.item = nil
	t.index.follow(t.w, c)
}

func textOf(v store.Value) string {
	if s, ok := v.(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

func numberOf(v store.Value) int64 {
	n, ok := v.(*types.AttributeValueMemberN)
	if !ok {
		return 0
	}
	i, err := strconv.ParseInt(n.Value, 10, 64)
	if err != nil {
		return 0
	}
	return i
}

func mapOf(v store.Value) store.Item {
	if m, ok := v.(*types.AttributeValueMemberM); ok {
		return m.Value
	}
	return nil
}
