package egress_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"colophon/internal/egress"
)

func toJSON(t testing.TB, value any) []byte {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

const okAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"

// serveBoth runs a test against a receiver by http and by https, in production's rules but for the scheme.
func serveBoth(t *testing.T, serve func(net.Conn), check func(t *testing.T, r *receiver, w *wire, client *egress.Client, request egress.Request)) {
	t.Helper()
	for _, scheme := range []string{"http", "https"} {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			served := serve
			if scheme == "https" {
				served = overTLS(hookTLS(), serve)
			}
			r := receive(t, served)
			w := &wire{to: r}
			config := production(w)
			if scheme == "http" {
				config.Allow = []egress.TargetOption{egress.AllowHTTP()}
			}
			check(t, r, w, newClient(t, config), hookRequest(scheme))
		})
	}
}

func TestAnAttemptTellsItsSteps(t *testing.T) {
	t.Parallel()
	serveBoth(t, says("HTTP/1.1 202 Accepted\r\nDate: Mon, 09 Mar 2026 07:07:06 GMT\r\nContent-Length: 2\r\n\r\nok"),
		func(t *testing.T, _ *receiver, w *wire, client *egress.Client, request egress.Request) {
			result := send(t, client, w, request)
			want, dialled := "lookup connect request answer", "[tcp4 8.8.8.8:80]"
			if strings.HasPrefix(request.URL, "https") {
				want, dialled = "lookup connect handshake request answer", "[tcp4 8.8.8.8:443]"
				if !result.CertificateNotAfter.Equal(hookCertificate().Leaf.NotAfter) {
					t.Errorf("the certificate ends at %s", result.CertificateNotAfter)
				}
			}
			var steps []string
			for _, step := range result.Steps {
				steps = append(steps, string(step.Name))
			}
			if got := strings.Join(steps, " "); got != want || fmt.Sprint(w.dialled) != dialled {
				t.Errorf("steps %q, dialled %s", got, w.dialled)
			}
			if result.Status != 202 || !result.MayHaveBeenReceived || !result.ServerDate.Equal(time.Date(2026, 3, 9, 7, 7, 6, 0, time.UTC)) {
				t.Errorf("%+v", result)
			}
		})
}

func TestAProbeGoesAsFarAsTheHandshakeAndSendsNothing(t *testing.T) {
	t.Parallel()
	var received atomic.Int64
	serveBoth(t, func(conn net.Conn) {
		n, _ := io.Copy(io.Discard, conn)
		received.Add(n)
	}, func(t *testing.T, r *receiver, w *wire, client *egress.Client, request egress.Request) {
		result := client.Probe(context.Background(), request)
		r.Close()
		r.served.Wait()
		if result.Failure != egress.FailureNone || result.Status != 0 || result.MayHaveBeenReceived || len(result.Steps) < 2 || received.Load() != 0 {
			t.Errorf("%+v, %d bytes received", result, received.Load())
		}
		if strings.HasPrefix(request.URL, "https") != !result.CertificateNotAfter.IsZero() {
			t.Errorf("the certificate ends at %s", result.CertificateNotAfter)
		}
	})
}

func TestTheNameIsLookedUpOnceAndTheJudgedAddressIsDialled(t *testing.T) {
	t.Parallel()
	r := receive(t, overTLS(hookTLS(), says(okAnswer)))
	w := &wire{to: r}
	config := production(w)
	var hosts []string
	config.Resolver = resolverFunc(func(_ context.Context, host string) ([]netip.Addr, error) {
		hosts = append(hosts, host)
		if len(hosts) > 1 { // rebound: every later answer is the metadata service
			return answer("169.254.169.254"), nil
		}
		return answer("::ffff:8.8.8.8"), nil // as Go's resolver writes an A record
	})
	client := newClient(t, config)
	if result := send(t, client, w, hookRequest("https")); result.Status != 200 {
		t.Errorf("%+v", result)
	}
	if fmt.Sprint(hosts) != "["+hookName+".]" || fmt.Sprint(w.dialled) != "[tcp4 8.8.8.8:443]" {
		t.Errorf("looked up %s, dialled %s", hosts, w.dialled)
	}
	if result := client.Send(context.Background(), hookRequest("https")); result.Failure != egress.FailureBlocked || len(w.dialled) != 1 {
		t.Errorf("rebound: %+v, dialled %s", result, w.dialled)
	}
}

