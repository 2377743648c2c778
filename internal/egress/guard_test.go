package egress

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The tests here look at what no outcome shows: a second judge that the first leaves nothing to do.

func TestEachSocketIsJudgedAgainBeforeItIsConnected(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	for name, row := range map[string]struct {
		options []TargetOption
		address string
	}{
		"loopback":                        {nil, listener.Addr().String()},
		"loopback with its port allowed":  {[]TargetOption{AllowHTTP(), AllowPorts(portOf(t, listener))}, listener.Addr().String()},
		"loopback by its mapped form":     {[]TargetOption{AllowPorts(portOf(t, listener))}, "[::ffff:127.0.0.1]:" + port},
		"the runtime's port":              {[]TargetOption{AllowLoopback()}, listener.Addr().String()},
		"metadata":                        {[]TargetOption{AllowHTTP(), AllowLoopback()}, "169.254.169.254:80"},
		"any address":                     {[]TargetOption{AllowHTTP(), AllowLoopback()}, "0.0.0.0:" + port},
		"a public address, on a far port": {[]TargetOption{AllowLoopback()}, "8.8.8.8:25"},
	} {
		d := &dialer{policy: newPolicy(row.options), runtimePort: portOf(t, listener)}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		conn, err := d.netDialer().DialContext(ctx, "tcp", row.address)
		cancel()
		var known fault
		if err == nil || !errors.As(err, &known) || known.failure != FailureBlocked {
			t.Errorf("%s: %v, %v", name, conn, err)
		}
	}
	listener.(*net.TCPListener).SetDeadline(time.Now().Add(-time.Second))
	if conn, err := listener.Accept(); err == nil {
		t.Errorf("a connection from %s was opened", conn.RemoteAddr())
	}
}

func portOf(t *testing.T, listener net.Listener) uint16 {
	t.Helper()
	return uint16(listener.Addr().(*net.TCPAddr).Port)
}

func TestTheLoopbackAllowanceIsForPlainAddresses(t *testing.T) {
	t.Parallel()
	p := newPolicy([]TargetOption{AllowLoopback()})
	for literal, want := range map[string]bool{
		"127.0.0.1": true, "127.255.255.255": true, "::1": true,
		"::ffff:127.0.0.1": false, "::127.0.0.1": false, "::1%lo": false, "64:ff9b::7f00:1": false, "::": false, "0.0.0.0": false, "128.0.0.1": false,
	} {
		if got := p.permits(netip.AddrPortFrom(netip.MustParseAddr(literal), 3000), 9001); got != want {
			t.Errorf("%s permitted: %t", literal, got)
		}
	}
}

func TestOnlyTCPSocketsPassControl(t *testing.T) {
	t.Parallel()
	d := &dialer{policy: newPolicy(nil)}
	for _, network := range []string{"udp4", "udp6", "unix", "ip4", "tcp", ""} {
		if err := d.control(network, "8.8.8.8:443", nil); err == nil {
			t.Errorf("%q passes", network)
		}
	}
	for _, address := range []string{"", "example.com:443", "8.8.8.8", "8.8.8.8:x", "[fe80::1%eth0]:443"} {
		if err := d.control("tcp4", address, nil); err == nil {
			t.Errorf("%q passes", address)
		}
	}
}

func TestNothingSilencesControl(t *testing.T) {
	t.Parallel()
	dialer := new(dialer).netDialer()
	if dialer.Control == nil || dialer.ControlContext != nil {
		t.Errorf("Control set: %t, ControlContext set: %t", dialer.Control != nil, dialer.ControlContext != nil)
	}
	client, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	// What New wires is that dialer: a forbidden address handed straight to it is refused by Control.
	if _, err := client.dialer.dial(context.Background(), "tcp4", "127.0.0.1:443"); !errors.As(err, new(fault)) {
		t.Errorf("the client's own dialer: %v", err)
	}
	if resolver, is := client.dialer.resolver.(*net.Resolver); !is || !resolver.PreferGo {
		t.Errorf("the client's resolver is %#v", client.dialer.resolver)
	}
}

// An HTTP client or transport, a proxy from the environment or a second dialer would be another way out.
func TestThereIsOneWayOut(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	forbidden := map[string]bool{
		"http.Client": true, "http.DefaultClient": true, "http.Transport": true, "http.DefaultTransport": true, "http.Get": true,
		"http.Head": true, "http.Post": true, "http.PostForm": true, "http.ProxyFromEnvironment": true, "http.ProxyURL": true,
		"net.Dial": true, "net.DialTimeout": true, "net.DialTCP": true, "net.DialUDP": true, "net.DialIP": true, "net.DialUnix": true,
		"tls.Dial": true, "tls.DialWithDialer": true, "tls.Dialer": true, "net.FileConn": true, "net.DefaultResolver": true,
		"net.LookupHost": true, "net.LookupIP": true, "ssrf.WithAnyPort": true, "ssrf.WithAnyNetwork": true, "ssrf.WithPorts": true,
		"ssrf.WithNetworks": true, "ssrf.WithAllowedV4Prefixes": true, "ssrf.WithAllowedV6Prefixes": true, "tls.InsecureSkipVerify": true,
	}
	dialers := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.SelectorExpr:
				if of, is := node.X.(*ast.Ident); is {
					what := of.Name + "." + node.Sel.Name
					if forbidden[what] {
						t.Errorf("%s uses %s", name, what)
					}
					if what == "net.Dialer" {
						dialers++
					}
				}
			case *ast.KeyValueExpr:
				if key, is := node.Key.(*ast.Ident); is && (key.Name == "InsecureSkipVerify" || key.Name == "ControlContext") {
					t.Errorf("%s sets %s", name, key.Name)
				}
			}
			return true
		})
	}
	if dialers != 2 { // its type and its literal, in netDialer
		t.Errorf("net.Dialer is named %d times, want 2", dialers)
	}
}
