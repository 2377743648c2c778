package iam_test

import (
	"encoding/json"
	"os"
	"testing"

	"colophon/deploy/iam"
)

const notRead = "not read"

func TestPoliciesAreJudgedByTheDocumentedRules(t *testing.T) {
	t.Parallel()
	var rows []struct {
		Rule             string
		Policies         []json.RawMessage
		Action, Resource string
		Context          map[string][]string
		Want             string
	}
	data, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &rows); err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		t.Run(row.Rule, func(t *testing.T) {
			t.Parallel()
			var policies []iam.Policy
			for _, document := range row.Policies {
				p, err := iam.Parse(document)
				if err != nil {
					if row.Want != notRead {
						t.Fatal(err)
					}
					return
				}
				policies = append(policies, p)
			}
			got := iam.Evaluate(policies, iam.Request{Action: row.Action, Resource: row.Resource, Context: row.Context})
			if string(got) != row.Want {
				t.Errorf("got %s, want %s", got, row.Want)
			}
		})
	}
}

func TestAKeysPolicyMustAgree(t *testing.T) {
	t.Parallel()
	const (
		key   = "arn:aws:kms:eu-west-1:111122223333:key/k"
		role  = "arn:aws:iam::111122223333:role/deliver"
		allow = `{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"kms:Decrypt","Resource":"` + key + `"}}`
		deny  = `{"Version":"2012-10-17","Statement":{"Effect":"Deny","Action":"kms:*","Resource":"*"}}`
		none  = `{"Version":"2012-10-17","Statement":[]}`
	)
	statement := func(effect, principal string) string {
		return `{"Effect":"` + effect + `","Principal":` + principal + `,"Action":"kms:*","Resource":"*"}`
	}
	keyPolicy := func(statements string) string {
		return `{"Version":"2012-10-17","Statement":[` + statements + `]}`
	}
	root := `{"AWS":"arn:aws:iam::111122223333:root"}`
	for _, row := range []struct {
		rule, key, own string
		want           iam.Decision
	}{
		{"a key that hands the say to the account leaves it to the caller's policy, which allows", keyPolicy(statement("Allow", root)), allow, iam.Allowed},
		{"a key that hands the say to the account leaves it to the caller's policy, which says nothing", keyPolicy(statement("Allow", root)), none, iam.ImplicitDeny},
		{"the account may be named by its number", keyPolicy(statement("Allow", `{"AWS":"111122223333"}`)), allow, iam.Allowed},
		{"a key that names another account does not agree", keyPolicy(statement("Allow", `{"AWS":"arn:aws:iam::999999999999:root"}`)), allow, iam.ImplicitDeny},
		{"a key that names nobody does not agree", keyPolicy(""), allow, iam.ImplicitDeny},
		{"a key that names a service alone does not agree", keyPolicy(statement("Allow", `{"Service":"lambda.amazonaws.com"}`)), allow, iam.ImplicitDeny},
		{"a key that names the caller needs no policy of the caller's", keyPolicy(statement("Allow", `{"AWS":"`+role+`"}`)), none, iam.Allowed},
		{"a key that names everybody names the caller", keyPolicy(statement("Allow", `"*"`)), none, iam.Allowed},
		{"a key that names another role does not agree", keyPolicy(statement("Allow", `{"AWS":"`+role+`2"}`)), allow, iam.ImplicitDeny},
		{"a key's deny of the caller beats all", keyPolicy(statement("Allow", root) + "," + statement("Deny", `{"AWS":"`+role+`"}`)), allow, iam.ExplicitDeny},
		{"a key's deny of the account beats all", keyPolicy(statement("Allow", `"*"`) + "," + statement("Deny", root)), allow, iam.ExplicitDeny},
		{"the caller's own deny beats the key's naming", keyPolicy(statement("Allow", `{"AWS":"`+role+`"}`)), deny, iam.ExplicitDeny},
	} {
		t.Run(row.rule, func(t *testing.T) {
			t.Parallel()
			request := iam.Request{Principal: role, Action: "kms:Decrypt", Resource: key}
			got := iam.EvaluateForKey(parsed(t, row.key), []iam.Policy{parsed(t, row.own)}, request)
			if got != row.want {
				t.Errorf("got %s, want %s", got, row.want)
			}
		})
	}
}

func parsed(t *testing.T, document string) iam.Policy {
	t.Helper()
	p, err := iam.Parse([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// FuzzParse holds that reading a policy fails or succeeds, and never panics, whatever the document.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"a:b","Resource":"*","Condition":{"Null":{"k":true}}}}`))
	f.Add([]byte(`{"Version":"2012-10-17","Statement":[{"Effect":"Deny","NotAction":["*?"],"NotResource":[],"Principal":"*"}]}`))
	f.Fuzz(func(t *testing.T, document []byte) {
		p, err := iam.Parse(document)
		if err != nil {
			return
		}
		got := iam.Evaluate([]iam.Policy{p}, iam.Request{Action: "a:b", Resource: "r"})
		if got != iam.Allowed && got != iam.ImplicitDeny && got != iam.ExplicitDeny {
			t.Errorf("%q is no decision", got)
		}
	})
}
