//go:build linux && netns

package egress

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/csv"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// These tests make network namespaces, and need root and iproute2. No packet leaves the machine: the public addresses
// in them are the namespaces' own.

// ip runs one command of iproute2.
func ip(t *testing.T, line string, arguments ...any) {
	t.Helper()
	command := exec.Command("ip", strings.Fields(fmt.Sprintf(line, arguments...))...)
	if text, err := command.CombinedOutput(); err != nil {
		t.Fatalf("ip %s: %v: %s", strings.Join(command.Args[1:], " "), err, text)
	}
}

// namespace makes a network namespace that ends with the test.
func namespace(t *testing.T, name string) string {
	t.Helper()
	name = fmt.Sprintf("egress-%d-%s", os.Getpid(), name)
	ip(t, "netns add %s", name)
	t.Cleanup(func() { ip(t, "netns del %s", name) })
	ip(t, "-n %s link set lo up", name)
	return name
}

// inside calls f on a thread that is in the namespace. Sockets stay in the namespace that they were made in.
func inside(t *testing.T, name string, f func()) {
	t.Helper()
	runtime.LockOSThread()
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	defer home.Close()
	there, err := os.Open("/run/netns/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer there.Close()
	if err := unix.Setns(int(there.Fd()), unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); err != nil {
			t.Error(err) // the thread stays locked, and ends with its goroutine
			return
		}
		runtime.UnlockOSThread()
	}()
	f()
}

