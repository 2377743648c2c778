package client_test

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"colophon/client"
)

// wire notes what would be sent, and answers nothing.
type wire struct {
	digest []string
	body   string
	length int64
}

var errNoAnswer = errors.New("no answer")

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	*w = wire{digest: r.Header.Values("Content-Digest"), length: r.ContentLength}
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		w.body = string(body)
	}
	return nil, errNoAnswer
}

func TestEachBodyIsSentWithItsDigest(t *testing.T) {
	t.Parallel()
	sent := &wire{}
	api, err := client.New(client.Config{Address: "https://api.example", Token: "a", HTTP: &http.Client{Transport: sent}})
	if err != nil {
		t.Fatal(err)
	}
	document := func(r io.Reader, params client.PutDocumentParams) func() error {
		return func() error {
			_, err := api.PutDocument(t.Context(), &client.PutDocumentReqWithContentType{
				ContentType: "text/markdown", Content: client.PutDocumentReq{Data: r},
			}, params)
			return err
		}
	}
	publish := func(ask client.OptPublish) func() error {
		return func() error {
			_, err := api.PublishRelease(t.Context(), ask, client.PublishReleaseParams{})
			return err
		}
	}
	const none = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
	for _, c := range []struct {
		name   string
		call   func() error
		body   string
		digest string // "": that of the body; "-": none
	}{
		{"a document", document(strings.NewReader("# Guide"), client.PutDocumentParams{}), "# Guide", ""},
		{"a document that is read once", document(io.MultiReader(strings.NewReader("# "), strings.NewReader("Guide")), client.PutDocumentParams{}), "# Guide", ""},
		{"an empty document", document(strings.NewReader(""), client.PutDocumentParams{}), "", none},
		{"a document whose digest the caller names", document(strings.NewReader("# Guide"), client.PutDocumentParams{
			ContentDigest: client.NewOptString("sha-256=:" + none + ":"),
		}), "# Guide", none},
		{"a message", publish(client.NewOptPublish(client.Publish{Message: client.NewOptString("Hours")})), `{"message":"Hours"}`, ""},
		{"no body", publish(client.OptPublish{}), "", none},
		{"a read", func() error { _, err := api.GetProject(t.Context(), client.GetProjectParams{}); return err }, "", "-"},
	} {
		if err := c.call(); !errors.Is(err, errNoAnswer) {
			t.Fatalf("%s: %v", c.name, err)
		}
		if sent.body != c.body || sent.length != int64(len(c.body)) {
			t.Errorf("%s: sent %q, length %d", c.name, sent.body, sent.length)
		}
		if c.digest == "-" {
			if len(sent.digest) > 0 {
				t.Errorf("%s: sent with %q", c.name, sent.digest)
			}
			continue
		}
		if sum := sha256.Sum256([]byte(c.body)); c.digest == "" {
			c.digest = base64.StdEncoding.EncodeToString(sum[:])
		}
		if len(sent.digest) != 1 || sent.digest[0] != "sha-256=:"+c.digest+":" {
			t.Errorf("%s: sent with %q", c.name, sent.digest)
		}
	}
}

func TestABodyThatCannotBeReadIsNotSent(t *testing.T) {
	t.Parallel()
	sent := &wire{}
	api, err := client.New(client.Config{Address: "https://api.example", Token: "a", HTTP: &http.Client{Transport: sent}})
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	_, err = api.PutDocument(t.Context(), &client.PutDocumentReqWithContentType{
		ContentType: "text/markdown", Content: client.PutDocumentReq{Data: io.MultiReader(strings.NewReader("half"), failing{broken})},
	}, client.PutDocumentParams{})
	if !errors.Is(err, broken) || sent.body != "" || sent.digest != nil {
		t.Errorf("got %v, sent %+v", err, sent)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
