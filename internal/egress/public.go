package egress

import (
	"net/netip"

	"code.dny.dev/ssrf"
)

// table holds IANA's special-purpose addresses. Only its SafeAddr is asked: its lists of ports, networks and allowed
// prefixes mean "any" when they are empty and win over every denial, so they are left alone.
var table = ssrf.New()

// Public tells whether addr is an ordinary address of the public internet. IPv4 in IPv6 (mapped, NAT64, 6to4, Teredo)
// is not, whatever it holds, nor is an address with a zone, nor the zero Addr (which the table would let pass).
func Public(addr netip.Addr) bool {
	return addr.IsValid() && addr.Zone() == "" && table.SafeAddr(addr) == nil
}

// loopback tells whether addr is in 127.0.0.0/8 or is ::1, in its plain form.
func loopback(addr netip.Addr) bool {
	return addr.IsLoopback() && !addr.Is4In6() && addr.Zone() == ""
}
