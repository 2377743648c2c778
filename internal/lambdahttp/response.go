package lambdahttp

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"
)

// recorder is the http.ResponseWriter that an answer is collected in.
type recorder struct {
	head   bool // the request's method is HEAD
	header http.Header
	status int         // 0: not decided
	sent   http.Header // the header as it was when the status was decided
	body   bytes.Buffer
	first  []byte // of the body, for sniffing; also where it is not kept
}

// sniffed is how much of a body decides its content type: http.DetectContentType
// looks at no more.
const sniffed = 512

func newRecorder(method string) *recorder {
	return &recorder{head: method == http.MethodHead, header: make(http.Header)}
}

// Header is open to changes until the status is decided.
func (w *recorder) Header() http.Header { return w.header }

// WriteHeader decides the status, once. Informational ones decide nothing: the
// gateway has no place for them.
func (w *recorder) WriteHeader(status int) {
	if w.status != 0 || status < 200 {
		return
	}
	w.status, w.sent = status, w.header.Clone()
}

// Write adds to the body.
func (w *recorder) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.status == http.StatusNoContent || w.status == http.StatusNotModified {
		return 0, http.ErrBodyNotAllowed
	}
	w.first = append(w.first, p[:min(len(p), sniffed-len(w.first))]...)
	if w.head {
		return len(p), nil
	}
	return w.body.Write(p)
}

func (w *recorder) response() events.APIGatewayProxyResponse {
	w.WriteHeader(http.StatusOK)
	if _, set := w.sent["Content-Type"]; !set && w.first != nil && w.sent.Get("Content-Encoding") == "" {
		w.sent.Set("Content-Type", http.DetectContentType(w.first))
	}
	if w.status == http.StatusNotModified {
		w.sent.Del("Content-Type") // it would speak of a body that is not there
	}
	if !w.head {
		w.sent.Del("Content-Length") // the gateway counts for itself
	}
	for name := range w.sent {
		if strings.HasPrefix(name, http.TrailerPrefix) {
			delete(w.sent, name)
		}
	}
	response := events.APIGatewayProxyResponse{StatusCode: w.status, MultiValueHeaders: w.sent, Body: w.body.String()}
	// The event is JSON, which holds text only.
	if !utf8.ValidString(response.Body) {
		response.Body, response.IsBase64Encoded = base64.StdEncoding.EncodeToString(w.body.Bytes()), true
	}
	return response
}
