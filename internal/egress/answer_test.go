package egress_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"colophon/internal/egress"
)

// class names a result as the table of classes does.
func class(r egress.Result) string {
	switch {
	case r.Status >= 200 && r.Status <= 299:
		return "delivered"
	case r.Status == 410:
		return "gone"
	case r.Status == 408, r.Status == 425, r.Status == 429:
		return "unavailable"
	case r.Status >= 300 && r.Status <= 499:
		return "refused"
	case r.Status != 0:
		return "unavailable"
	}
	words := map[egress.Failure]string{
		egress.FailureBadAnswer: "bad answer", egress.FailureNotHTTP: "not HTTP", egress.FailureHeadersTooLarge: "headers too large",
	}
	if word, ok := words[r.Failure]; ok {
		return word
	}
	return string(r.Failure)
}

// drips writes text piece by piece until it is cut off.
func drips(conn net.Conn, every time.Duration, text string) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for i := range len(text) {
		if _, err := io.WriteString(conn, text[i:i+1]); err != nil {
			return
		}
		<-ticker.C
	}
}

// endless writes the same bytes again and again until it is cut off.
func endless(conn net.Conn, piece string) {
	for {
		if _, err := io.WriteString(conn, piece); err != nil {
			return
		}
	}
}

func manyHeaders(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "X-%d: %s\r\n", i, "v")
	}
	return b.String()
}

func gzipped(size int) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write(make([]byte, size))
	w.Close()
	return b.String()
}

// after reads the request and goes on.
func after(serve func(net.Conn)) func(net.Conn) {
	return func(conn net.Conn) {
		readRequest(conn)
		serve(conn)
	}
}

