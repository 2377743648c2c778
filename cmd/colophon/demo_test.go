package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"colophon/internal/enginetest"
	"colophon/internal/store"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

// onWrite calls stop when it is told this.
type onWrite struct {
	bytes.Buffer
	text string
	stop func()
}

func (w *onWrite) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(w.text)) {
		w.stop()
	}
	return w.Buffer.Write(p)
}

func TestADemoThatIsStoppedSaysSo(t *testing.T) {
	t.Parallel()
	for name, told := range map[string]string{"between two requests": "project prj_a", "while it waits": "published after"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testDemoStopped(t, told)
		})
	}
}

// savedAs is the answer to a save.
func savedAs(digest, at string) string {
	return `{"path":"guide/welcome.md","contentType":"text/markdown","size":3,"digest":"` + digest + `","etag":"\"1\"","savedAt":` + at + `}`
}

func digestOfBody(t *testing.T, r *http.Request) string {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Error(err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(body))
}

func TestADocumentThatWasStoredOtherwiseThanSentIsAFailure(t *testing.T) {
	t.Parallel()
	for same, want := range map[bool]int{true: exitDone, false: exitFailed} {
		api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			digest := digestOfBody(t, r)
			if !same {
				digest = strings.Repeat("00", sha256.Size)
			}
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("ETag", `"1"`)
			w.WriteHeader(http.StatusCreated)
			fmt.Fprint(w, savedAs(digest, `"2026-03-09T07:07:06.000Z"`))
		}))
		t.Cleanup(api.Close)
		file := filepath.Join(t.TempDir(), "welcome.md")
		if err := os.WriteFile(file, []byte("# Welcome"), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, err bytes.Buffer
		if code := run(t.Context(), []string{"document", "put", "prj_a", "guide/welcome.md", file, "--api", api.URL, "--token", "clp_a"}, &out, &err); code != want {
			t.Errorf("stored as sent: %v: exit code %d\n%s%s", same, code, &out, &err)
		}
		if !same && !strings.Contains(err.String(), "not as it was sent") {
			t.Errorf("said %q", &err)
		}
	}
}

// testDemoStopped stops a demo when it has told this; no announcement ever comes.
func testDemoStopped(t *testing.T, told string) {
	const at = `"2026-03-09T07:07:06.000Z"`
	ctx, stop := context.WithCancel(t.Context())
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := ""
		switch {
		case r.Method == http.MethodPut:
			w.Header().Set("ETag", `"1"`)
			answer = savedAs(digestOfBody(t, r), at)
		case strings.HasSuffix(r.URL.Path, "/destinations"):
			w.Header().Set("ETag", `"1"`)
			answer = `{"destination":{"id":"dst_a","project":"prj_a","name":"n","url":"http://127.0.0.1/","state":"active","slow":false,` +
				`"damaged":false,"headers":[],"etag":"\"1\"","createdAt":` + at + `,"updatedAt":` + at + `},"secret":"whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="}`
		case strings.HasSuffix(r.URL.Path, "/releases"):
			answer = `{"project":"prj_a","number":1,"message":"","documents":1,"publishedAt":` + at + `,"deliveries":[]}`
		default:
			answer = `{"id":"prj_a","name":"Demo","createdAt":` + at + `}`
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, answer)
	}))
	t.Cleanup(api.Close)

	out, err := &onWrite{text: told, stop: stop}, &bytes.Buffer{}
	code := run(ctx, []string{"demo", "--api", api.URL, "--token", "clp_a"}, out, err)
	if code != exitFailed || !strings.Contains(err.String(), errInterrupted.Error()) {
		t.Errorf("exit code %d\n%s%s", code, out.String(), err.String())
	}
}

// stackOf serves CloudFormation's description of a stack named colophon, of an
// environment (none where empty), with a content table.
func stackOf(t *testing.T, environment, table, api string) *httptest.Server {
	t.Helper()
	outputs := map[string]string{"ContentTableName": table, "ApiUrl": api}
	if environment != "" {
		outputs["Environment"] = environment
	}
	members := ""
	for name, value := range outputs {
		members += "<member><OutputKey>" + name + "</OutputKey><OutputValue>" + value + "</OutputValue></member>"
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/xml")
		fmt.Fprintf(w, `<DescribeStacksResponse xmlns="http://cloudformation.amazonaws.com/doc/2010-05-15/"><DescribeStacksResult><Stacks><member>`+
			`<StackName>colophon</StackName><StackStatus>CREATE_COMPLETE</StackStatus><CreationTime>2026-11-30T00:00:00Z</CreationTime>`+
			`<Outputs>%s</Outputs></member></Stacks></DescribeStacksResult></DescribeStacksResponse>`, members)
	}))
	t.Cleanup(server.Close)
	return server
}

func TestADemoRefusesProductionAndRevokesItsTokenWhenItFails(t *testing.T) {
	tables := enginetest.NewTables(t)
	engine, err := store.NewDynamo(store.DynamoConfig{Client: tables.Client})
	if err != nil {
		t.Fatal(err)
	}
	kept, err := store.NewTokens(store.TokensConfig{Engine: engine, Table: tables.Content})
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		list, err := kept.ListTokens(context.WithoutCancel(r.Context()), "")
		if err != nil || len(list) != 1 || list[0].ExpiresAt.Sub(list[0].CreatedAt) > time.Hour {
			t.Errorf("while it acts: %+v, %v", list, err)
		}
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprint(w, `{"type":"urn:colophon:problem:unavailable","title":"Not available","status":503,"detail":"The table does not answer.","requestId":"r"}`)
	}))
	defer api.Close()
	for name, value := range map[string]string{
		"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local", "AWS_ENDPOINT_URL": "",
		"AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "AWS_PROFILE": "",
		"AWS_ENDPOINT_URL_DYNAMODB": "http://" + enginetest.Shared(t).Address,
		"COLOPHON_API":              "", "COLOPHON_TOKEN": "", "COLOPHON_TOKEN_FILE": "",
	} {
		t.Setenv(name, value)
	}
	for _, row := range []struct {
		environment string
		asked       int
		says        string
	}{
		{"production", 0, "is a production stack"},
		{"", 0, "does not say"},
		{"elsewhere", 0, "is a production stack"},
		{"local", 1, "The table does not answer."},
		{"staging", 1, "The table does not answer."},
	} {
		asked = 0
		t.Setenv("AWS_ENDPOINT_URL_CLOUDFORMATION", stackOf(t, row.environment, tables.Content, api.URL).URL)
		var out, failed bytes.Buffer
		code := run(t.Context(), []string{"demo"}, &out, &failed)
		if code == exitDone || asked != row.asked || !strings.Contains(failed.String(), row.says) {
			t.Errorf("%q: exit code %d after %d requests: %s%s", row.environment, code, asked, out.String(), failed.String())
		}
		if list, err := kept.ListTokens(t.Context(), ""); err != nil || len(list) > 0 {
			t.Errorf("%q: left %+v, %v", row.environment, list, err)
		}
	}
}
