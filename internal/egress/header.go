package egress

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

const (
	maxHeaders     = 20      // custom headers of a destination
	maxHeaderName  = 64      // bytes
	maxHeaderValue = 2048    // bytes
	maxHeadersJSON = 3 << 10 // bytes of all of them as JSON: they are sealed with the secrets, and KMS seals 4 KiB
)

// hopByHopNames belong to the connection, not to the message (RFC 9110, 7.6.1), or frame it.
var hopByHopNames = []string{
	"Connection", "Content-Length", "Close", "Expect", "Host", "Http2-Settings", "Keep-Alive", "Te", "Trailer",
	"Trailers", "Transfer-Encoding", "Upgrade",
}

// reservedHeaders are set by the sender alone, or would change what the request means: to the receiver, to a proxy
// before it, or to a cloud's metadata service. Idempotency keys are here because HTTP clients, Go's among them, repeat
// a POST that has one by themselves; webhook-id is the key.
var reservedHeaders = []string{
	"Accept-Encoding", "Alt-Used", "Cookie", "Cookie2", "Date", "Early-Data", "Forwarded", "Idempotency-Key", "Max-Forwards",
	"Metadata", "Metadata-Flavor", "Origin", "Range", "Referer", "Set-Cookie", "Set-Cookie2", "User-Agent", "Via",
	"X-Aws-Ec2-Metadata-Token", "X-Aws-Ec2-Metadata-Token-Ttl-Seconds", "X-Idempotency-Key", "X-Method-Override", "X-Real-Ip",
}

// reservedPrefixes are families of such names.
var reservedPrefixes = []string{
	"Access-Control-", "Colophon-", "Content-", "If-", "Proxy-", "Sec-", "Webhook-", "X-Forwarded-", "X-Http-Method",
}

// CheckHeader tells whether a custom header may be sent to a destination. Authorization and any name that is not
// reserved may. The error is a *Refusal.
func CheckHeader(name, value string) error {
	canonical := http.CanonicalHeaderKey(name)
	reserved := func(prefix string) bool { return strings.HasPrefix(canonical, prefix) }
	switch {
	case len(name) > maxHeaderName || !headerName(name):
		return refuse("header-name", "Use a header name of up to 64 letters, digits and hyphens.")
	case hopByHop(name), slices.Contains(reservedHeaders, canonical), slices.ContainsFunc(reservedPrefixes, reserved):
		return refuse("header-reserved", "Use another header name: this one is set by the sender or the network alone.")
	case len(value) > maxHeaderValue:
		return refuse("header-too-long", "Use a header value of at most 2,048 bytes.")
	case !headerValue(value) || value == "" || strings.TrimSpace(value) != value:
		return refuse("header-value", "Use printable ASCII characters in header values, without spaces around them.")
	}
	return nil
}

// CheckHeaders checks all custom headers of a destination, one by one and together.
func CheckHeaders(headers map[string]string) error {
	if len(headers) > maxHeaders {
		return refuse("header-count", "Use at most 20 custom headers.")
	}
	seen := http.Header{}
	for name, value := range headers {
		if err := CheckHeader(name, value); err != nil {
			return err
		}
		if seen.Get(name) != "" {
			return refuse("header-twice", "Give each header once: upper and lower case are the same name.")
		}
		seen.Set(name, value)
	}
	if sealed, err := json.Marshal(headers); err != nil || len(sealed) > maxHeadersJSON {
		return refuse("header-too-long", "Use shorter header values: names and values together may have about 3,000 bytes.")
	}
	return nil
}

func hopByHop(name string) bool {
	return slices.Contains(hopByHopNames, http.CanonicalHeaderKey(name))
}

// headerName is narrower than HTTP's grammar. Underscores are left out because many servers read them as hyphens, which
// would let a reserved name through.
func headerName(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-')
	})
}

func headerValue(value string) bool {
	return !strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' })
}