// behaviour is what a row's receiver does. Rows that answer with plain statuses need none.
var behaviours = map[string][]func(net.Conn){
	"S02": {says("HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n" + mark), says("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), says("HTTP/1.1 200 OK\r\n\r\n")},
	"S05": {says("HTTP/1.1 300 " + mark + "\r\nContent-Length: 0\r\n\r\n"), says("HTTP/1.1 304 \r\n\r\n"), says("HTTP/1.1 302 \r\nContent-Length: 0\r\n\r\n")},
	"S13": {after(func(conn net.Conn) {
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: "+mark+"\r\nConnection: Upgrade\r\n\r\n")
		untilClosed(conn)
	})},
	"S14": {says("HTTP/1.1 103 Early Hints\r\nLink: <" + mark + ">\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")},
	"B01": {after(func(conn net.Conn) {
		io.WriteString(conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
		endless(conn, "20\r\n"+strings.Repeat("x", 32)+"\r\n")
	})},
	"B02": {after(func(conn net.Conn) {
		io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
		drips(conn, quick/6, strings.Repeat("x", 1000))
	})},
	"B03": {says("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n0123456789")},
	"B05": {after(func(conn net.Conn) {
		io.WriteString(conn, "HTTP/1.1 200 OK\r\n")
		abort(conn)
	})},
	"B06": {after(abort)},
	"B09": {says("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 8\r\n\r\nnot gzip")},
	"B12": {
		says("HTTP/1.1 200 OK\r\nX-Long: " + strings.Repeat("x", 64<<10) + "\r\n\r\n"),
		says("HTTP/1.1 200 OK\r\n" + manyHeaders(10000) + "\r\n"),
	},
	"B14": {says("SSH-2.0-OpenSSH_9.2 " + mark + "\r\n"), func(conn net.Conn) { // at once, before the request
		io.WriteString(conn, "SSH-2.0-OpenSSH_9.2 "+mark+"\r\n")
		untilClosed(conn)
	}},
	"B16": {says("HTTP/1.1 500 " + mark + "\r\nX-" + mark + ": " + mark + "\r\nContent-Length: 22\r\n\r\n" + mark)},
	"B18": {says("HTTP/1.1 200 OK\r\nSet-Cookie: session=" + mark + "; Path=/\r\nContent-Length: 0\r\n\r\n")},
	"T01": {after(func(conn net.Conn) { untilClosed(conn) }), func(conn net.Conn) { untilClosed(conn) }},
	"T04": {after(func(conn net.Conn) {
		drips(conn, quick/12, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n"+manyHeaders(100))
	})},
}

// tlsBehaviours are those of receivers that fail the handshake, or do something of their own in it.
var tlsBehaviours = map[string]func() (func(net.Conn), egress.Detail){
	"B07": func() (func(net.Conn), egress.Detail) { return func(net.Conn) {}, egress.DetailClosed },
	"T03": func() (func(net.Conn), egress.Detail) {
		return func(conn net.Conn) { untilClosed(conn) }, egress.DetailTimeout
	},
	"T08": func() (func(net.Conn), egress.Detail) {
		config := hookTLS()
		config.NextProtos = []string{"h2", "http/1.1"}
		return overTLS(config, says(okAnswer)), egress.DetailNone
	},
	"L01": func() (func(net.Conn), egress.Detail) {
		return withCertificate(testAuthority().leaf(x509.Certificate{NotAfter: expiredAt}, hookName)), egress.DetailExpired
	},
	"L02": func() (func(net.Conn), egress.Detail) {
		return withCertificate(testAuthority().leaf(x509.Certificate{}, "other.example.com", "marked.example.com")), egress.DetailName
	},
	"L03": func() (func(net.Conn), egress.Detail) {
		certificate, key := issue(x509.Certificate{DNSNames: []string{hookName}}, mark, nil, nil)
		return withCertificate(tls.Certificate{Certificate: [][]byte{certificate.Raw}, PrivateKey: key}), egress.DetailUnknownIssuer
	},
	"L04": func() (func(net.Conn), egress.Detail) {
		certificate := testAuthority().leaf(x509.Certificate{}, hookName)
		certificate.Certificate = certificate.Certificate[:1]
		return withCertificate(certificate), egress.DetailIncompleteChain
	},
}

var expiredAt = time.Now().Add(-time.Hour).Truncate(time.Second)

func withCertificate(certificate tls.Certificate) func(net.Conn) {
	return overTLS(&tls.Config{Certificates: []tls.Certificate{certificate}}, says(okAnswer))
}

func TestEveryReceiverEndsInItsClass(t *testing.T) {
	t.Parallel()
	status := regexp.MustCompile(`\d{3}`)
	served := 0
	for _, row := range rows(t, "receivers.csv") {
		id := row["id"]
		if !strings.ContainsAny(id[:1], "SBTL") {
			continue // scheduling, publishing, crashes: not what goes over a connection
		}
		served++
		late := slices.Contains([]string{"T01", "T04", "B02"}, id)
		check := func(t *testing.T, r *receiver, w *wire, client *egress.Client, request egress.Request, detail egress.Detail) {
			if late {
				request.Deadline = quick
			}
			result := send(t, client, w, request)
			want, kind, _ := strings.Cut(row["class"], ":")
			want, ofTLS, _ := strings.Cut(want, " timeout") // "tls timeout"
			if class(result) != want || row["may"] != "" && result.MayHaveBeenReceived != (row["may"] == "yes") || result.Status != 0 && !result.MayHaveBeenReceived {
				t.Errorf("%+v is %q, want %q, may have been received: %s", result, class(result), row["class"], row["may"])
			}
			if result.Detail != detail || kind != "" && strings.ReplaceAll(kind[1:], " ", "-") != string(detail) {
				t.Errorf("detail %q, want %q (%s%s)", result.Detail, detail, kind, ofTLS)
			}
			if r.accepted.Load() != 1 {
				t.Errorf("%d connections", r.accepted.Load())
			}
			switch id {
			case "L01":
				if !result.CertificateNotAfter.Equal(expiredAt) {
					t.Errorf("expired at %s, want %s", result.CertificateNotAfter, expiredAt)
				}
			case "S03", "S05":
				if result.Redirect != (id == "S03") {
					t.Errorf("redirect: %t", result.Redirect)
				}
			case "T03":
				if result.Elapsed < quick || result.Elapsed > quick+slack {
					t.Errorf("ended after %s, want the handshake's time", result.Elapsed)
				}
			}
			if late != (result.Elapsed >= request.Deadline) { // the others end for what came, not for the time
				t.Errorf("ended after %s, the deadline was %s", result.Elapsed, request.Deadline)
			}
		}

		if make, ok := tlsBehaviours[id]; ok {
			t.Run(id, func(t *testing.T) {
				t.Parallel()
				serve, detail := make()
				r := receive(t, serve)
				w := &wire{to: r}
				config := production(w)
				if id == "T03" {
					config.HandshakeTime = quick
				}
				check(t, r, w, newClient(t, config), hookRequest("https"), detail)
			})
			continue
		}
		serves := behaviours[id]
		if serves == nil {
			for _, s := range status.FindAllString(row["receiver does"], -1) {
				location := ""
				if id == "S03" {
					location = "Location: https://" + hookName + "/elsewhere?" + mark + "\r\n"
				}
				serves = append(serves, says("HTTP/1.1 "+s+" "+mark+"\r\n"+location+"Content-Length: 0\r\n\r\n"))
			}
		}
		if len(serves) == 0 {
			t.Errorf("%s: no receiver does this: %s", id, row["receiver does"])
		}
		for i, serve := range serves {
			t.Run(fmt.Sprintf("%s.%d", id, i), func(t *testing.T) {
				t.Parallel()
				serveBoth(t, serve, func(t *testing.T, r *receiver, w *wire, client *egress.Client, request egress.Request) {
					check(t, r, w, client, request, egress.DetailNone)
				})
			})
		}
	}
	if served < 29 {
		t.Errorf("only %d rows were served", served)
	}
}

func TestNoRedirectOfAnyKindIsFollowed(t *testing.T) {
	t.Parallel()
	elsewhere := receive(t, says(okAnswer))
	for _, status := range []int{300, 301, 302, 303, 305, 307, 308} {
		for _, location := range []string{
			"http://" + elsewhere.Addr().String() + "/", "//" + elsewhere.Addr().String(), "/other", "https://169.254.169.254/", "http://[::1]:9001/",
			":", "http://[", "%zz", "javascript:alert(1)",
		} {
			r := receive(t, says(fmt.Sprintf("HTTP/1.1 %d %s\r\nLocation: %s\r\nRefresh: 0; url=%s\r\nContent-Length: 0\r\n\r\n", status, mark, location, location)))
			w := &wire{to: r}
			config := production(w)
			config.Allow = []egress.TargetOption{egress.AllowHTTP()}
			result := send(t, newClient(t, config), w, hookRequest("http"))
			if result.Status != status || !result.Redirect || r.accepted.Load() != 1 || elsewhere.accepted.Load() != 0 {
				t.Errorf("%d to %q: %+v, %d connections, %d elsewhere", status, location, result, r.accepted.Load(), elsewhere.accepted.Load())
			}
		}
	}
}

func TestNoCookieComesBack(t *testing.T) {
	t.Parallel()
	got := make(chan http.Header, 2)
	r := receive(t, func(conn net.Conn) {
		request, _ := readRequest(conn)
		got <- request.Header
		io.WriteString(conn, "HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nContent-Length: 0\r\n\r\n")
	})
	w := &wire{to: r}
	config := production(w)
	config.Allow = []egress.TargetOption{egress.AllowHTTP()}
	client := newClient(t, config)
	for range 2 {
		client.Send(context.Background(), hookRequest("http"))
		if header := <-got; header.Get("Cookie") != "" || header.Get("Connection") != "close" {
			t.Errorf("sent %v", header)
		}
	}
	if r.accepted.Load() != 2 {
		t.Errorf("%d connections for two attempts", r.accepted.Load())
	}
}

// hostile are receivers that the cases leave out. Each is served by http and by https.
var hostile = []struct {
	name   string
	serve  func(net.Conn)
	class  string
	status int
	late   bool // ends at the deadline, not before
}{
	{"gives its headers one byte at a time", after(func(conn net.Conn) { drips(conn, quick/10, "HTTP/1.1 200 OK\r\nA: "+strings.Repeat("x", 500)) }), "timeout", 0, true},
	{"gives its status line one byte at a time, and it is no status line", after(func(conn net.Conn) { drips(conn, quick/10, "HELLO "+strings.Repeat("x", 500)) }), "not HTTP", 0, true},
	{"begins an answer and stops", after(func(conn net.Conn) { io.WriteString(conn, "HTTP/1.1 200 OK\r\n"); untilClosed(conn) }), "timeout", 0, true},
	{"stops within a header's name", after(func(conn net.Conn) { io.WriteString(conn, "HTTP/1.1 200 OK\r\nConte"); untilClosed(conn) }), "timeout", 0, true},
	{"stops within its status line", after(func(conn net.Conn) { io.WriteString(conn, "HTTP/1.1 200 O"); untilClosed(conn) }), "timeout", 0, true},
	{"begins a word and stops", after(func(conn net.Conn) { io.WriteString(conn, "HT"); untilClosed(conn) }), "timeout", 0, true},
	{"begins a word and closes", says("HT"), "bad answer", 0, false},
	{"reads nothing and never answers", func(conn net.Conn) {
		buffer := make([]byte, 1)
		conn.Read(buffer)
		untilClosed(conn)
	}, "timeout", 0, true},
	{"closes without an answer", after(func(net.Conn) {}), "reset", 0, false},
	{"sends an endless header", after(func(conn net.Conn) {
		io.WriteString(conn, "HTTP/1.1 200 OK\r\nA: ")
		endless(conn, strings.Repeat("x", 4096))
	}), "headers too large", 0, false},
	{"sends an endless status line", after(func(conn net.Conn) { io.WriteString(conn, "HTTP/1.1 200 "); endless(conn, strings.Repeat("x", 4096)) }), "headers too large", 0, false},
	{"sends endless headers", after(func(conn net.Conn) { io.WriteString(conn, "HTTP/1.1 200 OK\r\n"); endless(conn, "A: b\r\n") }), "headers too large", 0, false},
	{"sends an endless name", after(func(conn net.Conn) { io.WriteString(conn, "HTTP/1.1 200 OK\r\n"); endless(conn, "A") }), "headers too large", 0, false},
	{"sends endless continuation lines", after(func(conn net.Conn) { io.WriteString(conn, "HTTP/1.1 200 OK\r\nA: b\r\n"); endless(conn, " c\r\n") }), "headers too large", 0, false},
	{"floods with interim answers", after(func(conn net.Conn) { endless(conn, "HTTP/1.1 102 Processing\r\n\r\n") }), "headers too large", 0, false},
	{"sends a hundred interim answers, then 200", says(strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 100) + okAnswer), "delivered", 200, false},
	{"sends slow interim answers", after(func(conn net.Conn) { drips(conn, quick/40, strings.Repeat("HTTP/1.1 100 \r\n\r\n", 100)) }), "timeout", 0, true},
	{"sends a header without a colon", says("HTTP/1.1 200 OK\r\n" + mark + "\r\n\r\n"), "bad answer", 0, false},
	{"sends a header name with a space", says("HTTP/1.1 200 OK\r\nA B: c\r\nContent-Length: 0\r\n\r\n"), "delivered", 200, false},
	{"sends NUL bytes in a header name", says("HTTP/1.1 200 OK\r\nA\x00: c\r\n\r\n"), "bad answer", 0, false},
	{"sends a compressed bomb", says("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n" + fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(gzipped(64<<20)), gzipped(64<<20))), "delivered", 200, false},
	{"sends an endless body without framing", after(func(conn net.Conn) {
		io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
		endless(conn, strings.Repeat("x", 4096))
	}), "delivered", 200, false},
	{"sends chunks of one byte with long extensions", after(func(conn net.Conn) {
		io.WriteString(conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
		endless(conn, "1;"+strings.Repeat("e", 2000)+"\r\nx\r\n")
	}), "delivered", 200, false},
	{"sends endless trailers", after(func(conn net.Conn) {
		io.WriteString(conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n")
		endless(conn, "A: b\r\n")
	}), "delivered", 200, false},
	{"sends garbage after 200", says(okAnswer + mark + "\x00\xffHTTP/1.1 500 No\r\n\r\n"), "delivered", 200, false},
	{"answers twice", says(okAnswer + "HTTP/1.1 500 No\r\n\r\n"), "delivered", 200, false},
	{"sends chunks that are none", says("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"), "delivered", 200, false},
	{"resets in the middle of the body", after(func(conn net.Conn) {
		io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc")
		abort(conn)
	}), "delivered", 200, false},
	{"gives a length that is no number", says("HTTP/1.1 200 OK\r\nContent-Length: " + mark + "\r\n\r\n"), "bad answer", 0, false},
	{"gives a negative length", says("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"), "bad answer", 0, false},
	{"gives two lengths", says("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"), "bad answer", 0, false},
	{"gives an enormous length", says("HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775807\r\n\r\nab"), "delivered", 200, false},
	{"gives a length past any number", says("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nab"), "bad answer", 0, false},
	{"gives a framing that nobody knows", says("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n"), "bad answer", 0, false},
	{"speaks HTTP/2 without being asked", says("\x00\x00\x12\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x64\x00\x04\x40\x00\x00\x00"), "not HTTP", 0, false},
	{"sends an HTTP/2 status line", says("HTTP/2 200\r\n\r\n"), "bad answer", 0, false},
	{"sends an HTTP/0.9 page", says("<html>" + mark + "</html>"), "not HTTP", 0, false},
	{"speaks Redis", says("-ERR unknown command '" + mark + "'\r\n"), "not HTTP", 0, false},
	{"speaks TLS where plain text was", says("\x15\x03\x01\x00\x02\x02\x46\x15\x03\x01\x00\x02\x02\x46"), "not HTTP", 0, false},
	{"puts a line end before its answer", says("\r\n" + okAnswer), "not HTTP", 0, false},
	{"writes its version in small letters", says("http/1.1 200 OK\r\n\r\n"), "not HTTP", 0, false},
	{"answers in HTTP/1.0", says("HTTP/1.0 200 OK\r\n\r\nbody"), "delivered", 200, false},
	{"answers in HTTP/3.7", says("HTTP/3.7 200 OK\r\n\r\n"), "bad answer", 0, false},
	{"gives a status of two digits", says("HTTP/1.1 20 OK\r\n\r\n"), "bad answer", 0, false},
	{"gives a status of four digits", says("HTTP/1.1 2000 OK\r\n\r\n"), "bad answer", 0, false},
	{"gives a status with a sign", says("HTTP/1.1 +20 OK\r\n\r\n"), "bad answer", 0, false},
	{"gives a status below 100", says("HTTP/1.1 099 OK\r\n\r\n"), "bad answer", 0, false},
	{"gives no reason", says("HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n"), "delivered", 200, false},
	{"gives 999", says("HTTP/1.1 999 " + mark + "\r\nContent-Length: 0\r\n\r\n"), "unavailable", 999, false},
	{"ends its lines with LF alone", says("HTTP/1.1 200 OK\nContent-Length: 0\n\n"), "delivered", 200, false},
	{"answers before it has read anything", func(conn net.Conn) { io.WriteString(conn, okAnswer); readRequest(conn) }, "delivered", 200, false},
	{"answers and shuts its side, without reading on", after(func(conn net.Conn) {
		io.WriteString(conn, okAnswer)
		if tcp, is := conn.(*net.TCPConn); is {
			tcp.CloseWrite()
		}
		untilClosed(conn)
	}), "delivered", 200, false},
	{"shuts its side without an answer, and stays", after(func(conn net.Conn) {
		if tcp, is := conn.(*net.TCPConn); is {
			tcp.CloseWrite()
		} else {
			conn.(*tls.Conn).CloseWrite()
		}
		untilClosed(conn)
	}), "reset", 0, false},
}

func TestAHostileReceiverEndsWithinTheDeadlineInItsClass(t *testing.T) {
	t.Parallel()
	for _, row := range hostile {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			serveBoth(t, row.serve, func(t *testing.T, r *receiver, w *wire, client *egress.Client, request egress.Request) {
				if row.late {
					request.Deadline = quick
				}
				result := send(t, client, w, request)
				if class(result) != row.class || result.Status != row.status || !result.MayHaveBeenReceived {
					t.Errorf("%+v is %q, want %q", result, class(result), row.class)
				}
				if late := result.Elapsed >= request.Deadline; late != row.late {
					t.Errorf("ended after %s of %s", result.Elapsed, request.Deadline)
				}
				if r.accepted.Load() != 1 {
					t.Errorf("%d connections", r.accepted.Load())
				}
			})
		})
	}
}

func TestAReceiverThatFailsTheHandshakeHasReceivedNothing(t *testing.T) {
	t.Parallel()
	a := testAuthority()
	foreign, foreignKey := issue(x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, mark, nil, nil)
	expired, expiredKey := issue(x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, NotAfter: expiredAt}, mark, a.root, a.rootKey)
	signedBy := func(parents ...*x509.Certificate) func(net.Conn) {
		key := foreignKey
		if parents[0] == expired {
			key = expiredKey
		}
		certificate, leafKey := issue(x509.Certificate{DNSNames: []string{hookName}}, mark, parents[0], key)
		chain := [][]byte{certificate.Raw}
		for _, parent := range parents {
			chain = append(chain, parent.Raw)
		}
		return withCertificate(tls.Certificate{Certificate: chain, PrivateKey: leafKey})
	}
	wrongIntermediate := a.leaf(x509.Certificate{}, hookName)
	wrongIntermediate.Certificate[1] = foreign.Raw
	limited := func(version uint16) func(net.Conn) {
		config := hookTLS()
		config.MinVersion, config.MaxVersion = version, version
		return overTLS(config, says(okAnswer))
	}
	for _, row := range []struct {
		name   string
		serve  func(net.Conn)
		detail egress.Detail
	}{
		{"is not valid yet", withCertificate(a.leaf(x509.Certificate{NotBefore: time.Now().Add(time.Hour)}, hookName)), egress.DetailNotYetValid},
		{"has an issuer that nobody knows, with the whole chain", signedBy(foreign), egress.DetailUnknownIssuer},
		{"sends the intermediate of another", withCertificate(wrongIntermediate), egress.DetailIncompleteChain},
		{"has no name", withCertificate(a.leaf(x509.Certificate{})), egress.DetailName},
		{"is for clients only", withCertificate(a.leaf(x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, hookName)), egress.DetailCertificate},
		{"speaks TLS 1.0 alone", limited(tls.VersionTLS10), egress.DetailAlert},
		{"speaks TLS 1.1 alone", limited(tls.VersionTLS11), egress.DetailAlert},
		{"speaks plain HTTP", func(conn net.Conn) { io.WriteString(conn, okAnswer); untilClosed(conn) }, egress.DetailNotTLS},
		{"speaks SSH", func(conn net.Conn) { io.WriteString(conn, "SSH-2.0-"+mark+"\r\n"); untilClosed(conn) }, egress.DetailNotTLS},
		{"resets", func(conn net.Conn) { conn.Read(make([]byte, 1)); abort(conn) }, egress.DetailClosed},
		{"drips its hello", func(conn net.Conn) { drips(conn, quick/20, "\x16\x03\x03\x40\x00"+strings.Repeat("x", 1000)) }, egress.DetailTimeout},
		{"sends records without end", func(conn net.Conn) { endless(conn, "\x16\x03\x03\x00\x01x") }, egress.DetailProtocol},
		{"wants HTTP/2 alone", func() func(net.Conn) {
			config := hookTLS()
			config.NextProtos = []string{"acme-tls/1"}
			return overTLS(config, says(okAnswer))
		}(), egress.DetailAlert},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			w := &wire{to: receive(t, row.serve)}
			config := production(w)
			if row.detail == egress.DetailTimeout {
				config.HandshakeTime = quick
			}
			result := send(t, newClient(t, config), w, hookRequest("https"))
			if result.Failure != egress.FailureTLS || result.MayHaveBeenReceived || result.Detail != row.detail {
				t.Errorf("%+v, want %s", result, row.detail)
			}
		})
	}
	t.Run("signed by what has expired", func(t *testing.T) {
		t.Parallel()
		w := &wire{to: receive(t, signedBy(expired))}
		result := send(t, newClient(t, production(w)), w, hookRequest("https"))
		if result.Failure != egress.FailureTLS || result.Detail != egress.DetailExpired || !result.CertificateNotAfter.Equal(expiredAt) {
			t.Errorf("%+v", result)
		}
	})
}

