package egress_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"colophon/internal/egress"
)

func TestCustomHeadersAreTakenOrRefused(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, value, code string }{
		{"Authorization", "Bearer abc.def-ghi", ""},
		{"authorization", "Basic dXNlcjpwdw==", ""},
		{"X-Api-Key", `a "quoted" value; with=all!#$%&'*+/?^_{|}~`, ""},
		{"CF-Access-Client-Secret", "x", ""},
		{"apikey", "x", ""},
		{strings.Repeat("a", 64), strings.Repeat("b", 2048), ""},

		{"", "x", "header-name"},
		{strings.Repeat("a", 65), "x", "header-name"},
		{"X Y", "x", "header-name"},
		{"X:Y", "x", "header-name"},
		{"X-Ä", "x", "header-name"},
		{"X-A\r\nX-B", "x", "header-name"},
		{"Content_Length", "x", "header-name"}, // read as Content-Length by some servers
		{"Webhook_Id", "x", "header-name"},

		{"X-A", "", "header-value"},
		{"X-A", " x", "header-value"},
		{"X-A", "x ", "header-value"},
		{"X-A", "a\r\nX-B: b", "header-value"},
		{"X-A", "a\nb", "header-value"},
		{"X-A", "a\x00b", "header-value"},
		{"X-A", "a\tb", "header-value"},
		{"X-A", "a\x7fb", "header-value"},
		{"X-A", "ä", "header-value"},
		{"X-A", strings.Repeat("b", 2049), "header-too-long"},
	} {
		err := egress.CheckHeader(row.name, row.value)
		if code := codeOf(err); code != row.code {
			t.Errorf("%q: %.40q: %v, want %q", row.name, row.value, err, row.code)
		}
		if err != nil && len(row.value) > 3 && strings.Contains(err.Error(), row.value) {
			t.Errorf("%q: the refusal repeats the value", row.name)
		}
	}
}

func TestReservedHeadersAreRefusedInAnySpelling(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"Host", "Connection", "Keep-Alive", "Close", "TE", "Trailer", "Trailers", "Transfer-Encoding", "Upgrade", "HTTP2-Settings", "Expect",
		"Proxy-Authorization", "Proxy-Authenticate", "Proxy-Connection", "Proxy-Anything",
		"Content-Length", "Content-Type", "Content-Encoding", "Content-MD5", "Content-Anything", "Accept-Encoding",
		"Cookie", "Cookie2", "Set-Cookie", "User-Agent", "Referer", "Origin", "Date", "Via", "Range", "Early-Data", "Alt-Used", "Max-Forwards",
		"Idempotency-Key", "X-Idempotency-Key", "If-Match", "If-None-Match", "Sec-Fetch-Site", "Access-Control-Request-Method",
		"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-IP", "X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override",
		"Metadata-Flavor", "Metadata", "X-aws-ec2-metadata-token",
		"webhook-id", "webhook-timestamp", "webhook-signature", "webhook-anything", "colophon-attempt", "colophon-previous", "colophon-anything",
	} {
		for _, spelling := range []string{name, strings.ToLower(name), strings.ToUpper(name)} {
			if code := codeOf(egress.CheckHeader(spelling, "x")); code != "header-reserved" {
				t.Errorf("%s: %q, want header-reserved", spelling, code)
			}
		}
	}
}

func TestCustomHeadersAreCountedTogether(t *testing.T) {
	t.Parallel()
	many := map[string]string{}
	for i := range 20 {
		many[fmt.Sprintf("X-%d", i)] = "v"
	}
	if err := egress.CheckHeaders(many); err != nil {
		t.Errorf("20 headers: %v", err)
	}
	many["X-20"] = "v"
	if code := codeOf(egress.CheckHeaders(many)); code != "header-count" {
		t.Errorf("21 headers: %q", code)
	}
	if code := codeOf(egress.CheckHeaders(map[string]string{"X-A": "1", "x-a": "2"})); code != "header-twice" {
		t.Errorf("one name in two spellings: %q", code)
	}
	if code := codeOf(egress.CheckHeaders(map[string]string{"X-A": "1", "Host": "2"})); code != "header-reserved" {
		t.Errorf("one that is reserved: %q", code)
	}
	if code := codeOf(egress.CheckHeaders(map[string]string{"X-A": strings.Repeat("a", 2000), "X-B": strings.Repeat("a", 2000)})); code != "header-too-long" {
		t.Errorf("too long together: %q", code)
	}
	if code := codeOf(egress.CheckHeaders(map[string]string{"X-A": strings.Repeat("<", 600)})); code != "header-too-long" {
		t.Errorf("too long once written as JSON: %q", code)
	}
	if err := egress.CheckHeaders(nil); err != nil {
		t.Errorf("none: %v", err)
	}
}

func codeOf(err error) string {
	var refusal *egress.Refusal
	if errors.As(err, &refusal) {
		return refusal.Code
	}
	if err != nil {
		return "not a refusal: " + err.Error()
	}
	return ""
}

// What the check takes goes over the wire as that one header, and nothing else.
func FuzzCheckHeader(f *testing.F) {
	for _, seed := range [][2]string{{"Authorization", "Bearer x"}, {"X-A", "a\r\nb"}, {"Host", "x"}, {"Content_Length", "1"}, {"x-a", "\u2028"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, name, value string) {
		err := egress.CheckHeader(name, value)
		if together := egress.CheckHeaders(map[string]string{name: value}); (err == nil) != (together == nil) && codeOf(together) != "header-too-long" {
			t.Errorf("alone %v, together %v", err, together)
		}
		if err != nil {
			return
		}
		sent := wireOf(t, egress.Request{URL: "http://127.0.0.1:3000/", Header: http.Header{name: {value}}, NotAfter: soon()})
		lines := strings.Split(strings.TrimSuffix(sent, "\r\n\r\n"), "\r\n")
		canonical := http.CanonicalHeaderKey(name)
		want := []string{"POST / HTTP/1.1", "Host: 127.0.0.1:3000", "Connection: close", "Content-Length: 0", canonical + ": " + value}
		if len(lines) != len(want) {
			t.Fatalf("sent %q", sent)
		}
		for i := range want {
			if lines[i] != want[i] {
				t.Errorf("sent %q, want %q", lines[i], want[i])
			}
		}
		if sealed, err := json.Marshal(map[string]string{name: value}); err != nil || !strings.Contains(string(sealed), name) {
			t.Errorf("%q is not kept by JSON (%v)", name, err)
		}
	})
}
