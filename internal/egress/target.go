package egress

import (
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

const (
	maxURL   = 2048 // bytes, as given and as stored
	maxName  = 253  // bytes of a host name without its root dot (RFC 1035)
	maxLabel = 63   // bytes between two dots (RFC 1035)
)

// reservedNames are last labels of names that never lead to a public receiver. None of them is delegated in the DNS's
// root; what answers to them is a resolver of one's own.
var reservedNames = []string{
	// IANA's registry of special-use domain names (RFC 6761, 6762, 7686, 8375, 8880, 9476), ICANN's .internal, and the
	// names that RFC 6762, appendix G, found in use in private networks.
	"localhost", "local", "internal", "test", "example", "invalid", "onion", "alt", "arpa",
	"home", "lan", "corp", "intranet", "private",
	// ICANN refuses .home, .corp and .mail for ever, because private networks use them.
	"mail", "localdomain", "domain", "workgroup", "dhcp", "belkin", "router",
	// Service discovery of clusters and containers: kubernetes.default.svc, its .cluster and .pod, and other systems' own.
	"svc", "cluster", "pod", "kubernetes", "k8s", "consul", "nomad", "mesos", "marathon", "docker", "podman", "swarm", "lxd", "incus",
}

// policy is what the options have made of production's rules.
type policy struct {
	http     bool
	ports    []uint16 // never empty
	loopback bool
	own      OwnAPI
}

// TargetOption loosens production's rules (https, port 443, public addresses).
type TargetOption func(*policy)

// AllowHTTP lets plain http through, on port 80.
func AllowHTTP() TargetOption {
	return func(p *policy) { p.http, p.ports = true, append(p.ports, 80) }
}

// AllowPorts adds ports to 443.
func AllowPorts(ports ...uint16) TargetOption {
	return func(p *policy) { p.ports = append(p.ports, ports...) }
}

// AllowLoopback lets 127.0.0.0/8, ::1 and the name localhost through, by http or https and on any port. It is for
// local and test stages: the runtime and its neighbours listen there.
func AllowLoopback() TargetOption {
	return func(p *policy) { p.loopback = true }
}

// OwnAPI is this system's own API, which no destination leads to: a delivery would be a request of ours to ourselves.
type OwnAPI struct {
	ID    string   // at API Gateway, which serves it as <id>.execute-api.<region>.<suffix>; empty: not known
	Hosts []string // the other host names that it answers on
}

// RefuseOwnAPI refuses the addresses of the system's own API.
func RefuseOwnAPI(own OwnAPI) TargetOption {
	return func(p *policy) { p.own = own }
}

// answersOn says whether the API answers on a host name, which is in its stored form.
func (o OwnAPI) answersOn(host string) bool {
	first, rest, _ := strings.Cut(host, ".")
	// A VPC endpoint's id may follow the API's own in the same label.
	if id := strings.ToLower(o.ID); id != "" && strings.HasPrefix(rest, "execute-api") && (first == id || strings.HasPrefix(first, id+"-")) {
		return true
	}
	return slices.ContainsFunc(o.Hosts, func(own string) bool {
		own = strings.TrimSuffix(strings.ToLower(own), ".")
		return own != "" && own == host
	})
}

func newPolicy(options []TargetOption) policy {
	p := policy{ports: []uint16{443}}
	for _, option := range options {
		option(&p)
	}
	return p
}

// ParseTarget reads an address that a person gave for a destination and returns the one form in which it is stored:
// lower case, ASCII, without a root dot or a default port. Parsing that form again returns it unchanged. Without
// options it takes https on port 443 to a host name or a public address. Every error is a *Refusal.
//
// A name may still lead to an address that is not public: that is judged when it is connected to.
func ParseTarget(raw string, options ...TargetOption) (*url.URL, error) {
	return newPolicy(options).parse(raw)
}

func (p policy) parse(raw string) (*url.URL, error) {
	switch {
	case len(raw) > maxURL:
		return nil, refuse("too-long", "Use an address of at most 2,048 bytes.")
	case !utf8.ValidString(raw) || strings.ContainsFunc(raw, unfit):
		return nil, refuse("character", "Remove spaces, backslashes, control and invisible characters from the address.")
	case strings.Contains(raw, "#"):
		return nil, refuse("fragment", "Remove the # and what follows it: it would never be sent.")
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, refuse("malformed", "Give a complete address, such as https://hooks.example.com/colophon.")
	}
	switch {
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, refuse("scheme", "Start the address with https://.")
	case u.User != nil:
		return nil, refuse("userinfo", "Remove the user name and password before the @, and use a custom header for them.")
	case strings.Contains(authority(raw), "%"):
		return nil, refuse("percent-in-host", "Write the host without % signs and zones.")
	}

	host, addr, err := p.host(u)
	if err != nil {
		return nil, err
	}
	onLoopback := p.loopback && (host == "localhost" || loopback(addr))
	if u.Scheme == "http" && !p.http && !onLoopback {
		return nil, refuse("scheme", "Start the address with https://.")
	}
	if addr.IsValid() && !Public(addr) && !onLoopback {
		return nil, refuse("not-public", "Use an address that can be reached from the public internet.")
	}
	if !onLoopback && p.own.answersOn(host) {
		return nil, refuse("own-api", "Use the receiver's address: this one is Colophon's own API.")
	}
	port, err := p.port(u, onLoopback)
	if err != nil {
		return nil, err
	}

	if addr.Is6() {
		host = "[" + host + "]"
	}
	if port != defaultPort(u.Scheme) {
		host += ":" + strconv.Itoa(int(port))
	}
	u.Host = host
	u.RawQuery = escapeQuery(u.RawQuery)
	if len(u.String()) > maxURL {
		return nil, refuse("too-long", "Use an address of at most 2,048 bytes, counted after escaping.")
	}
	return u, nil
}

// unfit tells whether a character has no place in an address: control, format, private and surrogate characters,
// every kind of space, the replacement character, and the backslash, which some readers take for a slash.
func unfit(r rune) bool {
	return r == '\\' || r == utf8.RuneError || unicode.In(r, unicode.C, unicode.Z)
}

func authority(raw string) string {
	_, rest, _ := strings.Cut(raw, "//")
	if end := strings.IndexAny(rest, "/?"); end >= 0 {
		rest = rest[:end]
	}
	return rest
}

// host returns the host's one form, and its address if it is a literal.
func (p policy) host(u *url.URL) (string, netip.Addr, error) {
	given := u.Hostname()
	if given == "" {
		return "", netip.Addr{}, refuse("no-host", "Give a complete address, such as https://hooks.example.com/colophon.")
	}
	if strings.HasPrefix(u.Host, "[") {
		addr, err := netip.ParseAddr(given)
		if err != nil || !addr.Is6() || addr.Is4In6() {
			return "", netip.Addr{}, refuse("host", "Write an IPv6 address in its plain form, or use a host name.")
		}
		return addr.String(), addr, nil
	}
	if strings.Contains(given, ":") { // a literal without its brackets
		return "", netip.Addr{}, refuse("host", "Write an IPv6 address in brackets, or use a host name.")
	}

	name, foreign := strings.ToLower(given), strings.ContainsFunc(given, func(r rune) bool { return r > unicode.MaxASCII })
	if foreign {
		mapped, err := idna.Lookup.ToASCII(name)
		if err != nil {
			return "", netip.Addr{}, refuse("host", "Check the host name: it holds characters that no host name may hold.")
		}
		name = mapped
	}
	name = strings.TrimSuffix(name, ".")
	if addr, err := netip.ParseAddr(name); err == nil && !foreign {
		return name, addr, nil
	}
	return name, netip.Addr{}, p.name(name)
}

func (p policy) name(name string) error {
	labels := strings.Split(name, ".")
	last := labels[len(labels)-1]
	if p.loopback && name == "localhost" {
		return nil
	}
	if len(name) > maxName || slices.ContainsFunc(labels, badLabel) {
		return refuse("host", "Check the host name: labels of letters, digits and inner hyphens, with single dots between.")
	}
	// Some resolvers read such names as IPv4 addresses in decimal, octal or hex (inet_aton).
	if strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x") {
		return refuse("numeric-host", "Write an IPv4 address as four decimal numbers, or use a host name.")
	}
	if slices.Contains(reservedNames, last) {
		return refuse("reserved-name", "Use a name of the public internet: this one is reserved for local use.")
	}
	if len(labels) == 1 {
		return refuse("single-label", "Use the host's full name, with its domain.")
	}
	return nil
}