func TestAReceiverThatWantsAClientCertificateMayHaveReceived(t *testing.T) {
	t.Parallel()
	config := hookTLS()
	config.ClientAuth = tls.RequireAnyClientCert
	w := &wire{to: receive(t, overTLS(config, says(okAnswer)))}
	result := send(t, newClient(t, production(w)), w, hookRequest("https"))
	if result.Failure != egress.FailureTLS || result.Detail != egress.DetailAlert || !result.MayHaveBeenReceived {
		t.Errorf("%+v", result)
	}
}

func TestTLS12IsSpoken(t *testing.T) {
	t.Parallel()
	config := hookTLS()
	config.MaxVersion = tls.VersionTLS12
	w := &wire{to: receive(t, overTLS(config, says(okAnswer)))}
	if result := send(t, newClient(t, production(w)), w, hookRequest("https")); result.Status != 200 {
		t.Errorf("%+v", result)
	}
}

func TestRetryAfterComesOutAsItWasSent(t *testing.T) {
	t.Parallel()
	for sent, want := range map[string]string{
		"120":                            "120",
		" 120 ":                          "120",
		"-5":                             "-5",
		"999999999999999999999":          "999999999999999999999",
		strings.Repeat("9", 1000):        strings.Repeat("9", 64),
		"Mon, 09 Mar 2026 07:09:06 GMT":  "Mon, 09 Mar 2026 07:09:06 GMT",
		"Monday, 09-Mar-26 07:09:06 GMT": "Monday, 09-Mar-26 07:09:06 GMT",
		"Mon Mar  9 07:09:06 2026":       "Mon Mar  9 07:09:06 2026",
		"<script>":                       "",
		"bald, später":                   "",
		"":                               "",
	} {
		for _, status := range []int{429, 503} {
			r := receive(t, says(fmt.Sprintf("HTTP/1.1 %d \r\nRetry-After: %s\r\nContent-Length: 0\r\n\r\n", status, sent)))
			w := &wire{to: r}
			config := production(w)
			config.Allow = []egress.TargetOption{egress.AllowHTTP()}
			if result := send(t, newClient(t, config), w, hookRequest("http")); result.RetryAfter != want || result.Status != status {
				t.Errorf("%q came out as %q (%+v), want %q", sent, result.RetryAfter, result, want)
			}
		}
	}
}

