package egress

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
)

const (
	headLimit  = 32 << 10 // bytes of all heads of an answer together, interim ones (1xx) included
	bodyLimit  = 4 << 10  // bytes of a body that are read, and thrown away
	retryLimit = 64       // characters kept of Retry-After; an HTTP date has 29
)

var errTooLong = errors.New("longer than its limit")

// limited reads at most left bytes, then fails with errTooLong. It keeps how its last reading failed: net/http's reader
// takes what came before a failure for a whole line, and may report that line's grammar in its place.
type limited struct {
	from io.Reader
	left int
	read int
	err  error
}

func (l *limited) Read(b []byte) (int, error) {
	if l.left <= 0 {
		l.err = errTooLong
		return 0, errTooLong
	}
	n, err := l.from.Read(b[:min(len(b), l.left)])
	l.left -= n
	l.read += n
	l.err = err
	return n, err
}

// readAnswer reads heads until the final one. The returned answer's body is limited to what is worth reading.
func readAnswer(from io.Reader, method string) (*http.Response, error) {
	in := &limited{from: from, left: headLimit}
	reader := bufio.NewReader(in)
	for {
		// http.ReadResponse is lenient about the status line, and its errors tell a wrong one from no HTTP at all
		// only by text.
		start, err := reader.Peek(len("HTTP/1.1 200"))
		switch {
		case len(start) > 0 && !bytes.HasPrefix(start, []byte("HTTP/")[:min(len(start), len("HTTP/"))]):
			return nil, fault{FailureNotHTTP, DetailNone}
		case err != nil:
			return nil, ioFault(in.err, in.read)
		case !statusLine(start):
			return nil, fault{FailureBadAnswer, DetailNone}
		}
		answer, err := http.ReadResponse(reader, &http.Request{Method: method})
		if err != nil {
			return nil, ioFault(in.err, in.read)
		}
		if answer.StatusCode/100 != 1 || answer.StatusCode == http.StatusSwitchingProtocols {
			in.left = bodyLimit
			return answer, nil
		}
	}
}

// statusLine checks "HTTP/1.x ddd", with a status of 100 or more.
func statusLine(start []byte) bool {
	version, status := string(start[:len("HTTP/1.1 ")]), string(start[len("HTTP/1.1 "):])
	return (version == "HTTP/1.1 " || version == "HTTP/1.0 ") &&
		status[0] != '0' && strings.Trim(status, "0123456789") == ""
}

// ioFault classes a connection that failed with err after read bytes of the answer. Without an err it was the answer.
func ioFault(err error, read int) fault {
	var network net.Error
	switch {
	case errors.Is(err, errTooLong):
		return fault{FailureHeadersTooLarge, DetailNone}
	case errors.As(err, &network) && network.Timeout():
		return fault{FailureTimeout, DetailNone}
	case tlsAlert(err): // a TLS 1.3 receiver that wants a client certificate says so only now
		return fault{FailureTLS, DetailAlert}
	case read == 0:
		return fault{FailureReset, DetailNone}
	}
	return fault{FailureBadAnswer, DetailNone}
}

// note takes from an answer what a Result keeps of it.
func (r *Result) note(answer *http.Response) {
	r.Status = answer.StatusCode
	r.RetryAfter = retryAfter(answer.Header.Get("Retry-After"))
	if date, err := http.ParseTime(answer.Header.Get("Date")); err == nil {
		r.ServerDate = date
	}
	r.Redirect = answer.StatusCode/100 == 3 && answer.Header.Get("Location") != ""
}

// retryAfter cuts a value to its limit, and drops one with characters that neither a number nor a date has.
func retryAfter(value string) string {
	value = strings.TrimSpace(value)
	value = value[:min(len(value), retryLimit)]
	if strings.ContainsFunc(value, func(r rune) bool {
		return !(r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || strings.ContainsRune(" ,:+-.", r))
	}) {
		return ""
	}
	return value
}