func TestOneForbiddenAnswerBlocksTheName(t *testing.T) {
	t.Parallel()
	for _, row := range rows(t, "addresses.csv") {
		if row["expect"] != "block" || either(row) {
			continue
		}
		for _, literals := range [][]string{
			{row["input"]}, {row["input"], "8.8.8.8"}, {"8.8.8.8", row["input"]}, {"2606:4700::1111", "8.8.8.8", row["input"], "1.1.1.1"},
		} {
			for name, allow := range map[string][]egress.TargetOption{
				"production": nil, "http and all ports": {egress.AllowHTTP(), egress.AllowPorts(80, 2773, 9001)},
			} {
				dials := &dialCounter{}
				client := newClient(t, egress.Config{Resolver: answer(literals...), Dial: dials.dial, Allow: allow})
				result := client.Send(context.Background(), hookRequest("https"))
				if result.Failure != egress.FailureBlocked || result.MayHaveBeenReceived || dials.count.Load() != 0 {
					t.Errorf("%s: %s in %s: %+v, %d dials", row["id"], literals, name, result, dials.count.Load())
				}
			}
		}
	}
}

func TestTheZeroAddressInAnAnswerBlocksTheName(t *testing.T) {
	t.Parallel()
	dials := &dialCounter{}
	client := newClient(t, egress.Config{Resolver: answers{netip.Addr{}, netip.MustParseAddr("8.8.8.8")}, Dial: dials.dial})
	if result := client.Send(context.Background(), hookRequest("https")); result.Failure != egress.FailureBlocked || dials.count.Load() != 0 {
		t.Errorf("%+v", result)
	}
}

func TestTheLoopbackAllowanceOpensLoopbackAlone(t *testing.T) {
	t.Parallel()
	const runtimeAPI = 9001
	allow := []egress.TargetOption{egress.AllowLoopback()}
	for _, row := range []struct {
		url, answer string
		dialled     bool
	}{
		{"http://127.0.0.1:3000/", "", true},
		{"http://[::1]:3000/", "", true},
		{"http://localhost:3000/", "127.0.0.1", true},
		{"http://localhost:3000/", "::ffff:127.0.0.1", true}, // as Go's resolver writes an A record
		{"https://hook.example.com/", "127.0.0.1", true},
		{"https://hook.example.com/", "8.8.8.8", true},

		{"http://127.0.0.1:9001/", "", false},
		{"http://127.0.0.2:9001/", "", false},
		{"http://[::1]:9001/", "", false},
		{"https://localhost:9001/", "127.0.0.1", false},
		{"http://localhost:3000/", "10.0.0.1", false},
		{"http://localhost:3000/", "0.0.0.0", false},
		{"http://localhost:3000/", "::", false},
		{"http://localhost:3000/", "8.8.8.8", false}, // the free ports are loopback's
		{"http://localhost:3000/", "::127.0.0.1", false},
		{"http://localhost:3000/", "64:ff9b::7f00:1", false},
		{"http://localhost:3000/", "2002:7f00:1::1", false},
		{"https://hook.example.com/", "169.254.169.254", false},
		{"https://hook.example.com/", "fd00:ec2::254", false},
	} {
		dials := &dialCounter{}
		resolver := answers(nil)
		if row.answer != "" {
			resolver = answer(row.answer)
		}
		client := newClient(t, egress.Config{Allow: allow, RuntimeAPI: fmt.Sprintf("127.0.0.1:%d", runtimeAPI), Resolver: resolver, Dial: dials.dial})
		result := client.Send(context.Background(), egress.Request{URL: row.url, NotAfter: soon()})
		if (dials.count.Load() != 0) != row.dialled || (result.Failure != egress.FailureBlocked) != row.dialled {
			t.Errorf("%s (%s): %q, %d dials, want dialled %t", row.url, row.answer, result.Failure, dials.count.Load(), row.dialled)
		}
	}
}

func TestTheRuntimeAPIIsNotReachedByTheRealDialer(t *testing.T) {
	t.Parallel()
	open, runtimeAPI := receive(t, says(okAnswer)), receive(t, says(okAnswer))
	client := newClient(t, egress.Config{Allow: []egress.TargetOption{egress.AllowLoopback()}, RuntimeAPI: runtimeAPI.Addr().String()})
	to := func(r *receiver) egress.Request {
		return egress.Request{URL: "http://" + r.Addr().String() + "/", NotAfter: soon()}
	}
	if result := client.Send(context.Background(), to(open)); result.Status != 200 {
		t.Errorf("a receiver on loopback: %+v", result)
	}
	if result := client.Send(context.Background(), to(runtimeAPI)); result.Failure != egress.FailureBlocked || runtimeAPI.accepted.Load() != 0 {
		t.Errorf("the runtime API: %+v", result)
	}
	byName := to(open)
	byName.URL = strings.Replace(byName.URL, "127.0.0.1", "localhost", 1) // by the system's own resolver
	if result := client.Send(context.Background(), byName); result.Status != 200 {
		t.Errorf("localhost: %+v", result)
	}
	if result := newClient(t, egress.Config{}).Send(context.Background(), to(open)); result.Failure != egress.FailureBlocked || open.accepted.Load() != 2 {
		t.Errorf("without the allowance: %+v", result)
	}
}