func badLabel(label string) bool {
	return label == "" || len(label) > maxLabel || label[0] == '-' || label[len(label)-1] == '-' ||
		strings.ContainsFunc(label, func(r rune) bool { return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-') })
}

func (p policy) port(u *url.URL, anyPort bool) (uint16, error) {
	given := u.Port()
	if given == "" {
		return defaultPort(u.Scheme), nil
	}
	port, err := strconv.ParseUint(given, 10, 16)
	if err != nil || given[0] == '0' || !anyPort && !slices.Contains(p.ports, uint16(port)) {
		return 0, refuse("port", "Use port 443, or leave the port out.")
	}
	return uint16(port), nil
}

func defaultPort(scheme string) uint16 {
	if scheme == "http" {
		return 80
	}
	return 443
}

// escapeQuery escapes what may not stand in a request line and url.Parse leaves as it is.
func escapeQuery(query string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(query) {
		c := query[i]
		if c > unicode.MaxASCII || strings.IndexByte("\"<>^`{|}", c) >= 0 {
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			c = hex[c&15]
		}
		b.WriteByte(c)
	}
	return b.String()
}

// permits judges one socket at the moment of connecting. runtimePort is closed on every loopback address.
func (p policy) permits(addr netip.AddrPort, runtimePort uint16) bool {
	if p.loopback && loopback(addr.Addr()) {
		return addr.Port() != 0 && addr.Port() != runtimePort
	}
	return Public(addr.Addr()) && slices.Contains(p.ports, addr.Port())
}

// Origin is the scheme, host and port of an address as ParseTarget returned it, in the form of RFC 6454: a default port
// is left out. It is empty where there is no such address.
func Origin(target string) string {
	u, err := url.Parse(target)
	if err != nil || u.Scheme == "" || u.Host == "" {
		return ""
	}
	return u.Scheme + "://" + u.Host
}
