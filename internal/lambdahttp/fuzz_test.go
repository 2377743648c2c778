package lambdahttp_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"colophon/internal/lambdahttp"
)

// Whatever the event is, a handler gets a request that it can read, and the
// answer can be written as JSON.
func FuzzEvent(f *testing.F) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		f.Fatal(err, files)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var e events.APIGatewayProxyRequest
		if json.Unmarshal(text, &e) != nil {
			return
		}
		fn := lambdahttp.Handle(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil || int64(len(body)) != r.ContentLength {
				t.Errorf("read %d of %d bytes: %v", len(body), r.ContentLength, err)
			}
			if r.URL.Path == "" || r.Header == nil {
				t.Errorf("the request is %+v", r)
			}
			if gateway, ok := lambdahttp.GatewayOf(r.Context()); !ok || strings.HasSuffix(gateway.Address, "/") && r.Host != "" {
				t.Errorf("the gateway is %+v", gateway)
			}
			_, _ = w.Write(body)
		}))
		response, err := fn(t.Context(), e)
		if err != nil {
			if !e.IsBase64Encoded {
				t.Error(err)
			}
			return
		}
		if _, err := json.Marshal(response); err != nil {
			t.Error(err)
		}
	})
}
