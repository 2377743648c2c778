package egress

import (
	"bytes"
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"colophon/internal/killpoint"
)

const (
	attemptTime   = 10 * time.Second // the one deadline over everything
	connectTime   = 3 * time.Second  // within it
	handshakeTime = 5 * time.Second  // within it
	requestLimit  = 32 << 10         // bytes of a request: they fit an empty send buffer, so that no write waits halfway
)

// Config is what a Client is built from. Only the first two differ from stage to stage; the rest is for tests, and what
// is left out is the system's.
type Config struct {
	Allow      []TargetOption // what loosens production's rules
	RuntimeAPI string         // AWS_LAMBDA_RUNTIME_API (host:port), which AllowLoopback must not open; empty outside Lambda

	Resolver      Resolver
	Dial          func(ctx context.Context, network, address string) (net.Conn, error) // gets literal addresses, already judged
	Clock         func() time.Time
	Roots         *x509.CertPool
	ConnectTime   time.Duration // 3 s
	HandshakeTime time.Duration // 5 s
}

func (c Config) validate() error {
	if c.ConnectTime < 0 || c.HandshakeTime < 0 {
		return errors.New("egress: times must not be negative")
	}
	if c.RuntimeAPI != "" {
		if _, err := runtimePort(c.RuntimeAPI); err != nil {
			return err
		}
	}
	return nil
}

// runtimePort is closed on all of loopback: the API may listen on more than the address it is known by.
func runtimePort(hostPort string) (uint16, error) {
	_, digits, err := net.SplitHostPort(hostPort)
	if err != nil {
		return 0, errors.New("egress: the runtime API's address must be host:port")
	}
	port, err := strconv.ParseUint(digits, 10, 16)
	if err != nil || port == 0 {
		return 0, errors.New("egress: the runtime API's port must be a number from 1 to 65535")
	}
	return uint16(port), nil
}

// Client makes attempts. It may be used by many goroutines at once.
type Client struct {
	dialer        dialer
	clock         func() time.Time
	roots         *x509.CertPool
	handshakeTime time.Duration
}

// New builds a Client.
func New(config Config) (*Client, error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	c := &Client{
		dialer: dialer{
			policy:      newPolicy(config.Allow),
			resolver:    config.Resolver,
			dial:        config.Dial,
			connectTime: cmp.Or(config.ConnectTime, connectTime),
		},
		clock:         config.Clock,
		roots:         config.Roots,
		handshakeTime: cmp.Or(config.HandshakeTime, handshakeTime),
	}
	if config.RuntimeAPI != "" {
		c.dialer.runtimePort, _ = runtimePort(config.RuntimeAPI)
	}
	if c.dialer.resolver == nil {
		c.dialer.resolver = &net.Resolver{PreferGo: true} // the C library's would read odd numbers as addresses
	}
	if c.dialer.dial == nil {
		c.dialer.dial = c.dialer.netDialer().DialContext
	}
	if c.clock == nil {
		c.clock = time.Now
	}
	return c, nil
}

// Request is one POST.
type Request struct {
	URL      string // as ParseTarget returned it
	Body     []byte
	Header   http.Header   // one value a name
	NotAfter time.Time     // the instant, by the wall clock, from which on no byte may be written; must be set
	Deadline time.Duration // over everything; 10 s if zero
}

// wire is the request as it goes out: built whole, so that it is written at once.
func (r Request) wire(target *url.URL) ([]byte, error) {
	request, err := http.NewRequest(http.MethodPost, target.String(), bytes.NewReader(r.Body))
	if err != nil {
		return nil, fmt.Errorf("building a request: %w", err)
	}
	request.Close = true                 // sends Connection: close
	request.Header.Set("User-Agent", "") // sends none, not even net/http's own
	for name, values := range r.Header {
		if !headerName(name) || len(values) != 1 || !headerValue(values[0]) || hopByHop(name) {
			return nil, errors.New("building a request: a header is not one that may be sent")
		}
		request.Header.Set(name, values[0])
	}
	var wire bytes.Buffer
	if err := request.Write(&wire); err != nil {
		return nil, fmt.Errorf("building a request: %w", err)
	}
	if wire.Len() > requestLimit {
		return nil, errors.New("building a request: too large")
	}
	return wire.Bytes(), nil
}

