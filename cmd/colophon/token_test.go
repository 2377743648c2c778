package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// acting runs a command against an API that notes which token acts. The
// environment is the process's, so callers are not parallel.
func acting(t *testing.T, stdin string, words ...string) (code int, token, out, err string) {
	t.Helper()
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token = r.Header.Get("Authorization")
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"projects":[]}`)
	}))
	defer api.Close()
	var stdout, stderr bytes.Buffer
	root := newRoot()
	root.SetArgs(append(words, "--api", api.URL))
	root.SetIn(strings.NewReader(stdin))
	root.SetOut(&stdout)
	root.SetErr(&stderr)
	if err := root.ExecuteContext(t.Context()); err != nil {
		fmt.Fprintln(&stderr, explain(err))
		code = exitCode(err)
	}
	return code, token, stdout.String(), stderr.String()
}

func TestATokenComesFromAFileStandardInputTheEnvironmentOrAFlagWithAWarning(t *testing.T) {
	write := func(text string) string {
		path := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const list, good = "project list", "Bearer clp_good"
	for _, row := range []struct {
		name            string
		words           string
		variable, file  string
		stdin           string
		token           string // empty: nothing is sent
		says            string
		mustNotBeWarned bool
	}{
		{name: "a file", words: list, file: write("clp_good\r\n"), token: good, mustNotBeWarned: true},
		{name: "the environment", words: list, variable: "clp_good\n", token: good, mustNotBeWarned: true},
		{name: "standard input", words: list + " --token-stdin", stdin: "clp_good\n", token: good, mustNotBeWarned: true},
		{name: "standard input as a dash", words: list + " --token -", stdin: " clp_good", token: good, mustNotBeWarned: true},
		{name: "standard input over the environment", words: list + " --token-stdin", stdin: "clp_good", variable: "clp_other", token: good, mustNotBeWarned: true},
		{name: "a flag", words: list + " --token clp_good", variable: "clp_other", token: good, says: "COLOPHON_TOKEN_FILE or --token-stdin"},
		{name: "none", words: list, says: "as whom"},
		{name: "variable and file", words: list, variable: "clp_marked", file: write("clp_good"), says: "are both set"},
		{name: "flag and standard input", words: list + " --token clp_marked --token-stdin", stdin: "clp_good", says: "two ways"},
		{name: "an empty flag", words: list + " --token=", variable: "clp_marked", says: "--token is empty"},
		{name: "an empty file", words: list, file: write("\n"), says: "COLOPHON_TOKEN_FILE names does not hold a token"},
		{name: "a file of more", words: list, file: write("clp_marked\nclp_marked\n"), says: "and nothing else"},
		{name: "an endless file", words: list, file: "/dev/zero", says: "and nothing else"},
		{name: "no file", words: list, file: "/nowhere/at/all", says: "COLOPHON_TOKEN_FILE"},
		{name: "nothing on standard input", words: list + " --token-stdin", variable: "clp_marked", says: "standard input does not hold a token"},
		{name: "a document from where the token came", words: "document put prj_a a.md - --token-stdin", stdin: "clp_good\n# Hello\n", says: "and nothing else"},
		{name: "a document behind the token", words: "document put prj_a a.md - --token-stdin", stdin: "clp_good\n", says: "can give nothing else"},
		{name: "a secret from where the token came", words: "verify prj_a dst_a 1 --secret-stdin --token-stdin", stdin: "clp_good\n", says: "can give nothing else"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Setenv("COLOPHON_TOKEN", row.variable)
			t.Setenv("COLOPHON_TOKEN_FILE", row.file)
			code, token, out, err := acting(t, row.stdin, strings.Fields(row.words)...)
			if token != row.token || !strings.Contains(err, row.says) {
				t.Errorf("acts with %q, want %q; says %q, want %q", token, row.token, err, row.says)
			}
			if (row.token == "") != (code != exitDone) {
				t.Errorf("exit code %d", code)
			}
			if strings.Contains(out+err, "clp_marked") || row.mustNotBeWarned && err != "" {
				t.Errorf("says %q, %q", out, err)
			}
		})
	}
}

func TestATokenFileIsNotLookedAtWhereNoTokenIsNeeded(t *testing.T) {
	t.Setenv("COLOPHON_TOKEN_FILE", "/nowhere/at/all") // as it is before "token create" wrote it
	var out, err bytes.Buffer
	if code := run(t.Context(), []string{"token", "create", "--stack", "", "--name", "a", "--all-projects"}, &out, &err); !strings.Contains(err.String(), "which stack") {
		t.Errorf("exit code %d, %s", code, err.String())
	}
}

func TestATokenIsNotSentUnencryptedOrWhereARedirectPoints(t *testing.T) {
	elsewhere := ""
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { elsewhere = r.URL.Path }))
	defer other.Close()
	redirecting := httptest.NewServer(http.RedirectHandler(other.URL+"/elsewhere", http.StatusTemporaryRedirect))
	defer redirecting.Close()
	t.Setenv("COLOPHON_TOKEN", "clp_marked")
	for _, row := range []struct{ api, says string }{
		{"http://api.example.com/v1", "https://"},
		{"http://192.0.2.1/v1", "https://"},
		{"http://localhost.example.com/v1", "https://"},
		{redirecting.URL, "redirect, which is not followed"},
	} {
		var out, err bytes.Buffer
		code := run(t.Context(), []string{"project", "list", "--api", row.api}, &out, &err)
		if code == exitDone || !strings.Contains(err.String(), row.says) || strings.Contains(err.String(), "clp_marked") {
			t.Errorf("%s: exit code %d, %s", row.api, code, err.String())
		}
	}
	if elsewhere != "" {
		t.Errorf("%s was asked for", elsewhere)
	}
}

func TestReceiveAndVerifyTakeASigningSecretOnly(t *testing.T) {
	text, err := os.ReadFile("../../docs/checked/testdata/secrets.json") // one table for all receivers
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Name, Secret string
		Right        bool
	}
	if err := json.Unmarshal(text, &cases); err != nil || len(cases) < 20 {
		t.Fatalf("%d cases, %v", len(cases), err)
	}
	b := newBench(t)
	ended, cancel := context.WithCancel(t.Context())
	cancel() // what starts ends at once
	for _, c := range cases {
		judge := func(way string, code int, said string) {
			t.Helper()
			names := map[string]string{"stdin": "standard input", "environment": "COLOPHON_SECRET"}[way]
			if names == "" {
				names = "--secret"
			}
			refused := strings.Contains(said, names) && strings.Contains(said, "is not a signing secret")
			if c.Right && (code != exitDone || refused) || !c.Right && (code != exitUsage || !refused) {
				t.Errorf("%s, by %s: exit code %d, %s", c.Name, way, code, said)
			}
			if secret := strings.TrimSpace(c.Secret); len(secret) > 8 && strings.Contains(said, secret) {
				t.Errorf("%s, by %s: the secret is repeated: %s", c.Name, way, said)
			}
		}
		receive := func(words ...string) (int, string) {
			var out, err bytes.Buffer
			code := run(ended, append([]string{"receive", "--listen", "127.0.0.1:0"}, words...), &out, &err)
			return code, out.String() + err.String()
		}
		code, said := receive("--secret", c.Secret)
		judge("receive --secret", code, said)
		code, said = b.verify("", "--secret", c.Secret)
		judge("verify --secret", code, said)
		if !strings.HasPrefix(c.Secret, "\n") { // it is what the first line holds
			code, said = b.verify(c.Secret, "--secret-stdin")
			if !c.Right && strings.Contains(strings.TrimSpace(c.Secret), "\n") {
				continue
			}
			judge("stdin", code, said)
		}
		if c.Secret != "" { // which is none that is given
			t.Setenv("COLOPHON_SECRET", c.Secret)
			code, said = receive()
			judge("environment", code, said)
			code, said = b.verify("")
			judge("environment", code, said)
			t.Setenv("COLOPHON_SECRET", "")
		}
	}
}
