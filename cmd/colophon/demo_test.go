package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

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

// testDemoStopped stops a demo when it has told this; no announcement ever comes.
func testDemoStopped(t *testing.T, told string) {
	const at = `"2026-03-09T07:07:06.000Z"`
	ctx, stop := context.WithCancel(t.Context())
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := ""
		switch {
		case r.Method == http.MethodPut:
			w.Header().Set("ETag", `"1"`)
			answer = `{"path":"guide/welcome.md","contentType":"text/markdown","size":3,"digest":"00","etag":"\"1\"","savedAt":` + at + `}`
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
