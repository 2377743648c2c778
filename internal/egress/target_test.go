package egress_test

import (
	"context"
	"encoding/csv"
	"errors"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"colophon/internal/egress"
)

// rows reads a file of cases: one map a row, by the header's names.
func rows(t testing.TB, name string) []map[string]string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	records, err := csv.NewReader(strings.NewReader(string(text))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var all []map[string]string
	for _, record := range records[1:] {
		row := map[string]string{}
		for i, value := range record {
			row[records[0][i]] = value
		}
		if literal, ok := strings.CutPrefix(row["input"], `go:"`); ok {
			if row["input"], err = strconv.Unquote(`"` + literal); err != nil {
				t.Fatalf("%s: %v", row["id"], err)
			}
		}
		all = append(all, row)
	}
	return all
}

// either tells whether the row's judgement allows the other answer as well.
func either(row map[string]string) bool {
	return strings.HasPrefix(row["reason"], "[judgement:")
}

func TestEveryAddressIsJudgedAsItsCaseSays(t *testing.T) {
	t.Parallel()
	for _, row := range rows(t, "addresses.csv") {
		addr, err := netip.ParseAddr(row["input"])
		if err != nil {
			t.Errorf("%s: %v", row["id"], err)
			continue
		}
		if got := egress.Public(addr); got != (row["expect"] == "allow") && !either(row) {
			t.Errorf("%s: Public(%s) = %t, want %s: %s", row["id"], addr, got, row["expect"], row["reason"])
		}
	}
}

func TestNoAddressThatHoldsAnIPv4IsPublic(t *testing.T) {
	t.Parallel()
	for _, prefix := range []string{"::ffff:0:0/96", "::/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/96", "2002::/16", "2001::/32"} {
		for _, v4 := range []string{"127.0.0.1", "10.0.0.1", "169.254.169.254", "8.8.8.8", "0.0.0.0"} {
			p := netip.MustParsePrefix(prefix)
			bytes, inner := p.Addr().As16(), netip.MustParseAddr(v4).As4()
			at := p.Bits() / 8
			copy(bytes[at:], inner[:])
			if addr := netip.AddrFrom16(bytes); egress.Public(addr) {
				t.Errorf("%s (%s in %s) is public", addr, v4, prefix)
			}
		}
	}
}

func TestTheZeroAddressIsNotPublic(t *testing.T) {
	t.Parallel()
	if egress.Public(netip.Addr{}) {
		t.Error("the zero Addr is public")
	}
}

func TestAnAddressWithAZoneIsNotPublic(t *testing.T) {
	t.Parallel()
	if addr := netip.MustParseAddr("2606:4700::1111%eth0"); egress.Public(addr) {
		t.Errorf("%s is public", addr)
	}
}

func TestEveryURLIsTakenOrRefusedAsItsCaseSays(t *testing.T) {
	t.Parallel()
	for _, row := range rows(t, "urls.csv") {
		target, err := egress.ParseTarget(row["input"])
		wantRefused := row["expect"] == "reject_at_registration"
		if (err != nil) != wantRefused && row["expect"] != "block" && !either(row) {
			t.Errorf("%s: ParseTarget(%q): %v, want %s: %s", row["id"], row["input"], err, row["expect"], row["reason"])
		}
		checkRefusal(t, row["input"], err)
		if err == nil {
			checkStored(t, target.String())
		}
	}
}

// A row that is refused for its host must not owe that to its scheme.
func TestARefusedHTTPAddressIsRefusedAsHTTPSToo(t *testing.T) {
	t.Parallel()
	for _, row := range rows(t, "urls.csv") {
		rest, ok := strings.CutPrefix(row["input"], "http://")
		if !ok || row["expect"] != "reject_at_registration" {
			continue
		}
		host, _, _ := strings.Cut(rest, "/")
		for _, raw := range []string{"https://" + rest, "https://" + strings.TrimSuffix(strings.TrimSuffix(host, ":9001"), ":2773") + "/"} {
			if _, err := egress.ParseTarget(raw); err == nil {
				t.Errorf("%s: %q is taken", row["id"], raw)
			}
			if _, err := egress.ParseTarget(raw, egress.AllowHTTP(), egress.AllowPorts(9001, 2773)); err == nil {
				t.Errorf("%s: %q is taken where http and the port are allowed", row["id"], raw)
			}
		}
	}
}

