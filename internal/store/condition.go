package store

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Value is one attribute's value.
type Value = types.AttributeValue

// Item is a table's item: attribute name to value, the two key attributes among them.
type Item = map[string]Value

// Path names an attribute, or an entry within map attributes: attempts.3.token.
type Path []string

// At makes a path.
func At(names ...string) Path { return names }

// String is the path as a reader writes it.
func (p Path) String() string { return strings.Join(p, ".") }

// Then is the path of an entry within the map at p.
func (p Path) Then(name string) Path { return append(p[:len(p):len(p)], name) }

func (p Path) in(item Item) (Value, bool) {
	m := item
	for i, name := range p {
		v, ok := m[name]
		if !ok {
			return nil, false
		}
		if i == len(p)-1 {
			return v, true
		}
		inner, ok := v.(*types.AttributeValueMemberM)
		if !ok {
			return nil, false
		}
		m = inner.Value
	}
	return nil, false
}

type operator string

const (
	opAlways  operator = ""
	opExists  operator = "exists"
	opAbsent  operator = "absent"
	opEqual   operator = "="
	opLess    operator = "<"
	opAtLeast operator = ">="
	opAnd     operator = "AND"
	opOr      operator = "OR"
	opNot     operator = "NOT"
)

// Condition is a test on an item as it stands; the zero Condition always holds.
// An item that does not exist is judged as one without attributes, as DynamoDB does.
type Condition struct {
	op    operator
	path  Path
	value Value
	parts []Condition
}

// Exists holds where the attribute is there.
func Exists(p Path) Condition { return Condition{op: opExists, path: p} }

// Absent holds where the attribute, or the whole item, is missing.
func Absent(p Path) Condition { return Condition{op: opAbsent, path: p} }

// Equal holds where the attribute is there and has this type and value.
func Equal(p Path, v Value) Condition { return Condition{op: opEqual, path: p, value: v} }

// Less holds where the attribute is there, has the value's type and is below it.
func Less(p Path, v Value) Condition { return Condition{op: opLess, path: p, value: v} }

// AtLeast holds where the attribute is there, has the value's type and is not below it.
func AtLeast(p Path, v Value) Condition { return Condition{op: opAtLeast, path: p, value: v} }

// All holds where each part holds.
func All(parts ...Condition) Condition { return joined(opAnd, parts) }

// Any holds where at least one part holds.
func Any(parts ...Condition) Condition { return joined(opOr, parts) }

// Not holds where the condition does not.
func Not(c Condition) Condition { return Condition{op: opNot, parts: []Condition{c}} }

func joined(op operator, parts []Condition) Condition {
	kept := make([]Condition, 0, len(parts))
	for _, part := range parts {
		if part.op != opAlways {
			kept = append(kept, part)
		}
	}
	if len(kept) == 1 {
		return kept[0]
	}
	if len(kept) == 0 {
		return Condition{}
	}
	return Condition{op: op, parts: kept}
}

// Holds evaluates the condition on an item; nil stands for an item that does not exist.
func (c Condition) Holds(item Item) bool {
	switch c.op {
	case opAlways:
		return true
	case opAnd:
		for _, part := range c.parts {
			if !part.Holds(item) {
				return false
			}
		}
		return true
	case opOr:
		for _, part := range c.parts {
			if part.Holds(item) {
				return true
			}
		}
		return false
	case opNot:
		return !c.parts[0].Holds(item)
	}
	have, ok := c.path.in(item)
	switch c.op {
	case opExists:
		return ok
	case opAbsent:
		return !ok
	}
	if !ok {
		return false
	}
	order, comparable := compare(have, c.value)
	switch c.op {
	case opEqual:
		return comparable && order == 0 || !comparable && equal(have, c.value)
	case opLess:
		return comparable && order < 0
	case opAtLeast:
		return comparable && order >= 0
	}
	panic("store: condition with operator " + string(c.op))
}

// compare orders two values of one scalar type; values of two types have no order.
func compare(a, b Value) (order int, ok bool) {
	switch a := a.(type) {
	case *types.AttributeValueMemberS:
		if b, ok := b.(*types.AttributeValueMemberS); ok {
			return strings.Compare(a.Value, b.Value), true
		}
	case *types.AttributeValueMemberN:
		if b, ok := b.(*types.AttributeValueMemberN); ok {
			return compareNumbers(a.Value, b.Value), true
		}
	case *types.AttributeValueMemberB:
		if b, ok := b.(*types.AttributeValueMemberB); ok {
			return strings.Compare(string(a.Value), string(b.Value)), true
		}
	}
	return 0, false
}