func TestARuntimeAPIThatCannotBeReadIsRefusedAtStart(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"127.0.0.1", "127.0.0.1:", "127.0.0.1:http", "127.0.0.1:0", "127.0.0.1:70000", ":::"} {
		if _, err := egress.New(egress.Config{RuntimeAPI: address}); err == nil {
			t.Errorf("%q was taken", address)
		}
	}
}

func TestProxiesInTheEnvironmentAreNotUsed(t *testing.T) {
	proxy := receive(t, says(okAnswer))
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		t.Setenv(name, "http://"+proxy.Addr().String())
		t.Setenv(strings.ToLower(name), "http://"+proxy.Addr().String())
	}
	t.Setenv("NO_PROXY", "")
	for _, scheme := range []string{"http", "https"} {
		serve := says(okAnswer)
		if scheme == "https" {
			serve = overTLS(hookTLS(), serve)
		}
		w := &wire{to: receive(t, serve)}
		config := production(w)
		config.Allow = []egress.TargetOption{egress.AllowHTTP()}
		if result := send(t, newClient(t, config), w, hookRequest(scheme)); result.Status != 200 || proxy.accepted.Load() != 0 {
			t.Errorf("%s: %+v, the proxy was called %d times", scheme, result, proxy.accepted.Load())
		}
	}
}

func TestWhatKeepsAnAttemptFromConnecting(t *testing.T) {
	t.Parallel()
	hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	for _, row := range []struct {
		name    string
		lookup  func(context.Context) error
		dial    func(context.Context) error
		failure egress.Failure
		detail  egress.Detail
	}{
		{"no such name", func(context.Context) error { return &net.DNSError{Err: mark, IsNotFound: true} }, nil, egress.FailureDNS, egress.DetailNoSuchName},
		{"the name's servers fail", func(context.Context) error { return &net.DNSError{Err: mark, IsTemporary: true} }, nil, egress.FailureDNS, egress.DetailLookupFailed},
		{"the name's servers are silent", func(context.Context) error { return &net.DNSError{Err: mark, IsTimeout: true} }, nil, egress.FailureDNS, egress.DetailTimeout},
		{"the lookup hangs", hang, nil, egress.FailureDNS, egress.DetailTimeout},
		{"the lookup fails in a way of its own", func(context.Context) error { return errors.New(mark) }, nil, egress.FailureDNS, egress.DetailLookupFailed},
		{"nothing listens", nil, func(context.Context) error { return &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED} }, egress.FailureConnect, egress.DetailConnectRefused},
		{"no route", nil, func(context.Context) error { return &net.OpError{Op: "dial", Err: syscall.ENETUNREACH} }, egress.FailureConnect, egress.DetailUnreachable},
		{"packets are swallowed", nil, hang, egress.FailureConnect, egress.DetailTimeout},
		{"this process has no file left", nil, func(context.Context) error { return &net.OpError{Op: "dial", Err: syscall.EMFILE} }, egress.FailureOurs, egress.DetailNone},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			client := newClient(t, egress.Config{
				ConnectTime: quick / 6,
				Resolver: resolverFunc(func(ctx context.Context, _ string) ([]netip.Addr, error) {
					if row.lookup != nil {
						return nil, row.lookup(ctx)
					}
					return answer("8.8.8.8", "1.1.1.1"), nil
				}),
				Dial: func(ctx context.Context, _, _ string) (net.Conn, error) { return nil, row.dial(ctx) },
			})
			request := hookRequest("https")
			request.Deadline = quick
			result := send(t, client, &wire{}, request)
			if result.Failure != row.failure || result.Detail != row.detail || result.MayHaveBeenReceived {
				t.Errorf("%+v", result)
			}
		})
	}
	t.Run("the name has no address", func(t *testing.T) {
		t.Parallel()
		result := send(t, newClient(t, egress.Config{Resolver: answers(nil)}), &wire{}, hookRequest("https"))
		if result.Failure != egress.FailureDNS || result.Detail != egress.DetailNoAddress {
			t.Errorf("%+v", result)
		}
	})
}

