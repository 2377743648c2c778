package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"colophon/internal/webhook"
)

// bench is a delivery of two attempts, as the API tells what they signed.
type bench struct {
	t       *testing.T
	api     string
	secret  webhook.Secret
	id      string
	body    []byte
	seconds []int64 // of the attempts' timestamps
}

func newBench(t *testing.T) *bench {
	t.Helper()
	secret, err := webhook.NewSecret(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	body, err := webhook.Release{Project: webhook.Project{ID: "prj_a", Name: "Küche <&>"}, Number: 6}.Body(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, secret: secret, id: "msg_a", body: body, seconds: []int64{1773040026, 1773040090}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		signed := webhook.Sent{ID: b.id, Body: body}.Signed()
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"webhookId": b.id, "body": string(body), "bodyBytes": signed.BodyBytes, "bodyDigest": signed.BodyDigest,
			"attempts": []map[string]any{{"number": 7, "timestamp": b.seconds[0]}, {"number": 8, "timestamp": b.seconds[1]}},
		})
	}))
	t.Cleanup(server.Close)
	b.api = server.URL
	return b
}

func (b *bench) file(text string) string {
	b.t.Helper()
	path := filepath.Join(b.t.TempDir(), "saved")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
	return path
}

// headers are those of an attempt, as a receiver logs them.
func (b *bench) headers(attempt int, secrets ...webhook.Secret) string {
	a := webhook.Attempt{ID: b.id, Body: b.body, At: time.Unix(b.seconds[attempt-7], 0), Number: int64(attempt), Secrets: secrets}
	var text strings.Builder
	if err := a.Headers().Write(&text); err != nil {
		b.t.Fatal(err)
	}
	return text.String()
}

func (b *bench) signature(attempt int, secret webhook.Secret) string {
	return webhook.Sign(b.id, time.Unix(b.seconds[attempt-7], 0), b.body, secret)
}

// verify runs the command and gives its exit code and all that it wrote.
func (b *bench) verify(stdin string, arguments ...string) (code int, said string) {
	var out bytes.Buffer
	root := newRoot()
	root.SetArgs(append([]string{"verify", "prj_a", "dst_a", "6", "--api", b.api, "--token", "clp_marked"}, arguments...))
	root.SetIn(strings.NewReader(stdin))
	root.SetOut(&out)
	root.SetErr(&out)
	if err := root.ExecuteContext(b.t.Context()); err != nil {
		fmt.Fprintln(&out, "colophon: "+explain(err))
		code = exitCode(err)
	}
	return code, out.String()
}

func TestVerifySaysWhichPartDiffers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	other, err := webhook.NewSecret(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(b.secret.Reveal(), "whsec_"))
	if err != nil {
		t.Fatal(err)
	}
	mac := hmac.New(sha256.New, key)
	mac.Write(b.body)
	ofBodyAlone := hex.EncodeToString(mac.Sum(nil))
	var indented bytes.Buffer
	if err := json.Indent(&indented, b.body, "", "  "); err != nil {
		t.Fatal(err)
	}
	secret := []string{"--secret", b.secret.Reveal()}
	saved := func(text string) []string { return []string{"--request", b.file(text)} }
	whole := b.headers(7, b.secret) + "\r\n" + string(b.body)
	digest := webhook.Sent{Body: b.body}.Signed().BodyDigest
	for _, row := range []struct {
		name  string
		given []string
		code  int
		says  []string
	}{
		{"nothing given", nil, exitDone, []string{"Attempt 8 of release 6", b.id, "1773040090 (2026-03-09 07:08:10 UTC)", digest, fmt.Sprint(len(b.body), " bytes")}},
		{"an attempt", []string{"--attempt", "7"}, exitDone, []string{"Attempt 7", "1773040026"}},
		{"an attempt that is not kept", []string{"--attempt", "3"}, exitUsage, []string{"kept are 7 to 8"}},
		{"the id", []string{"--id", b.id}, exitDone, []string{"the same"}},
		{"another id", []string{"--id", "msg_b"}, exitFailed, []string{"the id differs", "webhook-id"}},
		{"the first attempt's timestamp", []string{"--timestamp", "1773040026"}, exitDone, []string{"Attempt 7", "the same"}},
		{"a timestamp of none", []string{"--timestamp", "1773040027"}, exitFailed, []string{"the timestamp differs"}},
		{"milliseconds", []string{"--timestamp", "1773040026000"}, exitFailed, []string{"the timestamp differs"}},
		{"the digest", []string{"--body-digest", strings.ToUpper(digest)}, exitDone, []string{"the same"}},
		{"the body", []string{"--body", b.file(string(b.body))}, exitDone, []string{"the same"}},
		{"a body with a line end", []string{"--body", b.file(string(b.body) + "\n")}, exitFailed, []string{"the body differs", fmt.Sprintf("from byte %d on", len(b.body)+1)}},
		{"an empty body", []string{"--body", b.file("")}, exitFailed, []string{"the body differs", "has 0 bytes"}},
		{"a body written again", []string{"--body", b.file(indented.String())}, exitFailed, []string{"the body differs", "from byte 2 on"}},
		{"a saved request", saved(whole), exitDone, []string{"Attempt 7", "the same"}},
		{"a saved request with its line", saved("POST /hook?a=b:c HTTP/1.1\r\n" + whole), exitDone, []string{"Attempt 7", "the same"}},
		{"a saved request with plain line ends", saved(strings.ReplaceAll(whole, "\r\n", "\n")), exitDone, []string{"Attempt 7", "the same"}},
		{"a saved request and the secret", append(saved(whole), secret...), exitDone, []string{"right for the secret", "the same"}},
		{"a saved request and another secret", append(saved(whole), "--secret", other.Reveal()), exitFailed, []string{"the secret differs"}},
		{"a saved request of two signatures", append(saved(b.headers(8, other, b.secret)+"\r\n"+string(b.body)), secret...), exitDone, []string{"Attempt 8", "right for the secret"}},
		{"a saved request with a changed body", append(saved(whole[:len(whole)-1]), secret...), exitFailed, []string{"the body differs"}},
		{"a request with another's timestamp", saved(strings.Replace(whole, "1773040026", "1773040090", 1)), exitFailed, []string{"Attempt 7", "the timestamp differs"}},
		{"a file without an empty line", saved("a: b\n"), exitUsage, []string{"empty line"}},
		{"a file that is no request", saved("marked nonsense\nmarked\n\nmarked"), exitUsage, []string{"cannot be read"}},
		{"a file that is not there", []string{"--request", "/nowhere/at/all"}, exitFailed, []string{"read the saved request"}},
		{"the right signature", append([]string{"--signature", b.signature(8, b.secret)}, secret...), exitDone, []string{"is right"}},
		{"a signature without the secret", []string{"--signature", b.signature(8, b.secret)}, exitFailed, []string{"Give the secret"}},
		{"another secret's signature", append([]string{"--signature", b.signature(8, other)}, secret...), exitFailed, []string{"not explained"}},
		{"the body's signature alone", append([]string{"--signature", ofBodyAlone}, secret...), exitFailed, []string{"id and timestamp are missing", "form differs"}},
		{"the secret's base64 as key", append([]string{"--signature", keyed(b, []byte(strings.TrimPrefix(b.secret.Reveal(), "whsec_")))}, secret...), exitFailed, []string{"the secret differs", "Decode the secret"}},
		{"what is no secret", []string{"--secret", "whsec_marked"}, exitUsage, []string{"not a signing secret"}},
		{"two ways of giving a secret", append([]string{"--secret-stdin"}, secret...), exitUsage, []string{"two ways"}},
		{"a body and a digest", []string{"--body", b.file("x"), "--body-digest", digest}, exitUsage, []string{"one of them"}},
	} {
		code, said := b.verify("", row.given...)
		for _, says := range row.says {
			if !strings.Contains(said, says) {
				t.Errorf("%s: does not say %q:\n%s", row.name, says, said)
			}
		}
		if code != row.code {
			t.Errorf("%s: exit code %d, want %d:\n%s", row.name, code, row.code, said)
		}
		hideSecrets(t, row.name, said, b.secret, other)
	}
}