func listenIn(t *testing.T, name, network, address string) net.Listener {
	t.Helper()
	var listener net.Listener
	var err error
	inside(t, name, func() { listener, err = net.Listen(network, address) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return listener
}

// clientIn is a client whose sockets are made in a namespace, by its own dialer.
func clientIn(t *testing.T, name string, config Config) *Client {
	t.Helper()
	client, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	own := client.dialer.dial
	client.dialer.dial = func(ctx context.Context, network, address string) (conn net.Conn, err error) {
		inside(t, name, func() { conn, err = own(ctx, network, address) })
		return conn, err
	}
	return client
}

type fixedAnswer []netip.Addr

func (a fixedAnswer) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return a, nil
}

// watch reports the source and destination of every packet in a namespace, in their order.
func watch(t *testing.T, name string) <-chan [2]netip.Addr {
	t.Helper()
	var fd int
	var err error
	inside(t, name, func() {
		fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, int(htons(unix.ETH_P_ALL)))
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		t.Fatal(err)
	}
	socket := os.NewFile(uintptr(fd), "packets")
	t.Cleanup(func() { socket.Close() })
	packets := make(chan [2]netip.Addr, 100_000)
	go func() {
		buffer := make([]byte, 1<<16)
		for {
			n, err := socket.Read(buffer)
			if err != nil {
				return
			}
			switch packet := buffer[:n]; {
			case n >= 20 && packet[0]>>4 == 4:
				packets <- [2]netip.Addr{netip.AddrFrom4([4]byte(packet[12:16])), netip.AddrFrom4([4]byte(packet[16:20]))}
			case n >= 40 && packet[0]>>4 == 6:
				packets <- [2]netip.Addr{netip.AddrFrom16([16]byte(packet[8:24])), netip.AddrFrom16([16]byte(packet[24:40]))}
			default:
				packets <- [2]netip.Addr{}
			}
		}
	}()
	return packets
}

func htons(v uint16) uint16 { return v<<8 | v>>8 }

func TestNothingIsEverSentToAForbiddenAddress(t *testing.T) {
	name := namespace(t, "watched")
	// Every address is this namespace's own: whatever is dialled is answered, and seen.
	ip(t, "-n %s route add local 0.0.0.0/0 dev lo", name)
	ip(t, "-n %s -6 route add local ::/0 dev lo", name)
	ip(t, "-n %s addr add 2606:4700::1111/128 dev lo nodad", name) // so that its own packets come from it
	for _, port := range []string{"443", "80", "2773", "9001"} {
		listener := listenIn(t, name, "tcp", ":"+port)
		go http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "http://169.254.169.254/latest/meta-data/")
			w.WriteHeader(http.StatusFound)
		}))
	}
	packets := watch(t, name)
	public := map[netip.Addr]bool{netip.MustParseAddr("8.8.8.8"): true, netip.MustParseAddr("2606:4700::1111"): true}

	// seen returns every address that a packet named since the last call. A connection to a public address is made
	// last: once its packets are seen, so are all before it.
	seen := func() map[netip.Addr]int {
		last := netip.MustParseAddr("1.1.1.1")
		inside(t, name, func() {
			conn, err := net.Dial("tcp4", last.String()+":443")
			if err != nil {
				t.Fatal(err)
			}
			conn.Close()
		})
		found := map[netip.Addr]int{}
		for packet := range packets {
			if packet[1] == last {
				return found
			}
			found[packet[0]]++
			found[packet[1]]++
		}
		return found
	}
	drain := func() { // what is left of the last connection
		for {
			select {
			case <-packets:
			case <-time.After(200 * time.Millisecond):
				return
			}
		}
	}

	t.Run("the watcher sees what is sent", func(t *testing.T) {
		for _, forbidden := range []string{"127.0.0.1", "10.0.0.1", "169.254.169.254", "100.64.0.1", "::1", "fd00:ec2::254", "64:ff9b::7f00:1"} {
			inside(t, name, func() {
				conn, err := net.DialTimeout("tcp", net.JoinHostPort(forbidden, "80"), 5*time.Second)
				if err != nil {
					t.Fatal(err)
				}
				conn.Close()
			})
			if seen()[netip.MustParseAddr(forbidden)] == 0 {
				t.Errorf("a packet to %s was not seen", forbidden)
			}
			drain()
		}
	})

	text, err := os.ReadFile("testdata/addresses.csv")
	if err != nil {
		t.Fatal(err)
	}
	records, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	first := netip.MustParseAddr("8.8.8.8")
	attempts := 0
	for _, record := range records[1:] {
		forbidden := netip.MustParseAddr(record[1])
		if Public(forbidden.Unmap()) {
			continue // a mapped address is how a resolver writes an A record
		}
		for _, allow := range [][]TargetOption{nil, {AllowHTTP(), AllowPorts(2773, 9001)}} {
			for _, resolved := range []fixedAnswer{{forbidden}, {first, forbidden}, {forbidden, first}} {
				client := clientIn(t, name, Config{Allow: allow, Resolver: resolved})
				for _, target := range []string{
					"https://hook.example.com/", "http://hook.example.com/", "http://hook.example.com:9001/2018-06-01/runtime/invocation/next",
					"http://" + net.JoinHostPort(forbidden.String(), "80") + "/", "https://" + net.JoinHostPort(forbidden.String(), "443") + "/",
				} {
					attempts++
					result := client.Send(context.Background(), Request{URL: target, NotAfter: time.Now().Add(time.Minute), Deadline: 2 * time.Second})
					if result.Failure != FailureBlocked {
						t.Errorf("%s, resolved to %s: %+v", target, resolved, result)
					}
				}
			}
			// The second judge alone, as if the first had let it pass.
			client := clientIn(t, name, Config{Allow: allow})
			for _, port := range []uint16{443, 80, 2773, 9001} {
				attempts++
				if conn, err := client.dialer.connect(context.Background(), []netip.AddrPort{netip.AddrPortFrom(forbidden, port)}); err == nil {
					conn.Close()
					t.Errorf("%s was connected to", forbidden)
				}
			}
		}
	}
	for addr, packets := range seen() {
		t.Errorf("%d packets of %s were seen", packets, addr)
	}
	drain()
	t.Logf("%d attempts, no packet", attempts)

	t.Run("a redirect to one", func(t *testing.T) {
		for addr := range public {
			client := clientIn(t, name, Config{Allow: []TargetOption{AllowHTTP()}, Resolver: fixedAnswer{addr}})
			result := client.Send(context.Background(), Request{URL: "http://hook.example.com/", NotAfter: time.Now().Add(time.Minute)})
			if result.Status != http.StatusFound || !result.Redirect {
				t.Errorf("%+v", result)
			}
			found := seen()
			if found[addr] == 0 {
				t.Errorf("no packet of %s was seen", addr)
			}
			delete(found, addr)
			if len(found) != 0 {
				t.Errorf("packets of %v were seen", found)
			}
			drain()
		}
	})

	t.Run("the runtime API, where loopback is allowed", func(t *testing.T) {
		client := clientIn(t, name, Config{Allow: []TargetOption{AllowLoopback()}, RuntimeAPI: "127.0.0.1:9001", Resolver: fixedAnswer{netip.MustParseAddr("127.0.0.1")}})
		for _, target := range []string{"http://127.0.0.1:9001/", "http://127.0.0.2:9001/", "http://[::1]:9001/", "http://localhost:9001/"} {
			if result := client.Send(context.Background(), Request{URL: target, NotAfter: time.Now().Add(time.Minute)}); result.Failure != FailureBlocked {
				t.Errorf("%s: %+v", target, result)
			}
		}
		if found := seen(); len(found) != 0 {
			t.Errorf("packets of %v were seen", found)
		}
		drain()
		result := client.Send(context.Background(), Request{URL: "http://127.0.0.1:2773/", NotAfter: time.Now().Add(time.Minute)})
		if result.Status != http.StatusFound || seen()[netip.MustParseAddr("127.0.0.1")] == 0 {
			t.Errorf("another port: %+v", result)
		}
	})
}