func TestTheNextAddressIsDialledWhenOneFails(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]func(context.Context) error{
		"refused":   func(context.Context) error { return syscall.ECONNREFUSED },
		"swallowed": func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
	} {
		w := &wire{to: receive(t, overTLS(hookTLS(), says(okAnswer)))}
		config := production(w)
		config.Resolver = answer("2606:4700::1111", "8.8.8.8")
		config.ConnectTime = quick / 2
		config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			if network == "tcp6" {
				w.dialled = append(w.dialled, network+" "+address)
				return nil, first(ctx)
			}
			return w.dial(ctx, network, address)
		}
		result := send(t, newClient(t, config), w, hookRequest("https"))
		if result.Status != 200 || fmt.Sprint(w.dialled) != "[tcp6 [2606:4700::1111]:443 tcp4 8.8.8.8:443]" {
			t.Errorf("%s: %+v, dialled %s", name, result, w.dialled)
		}
	}
}

func TestManyAddressesShareTheOneTimeToConnect(t *testing.T) {
	t.Parallel()
	var many answers
	for i := range 200 {
		many = append(many, netip.AddrFrom4([4]byte{8, 8, 8, byte(i)}))
	}
	var dials atomic.Int32
	client := newClient(t, egress.Config{ConnectTime: quick / 6, Resolver: many, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		dials.Add(1)
		<-ctx.Done()
		return nil, ctx.Err()
	}})
	result := client.Send(context.Background(), hookRequest("https"))
	if result.Failure != egress.FailureConnect || result.Elapsed > slack || dials.Load() > 4 {
		t.Errorf("%+v after %d dials", result, dials.Load())
	}
}

func TestACanceledAttemptIsNobodysFault(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{"http", "https"} {
		got := make(chan struct{})
		serve := func(conn net.Conn) {
			readRequest(conn)
			close(got)
			untilClosed(conn)
		}
		if scheme == "https" {
			serve = overTLS(hookTLS(), serve)
		}
		w := &wire{to: receive(t, serve)}
		config := production(w)
		config.Allow = []egress.TargetOption{egress.AllowHTTP()}
		ctx, cancel := context.WithCancel(context.Background())
		go func() { <-got; cancel() }()
		request := hookRequest(scheme)
		request.Deadline = time.Minute
		result := newClient(t, config).Send(ctx, request)
		if result.Failure != egress.FailureCanceled || !result.MayHaveBeenReceived || !w.spies[0].closed || result.Elapsed > time.Minute/2 {
			t.Errorf("%s: %+v", scheme, result)
		}
	}
}

func TestARequestThatWeShouldNotHaveMadeIsOurFault(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*egress.Request){
		"no last instant":          func(r *egress.Request) { r.NotAfter = time.Time{} },
		"a header with a line end": func(r *egress.Request) { r.Header.Set("X-A", "a\r\nX-B: b") },
		"a header name with a colon": func(r *egress.Request) {
			r.Header["X-A: b\r\nX-B"] = []string{"c"}
		},
		"a header twice":               func(r *egress.Request) { r.Header["X-A"] = []string{"a", "b"} },
		"a length of its own":          func(r *egress.Request) { r.Header.Set("Content-Length", "0") },
		"another framing":              func(r *egress.Request) { r.Header.Set("Transfer-Encoding", "chunked") },
		"another host":                 func(r *egress.Request) { r.Header.Set("Host", "other.example.com") },
		"a connection to be kept open": func(r *egress.Request) { r.Header.Set("Connection", "keep-alive") },
		"an enormous body":             func(r *egress.Request) { r.Body = make([]byte, 1<<20) },
	} {
		dials := &dialCounter{}
		client := newClient(t, egress.Config{Resolver: answer("8.8.8.8"), Dial: dials.dial})
		request := hookRequest("https")
		change(&request)
		if result := client.Send(context.Background(), request); result.Failure != egress.FailureOurs || dials.count.Load() != 0 {
			t.Errorf("%s: %+v, %d dials", name, result, dials.count.Load())
		}
	}
}

// jump is a clock that is put forward once, as a sandbox's is that was frozen.
type jump struct{ by atomic.Int64 }

func (j *jump) now() time.Time { return time.Now().Add(time.Duration(j.by.Load())) }
func (j *jump) freeze()        { j.by.Store(int64(time.Hour)) }

