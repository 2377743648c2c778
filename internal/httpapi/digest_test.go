package httpapi_test

import (
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"colophon/internal/lambdahttp"
)

func sha256Of(body string) string {
	sum := sha256.Sum256([]byte(body))
	return "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
}

func sha512Of(body string) string {
	sum := sha512.Sum512([]byte(body))
	return "sha-512=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
}

func TestABodyIsTakenOnlyIfItIsTheOneThatItsDigestNames(t *testing.T) {
	t.Parallel()
	const (
		releases = inProject + "/releases"
		document = inProject + "/document?path=a.md"
		hours    = `{"message":"Hours"}`
		guide    = "# Guide\n"
	)
	wrong := strings.Replace(sha256Of(guide), "=:", "=:A", 1)
	for _, c := range []struct {
		name, method, target, body, header, digest string
		done                                       bool
	}{
		{"a document", "PUT", document, guide, "Content-Digest", sha256Of(guide), true},
		{"by SHA-512", "PUT", document, guide, "Content-Digest", sha512Of(guide), true},
		{"by both", "PUT", document, guide, "Content-Digest", sha256Of(guide) + " , " + sha512Of(guide), true},
		{"by an algorithm that is not known", "PUT", document, guide, "Content-Digest", "md5=:AAAA:, unixsum=1", true},
		{"by one that is not known and one that is", "PUT", document, guide, "Content-Digest", "crc32c=:AAAA:, " + sha256Of(guide), true},
		{"with parameters", "PUT", document, guide, "Content-Digest", sha256Of(guide) + ";a=1", true},
		{"the last of two counts", "PUT", document, guide, "Content-Digest", sha256Of("x") + ", " + sha256Of(guide), true},
		{"of the representation", "PUT", document, guide, "Repr-Digest", sha256Of(guide), true},
		{"an empty document that is said to be empty", "PUT", document, "", "Content-Digest", sha256Of(""), true},
		{"so too by SHA-512", "PUT", document, "", "Repr-Digest", sha512Of(""), true},
		{"a message", "POST", releases, hours, "Content-Digest", sha256Of(hours), true},
		{"no message", "POST", releases, "", "Content-Digest", sha256Of(""), true},
		{"an operation without a body", "POST", inDestination + "/pause", "", "Content-Digest", sha256Of(""), true},

		{"a document that was changed", "PUT", document, guide, "Content-Digest", sha256Of("# guide\n"), false},
		{"of the representation", "PUT", document, guide, "Repr-Digest", sha256Of("# guide\n"), false},
		{"right by one and wrong by another", "PUT", document, guide, "Content-Digest", sha256Of(guide) + ", " + sha512Of(""), false},
		{"a document of which nothing arrived", "PUT", document, "", "Content-Digest", sha256Of(guide), false},
		{"an empty document", "PUT", document, "", "", "", false},
		{"an empty document by an algorithm that is not known", "PUT", document, "", "Content-Digest", "md5=:1B2M2Y8AsgTpgAmY7PhCfg==:", false},
		{"a message that was changed", "POST", releases, hours, "Content-Digest", sha256Of(guide), false},
		{"a message that was lost", "POST", releases, "", "Content-Digest", sha256Of(hours), false},
		{"wrong JSON that was changed", "POST", releases, "{", "Content-Digest", sha256Of(hours), false},
		{"a change that was changed", "PATCH", inDestination, `{"name":"a"}`, "Content-Digest", sha256Of("{}"), false},
		{"a rotation whose order was lost", "POST", inDestination + "/rotate-secret", "", "Content-Digest", sha256Of(`{"revokeOld":true}`), false},
		{"an operation without a body", "POST", inDestination + "/pause", "", "Content-Digest", sha256Of("{}"), false},
		{"a digest of another length", "PUT", document, guide, "Content-Digest", wrong, false},
		{"a digest without its colons", "PUT", document, guide, "Content-Digest", strings.ReplaceAll(sha256Of(guide), ":", ""), false},
		{"a digest as a text", "PUT", document, guide, "Content-Digest", `sha-256="AAAA"`, false},
		{"a digest as a list", "PUT", document, guide, "Content-Digest", `sha-256=(:AAAA:)`, false},
		{"a name alone", "PUT", document, guide, "Content-Digest", "sha-256", false},
		{"in hexadecimal digits", "PUT", document, guide, "Content-Digest", "sha-256=" + strings.Repeat("a0", 32), false},
		{"what is no dictionary", "PUT", document, guide, "Content-Digest", "SHA-256=marked", false},
	} {
		w := &world{}
		h, _ := api(t, w)
		r := ask(c.method, c.target, "admin", c.body)
		if c.header != "" {
			r.Header.Set(c.header, c.digest)
		}
		answer := serve(h, r)
		if c.done != (answer.Code < 300) || c.done != (w.calls() == 1) {
			t.Errorf("%s: got %d %s, and %d services were called", c.name, answer.Code, answer.Body, w.calls())
		}
		if c.done {
			continue
		}
		field := c.header
		if c.digest == "" || strings.HasPrefix(c.digest, "md5") {
			field = "content"
		}
		if p := problemOf(t, answer); answer.Code != 400 || p.Code != "invalid" || p.Field != field || strings.Contains(p.Detail, "marked") {
			t.Errorf("%s: got %+v", c.name, p)
		}
	}
}

