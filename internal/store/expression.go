package store

import (
	"strconv"
	"strings"
)

// expression collects the names and values of one request's expressions, each
// behind a placeholder: attribute names can be reserved words or begin with digits.
type expression struct {
	names  map[string]string
	values map[string]Value
	byName map[string]string
}

func (e *expression) path(p Path) string {
	var b strings.Builder
	for i, name := range p {
		if i > 0 {
			b.WriteByte('.')
		}
		placeholder, ok := e.byName[name]
		if !ok {
			if e.names == nil {
				e.names, e.byName = map[string]string{}, map[string]string{}
			}
			placeholder = "#" + strconv.Itoa(len(e.names))
			e.names[placeholder], e.byName[name] = name, placeholder
		}
		b.WriteString(placeholder)
	}
	return b.String()
}

func (e *expression) value(v Value) string {
	if e.values == nil {
		e.values = map[string]Value{}
	}
	placeholder := ":" + strconv.Itoa(len(e.values))
	e.values[placeholder] = v
	return placeholder
}

// condition renders a condition; the zero Condition renders as nil.
func (e *expression) condition(c Condition) *string {
	if c.op == opAlways {
		return nil
	}
	s := e.test(c)
	return &s
}

func (e *expression) test(c Condition) string {
	switch c.op {
	case opAnd, opOr:
		parts := make([]string, len(c.parts))
		for i, part := range c.parts {
			parts[i] = e.test(part)
		}
		return "(" + strings.Join(parts, " "+string(c.op)+" ") + ")"
	case opNot:
		return "(NOT " + e.test(c.parts[0]) + ")"
	case opExists:
		return "attribute_exists(" + e.path(c.path) + ")"
	case opAbsent:
		return "attribute_not_exists(" + e.path(c.path) + ")"
	}
	return e.path(c.path) + " " + string(c.op) + " " + e.value(c.value)
}

// update renders changes to an UpdateExpression.
func (e *expression) update(changes []Change) string {
	var set, remove, add []string
	for _, c := range changes {
		switch c.verb {
		case verbSet:
			set = append(set, e.path(c.path)+" = "+e.value(c.value))
		case verbRemove:
			remove = append(remove, e.path(c.path))
		case verbAdd:
			add = append(add, e.path(c.path)+" "+e.value(c.value))
		}
	}
	var parts []string
	for _, clause := range []struct {
		word    string
		actions []string
	}{{"SET ", set}, {"REMOVE ", remove}, {"ADD ", add}} {
		if len(clause.actions) > 0 {
			parts = append(parts, clause.word+strings.Join(clause.actions, ", "))
		}
	}
	return strings.Join(parts, " ")
}