func TestAFrozenSandboxThatWakesUpWritesNoByte(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, scheme string
		arrange      func(*wire, *jump, *egress.Config)
		received     bool // something of the handshake
	}{
		{"before it starts", "https", func(_ *wire, j *jump, _ *egress.Config) { j.freeze() }, false},
		{"after the lookup", "https", func(_ *wire, j *jump, c *egress.Config) {
			c.Resolver = resolverFunc(func(context.Context, string) ([]netip.Addr, error) { j.freeze(); return answer("8.8.8.8"), nil })
		}, false},
		{"after the connect", "http", func(w *wire, j *jump, _ *egress.Config) { w.onDialled = j.freeze }, false},
		{"after the connect, with TLS to come", "https", func(w *wire, j *jump, _ *egress.Config) { w.onDialled = j.freeze }, false},
		{"in the handshake", "https", func(w *wire, j *jump, _ *egress.Config) { w.onWritten = func(int) { j.freeze() } }, true},
		{"after the handshake", "https", func(w *wire, j *jump, _ *egress.Config) {
			w.onWritten = func(writes int) {
				if writes == 2 { // hello, finished
					j.freeze()
				}
			}
		}, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			var bytes atomic.Int64
			var inTLS atomic.Int64
			r := receive(t, func(conn net.Conn) {
				if row.received {
					overTLS(hookTLS(), func(conn net.Conn) { n, _ := io.Copy(io.Discard, conn); inTLS.Add(n) })(conn)
					return
				}
				n, _ := io.Copy(io.Discard, conn)
				bytes.Add(n)
			})
			w, j := &wire{to: r}, &jump{}
			config := production(w)
			config.Clock = j.now
			config.Allow = []egress.TargetOption{egress.AllowHTTP()}
			row.arrange(w, j, &config)
			result := newClient(t, config).Send(context.Background(), hookRequest(row.scheme))
			r.Close()
			r.served.Wait()
			if result.Failure != egress.FailureClock || result.MayHaveBeenReceived || bytes.Load() != 0 || inTLS.Load() != 0 {
				t.Errorf("%+v, %d bytes and %d in TLS received", result, bytes.Load(), inTLS.Load())
			}
		})
	}
}

func TestTheInstantItselfIsTooLate(t *testing.T) {
	t.Parallel()
	now := time.Now()
	dials := &dialCounter{}
	client := newClient(t, egress.Config{Resolver: answer("8.8.8.8"), Dial: dials.dial, Clock: func() time.Time { return now }})
	request := hookRequest("https")
	request.NotAfter = now
	if result := client.Send(context.Background(), request); result.Failure != egress.FailureClock || dials.count.Load() != 0 {
		t.Errorf("at the instant: %+v", result)
	}
	request.NotAfter = now.Add(1)
	if result := client.Send(context.Background(), request); result.Failure != egress.FailureConnect || dials.count.Load() != 1 {
		t.Errorf("a nanosecond before: %+v", result)
	}
}

func TestAnAttemptThatIsGivenUpIsReset(t *testing.T) {
	t.Parallel()
	ends := make(chan error, 2)
	serveBoth(t, func(conn net.Conn) {
		readRequest(conn)
		ends <- untilClosed(conn)
	}, func(t *testing.T, _ *receiver, w *wire, client *egress.Client, request egress.Request) {
		request.Deadline = quick
		if result := send(t, client, w, request); result.Failure != egress.FailureTimeout || !result.MayHaveBeenReceived {
			t.Errorf("%+v", result)
		}
		if err := <-ends; !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("the receiver saw %v, want a reset", err)
		}
	})
}

func TestAnAnsweredAttemptIsClosedInGoodOrder(t *testing.T) {
	t.Parallel()
	ends := make(chan error, 1)
	r := receive(t, func(conn net.Conn) {
		says(okAnswer)(conn)
		ends <- untilClosed(conn)
	})
	w := &wire{to: r}
	config := production(w)
	config.Allow = []egress.TargetOption{egress.AllowHTTP()}
	if result := send(t, newClient(t, config), w, hookRequest("http")); result.Status != 200 {
		t.Errorf("%+v", result)
	}
	if err := <-ends; err != nil {
		t.Errorf("the receiver saw %v, want an ordinary end", err)
	}
}

func TestARequestWithoutAUserAgentHasNone(t *testing.T) {
	t.Parallel()
	got := make(chan http.Header, 1)
	r := receive(t, func(conn net.Conn) {
		request, _ := readRequest(conn)
		got <- request.Header
		io.WriteString(conn, okAnswer)
	})
	w := &wire{to: r}
	config := production(w)
	config.Allow = []egress.TargetOption{egress.AllowHTTP()}
	send(t, newClient(t, config), w, hookRequest("http"))
	if agent, there := (<-got)["User-Agent"]; there {
		t.Errorf("User-Agent: %q", agent)
	}
}
