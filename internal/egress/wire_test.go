package egress_test

import (
	"bytes"
	"context"
	"flag"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"colophon/internal/egress"
	"colophon/internal/webhook"
)

var update = flag.Bool("update", false, "write the golden files anew")

// recorder takes what is written, and answers.
type recorder struct {
	fromBytes
	wrote bytes.Buffer
}

func (r *recorder) Write(b []byte) (int, error) { return r.wrote.Write(b) }

// wireOf returns the bytes of a request.
func wireOf(t testing.TB, request egress.Request) string {
	t.Helper()
	r := &recorder{fromBytes: fromBytes{answer: strings.NewReader(okAnswer)}}
	client := newClient(t, egress.Config{
		Allow: []egress.TargetOption{egress.AllowHTTP(), egress.AllowLoopback()}, Resolver: answer("8.8.8.8"),
		Dial: func(context.Context, string, string) (net.Conn, error) { return r, nil },
	})
	if result := client.Send(context.Background(), request); result.Status != 200 {
		t.Fatalf("%+v", result)
	}
	return r.wrote.String()
}

func TestTheRequestOnTheWireIsTheseBytes(t *testing.T) {
	t.Parallel()
	secret, err := webhook.ParseSecret("whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")
	if err != nil {
		t.Fatal(err)
	}
	old, err := webhook.ParseSecret("whsec_Hx4dHBsaGRgXFhUUExIREA8ODQwLCgkIBwYFBAMCAQA=")
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 3, 9, 7, 7, 6, 0, time.UTC)
	body, err := webhook.Release{
		Project: webhook.Project{ID: "p7", Name: "Handbook"}, Number: 6, Documents: 12, Message: "New prices",
		URL: "https://colophon.example.com/v1/projects/p7/releases/6",
	}.Body(at)
	if err != nil {
		t.Fatal(err)
	}
	attempt := webhook.Attempt{
		ID: "msg_abcdefghijklmnopqrstuvwxyz", Body: body, At: at.Add(time.Minute), Number: 2, Previous: 4,
		Secrets: []webhook.Secret{secret, old}, Custom: map[string]string{"authorization": "Bearer owner", "X-Site": "main"},
	}
	got := wireOf(t, egress.Request{
		URL: "http://hooks.example.com/colophon?site=main", Body: body, Header: attempt.Headers(), NotAfter: soon(),
	})
	const path = "testdata/request.golden"
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%q, want\n%q", got, want)
	}
	if !strings.HasSuffix(got, "\r\n\r\n"+string(body)) {
		t.Error("the body on the wire is not the body that was signed")
	}
	for _, absent := range []string{"\r\nCookie", "\r\nReferer", "\r\nExpect", "\r\nAccept-Encoding", "\r\nTransfer-Encoding", "\r\nIdempotency-Key", "Go-http-client"} {
		if strings.Contains(got, absent) {
			t.Errorf("the request holds %q", absent)
		}
	}
}