// path is sender – router – receiver. It is cut and healed by the router's forwarding.
type path struct {
	t                        *testing.T
	sender, router, receiver string
}

func newPath(t *testing.T) path {
	t.Helper()
	tag := strings.ToLower(t.Name()[strings.LastIndexByte(t.Name(), '/')+1:])
	tag = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' {
			return r
		}
		return -1
	}, tag)
	p := path{t, namespace(t, tag+"-s"), namespace(t, tag+"-m"), namespace(t, tag+"-r")}
	ip(t, "link add near netns %s type veth peer name left netns %s", p.sender, p.router)
	ip(t, "link add far netns %s type veth peer name right netns %s", p.receiver, p.router)
	for _, end := range []struct{ name, device, address, gateway string }{
		{p.sender, "near", "11.1.1.2/24", "11.1.1.1"}, {p.receiver, "far", "11.1.2.2/24", "11.1.2.1"},
		{p.router, "left", "11.1.1.1/24", ""}, {p.router, "right", "11.1.2.1/24", ""},
	} {
		ip(t, "-n %s addr add %s dev %s", end.name, end.address, end.device)
		ip(t, "-n %s link set %s up", end.name, end.device)
		if end.gateway != "" {
			ip(t, "-n %s route add default via %s", end.name, end.gateway)
		}
	}
	p.forward("1")
	return p
}

func (p path) forward(on string) {
	inside(p.t, p.router, func() {
		if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte(on), 0o644); err != nil {
			p.t.Fatal(err)
		}
	})
}

// cutter is a connection that cuts the path before the write that carries the request.
type cutter struct {
	net.Conn
	at  int
	cut func()
}

func (c *cutter) Write(b []byte) (int, error) {
	if c.at--; c.at == 0 {
		c.cut()
	}
	return c.Conn.Write(b)
}

// lingering is a cutter on which linger 0 can be set.
type lingering struct {
	*cutter
	tcp *net.TCPConn
}

func (l lingering) SetLinger(seconds int) error { return l.tcp.SetLinger(seconds) }

// certificateFor makes a server's certificate for a name, and a pool that knows it.
func certificateFor(t *testing.T, name string) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

