package webhook_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"colophon/internal/webhook"
)

func TestTheDifferingPartIsNamed(t *testing.T) {
	t.Parallel()
	secret, previous, foreign := newSecret(t), newSecret(t), newSecret(t)
	sent := webhook.Sent{ID: "msg_x", At: publishedAt, Body: body(t), Secrets: []webhook.Secret{secret, previous}}
	seconds := fmt.Sprint(publishedAt.Unix())
	key, err := base64.StdEncoding.DecodeString(secret.Reveal()[6:])
	if err != nil {
		t.Fatal(err)
	}
	sum := func(key []byte, text string) []byte {
		h := hmac.New(sha256.New, key)
		h.Write([]byte(text))
		return h.Sum(nil)
	}
	v1 := func(key []byte, text string) string {
		return "v1," + base64.StdEncoding.EncodeToString(sum(key, text))
	}
	right := "msg_x." + seconds + "." + string(sent.Body)
	withBody := func(body string) string { return v1(key, "msg_x."+seconds+"."+body) }
	var indented bytes.Buffer
	if err := json.Indent(&indented, sent.Body, "", "  "); err != nil {
		t.Fatal(err)
	}
	var parsed any
	if err := json.Unmarshal(sent.Body, &parsed); err != nil {
		t.Fatal(err)
	}
	sorted, err := json.Marshal(parsed)
	if err != nil {
		t.Fatal(err)
	}
	// As Python 3 writes it: json.dumps(json.loads(body)), and with ensure_ascii=False.
	python := `{"type": "release.published", "timestamp": "2026-03-09T07:07:06.543Z", "data": {"project": {"id": "p7", "name": "Handbuch <B\u00fcro> & K\u00fcche"}, "release": 6, "documents": 12, "message": "Preise \"neu\"\nZeile zwei", "url": "https://colophon.example.com/v1/studio/projects/p7/releases/6?a=1&b=2"}}`
	pythonUTF8 := strings.ReplaceAll(python, `\u00fc`, "ü")

	for _, row := range []struct {
		name string
		got  webhook.Computed
		want webhook.Part
	}{
		{"all parts agree", webhook.Computed{ID: "msg_x", Timestamp: seconds, Body: sent.Body}, webhook.PartNone},
		{"another id", webhook.Computed{ID: "msg_y", Timestamp: seconds, Body: sent.Body}, webhook.PartID},
		{"another attempt's timestamp", webhook.Computed{ID: "msg_x", Timestamp: "1", Body: sent.Body}, webhook.PartTimestamp},
		{"a body cut short", webhook.Computed{Body: sent.Body[1:]}, webhook.PartBody},
		{"an empty body", webhook.Computed{Body: []byte{}}, webhook.PartBody},
		{"the digest of another body", webhook.Computed{BodyDigest: strings.Repeat("0", 64)}, webhook.PartBody},
		{"the digest of the body, in capitals", webhook.Computed{BodyDigest: strings.ToUpper(sent.Signed().BodyDigest)}, webhook.PartNone},
		{"the right signature", webhook.Computed{Signature: v1(key, right)}, webhook.PartNone},
		{"the whole header", webhook.Computed{Signature: webhook.Sign("msg_x", publishedAt, sent.Body, secret, previous)}, webhook.PartNone},
		{"the previous secret's signature", webhook.Computed{Signature: webhook.Sign("msg_x", publishedAt, sent.Body, previous)}, webhook.PartNone},
		{"another secret", webhook.Computed{Signature: webhook.Sign("msg_x", publishedAt, sent.Body, foreign)}, webhook.PartUnknown},
		{"no signature at all", webhook.Computed{Signature: "nonsense!"}, webhook.PartUnknown},
		{"no version before it", webhook.Computed{Signature: v1(key, right)[3:]}, webhook.PartForm},
		{"hex", webhook.Computed{Signature: hex.EncodeToString(sum(key, right))}, webhook.PartForm},
		{"hex with its algorithm", webhook.Computed{Signature: "sha256=" + hex.EncodeToString(sum(key, right))}, webhook.PartForm},
		{"base64 for addresses, without padding", webhook.Computed{Signature: "v1," + base64.RawURLEncoding.EncodeToString(sum(key, right))}, webhook.PartForm},
		{"the secret's text as the key", webhook.Computed{Signature: v1([]byte(secret.Reveal()), right)}, webhook.PartSecret},
		{"the secret's base64 as the key", webhook.Computed{Signature: v1([]byte(secret.Reveal()[6:]), right)}, webhook.PartSecret},
		{"milliseconds", webhook.Computed{Signature: v1(key, "msg_x."+seconds+"000."+string(sent.Body))}, webhook.PartTimestamp},
		{"no id", webhook.Computed{Signature: v1(key, seconds+"."+string(sent.Body))}, webhook.PartForm},
		{"no timestamp", webhook.Computed{Signature: v1(key, "msg_x."+string(sent.Body))}, webhook.PartForm},
		{"the body alone", webhook.Computed{Signature: v1(key, string(sent.Body))}, webhook.PartForm},
		{"timestamp first", webhook.Computed{Signature: v1(key, seconds+".msg_x."+string(sent.Body))}, webhook.PartForm},
		{"no dots", webhook.Computed{Signature: v1(key, "msg_x"+seconds+string(sent.Body))}, webhook.PartForm},
		{"signed without the body", webhook.Computed{Signature: withBody("")}, webhook.PartBody},
		{"a line end added", webhook.Computed{Signature: withBody(string(sent.Body) + "\n")}, webhook.PartBody},
		{"parsed and indented", webhook.Computed{Signature: withBody(indented.String())}, webhook.PartBody},
		{"parsed and sorted", webhook.Computed{Signature: withBody(string(sorted))}, webhook.PartBody},
		{"parsed and written by Python", webhook.Computed{Signature: withBody(python)}, webhook.PartBody},
		{"parsed and written by Python as UTF-8", webhook.Computed{Signature: withBody(pythonUTF8)}, webhook.PartBody},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			got := webhook.Explain(sent, row.got)
			if got.Part != row.want || got.Hint == "" {
				t.Errorf("differs in %q (%s), want %q", got.Part, got.Hint, row.want)
			}
			if strings.Contains(got.Hint, secret.Reveal()[6:]) {
				t.Error("the hint holds the secret")
			}
		})
	}
}