// Send makes one attempt: lookup, connect, handshake, request, answer. It returns after its socket is closed, at the
// deadline at the latest. It never follows, repeats or retries anything.
func (c *Client) Send(ctx context.Context, request Request) Result {
	return c.attempt(ctx, request, true)
}

// Probe goes the same way up to the handshake and sends no request. It does not look at Header and Body.
func (c *Client) Probe(ctx context.Context, request Request) Result {
	request.Header, request.Body = nil, nil
	return c.attempt(ctx, request, false)
}

// whyBlocked is the kind of parse's refusal: none for a host that is not a public one, as where its lookup says so.
func whyBlocked(err error) Detail {
	var refusal *Refusal
	if !errors.As(err, &refusal) {
		return DetailNotAllowed
	}
	switch refusal.Code {
	case "own-api":
		return DetailOwnAPI
	case "not-public", "reserved-name":
		return DetailNone
	}
	return DetailNotAllowed
}

func (c *Client) attempt(parent context.Context, request Request, send bool) (result Result) {
	start := c.clock()
	step := start
	did := func(name StepName) {
		now := c.clock()
		result.Steps = append(result.Steps, Step{Name: name, Took: now.Sub(step)})
		step = now
	}
	defer func() { result.Elapsed = c.clock().Sub(start) }()

	target, err := c.dialer.policy.parse(request.URL)
	if err != nil {
		return Result{Failure: FailureBlocked, Detail: whyBlocked(err)}
	}
	wire, err := request.wire(target)
	if err != nil || request.NotAfter.IsZero() {
		return Result{Failure: FailureOurs}
	}
	if past(start, request.NotAfter) {
		return Result{Failure: FailureClock}
	}
	ctx, cancel := context.WithTimeout(parent, cmp.Or(request.Deadline, attemptTime))
	defer cancel()

	addresses, err := c.dialer.lookup(ctx, target)
	if err != nil {
		return result.end(parent, nil, err)
	}
	did(StepLookup)

	opened, err := c.dialer.connect(ctx, addresses)
	if err != nil {
		return result.end(parent, nil, err)
	}
	socket := &conn{Conn: opened, clock: c.clock, notAfter: request.NotAfter}
	defer socket.Close() // waits until the socket is closed, and is not the TLS connection's, which would write first
	defer context.AfterFunc(ctx, func() { _ = socket.SetDeadline(time.Unix(1, 0)) })()
	if err := socket.reset(true); err != nil {
		return result.end(parent, socket, fault{FailureConnect, DetailUnreachable})
	}
	did(StepConnect)

	stream := net.Conn(socket)
	if target.Scheme == "https" {
		stream, result.CertificateNotAfter, err = c.handshake(ctx, socket, target.Hostname())
		if err != nil {
			return result.end(parent, socket, err)
		}
		did(StepHandshake)
	}
	if !send {
		return result
	}

	before := socket.written
	err = writeRequest(stream, wire)
	result.MayHaveBeenReceived = socket.written > before
	if err != nil {
		return result.end(parent, socket, ioFault(err, 0))
	}
	did(StepRequest)

	answer, err := readAnswer(stream, http.MethodPost)
	if err != nil {
		return result.end(parent, socket, err)
	}
	_ = socket.reset(false)
	result.note(answer)
	_, _ = io.Copy(io.Discard, answer.Body) // up to bodyLimit: the status has decided, an ordinary receiver may finish
	did(StepAnswer)
	return result
}

// writeRequest writes the request at once; a test build in two parts, so that it
// can be killed between them.
func writeRequest(stream net.Conn, wire []byte) error {
	if killpoint.Enabled {
		half := len(wire) / 2
		if _, err := stream.Write(wire[:half]); err != nil {
			return err
		}
		killpoint.At(killpoint.MidSend)
		wire = wire[half:]
	}
	_, err := stream.Write(wire)
	return err
}

// end closes an attempt that has no status. What this side did to the connection explains a failure better than what
// the step made of it.
func (r *Result) end(parent context.Context, socket *conn, err error) Result {
	known := fault{failure: FailureOurs}
	errors.As(err, &known)
	switch {
	case socket != nil && socket.refused:
		known = fault{failure: FailureClock}
	case parent.Err() != nil && known.failure != FailureBlocked:
		known = fault{failure: FailureCanceled}
	}
	r.Failure, r.Detail = known.failure, known.detail
	return *r
}