func TestClosingTakesBytesBack(t *testing.T) {
	const watched = 15 * time.Second // after the path is whole again; without linger 0 the request comes some 3 s later
	for _, scheme := range []string{"http", "https"} {
		for _, linger := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, linger %t", scheme, linger), func(t *testing.T) {
				t.Parallel()
				p := newPath(t)
				certificate, pool := certificateFor(t, "hook.example.com")
				listener, requestWrite := listenIn(t, p.receiver, "tcp4", ":80"), 1
				if scheme == "https" {
					listener = tls.NewListener(listenIn(t, p.receiver, "tcp4", ":443"), &tls.Config{Certificates: []tls.Certificate{certificate}})
					requestWrite = 3 // hello, finished, request
				}
				received := make(chan string, 1)
				go func() {
					conn, err := listener.Accept()
					if err != nil {
						return
					}
					defer conn.Close()
					buffer := make([]byte, 4096)
					if n, _ := io.ReadAtLeast(conn, buffer, 1); n > 0 {
						received <- string(buffer[:n])
					}
				}()

				client := clientIn(t, p.sender, Config{
					Allow: []TargetOption{AllowHTTP()}, Resolver: fixedAnswer{netip.MustParseAddr("11.1.2.2")}, Roots: pool,
				})
				own := client.dialer.dial
				client.dialer.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
					conn, err := own(ctx, network, address)
					if err != nil {
						return nil, err
					}
					cut := &cutter{conn, requestWrite, func() { p.forward("0") }}
					if linger {
						return lingering{cut, conn.(*net.TCPConn)}, nil
					}
					return cut, nil
				}
				result := client.Send(context.Background(), Request{
					URL: scheme + "://hook.example.com/", Body: []byte("late"), NotAfter: time.Now().Add(time.Minute), Deadline: 3500 * time.Millisecond,
				})
				if result.Failure != FailureTimeout || !result.MayHaveBeenReceived {
					t.Fatalf("%+v", result)
				}
				p.forward("1")
				healed := time.Now()
				select {
				case request := <-received:
					t.Logf("received %s after the path was whole again", time.Since(healed).Round(time.Millisecond))
					if linger {
						t.Errorf("the receiver got %q after the attempt had ended", request)
					}
				case <-time.After(watched):
					if !linger {
						t.Errorf("nothing came in %s: the path or the test does not do what it says", watched)
					}
				}
			})
		}
	}
}

func TestTheKernelGivesUpWithoutAClose(t *testing.T) {
	p := newPath(t)
	listener := listenIn(t, p.receiver, "tcp4", ":80")
	client := clientIn(t, p.sender, Config{Allow: []TargetOption{AllowHTTP()}, Resolver: fixedAnswer{netip.MustParseAddr("11.1.2.2")}})
	own := client.dialer.dial
	client.dialer.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := own(ctx, network, address)
		p.forward("0")
		return conn, err
	}
	result := client.Send(context.Background(), Request{URL: "http://hook.example.com/", NotAfter: time.Now().Add(time.Minute), Deadline: time.Minute})
	if result.Failure != FailureTimeout || result.Elapsed < 7*time.Second || result.Elapsed > 12*time.Second {
		t.Errorf("%+v", result)
	}
	t.Logf("given up after %s", result.Elapsed.Round(time.Millisecond))
	listener.Close()
}

func TestASwallowedAddressLeavesTimeForTheNext(t *testing.T) {
	p := newPath(t)
	listener := listenIn(t, p.receiver, "tcp4", ":80")
	go http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {}))
	ip(t, "-n %s route add blackhole 11.1.3.0/24", p.router)
	client := clientIn(t, p.sender, Config{
		Allow:    []TargetOption{AllowHTTP()},
		Resolver: fixedAnswer{netip.MustParseAddr("2606:4700::1111"), netip.MustParseAddr("11.1.3.9"), netip.MustParseAddr("11.1.2.2")},
	})
	result := client.Send(context.Background(), Request{URL: "http://hook.example.com/", NotAfter: time.Now().Add(time.Minute)})
	if result.Status != 200 || result.Elapsed > 3*time.Second {
		t.Errorf("%+v", result)
	}
}
