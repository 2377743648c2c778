package webhook_test

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"colophon/internal/webhook"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

var update = flag.Bool("update", false, "write the golden files anew")

var publishedAt = time.Date(2026, 3, 9, 8, 7, 6, 543_219_876, time.FixedZone("", 3600))

var six = webhook.Release{
	Project:   webhook.Project{ID: "p7", Name: "Handbuch <Büro> & Küche"},
	Number:    6,
	Documents: 12,
	Message:   "Preise \"neu\"\nZeile zwei",
	URL:       "https://colophon.example.com/v1/studio/projects/p7/releases/6?a=1&b=2",
}

func newSecret(t *testing.T) webhook.Secret {
	t.Helper()
	secret, err := webhook.NewSecret(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

func body(t *testing.T) []byte {
	t.Helper()
	body, err := six.Body(publishedAt)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s:\n got %q\nwant %q", name, got, want)
	}
}

func TestTheBodiesAreTheseBytes(t *testing.T) {
	t.Parallel()
	golden(t, "release.json", body(t))
	test, err := webhook.Test{Project: six.Project, ID: "t1"}.Body(publishedAt)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "test.json", test)
}

func TestABodyIsValidJSONWhateverTheMessageHolds(t *testing.T) {
	t.Parallel()
	for _, message := range []string{"", "\x00\x1b", "\xff\xfe", "\u2028\u2029", "</script>", strings.Repeat("🦊", 1000)} {
		release := six
		release.Message = message
		body, err := release.Body(publishedAt)
		if err != nil {
			t.Fatalf("%q: %v", message, err)
		}
		var read struct {
			Data struct{ Message string }
		}
		if err := json.Unmarshal(body, &read); err != nil {
			t.Fatalf("%q: %v", message, err)
		}
		if want := strings.ToValidUTF8(message, "\ufffd"); message != "\xff\xfe" && read.Data.Message != want {
			t.Errorf("message reads back as %q, want %q", read.Data.Message, want)
		}
	}
}

func TestAnIDIsLongRandomAndPlain(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`^msg_[a-z2-7]{26}$`)
	seen := map[string]bool{}
	letters := map[rune]bool{}
	for range 1000 {
		id, err := webhook.NewID(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		if !form.MatchString(id) || seen[id] {
			t.Fatalf("id %q is malformed or a repeat", id)
		}
		seen[id] = true
		for _, r := range id[4:] {
			letters[r] = true
		}
	}
	if len(letters) != 32 {
		t.Errorf("ids use %d of 32 characters", len(letters))
	}
}

func TestNothingIsMadeWithoutRandomness(t *testing.T) {
	t.Parallel()
	broken := iotest.ErrReader(errors.New("no entropy"))
	if id, err := webhook.NewID(broken); err == nil || id != "" {
		t.Errorf("NewID = %q, %v", id, err)
	}
	if secret, err := webhook.NewSecret(broken); err == nil || !secret.IsZero() {
		t.Errorf("NewSecret = %q, %v", secret.Reveal(), err)
	}
}

func TestASecretIsReadBackAsItWasShown(t *testing.T) {
	t.Parallel()
	secret := newSecret(t)
	if !regexp.MustCompile(`^whsec_[A-Za-z0-9+/]{43}=$`).MatchString(secret.Reveal()) {
		t.Errorf("shown as %q", secret.Reveal())
	}
	back, err := webhook.ParseSecret(secret.Reveal())
	if err != nil || back != secret {
		t.Errorf("read back: %v", err)
	}
}

func TestWhatIsNoSecretIsRefusedAndNotRepeated(t *testing.T) {
	t.Parallel()
	good := newSecret(t).Reveal()
	for _, text := range []string{
		"", "whsec_", good[6:], "WHSEC_" + good[6:], good + "=", good[:len(good)-1], good[:20] + "\n" + good[20:], " " + good,
		"whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 23)), "whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 65)),
		good[:len(good)-2] + "/=", // bits set behind the last byte
	} {
		_, err := webhook.ParseSecret(text)
		if err == nil {
			t.Errorf("%q was taken", text)
		} else if len(text) > 6 && strings.Contains(err.Error(), text[6:]) {
			t.Errorf("the error repeats %q", text)
		}
	}
}

