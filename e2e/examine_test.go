//go:build stack

package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"colophon/client"
)

func TestTheDoctorExaminesAReceiverThroughTheStack(t *testing.T) {
	t.Parallel()
	fine, busy := newReceiver(t), newReceiver(t, 503)
	p := newProject(t, fine, busy)
	out := command(t, "doctor", p.id, p.hooks[0])
	for _, says := range []string{"certificate", "plain http", "The signed test was answered 204", "does not redirect", "clock agrees"} {
		if !strings.Contains(out, says) {
			t.Errorf("doctor does not say %q: %s", says, out)
		}
	}
	if got := fine.next(t); !strings.Contains(got.Body, `"webhook.test"`) {
		t.Errorf("the receiver got %s", got.Body)
	}
	if out, code := tryCommand(t, "doctor", p.id, p.hooks[1]); code != 4 || !strings.Contains(out, "answered 503") {
		t.Errorf("doctor of a busy one ends with %d: %s", code, out)
	}
	if len(busy.requests()) != 1 {
		t.Errorf("it was asked %d times", len(busy.requests()))
	}
}

// What arrived is compared with what the API says was signed, and the signature
// with the secret that was shown.
func TestVerifyKnowsWhatWasSigned(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, 503, 204)
	p := newProject(t, r)
	release := p.publish()
	first := r.next(t)
	p.becomes(release, client.DeliveryStateRetrying)
	_, err := p.api.TryNow(t.Context(), client.TryNowParams{Project: p.id, Destination: p.hooks[0], Release: release})
	must(t, err)
	second := r.next(t)
	p.becomes(release, client.DeliveryStateDelivered)
	for i, got := range []request{first, second} {
		var saved strings.Builder
		must(t, got.Header.Write(&saved))
		path := filepath.Join(t.TempDir(), "request")
		must(t, os.WriteFile(path, []byte(saved.String()+"\r\n"+got.Body), 0o600))
		out := command(t, "verify", p.id, p.hooks[0], "1", "--request", path, "--secret", p.secret[0])
		if want := []string{"Attempt 1 ", "Attempt 2 "}[i]; !strings.Contains(out, want) || !strings.Contains(out, "right for the secret") || !strings.Contains(out, "the same") {
			t.Errorf("attempt %d: %s", i+1, out)
		}
		must(t, os.WriteFile(path, []byte(saved.String()+"\r\n"+got.Body+"\n"), 0o600))
		if out, code := tryCommand(t, "verify", p.id, p.hooks[0], "1", "--request", path); code != 1 || !strings.Contains(out, "is another") {
			t.Errorf("attempt %d with another body ends with %d: %s", i+1, code, out)
		}
	}
}
