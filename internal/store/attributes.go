package store

import (
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// attributes reads an item's attributes and remembers the first that is not
// what it should be. Absurd items exist: a restore gone wrong, a person at a console.
type attributes struct {
	item  Item
	fault error
}

func (a *attributes) wrong(name, want string) {
	if a.fault == nil {
		a.fault = fmt.Errorf("attribute %s is not %s", name, want)
	}
}

func (a *attributes) text(name string) string {
	v, ok := a.item[name].(*types.AttributeValueMemberS)
	if !ok {
		a.wrong(name, "a text")
		return ""
	}
	return v.Value
}

func (a *attributes) optionalText(name string) string {
	if _, ok := a.item[name]; !ok {
		return ""
	}
	return a.text(name)
}

// count reads a whole number that is not negative.
func (a *attributes) count(name string) int64 {
	v, ok := a.item[name].(*types.AttributeValueMemberN)
	if !ok {
		a.wrong(name, "a number")
		return 0
	}
	n, err := strconv.ParseInt(v.Value, 10, 64)
	if err != nil || n < 0 {
		a.wrong(name, "a whole number from 0")
		return 0
	}
	return n
}

func (a *attributes) optionalCount(name string) int64 {
	if _, ok := a.item[name]; !ok {
		return 0
	}
	return a.count(name)
}

// positive reads a whole number from 1.
func (a *attributes) positive(name string) int64 {
	n := a.count(name)
	if n == 0 {
		a.wrong(name, "a whole number from 1")
	}
	return n
}

func (a *attributes) time(name string) time.Time { return fromMillis(a.positive(name)) }

func (a *attributes) optionalTime(name string) time.Time {
	if _, ok := a.item[name]; !ok {
		return time.Time{}
	}
	return a.time(name)
}

func (a *attributes) optionalDuration(name string) time.Duration {
	ms := a.optionalCount(name)
	if ms > int64(time.Duration(1<<63-1)/time.Millisecond) {
		a.wrong(name, "a duration")
		return 0
	}
	return time.Duration(ms) * time.Millisecond
}

func (a *attributes) flag(name string) bool {
	v, ok := a.item[name]
	if !ok {
		return false
	}
	b, ok := v.(*types.AttributeValueMemberBOOL)
	if !ok {
		a.wrong(name, "true or false")
		return false
	}
	return b.Value
}

func (a *attributes) optionalBytes(name string) []byte {
	v, ok := a.item[name]
	if !ok {
		return nil
	}
	b, ok := v.(*types.AttributeValueMemberB)
	if !ok {
		a.wrong(name, "binary")
		return nil
	}
	return b.Value
}

func (a *attributes) optionalTexts(name string) []string {
	v, ok := a.item[name]
	if !ok {
		return nil
	}
	list, ok := v.(*types.AttributeValueMemberL)
	if !ok {
		a.wrong(name, "a list of texts")
		return nil
	}
	texts := make([]string, 0, len(list.Value))
	for _, entry := range list.Value {
		text, ok := entry.(*types.AttributeValueMemberS)
		if !ok {
			a.wrong(name, "a list of texts")
			return nil
		}
		texts = append(texts, text.Value)
	}
	return texts
}

// within reads a map attribute; a fault in it is a fault of the item.
func (a *attributes) within(name string, read func(*attributes)) {
	v, ok := a.item[name].(*types.AttributeValueMemberM)
	if !ok {
		a.wrong(name, "a map")
		return
	}
	inner := &attributes{item: v.Value}
	read(inner)
	if inner.fault != nil && a.fault == nil {
		a.fault = fmt.Errorf("in %s: %w", name, inner.fault)
	}
}

// eachIn reads a list of maps, none where it is missing.
func (a *attributes) eachIn(name string, read func(*attributes)) {
	v, ok := a.item[name]
	if !ok {
		return
	}
	list, ok := v.(*types.AttributeValueMemberL)
	if !ok {
		a.wrong(name, "a list")
		return
	}
	for _, entry := range list.Value {
		one := &attributes{item: Item{name: entry}}
		one.within(name, read)
		if a.fault == nil {
			a.fault = one.fault
		}
	}
}

func (a *attributes) has(name string) bool {
	_, ok := a.item[name]
	return ok
}

// Times are kept as whole milliseconds since 1970; the TTL attribute alone is in
// seconds, as DynamoDB wants it.
func millis(t time.Time) Value { return Number(t.UnixMilli()) }

func fromMillis(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

func seconds(t time.Time) Value { return Number(t.Unix()) }

func durationMillis(d time.Duration) Value { return Number(d.Milliseconds()) }