// Whatever passes registration and is not to be called is blocked before anything is opened.
func TestEveryURLThatMustNotBeCalledIsBlockedAtTheLatestWhenConnecting(t *testing.T) {
	t.Parallel()
	for _, row := range rows(t, "urls.csv") {
		if row["expect"] == "allow" || either(row) {
			continue
		}
		answers := []string{"127.0.0.1"}
		if _, after, ok := strings.Cut(row["reason"], "resolves to "); ok && row["expect"] == "block" {
			literal, _, _ := strings.Cut(strings.Fields(after)[0], ";")
			answers = []string{"8.8.8.8", literal} // one of several is enough
		}
		dials := &dialCounter{}
		client := newClient(t, egress.Config{Resolver: answer(answers...), Dial: dials.dial})
		result := client.Send(context.Background(), egress.Request{URL: row["input"], NotAfter: soon()})
		if result.Failure != egress.FailureBlocked || dials.count.Load() != 0 {
			t.Errorf("%s: %q: %q, %d dials", row["id"], row["input"], result.Failure, dials.count.Load())
		}
	}
}

func TestARefusalSaysWhatToDo(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ raw, code string }{
		{"https://user:secret@example.com/", "userinfo"},
		{"https://example.com/#x", "fragment"},
		{"https://example.com/#", "fragment"},
		{"https://example.com/a b", "character"},
		{"https://example.com/a\\b", "character"},
		{"https://example.com/\u200b", "character"},
		{"https://example.com/\xff", "character"},
		{"https://8.8.8.8\u200b/", "character"},
		{"https://" + strings.Repeat("a", 2048), "too-long"},
		{"https://example.com/" + strings.Repeat("ü", 500), "too-long"}, // 3,020 bytes once escaped
		{"example.com", "scheme"},
		{"http://example.com/", "scheme"},
		{"https://", "no-host"},
		{"https://:443/", "no-host"},
		{"https://ex%61mple.com/", "malformed"},
		{"https://b%C3%BCcher.example.com/", "percent-in-host"},
		{"https://[fe80::1%25eth0]/", "percent-in-host"},
		{"https://[::ffff:8.8.8.8]/", "host"},
		{"https://exa_mple.com/", "host"},
		{"https://xn--a.com..", "host"},
		{"https://" + strings.Repeat("abcdefg.", 32) + "com/", "host"}, // 259 bytes
		{"https://1.2.3.4.5/", "numeric-host"},
		{"https://example.0x7f/", "numeric-host"},
		{"https://127.1/", "numeric-host"},
		{"https://８.８.８.８/", "numeric-host"}, // full-width digits, though of a public address
		{"https://localhost/", "reserved-name"},
		{"https://Foo.LocalHost./", "reserved-name"},
		{"https://hooks.internal/", "reserved-name"},
		{"https://intranet/", "reserved-name"},
		{"https://hooks/", "single-label"},
		{"https://127.0.0.1/", "not-public"},
		{"https://127.0.0.1./", "not-public"},
		{"https://[::1]/", "not-public"},
		{"https://example.com:8443/", "port"},
		{"https://example.com:0/", "port"},
		{"https://example.com:00443/", "port"},
		{"https://example.com:65979/", "port"}, // 443 modulo 65536
	} {
		_, err := egress.ParseTarget(row.raw)
		checkRefusal(t, row.raw, err)
		var refusal *egress.Refusal
		if !errors.As(err, &refusal) || refusal.Code != row.code {
			t.Errorf("%q: %v, want %s", row.raw, err, row.code)
		}
	}
}