// keyed is attempt 8's signature under a key of other bytes.
func keyed(b *bench, key []byte) string {
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%d.%s", b.id, b.seconds[1], b.body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

func hideSecrets(t *testing.T, name, said string, secrets ...webhook.Secret) {
	t.Helper()
	for _, secret := range secrets {
		if strings.Contains(said, strings.TrimPrefix(secret.Reveal(), "whsec_")) {
			t.Errorf("%s: the secret is shown:\n%s", name, said)
		}
	}
	for _, marked := range []string{"marked"} {
		if strings.Contains(said, marked) {
			t.Errorf("%s: what was given is repeated:\n%s", name, said)
		}
	}
}

func TestVerifyReadsTheSecretFromStandardInput(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, end := range []string{"", "\n", "\r\n"} {
		code, said := b.verify(b.secret.Reveal()+end, "--secret-stdin", "--signature", b.signature(8, b.secret))
		if code != exitDone || !strings.Contains(said, "is right") {
			t.Errorf("%q: exit code %d:\n%s", end, code, said)
		}
		hideSecrets(t, "standard input", said, b.secret)
	}
	if code, said := b.verify("", "--secret-stdin"); code != exitUsage {
		t.Errorf("nothing there: exit code %d:\n%s", code, said)
	}
}

func TestVerifyReadsTheSecretFromTheEnvironment(t *testing.T) {
	b := newBench(t)
	t.Setenv("COLOPHON_SECRET", b.secret.Reveal())
	code, said := b.verify("", "--signature", b.signature(8, b.secret))
	if code != exitDone || !strings.Contains(said, "is right") {
		t.Errorf("exit code %d:\n%s", code, said)
	}
	hideSecrets(t, "environment", said, b.secret)
	if _, help := b.verify("", "--help"); strings.Contains(help, b.secret.Reveal()) {
		t.Error("--help shows the secret")
	}
}

func FuzzParseRequest(f *testing.F) {
	f.Add([]byte("POST / HTTP/1.1\r\nWebhook-Id: a\r\nWebhook-Timestamp: 1\r\n\r\n{}"))
	f.Add([]byte("webhook-id: a\n\nbody\r\n\r\n"))
	f.Add([]byte("\n\n"))
	f.Add([]byte(": \n\n"))
	f.Add([]byte("a\r\n b\r\n\r\n\x00"))
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := parseRequest(text)
		switch {
		case err != nil:
			if got.Body != nil {
				t.Errorf("refused and read: %q", got.Body)
			}
		case got.Body == nil || !bytes.HasSuffix(text, got.Body):
			t.Errorf("the body %q is not the file's end", got.Body)
		}
	})
}
