package egress_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"colophon/internal/egress"
)

const (
	hookName = "hook.example.com"
	patient  = 20 * time.Second        // a deadline for receivers that end by themselves
	quick    = 2500 * time.Millisecond // one for receivers that never do: time enough for a busy machine to shake hands
	slack    = 2 * time.Second         // how late a busy machine may be
	mark     = "MARKED-BY-THE-RECEIVER"
)

// TestMain runs many tests at once: they wait more than they compute.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "24"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// authority is a root, and what it signs.
type authority struct {
	pool         *x509.CertPool
	root         *x509.Certificate
	rootKey      *ecdsa.PrivateKey
	intermediate *x509.Certificate
	key          *ecdsa.PrivateKey // the intermediate's
}

var testAuthority = sync.OnceValue(func() *authority {
	a := &authority{pool: x509.NewCertPool()}
	ca := x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	a.root, a.rootKey = issue(ca, mark+" root", nil, nil)
	a.intermediate, a.key = issue(ca, mark+" intermediate", a.root, a.rootKey)
	a.pool.AddCert(a.root)
	return a
})

var serial atomic.Int64

// issue makes a certificate; without a parent it signs itself.
func issue(template x509.Certificate, name string, parent *x509.Certificate, parentKey *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template.SerialNumber = big.NewInt(serial.Add(1))
	template.Subject = pkix.Name{CommonName: name}
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Now().Add(24 * time.Hour).Truncate(time.Second)
	}
	if template.NotBefore.IsZero() {
		template.NotBefore = time.Now().Add(-24 * time.Hour)
	}
	if parent == nil {
		parent, parentKey = &template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, parent, &key.PublicKey, parentKey)
	if err != nil {
		panic(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	return certificate, key
}

// leaf makes a server's certificate, signed by the intermediate, which is sent along.
func (a *authority) leaf(template x509.Certificate, names ...string) tls.Certificate {
	template.DNSNames = names
	certificate, key := issue(template, mark+" leaf", a.intermediate, a.key)
	return tls.Certificate{Certificate: [][]byte{certificate.Raw, a.intermediate.Raw}, PrivateKey: key, Leaf: certificate}
}

var hookCertificate = sync.OnceValue(func() tls.Certificate {
	return testAuthority().leaf(x509.Certificate{}, hookName)
})

// receiver is a raw listener on loopback.
type receiver struct {
	net.Listener
	accepted atomic.Int32
	served   sync.WaitGroup
}

// receive hands every connection to serve, and closes it after. The test's end waits for all of them.
func receive(t testing.TB, serve func(net.Conn)) *receiver {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &receiver{Listener: listener}
	r.served.Add(1)
	go func() {
		defer r.served.Done()
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			r.accepted.Add(1)
			r.served.Add(1)
			go func() {
				defer r.served.Done()
				defer conn.Close()
				serve(conn)
			}()
		}
	}()
	t.Cleanup(func() {
		listener.Close()
		r.served.Wait()
	})
	return r
}

// overTLS lets serve speak inside TLS.
func overTLS(config *tls.Config, serve func(net.Conn)) func(net.Conn) {
	return func(conn net.Conn) {
		secured := tls.Server(conn, config)
		if secured.Handshake() == nil {
			serve(secured)
			secured.CloseWrite()
		}
	}
}

func hookTLS() *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{hookCertificate()}}
}

// readRequest reads one whole request.
func readRequest(conn net.Conn) (*http.Request, string) {
	request, err := http.ReadRequest(bufio.NewReader(conn))
	if err != nil {
		return nil, ""
	}
	body, _ := io.ReadAll(request.Body)
	return request, string(body)
}

// says reads the request and answers with these bytes.
func says(answer string) func(net.Conn) {
	return func(conn net.Conn) {
		readRequest(conn)
		io.WriteString(conn, answer)
	}
}

// untilClosed reads until the sender closes, and returns how.
func untilClosed(conn net.Conn) error {
	_, err := io.Copy(io.Discard, conn)
	return err
}

// abort closes with a reset.
func abort(conn net.Conn) {
	if secured, ok := conn.(*tls.Conn); ok {
		conn = secured.NetConn()
	}
	conn.(*net.TCPConn).SetLinger(0)
	conn.Close()
}

// answers is a resolver that gives these to every name.
type answers []netip.Addr

func answer(literals ...string) answers {
	var a answers
	for _, literal := range literals {
		a = append(a, netip.MustParseAddr(literal))
	}
	return a
}

func (a answers) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) { return a, nil }