func checkRefusal(t *testing.T, raw string, err error) {
	t.Helper()
	if err == nil {
		return
	}
	var refusal *egress.Refusal
	if !errors.As(err, &refusal) || refusal.Code == "" || !strings.HasSuffix(refusal.Message, ".") {
		t.Errorf("%q: %#v is not a refusal with a code and a sentence", raw, err)
	}
	if len(raw) > 12 && strings.Contains(err.Error(), raw) {
		t.Errorf("%q is repeated by its refusal", raw)
	}
}

// checkStored holds what the stored form promises.
func checkStored(t *testing.T, stored string, options ...egress.TargetOption) {
	t.Helper()
	again, err := egress.ParseTarget(stored, options...)
	if err != nil || again.String() != stored {
		t.Errorf("the stored form %q reads back as %v (%v)", stored, again, err)
	}
	for i := range len(stored) {
		if stored[i] <= ' ' || stored[i] >= 0x7f {
			t.Errorf("the stored form %q holds byte %#x", stored, stored[i])
		}
	}
}

func TestAnAddressIsStoredInOneForm(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"HTTPS://EXAMPLE.COM/Hook?Q=A":           "https://example.com/Hook?Q=A",
		"https://example.com":                    "https://example.com",
		"https://example.com./hook":              "https://example.com/hook",
		"https://example.com:443/hook":           "https://example.com/hook",
		"https://example.com:/hook":              "https://example.com/hook",
		"https://Bücher.example.com/ü?ü={}":      "https://xn--bcher-kva.example.com/%C3%BC?%C3%BC=%7B%7D",
		"https://example。com/":                   "https://example.com/",
		"https://[2606:4700:0:0:0:0:0:1111]/":    "https://[2606:4700::1111]/",
		"https://8.8.8.8/":                       "https://8.8.8.8/",
		"https://r3---a.example.com/":            "https://r3---a.example.com/",
		"https://example.com/%0d%0aHost:%20evil": "https://example.com/%0d%0aHost:%20evil",
	} {
		got, err := egress.ParseTarget(raw)
		if err != nil || got.String() != want {
			t.Errorf("%q is stored as %v (%v), want %q", raw, got, err, want)
		}
	}
}

func TestOptionsLoosenNoMoreThanTheySay(t *testing.T) {
	t.Parallel()
	http, ports, loopback := egress.AllowHTTP(), egress.AllowPorts(8443), egress.AllowLoopback()
	for _, row := range []struct {
		raw     string
		options []egress.TargetOption
		taken   bool
	}{
		{"http://example.com/", []egress.TargetOption{http}, true},
		{"http://example.com:8080/", []egress.TargetOption{http}, false},
		{"http://127.0.0.1/", []egress.TargetOption{http}, false},
		{"http://localhost/", []egress.TargetOption{http}, false},
		{"https://example.com:8443/", []egress.TargetOption{ports}, true},
		{"https://example.com/", []egress.TargetOption{ports}, true},
		{"https://example.com:8444/", []egress.TargetOption{ports}, false},
		{"http://example.com:8443/", []egress.TargetOption{ports}, false},
		{"https://example.com:80/", []egress.TargetOption{egress.AllowPorts()}, false}, // an empty list is not "any"

		{"http://127.0.0.1:9001/", []egress.TargetOption{loopback}, true}, // which port the runtime has is known when connecting
		{"http://127.9.9.9:3000/", []egress.TargetOption{loopback}, true},
		{"https://[::1]:3000/", []egress.TargetOption{loopback}, true},
		{"http://localhost:3000/", []egress.TargetOption{loopback}, true},
		{"http://localhost.:3000/", []egress.TargetOption{loopback}, true},
		{"http://127.0.0.1:0/", []egress.TargetOption{loopback}, false},
		{"http://foo.localhost:3000/", []egress.TargetOption{loopback}, false},
		{"http://example.com/", []egress.TargetOption{loopback}, false},
		{"https://example.com:3000/", []egress.TargetOption{loopback}, false},
		{"http://8.8.8.8/", []egress.TargetOption{loopback}, false},
		{"http://0.0.0.0:3000/", []egress.TargetOption{loopback}, false},
		{"http://[::]:3000/", []egress.TargetOption{loopback}, false},
		{"http://[::ffff:127.0.0.1]:3000/", []egress.TargetOption{loopback}, false},
		{"http://[64:ff9b::7f00:1]:3000/", []egress.TargetOption{loopback}, false},
		{"http://169.254.169.254/", []egress.TargetOption{loopback}, false},
		{"https://10.0.0.1/", []egress.TargetOption{loopback}, false},
		{"http://127.1:3000/", []egress.TargetOption{loopback}, false},
		{"http://2130706433:3000/", []egress.TargetOption{loopback}, false},
		{"http://user@127.0.0.1:3000/", []egress.TargetOption{loopback}, false},
	} {
		target, err := egress.ParseTarget(row.raw, row.options...)
		if (err == nil) != row.taken {
			t.Errorf("%q: %v, want taken %t", row.raw, err, row.taken)
		}
		if err == nil {
			checkStored(t, target.String(), row.options...)
		}
	}
}

