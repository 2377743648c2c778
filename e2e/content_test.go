//go:build stack

package e2e_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"colophon/client"
)

// The gateway in front of the functions hands over what came, so the type that a
// caller's tool chooses by itself (curl's is a form's) costs no byte.
func TestADocumentIsKeptAsItWasSentWhateverItsType(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	const parts = "--edge\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.md\"\r\n\r\n# Caf\u00e9\r\n--edge--\r\n"
	for name, row := range map[string]struct{ kind, content string }{
		"form":                     {"application/x-www-form-urlencoded", "a=1&b=%20+x&&a=2\n# Guide\n"},
		"parts":                    {"multipart/form-data; boundary=edge", parts},
		"parts without a boundary": {"multipart/form-data", parts},
		"without a type":           {"", "# Guide\n"},
		"JSON":                     {"application/json", "{ \"a\" : 1.0 }\n"},
		"text":                     {"text/plain; charset=utf-8", "caf\u00e9\r\n\tend"},
		"bytes":                    {"application/octet-stream", "\x00\x01 text \u00ff\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := strings.ReplaceAll(name, " ", "-") + ".md"
			saved, text := p.put(t, path, row.kind, row.content)
			if saved.StatusCode != http.StatusCreated {
				t.Fatalf("answered %d: %s", saved.StatusCode, text)
			}
			var document struct {
				Digest string `json:"digest"`
				Size   int    `json:"size"`
			}
			must(t, json.Unmarshal(text, &document))
			digest := sha256.Sum256([]byte(row.content))
			if document.Digest != hex.EncodeToString(digest[:]) || document.Size != len(row.content) {
				t.Errorf("saved as %s with %d bytes, want %x with %d", document.Digest, document.Size, digest, len(row.content))
			}
			kept, err := p.api.GetDocument(t.Context(), client.GetDocumentParams{Project: p.id, Path: path})
			must(t, err)
			content, err := io.ReadAll(kept.(*client.GetDocumentOKHeaders).Response)
			must(t, err)
			if string(content) != row.content {
				t.Errorf("kept %q, want %q", content, row.content)
			}
		})
	}
}

func TestADocumentOfBytesThatAreNoTextIsRefusedWhateverItsType(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	for _, kind := range []string{"application/octet-stream", "application/x-www-form-urlencoded", "multipart/form-data"} {
		if refused, text := p.put(t, "bytes.md", kind, "\xff\xfe\x00"); refused.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: answered %d: %s, want 400", kind, refused.StatusCode, text)
		}
	}
}

func digestOf(content string) string {
	digest := sha256.Sum256([]byte(content))
	return "sha-256=:" + base64.StdEncoding.EncodeToString(digest[:]) + ":"
}

func TestABodyThatIsNotTheOneThatItsDigestNamesIsRefused(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	const guide = "# Guide\n"
	for name, row := range map[string]struct{ kind, content, digest string }{
		"changed":               {"text/markdown", "# guide\n", digestOf(guide)},
		"a form that was eaten": {"application/x-www-form-urlencoded", "", digestOf(guide)},
		"lost":                  {"text/markdown", "", digestOf(guide)},
		"empty":                 {"text/markdown", "", ""},
		"malformed":             {"text/markdown", guide, "sha-256=abc"},
	} {
		path := strings.ReplaceAll(name, " ", "-") + ".md"
		if refused, text := p.put(t, path, row.kind, row.content, "Content-Digest", row.digest); refused.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: answered %d: %s, want 400", name, refused.StatusCode, text)
		}
		_, err := p.api.GetDocument(t.Context(), client.GetDocumentParams{Project: p.id, Path: path})
		if problem := client.AsProblem(err); problem == nil || problem.StatusCode != http.StatusNotFound {
			t.Errorf("%s: read with %v, want 404", name, err)
		}
	}
	for name, content := range map[string]string{"right": guide, "meant to be empty": ""} {
		path := strings.ReplaceAll(name, " ", "-") + ".md"
		if saved, text := p.put(t, path, "", content, "Content-Digest", digestOf(content)); saved.StatusCode != http.StatusCreated {
			t.Errorf("%s: answered %d: %s", name, saved.StatusCode, text)
		}
		kept, err := p.api.GetDocument(t.Context(), client.GetDocumentParams{Project: p.id, Path: path})
		must(t, err)
		if got := kept.(*client.GetDocumentOKHeaders).ReprDigest; got != digestOf(content) {
			t.Errorf("%s: kept with the digest %s", name, got)
		}
	}
}

// put saves a document with exactly this type, or none, and headers in pairs.
func (p *project) put(t testing.TB, path, kind, content string, headers ...string) (*http.Response, []byte) {
	t.Helper()
	address := running.API + "/projects/" + p.id + "/document?path=" + path
	q, err := http.NewRequestWithContext(t.Context(), http.MethodPut, address, strings.NewReader(content))
	must(t, err)
	q.Header.Set("Authorization", "Bearer "+running.token)
	if kind != "" {
		q.Header.Set("Content-Type", kind)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i+1] != "" {
			q.Header.Set(headers[i], headers[i+1])
		}
	}
	answer, err := http.DefaultClient.Do(q)
	must(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	must(t, err)
	return answer, text
}
