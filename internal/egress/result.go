package egress

import "time"

// Failure says at which step, or by whose hand, an attempt ended without a status. Its values are stable.
type Failure string

const (
	FailureNone            Failure = ""                  // a status arrived
	FailureDNS             Failure = "dns"               // the name led to no address
	FailureConnect         Failure = "connect"           // no connection
	FailureTLS             Failure = "tls"               // no trusted connection; Detail has the kind
	FailureTimeout         Failure = "timeout"           // the request was begun and no answer was complete in time
	FailureReset           Failure = "reset"             // closed before one byte of an answer
	FailureBadAnswer       Failure = "bad-answer"        // an answer began and broke off, or breaks HTTP's grammar
	FailureNotHTTP         Failure = "not-http"          // what came is no HTTP/1 at all
	FailureHeadersTooLarge Failure = "headers-too-large" // all heads of the answer together pass 32 KiB
	FailureBlocked         Failure = "blocked"           // the target is not one that may be called; nothing was opened
	FailureClock           Failure = "clock"             // the wall clock had passed Request.NotAfter
	FailureCanceled        Failure = "canceled"          // the caller's context ended
	FailureOurs            Failure = "ours"              // the request or this machine is at fault, not the receiver
)

// Detail is the kind of a failure, where there is more to say. Its values are stable.
type Detail string

const (
	DetailNone            Detail = ""
	DetailTimeout         Detail = "timeout"          // dns, connect, tls
	DetailNoSuchName      Detail = "no-such-name"     // dns
	DetailNoAddress       Detail = "no-address"       // dns: the name is there and has no address
	DetailLookupFailed    Detail = "lookup-failed"    // dns: the name's servers do not answer as they should
	DetailConnectRefused  Detail = "refused"          // connect: nothing listens
	DetailUnreachable     Detail = "unreachable"      // connect: no way to the address
	DetailExpired         Detail = "expired"          // tls: Result.CertificateNotAfter has the date
	DetailNotYetValid     Detail = "not-yet-valid"    // tls
	DetailName            Detail = "name"             // tls: the certificate is for another name
	DetailUnknownIssuer   Detail = "unknown-issuer"   // tls: self-signed, or from an authority that is not known
	DetailIncompleteChain Detail = "incomplete-chain" // tls: the intermediate certificate is not sent along
	DetailCertificate     Detail = "certificate"      // tls: the certificate is not usable for another reason
	DetailNotTLS          Detail = "not-tls"          // tls: the receiver speaks something else on this port
	DetailAlert           Detail = "alert"            // tls: the receiver refused us, for a client certificate perhaps
	DetailClosed          Detail = "closed"           // connect, tls: closed by the receiver before it was done
	DetailProtocol        Detail = "protocol"         // tls: no common version or method
	DetailOwnAPI          Detail = "own-api"          // blocked: the target is this system's own API
	DetailNotAllowed      Detail = "not-allowed"      // blocked: the target's scheme, port or form is none that is called here
)

// StepName names a step of an attempt. Its values are stable.
type StepName string

// The steps in their order. Handshake is left out for http.
const (
	StepLookup    StepName = "lookup"
	StepConnect   StepName = "connect"
	StepHandshake StepName = "handshake"
	StepRequest   StepName = "request"
	StepAnswer    StepName = "answer"
)

// Step is a step that was finished, and how long it took.
type Step struct {
	Name StepName
	Took time.Duration
}

// Result is what became of an attempt. It holds no address, no error text and, beside RetryAfter's checked characters,
// no byte of the receiver.
type Result struct {
	Status  int // the final status, 100 to 999; 0 if none arrived
	Failure Failure
	Detail  Detail

	// MayHaveBeenReceived is false only if no byte of the request was given to a finished connection.
	MayHaveBeenReceived bool

	RetryAfter string    // as received, up to 64 characters of those that a number or a date is written in; else empty
	ServerDate time.Time // from the answer's Date; zero if there is none
	Redirect   bool      // a 3xx with a Location, which is not followed

	CertificateNotAfter time.Time // the leaf's last instant or, for DetailExpired, that of the expired one
	Steps               []Step    // what was finished, in order
	Elapsed             time.Duration
}