// equal compares what has no order: flags, lists and maps.
func equal(a, b Value) bool {
	switch a := a.(type) {
	case *types.AttributeValueMemberBOOL:
		b, ok := b.(*types.AttributeValueMemberBOOL)
		return ok && a.Value == b.Value
	case *types.AttributeValueMemberL:
		b, ok := b.(*types.AttributeValueMemberL)
		return ok && slices.EqualFunc(a.Value, b.Value, equal)
	case *types.AttributeValueMemberM:
		b, ok := b.(*types.AttributeValueMemberM)
		return ok && maps.EqualFunc(a.Value, b.Value, equal)
	}
	order, comparable := compare(a, b)
	return comparable && order == 0
}

// All numbers that we write are whole and fit an int64; others compare as floats.
func compareNumbers(a, b string) int {
	x, errX := strconv.ParseInt(a, 10, 64)
	y, errY := strconv.ParseInt(b, 10, 64)
	if errX == nil && errY == nil {
		switch {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	}
	f, _ := strconv.ParseFloat(a, 64)
	g, _ := strconv.ParseFloat(b, 64)
	switch {
	case f < g:
		return -1
	case f > g:
		return 1
	}
	return 0
}

type verb string

const (
	verbSet    verb = "SET"
	verbRemove verb = "REMOVE"
	verbAdd    verb = "ADD"
)

// Change is one action of an update.
type Change struct {
	verb  verb
	path  Path
	value Value
}

// Set writes the attribute; within a map, the map must exist.
func Set(p Path, v Value) Change { return Change{verb: verbSet, path: p, value: v} }

// Remove takes the attribute away; a missing one is no fault, but within a map,
// the map must exist.
func Remove(p Path) Change { return Change{verb: verbRemove, path: p} }

// Add adds to a number; a missing one counts as 0.
func Add(p Path, n int64) Change { return Change{verb: verbAdd, path: p, value: Number(n)} }

// Apply evaluates the changes on a copy of the item as DynamoDB does: each action
// sees the item as it was before the update. An error is DynamoDB's
// ValidationException: a path through something that is not a map, or two paths
// of which one is, or leads to, the other.
func Apply(item Item, changes []Change) (Item, error) {
	for i, c := range changes {
		for _, other := range changes[:i] {
			if overlap(c.path, other.path) {
				return nil, fmt.Errorf("paths %s and %s overlap", other.path, c.path)
			}
		}
	}
	out := cloneItem(item)
	for _, c := range changes {
		parent := out
		for _, name := range c.path[:len(c.path)-1] {
			inner, ok := parent[name].(*types.AttributeValueMemberM)
			if !ok {
				return nil, fmt.Errorf("path %s leads through no map", c.path)
			}
			parent = inner.Value
		}
		last := c.path[len(c.path)-1]
		switch c.verb {
		case verbSet:
			parent[last] = c.value
		case verbRemove:
			delete(parent, last)
		case verbAdd:
			have, _ := c.path.in(item)
			sum, err := addNumbers(have, c.value)
			if err != nil {
				return nil, fmt.Errorf("add to %s: %w", c.path, err)
			}
			parent[last] = sum
		}
	}
	return out, nil
}

func overlap(a, b Path) bool {
	n := min(len(a), len(b))
	return slices.Equal(a[:n], b[:n])
}

func addNumbers(have, add Value) (Value, error) {
	n, err := strconv.ParseInt(add.(*types.AttributeValueMemberN).Value, 10, 64)
	if err != nil || have == nil {
		return add, err
	}
	number, ok := have.(*types.AttributeValueMemberN)
	if !ok {
		return nil, fmt.Errorf("not a number")
	}
	m, err := strconv.ParseInt(number.Value, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("not a whole number")
	}
	return Number(m + n), nil
}

func cloneItem(item Item) Item {
	out := make(Item, len(item)+4)
	for name, v := range item {
		if m, ok := v.(*types.AttributeValueMemberM); ok {
			v = &types.AttributeValueMemberM{Value: cloneItem(m.Value)}
		}
		out[name] = v
	}
	return out
}

// Text makes a text's value.
func Text(s string) Value { return &types.AttributeValueMemberS{Value: s} }

// Number makes a whole number's value.
func Number(n int64) Value { return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)} }

// Flag makes a boolean value.
func Flag(b bool) Value { return &types.AttributeValueMemberBOOL{Value: b} }

// Map makes a map value.
func Map(m Item) Value { return &types.AttributeValueMemberM{Value: m} }

// Bytes makes a binary value.
func Bytes(b []byte) Value {
	if b == nil {
		b = []byte{} // the SDK leaves nil out, and DynamoDB refuses a value of no type
	}
	return &types.AttributeValueMemberB{Value: b}
}

// Texts makes a list of strings.
func Texts(list []string) Value {
	values := make([]Value, len(list))
	for i, s := range list {
		values[i] = Text(s)
	}
	return List(values)
}

// List makes a list of values.
func List(values []Value) Value { return &types.AttributeValueMemberL{Value: values} }
