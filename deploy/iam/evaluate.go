package iam

import (
	"slices"
	"strings"
)

// Request is one action on one resource, as AWS sees it: a call may need several.
type Request struct {
	Principal string // the caller's role ARN; looked at by a key's policy alone
	Action    string
	Resource  string              // the resource's ARN
	Context   map[string][]string // condition keys and their values; keys have no case
}

// Decision is what comes of a request.
type Decision string

const (
	Allowed      Decision = "allowed"
	ImplicitDeny Decision = "implicit deny" // nobody allowed it
	ExplicitDeny Decision = "explicit deny" // somebody denied it, whoever allowed it
)

// Evaluate judges a request by the caller's own policies.
// Order: IAM User Guide, "Policy evaluation logic".
func Evaluate(policies []Policy, r Request) Decision {
	decision := ImplicitDeny
	for _, p := range policies {
		for _, s := range p.statements {
			if !s.applies(r) {
				continue
			}
			if s.deny {
				return ExplicitDeny
			}
			decision = Allowed
		}
	}
	return decision
}

// EvaluateForKey judges a request on a KMS key by the key's policy and the caller's own, both of one account.
// A key's policy must agree: by naming the caller, or by handing the say to the account, whose policies then
// decide. Rule: KMS Developer Guide, "Key policies in AWS KMS".
func EvaluateForKey(key Policy, policies []Policy, r Request) Decision {
	var named, account Policy
	for _, s := range key.statements {
		if names(s.principals, r.Principal) {
			named.statements = append(named.statements, s)
		}
		if names(s.principals, accountOf(r.Principal)) {
			account.statements = append(account.statements, s)
		}
	}
	byName := Evaluate([]Policy{named}, r)
	byAccount := Evaluate([]Policy{account}, r)
	own := Evaluate(policies, r)
	switch {
	case byName == ExplicitDeny || byAccount == ExplicitDeny || own == ExplicitDeny:
		return ExplicitDeny
	case byName == Allowed, byAccount == Allowed && own == Allowed:
		return Allowed
	default:
		return ImplicitDeny
	}
}

// names says whether a list of principals holds a caller, or everybody.
func names(principals []string, caller string) bool {
	return slices.ContainsFunc(principals, func(p string) bool {
		return p == "*" || p == caller || strings.HasSuffix(caller, ":root") && p == strings.Split(caller, ":")[4]
	})
}

// accountOf gives the principal that stands for the whole account of a role: arn:aws:iam::<account>:root.
func accountOf(role string) string {
	parts := strings.SplitN(role, ":", 6)
	if len(parts) < 6 {
		return ""
	}
	return strings.Join(parts[:5], ":") + ":root"
}

func (s statement) applies(r Request) bool {
	return s.actions.match(r.Action, strings.ToLower) &&
		s.resources.match(r.Resource, func(text string) string { return text }) &&
		!slices.ContainsFunc(s.conditions, func(c condition) bool { return !c.holds(r.Context, s.deny) })
}

func (p patterns) match(text string, fold func(string) string) bool {
	listed := slices.ContainsFunc(p.list, func(pattern string) bool { return wildcard(fold(pattern), fold(text)) })
	return listed != p.not
}

// wildcard matches a text with a pattern in which * stands for any characters and ? for one.
func wildcard(pattern, text string) bool {
	if pattern == "" {
		return text == ""
	}
	switch pattern[0] {
	case '*':
		rest := strings.TrimLeft(pattern, "*")
		for i := range len(text) + 1 {
			if wildcard(rest, text[i:]) {
				return true
			}
		}
		return false
	case '?':
		return text != "" && wildcard(pattern[1:], text[1:])
	default:
		return text != "" && pattern[0] == text[0] && wildcard(pattern[1:], text[1:])
	}
}

// operator tests one value of the request against the values of the policy.
type operator struct {
	equal   func(policy, request string) bool
	negated bool // holds where no value of the policy is equal, and where the key is absent
	isNull  bool // looks at whether the key is there, not at its value
}

const (
	null    = "Null"
	boolean = "Bool"
)

// operators are those that are understood.
// Meaning: IAM User Guide, "IAM JSON policy elements: Condition operators".
var operators = map[string]operator{
	"StringEquals":              {equal: func(p, r string) bool { return p == r }},
	"StringNotEquals":           {equal: func(p, r string) bool { return p == r }, negated: true},
	"StringEqualsIgnoreCase":    {equal: strings.EqualFold},
	"StringNotEqualsIgnoreCase": {equal: strings.EqualFold, negated: true},
	"StringLike":                {equal: wildcard},
	"StringNotLike":             {equal: wildcard, negated: true},
	boolean:                     {equal: strings.EqualFold},
	null:                        {isNull: true},
}

// holds says whether the request meets the condition. Several values without a set operator are nothing that AWS
// defines: unclear is the answer for those.
func (c condition) holds(context map[string][]string, unclear bool) bool {
	values := valuesOf(context, c.key)
	if c.test.isNull {
		absent := len(values) == 0
		return slices.ContainsFunc(c.values, func(v string) bool { return strings.EqualFold(v, "true") == absent })
	}
	if len(values) == 0 {
		switch {
		case c.ifExists, c.set == forAllValues:
			return true // the hole of ForAllValues: no value, no exception
		case c.set == forAnyValue:
			return false
		default:
			return c.test.negated
		}
	}
	one := func(value string) bool {
		matched := slices.ContainsFunc(c.values, func(policy string) bool { return c.test.equal(policy, value) })
		return matched != c.test.negated
	}
	switch c.set {
	case forAllValues:
		return !slices.ContainsFunc(values, func(v string) bool { return !one(v) })
	case forAnyValue:
		return slices.ContainsFunc(values, one)
	default:
		if len(values) > 1 {
			return unclear
		}
		return one(values[0])
	}
}

func valuesOf(context map[string][]string, key string) []string {
	for name, values := range context {
		if strings.ToLower(name) == key {
			return values
		}
	}
	return nil
}