func TestWithoutASecretOnlyThePartsAreCompared(t *testing.T) {
	t.Parallel()
	sent := webhook.Sent{ID: "msg_x", At: publishedAt, Body: []byte("{}")}
	got := webhook.Explain(sent, webhook.Computed{ID: "msg_x", Signature: "v1,AAAA"})
	if got.Part != webhook.PartUnknown {
		t.Errorf("differs in %q", got.Part)
	}
	if signed := sent.Signed(); signed.BodyBytes != 2 || signed.Timestamp != publishedAt.Unix() ||
		signed.BodyDigest != "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a" {
		t.Errorf("signed: %+v", signed)
	}
}

func FuzzExplainTakesWhateverAReceiverComputed(f *testing.F) {
	secret, err := webhook.ParseSecret("whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(`{"a":"b\\\"","c":[1,2]}`), "v1,AAAA", "00")
	f.Fuzz(func(t *testing.T, body []byte, signature, digest string) {
		sent := webhook.Sent{ID: "msg_x", At: publishedAt, Body: body, Secrets: []webhook.Secret{secret}}
		if got := webhook.Explain(sent, webhook.Computed{Signature: signature, BodyDigest: digest}); got.Hint == "" {
			t.Error("nothing is said")
		}
		right := webhook.Sign(sent.ID, sent.At, body, secret)
		if got := webhook.Explain(sent, webhook.Computed{Body: body, Signature: right}); got.Part != webhook.PartNone && body != nil {
			t.Errorf("the right signature differs in %q", got.Part)
		}
	})
}
