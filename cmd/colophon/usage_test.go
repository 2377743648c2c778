package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
)

func TestWrongWordsAreWrongUsage(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		words []string
		says  string
	}{
		{"a token without a name", []string{"token", "create"}, "--name is missing"},
		{"a token whose reach is not said", []string{"token", "create", "--name", "a"}, "--project ID or --all-projects"},
		{"a token of one project and of all", []string{"token", "create", "--name", "a", "--project", "prj_a", "--all-projects"}, "--project ID or --all-projects"},
		{"a token that expired", []string{"token", "create", "--name", "a", "--all-projects", "--expires", "0d"}, "--expires"},
		{"a token for more days than there are", []string{"token", "create", "--name", "a", "--all-projects", "--expires", "99999999999d"}, "--expires"},
		{"a token for days in words", []string{"token", "create", "--name", "a", "--all-projects", "--expires", "d"}, "--expires"},
		{"no stack", []string{"--stack", "", "token", "list"}, "which stack"},
		{"no command of that name", []string{"publisj"}, "publisj"},
		{"a flag that is none", []string{"publish", "prj_a", "--forced"}, "unknown flag"},
		{"an argument too few", []string{"delivery", "show", "prj_a"}, "DESTINATION is missing"},
		{"a status that a receiver cannot answer", []string{"receive", "--status", "9"}, "--status"},
		{"failures less than none", []string{"receive", "--fail-first", "-1"}, "--fail-first"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var out, err bytes.Buffer
			ctx, cancel := context.WithCancel(t.Context())
			cancel() // what is not refused at once ends at once
			if code := run(ctx, test.words, &out, &err); code != exitUsage || !strings.Contains(err.String(), test.says) {
				t.Errorf("exit code %d, %s%s", code, out.String(), err.String())
			}
		})
	}
}