type resolverFunc func(ctx context.Context, host string) ([]netip.Addr, error)

func (f resolverFunc) LookupNetIP(ctx context.Context, _, host string) ([]netip.Addr, error) {
	return f(ctx, host)
}

// dialCounter counts what is asked to be dialled and connects nothing.
type dialCounter struct{ count atomic.Int32 }

func (d *dialCounter) dial(context.Context, string, string) (net.Conn, error) {
	d.count.Add(1)
	return nil, errors.New("not connected")
}

// spy is a connection of the sender's that tells what was done to it.
type spy struct {
	*net.TCPConn
	mu        sync.Mutex
	read      int
	writes    int
	lingers   []int
	closed    bool
	onWritten func(writes int)
}

func (s *spy) Read(b []byte) (int, error) {
	n, err := s.TCPConn.Read(b)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read += n
	return n, err
}

func (s *spy) Write(b []byte) (int, error) {
	n, err := s.TCPConn.Write(b)
	s.mu.Lock()
	s.writes++
	writes := s.writes
	s.mu.Unlock()
	if s.onWritten != nil {
		s.onWritten(writes)
	}
	return n, err
}

func (s *spy) SetLinger(seconds int) error {
	s.mu.Lock()
	s.lingers = append(s.lingers, seconds)
	s.mu.Unlock()
	return s.TCPConn.SetLinger(seconds)
}

func (s *spy) Close() error {
	err := s.TCPConn.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return err
}

// wire leads every dialled address to one receiver, and spies on the connections.
type wire struct {
	to        net.Listener
	dialled   []string
	spies     []*spy
	onWritten func(writes int)
	onDialled func()
}

func (w *wire) dial(ctx context.Context, network, address string) (net.Conn, error) {
	w.dialled = append(w.dialled, network+" "+address)
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", w.to.Addr().String())
	if err != nil {
		return nil, err
	}
	s := &spy{TCPConn: conn.(*net.TCPConn), onWritten: w.onWritten}
	w.spies = append(w.spies, s)
	if w.onDialled != nil {
		w.onDialled()
	}
	return s, nil
}

func newClient(t testing.TB, config egress.Config) *egress.Client {
	t.Helper()
	client, err := egress.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// production is the configuration of the production stage, with names that lead to w's receiver and certificates of the
// test's own authority.
func production(w *wire) egress.Config {
	return egress.Config{Resolver: answer("8.8.8.8"), Dial: w.dial, Roots: testAuthority().pool}
}

var hookBody = []byte(`{"type":"release.published"}`)

func hookRequest(scheme string) egress.Request {
	return egress.Request{
		URL:      scheme + "://" + hookName + "/hook?token=MARKED-BY-THE-OWNER",
		Body:     hookBody,
		Header:   http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer MARKED-BY-THE-OWNER"}},
		NotAfter: soon(),
		Deadline: patient,
	}
}

// send makes one attempt and checks what holds for every attempt.
func send(t testing.TB, client *egress.Client, w *wire, request egress.Request) egress.Result {
	t.Helper()
	start := time.Now()
	result := client.Send(context.Background(), request)
	took := time.Since(start)
	if deadline := max(request.Deadline, time.Millisecond); took > deadline+slack {
		t.Errorf("took %s, the deadline was %s", took, deadline)
	}
	if (result.Status != 0) == (result.Failure != egress.FailureNone) {
		t.Errorf("neither or both of status and failure: %+v", result)
	}
	if result.Elapsed <= 0 || result.Elapsed > took {
		t.Errorf("elapsed %s of %s", result.Elapsed, took)
	}
	if shown := fmt.Sprintf("%+v %#v %s", result, result, toJSON(t, result)); strings.Contains(shown, "MARKED") {
		t.Errorf("the result holds a mark: %s", shown)
	}
	if len(w.spies) > 1 {
		t.Errorf("%d connections were opened", len(w.spies))
	}
	for _, s := range w.spies {
		s.mu.Lock()
		if !s.closed {
			t.Error("returned before the socket was closed")
		}
		limit := 48 << 10
		if strings.HasPrefix(request.URL, "https") {
			limit = 1 << 20 // a byte in a TLS record of its own takes 23
		}
		if s.read > limit {
			t.Errorf("read %d bytes", s.read)
		}
		want := "[0]" // reset by the close
		if result.Status != 0 {
			want = "[0 -1]"
		}
		if got := fmt.Sprint(s.lingers); got != want {
			t.Errorf("linger was set to %s, want %s", got, want)
		}
		s.mu.Unlock()
	}
	return result
}