func FuzzParseTarget(f *testing.F) {
	for _, row := range rows(f, "urls.csv") {
		f.Add(row["input"])
	}
	f.Fuzz(func(t *testing.T, raw string) {
		target, err := egress.ParseTarget(raw)
		checkRefusal(t, raw, err)
		if err != nil {
			return
		}
		checkStored(t, target.String())
		host := target.Hostname()
		if target.Scheme != "https" || target.User != nil || target.Fragment != "" || target.Port() != "" || host == "" || len(host) > 253 {
			t.Errorf("%q is stored as %q", raw, target)
		}
		if addr, err := netip.ParseAddr(host); err == nil && !egress.Public(addr) {
			t.Errorf("%q: the literal %s was taken", raw, addr)
		}
		loose, err := egress.ParseTarget(raw, egress.AllowHTTP(), egress.AllowPorts(80), egress.AllowLoopback())
		if err != nil || loose.String() != target.String() {
			t.Errorf("%q is taken as %q, and with every allowance as %v (%v)", raw, target, loose, err)
		}
	})
}

func soon() time.Time { return time.Now().Add(time.Minute) }

func TestNamesOfPrivateNetworksAreRefused(t *testing.T) {
	t.Parallel()
	for _, host := range []string{
		"kubernetes.default.svc", "colophon.default.svc", "a.b.svc.cluster.local", "x.cluster", "10-0-0-1.default.pod", "vault.service.consul",
		"job.nomad", "app.docker", "db.lxd", "printer.home", "wiki.corp", "smtp.mail", "pc.lan", "router.belkin", "hidden.onion", "x.alt",
		"1.0.0.10.in-addr.arpa", "home.arpa", "resolver.arpa", "x.test", "x.example", "x.invalid", "host.docker.internal", "KUBERNETES.DEFAULT.SVC.",
	} {
		_, err := egress.ParseTarget("https://" + host + "/hook")
		var refusal *egress.Refusal
		if !errors.As(err, &refusal) || refusal.Code != "reserved-name" {
			t.Errorf("%s: %v", host, err)
		}
	}
	for _, host := range []string{"svc.example.com", "cluster.example.org", "kubernetes.io", "mail.example.com", "hooks.docker.com"} {
		if _, err := egress.ParseTarget("https://" + host + "/hook"); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
}

func TestTheSystemsOwnAPIIsNoDestination(t *testing.T) {
	t.Parallel()
	own := egress.RefuseOwnAPI(egress.OwnAPI{ID: "AbC123", Hosts: []string{"", "Colophon.example.com", "api.example.com."}})
	for _, address := range []string{
		"https://abc123.execute-api.eu-west-1.amazonaws.com/v1/projects",
		"https://ABC123.execute-api.eu-west-1.amazonaws.com./v1",
		"https://abc123.execute-api.us-east-1.amazonaws.com/v1", // no other region has it, and no receiver is there
		"https://abc123.execute-api.cn-north-1.amazonaws.com.cn/v1",
		"https://abc123-vpce-0123.execute-api.eu-west-1.amazonaws.com/v1",
		"https://abc123.execute-api-fips.us-east-1.amazonaws.com/v1",
		"https://colophon.example.com/v1", "https://COLOPHON.example.com./x", "https://api.example.com/hook",
	} {
		_, err := egress.ParseTarget(address, own)
		var refusal *egress.Refusal
		if !errors.As(err, &refusal) || refusal.Code != "own-api" {
			t.Errorf("%s: %v", address, err)
		}
	}
	for _, address := range []string{
		"https://abc1234.execute-api.eu-west-1.amazonaws.com/v1", "https://other.execute-api.eu-west-1.amazonaws.com/v1",
		"https://abc123.example.com/", "https://hooks.colophon.example.com/", "https://example.com/",
	} {
		if _, err := egress.ParseTarget(address, own); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
	if _, err := egress.ParseTarget("https://other.execute-api.eu-west-1.amazonaws.com/v1", egress.RefuseOwnAPI(egress.OwnAPI{})); err != nil {
		t.Errorf("where nothing is known of it: %v", err)
	}
	// On a machine of one's own the API and the receiver share a host.
	local := egress.RefuseOwnAPI(egress.OwnAPI{ID: "colophon", Hosts: []string{"localhost", "127.0.0.1"}})
	if _, err := egress.ParseTarget("http://127.0.0.1:8098/", local, egress.AllowLoopback()); err != nil {
		t.Errorf("a receiver on loopback: %v", err)
	}
}

func TestTheSystemsOwnAPIIsNotCalledWhateverIsStored(t *testing.T) {
	t.Parallel()
	client, err := egress.New(egress.Config{
		Allow: []egress.TargetOption{egress.RefuseOwnAPI(egress.OwnAPI{ID: "abc123", Hosts: []string{"colophon.example.com"}})},
		Dial: func(context.Context, string, string) (net.Conn, error) {
			t.Error("a connection was opened")
			return nil, errors.New("no")
		},
		Resolver: noLookup{t},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{"https://abc123.execute-api.eu-west-1.amazonaws.com/v1", "https://colophon.example.com/v1"} {
		result := client.Send(t.Context(), egress.Request{URL: address, NotAfter: time.Now().Add(time.Minute)})
		if result.Failure != egress.FailureBlocked || result.Detail != egress.DetailOwnAPI || result.MayHaveBeenReceived {
			t.Errorf("%s: %+v", address, result)
		}
	}
}

// noLookup is a resolver that must not be asked.
type noLookup struct{ t *testing.T }

func (n noLookup) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	n.t.Error("a name was looked up")
	return nil, errors.New("no")
}

func TestAnOriginIsSchemeHostAndPort(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"https://Hooks.Example.com:443/in?key=1": "https://hooks.example.com",
		"https://hooks.example.com.":             "https://hooks.example.com",
		"https://[2606:4700::1111]/":             "https://[2606:4700::1111]",
	} {
		target, err := egress.ParseTarget(raw)
		if err != nil {
			t.Fatal(err)
		}
		if got := egress.Origin(target.String()); got != want {
			t.Errorf("%s has the origin %q, want %q", raw, got, want)
		}
	}
	for raw, want := range map[string]string{"http://127.0.0.1:8098/x": "http://127.0.0.1:8098", "": "", "no address": "", "https:///x": ""} {
		if got := egress.Origin(raw); got != want {
			t.Errorf("%q has the origin %q, want %q", raw, got, want)
		}
	}
}