// Not parallel: what is allocated is counted for the whole process. The receiver's own bytes are few and made before.
func TestMemoryStaysFlatWhateverAReceiverSends(t *testing.T) {
	piece := bytes.Repeat([]byte("x"), 64<<10)
	flood := func(head string, piece []byte) func(net.Conn) {
		return func(conn net.Conn) {
			buffer := make([]byte, 4096)
			conn.Read(buffer)
			io.WriteString(conn, head)
			for {
				if _, err := conn.Write(piece); err != nil {
					return
				}
			}
		}
	}
	for name, serve := range map[string]func(net.Conn){
		"body":        flood("HTTP/1.1 200 OK\r\n\r\n", piece),
		"chunked":     flood("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7fffffffffff\r\n", piece),
		"long header": flood("HTTP/1.1 200 OK\r\nA: ", piece),
		"headers":     flood("HTTP/1.1 200 OK\r\n", bytes.Repeat([]byte("a: b\r\n"), 10000)),
		"same header": flood("HTTP/1.1 200 OK\r\n", bytes.Repeat([]byte(":\r\n"), 10000)),
		"status line": flood("HTTP/1.1 200 ", piece),
		"1xx":         flood("", bytes.Repeat([]byte("HTTP/1.1 100 C\r\n\r\n"), 4000)),
		"no HTTP":     flood("", piece),
	} {
		w := &wire{to: receive(t, serve)}
		config := production(w)
		config.Allow = []egress.TargetOption{egress.AllowHTTP()}
		client := newClient(t, config)
		request := hookRequest("http")
		client.Send(context.Background(), request) // what is made once
		w.spies = nil
		const attempts = 10
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range attempts {
			client.Send(context.Background(), request)
		}
		runtime.ReadMemStats(&after)
		each := (after.TotalAlloc - before.TotalAlloc) / attempts
		t.Logf("%s: %d KiB an attempt", name, each>>10)
		if each > 2<<20 {
			t.Errorf("%s: %d bytes allocated an attempt", name, each)
		}
	}
}

