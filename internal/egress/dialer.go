package egress

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Resolver looks a name up once, in both families. *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// dialFunc opens a connection to a literal address, as net.Dialer.DialContext does.
type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// dialer goes from a target to an open connection.
type dialer struct {
	policy      policy
	runtimePort uint16
	resolver    Resolver
	dial        dialFunc
	connectTime time.Duration
}

// fault is the end of a step. It carries no other error with it: their texts hold what others sent.
type fault struct {
	failure Failure
	detail  Detail
}

func (f fault) Error() string { return strings.TrimSpace(string(f.failure) + " " + string(f.detail)) }

// lookup returns every address of the target, each judged. One that is not permitted blocks the whole name: which of
// them is dialled must not depend on the answer's order.
func (d *dialer) lookup(ctx context.Context, target *url.URL) ([]netip.AddrPort, error) {
	port := defaultPort(target.Scheme)
	if given, err := strconv.ParseUint(target.Port(), 10, 16); err == nil {
		port = uint16(given)
	}
	answers := make([]netip.Addr, 0, 1)
	if literal, err := netip.ParseAddr(target.Hostname()); err == nil {
		answers = append(answers, literal)
	} else if answers, err = d.resolver.LookupNetIP(ctx, "ip", absolute(target.Hostname())); err != nil {
		return nil, fault{FailureDNS, dnsDetail(ctx, err)}
	}
	if len(answers) == 0 {
		return nil, fault{FailureDNS, DetailNoAddress}
	}
	addresses := make([]netip.AddrPort, len(answers))
	for i, answer := range answers {
		addresses[i] = netip.AddrPortFrom(answer.Unmap(), port) // the resolver writes IPv4 in IPv6's form
		if !d.policy.permits(addresses[i], d.runtimePort) {
			return nil, fault{FailureBlocked, DetailNone}
		}
	}
	return addresses, nil
}

// absolute ends a name with the root's dot, so that no search domain of this machine is tried after it. A name without a
// domain (localhost) stays: a hosts file has it so.
func absolute(name string) string {
	if strings.Contains(name, ".") {
		return name + "."
	}
	return name
}

// connect dials the addresses in turn. Each has an even share of the time that is left, but at least a third of the
// whole, so that a first one that swallows packets leaves time for a second.
func (d *dialer) connect(ctx context.Context, addresses []netip.AddrPort) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.connectTime)
	defer cancel()
	end, _ := ctx.Deadline()
	last := fault{FailureConnect, DetailNone}
	for i, address := range addresses {
		share := max(time.Until(end)/time.Duration(len(addresses)-i), d.connectTime/3)
		dialCtx, cancel := context.WithTimeout(ctx, share)
		network := "tcp4"
		if address.Addr().Is6() {
			network = "tcp6"
		}
		conn, err := d.dial(dialCtx, network, address.String())
		if err == nil {
			cancel()
			return conn, nil
		}
		last = connectFault(dialCtx, err)
		cancel()
		if last.failure != FailureConnect || ctx.Err() != nil {
			break
		}
	}
	return nil, last
}

// netDialer is the one net.Dialer. It has no ControlContext, which would silence Control.
func (d *dialer) netDialer() *net.Dialer {
	return &net.Dialer{Control: d.control, KeepAlive: -1}
}

// control judges a socket after it is made and before it is connected.
func (d *dialer) control(network, address string, socket syscall.RawConn) error {
	addr, err := netip.ParseAddrPort(address)
	if err != nil || network != "tcp4" && network != "tcp6" || !d.policy.permits(addr, d.runtimePort) {
		return fault{FailureBlocked, DetailNone}
	}
	return setUserTimeout(socket)
}

func dnsDetail(ctx context.Context, err error) Detail {
	var dns *net.DNSError
	switch {
	case ctx.Err() != nil, errors.As(err, &dns) && dns.IsTimeout:
		return DetailTimeout
	case dns != nil && dns.IsNotFound:
		return DetailNoSuchName
	}
	return DetailLookupFailed
}

func connectFault(ctx context.Context, err error) fault {
	var known fault
	var network net.Error
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, syscall.ECONNREFUSED):
		return fault{FailureConnect, DetailConnectRefused}
	case errors.Is(err, syscall.ECONNRESET):
		return fault{FailureConnect, DetailClosed}
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE), errors.Is(err, syscall.ENOBUFS), errors.Is(err, syscall.ENOMEM):
		return fault{FailureOurs, DetailNone}
	case ctx.Err() != nil, errors.As(err, &network) && network.Timeout():
		return fault{FailureConnect, DetailTimeout}
	}
	return fault{FailureConnect, DetailUnreachable}
}