// A token is judged first: without one nothing is said of a body.
func TestADigestIsNotLookedAtWithoutAToken(t *testing.T) {
	t.Parallel()
	h, _ := api(t, &world{})
	answer := serve(h, ask("PUT", inProject+"/document?path=a.md", "", "x", "Content-Digest", sha256Of("y")))
	if answer.Code != http.StatusUnauthorized {
		t.Errorf("got %d %s", answer.Code, answer.Body)
	}
}

func TestAContentsDigestComesWithIt(t *testing.T) {
	t.Parallel()
	h, _ := api(t, &world{})
	for _, target := range []string{inProject + "/document?path=guide/index.md", inProject + "/releases/6/document?path=guide/index.md"} {
		for _, method := range []string{"GET", "HEAD"} {
			if got := serve(h, ask(method, target, "viewer", "")).Header().Get("Repr-Digest"); got != sha256Of("# Guide\n") {
				t.Errorf("%s %s: the digest is %q", method, target, got)
			}
		}
	}
	saved := serve(h, ask("PUT", inProject+"/document?path=guide/index.md", "editor", "# Guide\n"))
	var said struct {
		Digest string
		Size   int64
	}
	decode(t, saved.Body.Bytes(), &said)
	if said.Digest != document.Hash.String() || said.Size != 8 {
		t.Errorf("saved with the answer %s", saved.Body)
	}
}

// What the function gets of a form is kept as it came, under its own type.
func TestADocumentIsSavedByteForByteWhateverItsTypeIs(t *testing.T) {
	t.Parallel()
	body := "a=1&b=%20\r\n--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--x--\r\n"
	for sent, kept := range map[string]string{
		"":                                  "text/markdown; charset=utf-8",
		"application/x-www-form-urlencoded": "text/markdown; charset=utf-8",
		"multipart/form-data; boundary=x":   "multipart/form-data; boundary=x",
		"multipart/form-data":               "multipart/form-data",
		"application/json":                  "application/json",
		"text/plain":                        "text/plain",
	} {
		w := &world{}
		h, _ := api(t, w)
		headers := map[string][]string{"Authorization": {"Bearer editor"}, "Content-Digest": {sha256Of(body)}}
		if sent != "" {
			headers["Content-Type"] = []string{sent}
		}
		response, err := lambdahttp.Handle(h)(t.Context(), events.APIGatewayProxyRequest{
			Resource: "/{proxy+}", HTTPMethod: "PUT", Path: inProject + "/document",
			PathParameters:                  map[string]string{"proxy": strings.TrimPrefix(inProject, "/") + "/document"},
			MultiValueQueryStringParameters: map[string][]string{"path": {"a.md"}},
			MultiValueHeaders:               headers, Body: body,
		})
		if err != nil || response.StatusCode != http.StatusOK || string(w.saved.Content) != body || w.saved.Type != kept {
			t.Errorf("%q: got %d %s (%v), saved %q as %q", sent, response.StatusCode, response.Body, err, w.saved.Content, w.saved.Type)
		}
	}
}

// Whatever the header is, a body is taken only if it can be the right one.
func FuzzContentDigest(f *testing.F) {
	for _, digest := range []string{"", sha256Of("x"), sha512Of("x"), sha256Of("y"), "sha-256", "sha-256=:", "a=1, b", "sha-256=:AA==:;x", "(", ","} {
		f.Add(digest)
	}
	f.Fuzz(func(t *testing.T, digest string) {
		w := &world{}
		answer := serve(handlerOf(t, w), ask("PUT", inProject+"/document?path=a.md", "editor", "x", "Content-Digest", digest))
		if done := answer.Code == http.StatusOK; done != (w.calls() == 1) || !done && answer.Code != http.StatusBadRequest {
			t.Errorf("got %d %s", answer.Code, answer.Body)
		}
		if answer.Code == http.StatusOK && strings.HasPrefix(digest, "sha-256=:") && !strings.HasPrefix(digest, sha256Of("x")) && !strings.Contains(digest, ",") {
			t.Errorf("%q was taken for the digest of x", digest)
		}
	})
}