func TestManyHangingReceiversAtOnceLeaveNothingBehind(t *testing.T) {
	before := runtime.NumGoroutine()
	r := receive(t, func(conn net.Conn) { untilClosed(conn) })
	w := &wire{to: r}
	config := egress.Config{Allow: []egress.TargetOption{egress.AllowLoopback()}}
	client := newClient(t, config)
	var group sync.WaitGroup
	for range 200 {
		group.Add(1)
		go func() {
			defer group.Done()
			request := hookRequest("http")
			request.Deadline = quick
			request.URL = "http://" + r.Addr().String() + "/"
			if result := client.Send(context.Background(), request); result.Failure != egress.FailureTimeout {
				t.Errorf("%+v", result)
			}
		}()
	}
	group.Wait()
	w.to.Close()
	r.served.Wait()
	if now := runtime.NumGoroutine(); now > before+5 {
		t.Errorf("%d goroutines before, %d after", before, now)
	}
}

// fromBytes is a receiver's answer without a network: what is left of it is an end.
type fromBytes struct {
	net.Conn
	answer io.Reader
}

func (f *fromBytes) Read(b []byte) (int, error) {
	return f.answer.Read(b[:min(len(b), 1+rand.IntN(64))]) // in pieces, as a network has them
}
func (f *fromBytes) Write(b []byte) (int, error)      { return len(b), nil }
func (f *fromBytes) SetDeadline(time.Time) error      { return nil }
func (f *fromBytes) SetReadDeadline(time.Time) error  { return nil }
func (f *fromBytes) SetWriteDeadline(time.Time) error { return nil }
func (f *fromBytes) Close() error                     { return nil }