func TestASecretCannotBePrintedByAccident(t *testing.T) {
	t.Parallel()
	secret := newSecret(t)
	holder := struct {
		Name   string
		Secret webhook.Secret
		Hidden *webhook.Secret
		All    []webhook.Secret
	}{"n", secret, &secret, []webhook.Secret{secret}}
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%b", "%o", "%c", "%U"} {
		fmt.Fprintf(&out, verb+verb+verb+"\n", secret, &secret, holder)
	}
	if err := json.NewEncoder(&out).Encode(holder); err != nil {
		t.Fatal(err)
	}
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "secret", secret, "holder", holder)
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "secret", secret, "holder", holder)

	key, _ := base64.StdEncoding.DecodeString(secret.Reveal()[6:])
	for _, trace := range []string{
		secret.Reveal()[6:], string(key), fmt.Sprintf("%x", key), fmt.Sprintf("%X", key),
		strings.Trim(fmt.Sprint(key), "[]"), fmt.Sprintf("%d, %d, %d", key[0], key[1], key[2]), fmt.Sprintf("0x%x, 0x%x", key[0], key[1]),
	} {
		if strings.Contains(out.String(), trace) {
			t.Errorf("the output holds %q:\n%s", trace, out.String())
		}
	}
	if !strings.Contains(out.String(), "whsec_(hidden)") {
		t.Error("the output shows nothing in its place")
	}
}

func TestTheStandardsLibraryVerifiesASignature(t *testing.T) {
	t.Parallel()
	old, current := newSecret(t), newSecret(t)
	now := time.Now()
	attempt := webhook.Attempt{ID: "msg_x", Body: body(t), At: now, Number: 1, Secrets: []webhook.Secret{current, old}}
	headers := attempt.Headers()
	for name, secret := range map[string]webhook.Secret{"current": current, "old": old} {
		verifier, err := standardwebhooks.NewWebhook(secret.Reveal())
		if err != nil {
			t.Fatal(err)
		}
		if err := verifier.Verify(attempt.Body, headers); err != nil {
			t.Errorf("%s secret: %v", name, err)
		}
		if err := verifier.Verify(append([]byte(" "), attempt.Body...), headers); err == nil {
			t.Errorf("%s secret: a changed body was verified", name)
		}
		theirs, err := verifier.Sign("msg_x", now, attempt.Body)
		if err != nil || theirs != webhook.Sign("msg_x", now, attempt.Body, secret) {
			t.Errorf("%s secret: the library signs %q (%v)", name, theirs, err)
		}
	}
}

func TestASecretThatIsNotThereSignsNothing(t *testing.T) {
	t.Parallel()
	secret := newSecret(t)
	if got, want := webhook.Sign("msg_x", publishedAt, nil, webhook.Secret{}, secret), webhook.Sign("msg_x", publishedAt, nil, secret); got != want {
		t.Errorf("signed %q, want %q", got, want)
	}
	if got := webhook.Sign("msg_x", publishedAt, nil, webhook.Secrets{}.Signing(publishedAt)...); got != "" {
		t.Errorf("signed %q without a secret", got)
	}
}

func TestASecretOfAnyLengthThatTheStandardAllowsSigns(t *testing.T) {
	t.Parallel()
	for length := webhook.MinSecretBytes; length <= webhook.MaxSecretBytes; length++ {
		text := "whsec_" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, length))
		secret, err := webhook.ParseSecret(text)
		if err != nil || secret.Reveal() != text {
			t.Fatalf("%d bytes: %v", length, err)
		}
		verifier, err := standardwebhooks.NewWebhook(text)
		if err != nil {
			t.Fatal(err)
		}
		attempt := webhook.Attempt{ID: "msg_x", Body: body(t), At: time.Now(), Number: 1, Secrets: []webhook.Secret{secret}}
		if err := verifier.Verify(attempt.Body, attempt.Headers()); err != nil {
			t.Errorf("%d bytes: %v", length, err)
		}
	}
}

func TestAFingerprintRecognizesASecretOfOneDestinationOnly(t *testing.T) {
	t.Parallel()
	secret, other := newSecret(t), newSecret(t)
	if !bytes.Equal(secret.Fingerprint("a"), secret.Fingerprint("a")) {
		t.Error("the same secret is not recognized")
	}
	if bytes.Equal(secret.Fingerprint("a"), other.Fingerprint("a")) || bytes.Equal(secret.Fingerprint("a"), secret.Fingerprint("b")) {
		t.Error("another secret, or another destination's, is taken for the same")
	}
}