func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{
		okAnswer, "HTTP/1.1 100 Continue\r\n\r\n" + okAnswer, "HTTP/1.1 101 S\r\n\r\n", "HTTP/1.0 302 \nLocation: :\n\n", "SSH-2.0-x\r\n", "HT",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nA: b\r\n\r\n", "HTTP/1.1 429 \r\nRetry-After: 120\r\nDate: Mon, 09 Mar 2026 07:07:06 GMT\r\n\r\n",
		"HTTP/1.1 503 \r\nRetry-After: Mon, 09 Mar 2026 07:09:06 GMT\r\nContent-Length: 3\r\n\r\nabc", "HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, answered []byte) {
		client := newClient(t, egress.Config{
			Allow: []egress.TargetOption{egress.AllowHTTP()}, Resolver: answer("8.8.8.8"),
			Dial: func(context.Context, string, string) (net.Conn, error) {
				return &fromBytes{answer: bytes.NewReader(answered)}, nil
			},
		})
		request := hookRequest("http")
		request.Deadline = time.Minute
		result := client.Send(context.Background(), request)
		if (result.Status != 0) == (result.Failure != egress.FailureNone) || !result.MayHaveBeenReceived {
			t.Errorf("%+v", result)
		}
		if result.Status != 0 && (result.Status < 101 || result.Status > 999 || result.Status/100 == 1 && result.Status != 101) {
			t.Errorf("status %d is not a final one", result.Status)
		}
		if result.Status != 0 && !bytes.Contains(answered, fmt.Appendf(nil, " %d", result.Status)) {
			t.Errorf("status %d was not sent", result.Status)
		}
		switch result.Failure {
		case egress.FailureNone, egress.FailureBadAnswer, egress.FailureNotHTTP, egress.FailureHeadersTooLarge:
		case egress.FailureReset:
			if len(answered) != 0 {
				t.Errorf("%d bytes came, and it is a reset", len(answered))
			}
		default:
			t.Errorf("%+v", result)
		}
		if len(result.RetryAfter) > 64 || strings.ContainsAny(result.RetryAfter, "<>&\"'\r\n\x00") {
			t.Errorf("Retry-After came out as %q", result.RetryAfter)
		}
	})
}