func TestEachReplacedSecretSignsUntilItsOwnEnd(t *testing.T) {
	t.Parallel()
	first, second, third, current := newSecret(t), newSecret(t), newSecret(t), newSecret(t)
	rotated := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	until := func(hours int) time.Time { return rotated.Add(time.Duration(hours) * time.Hour) }
	secrets := webhook.Secrets{Current: current, Previous: []webhook.PreviousSecret{
		{Secret: third, Until: until(24)}, {Secret: second, Until: until(20)}, {Secret: first, Until: until(10)},
	}}
	revoked := webhook.Secrets{Current: current}
	for _, row := range []struct {
		name    string
		secrets webhook.Secrets
		at      time.Duration
		want    []webhook.Secret
	}{
		{"at once", secrets, 0, []webhook.Secret{current, third, second, first}},
		{"in the oldest's last nanosecond", secrets, 10*time.Hour - 1, []webhook.Secret{current, third, second, first}},
		{"at the oldest's end", secrets, 10 * time.Hour, []webhook.Secret{current, third, second}},
		{"between", secrets, 23 * time.Hour, []webhook.Secret{current, third}},
		{"a day later", secrets, 24 * time.Hour, []webhook.Secret{current}},
		{"all revoked", revoked, 0, []webhook.Secret{current}},
	} {
		signing := row.secrets.Signing(rotated.Add(row.at))
		if !slices.Equal(signing, row.want) {
			t.Errorf("%s: %d secrets sign", row.name, len(signing))
		}
		if n := len(strings.Fields(webhook.Sign("msg_x", rotated, nil, signing...))); n != len(row.want) {
			t.Errorf("%s: %d signatures", row.name, n)
		}
	}
}

func TestTwoAttemptsDifferInTimestampAndSignatureOnly(t *testing.T) {
	t.Parallel()
	attempt := webhook.Attempt{ID: "msg_x", Body: body(t), At: publishedAt, Number: 1, Secrets: []webhook.Secret{newSecret(t)}}
	first := attempt.Headers()
	attempt.At, attempt.Number = attempt.At.Add(time.Minute), 2
	second := attempt.Headers()
	differing := map[string]bool{"Webhook-Timestamp": true, "Webhook-Signature": true, "Colophon-Attempt": true}
	for name := range first {
		if same := first.Get(name) == second.Get(name); same == differing[name] {
			t.Errorf("%s: %q, then %q", name, first.Get(name), second.Get(name))
		}
	}
}

func TestACustomHeaderNeverStandsInForOneOfOurs(t *testing.T) {
	t.Parallel()
	attempt := webhook.Attempt{ID: "msg_x", Body: []byte("{}"), At: publishedAt, Number: 3, Secrets: []webhook.Secret{newSecret(t)}}
	want := attempt.Headers()
	attempt.Custom = map[string]string{"Authorization": "Bearer x", "colophon-previous": "9"}
	for name := range want {
		attempt.Custom[strings.ToLower(name)] = "forged"
	}
	got := attempt.Headers()
	if got.Get("Authorization") != "Bearer x" {
		t.Error("the custom header is missing")
	}
	got.Del("Authorization")
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestThePreviousReleaseIsNamedIfThereIsOne(t *testing.T) {
	t.Parallel()
	attempt := webhook.Attempt{ID: "msg_x", Previous: 4, Secrets: []webhook.Secret{newSecret(t)}}
	if got := attempt.Headers().Get("colophon-previous"); got != "4" {
		t.Errorf("colophon-previous is %q", got)
	}
	attempt.Previous = 0
	if got, there := attempt.Headers()["Colophon-Previous"]; there {
		t.Errorf("colophon-previous is %q without one", got)
	}
}

func FuzzParseSecret(f *testing.F) {
	f.Add("whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")
	f.Add("whsec_")
	f.Fuzz(func(t *testing.T, text string) {
		secret, err := webhook.ParseSecret(text)
		if err == nil && secret.Reveal() != text {
			t.Errorf("%q reads back as %q", text, secret.Reveal())
		}
	})
}
