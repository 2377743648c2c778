package delivery

// Class is what became of an attempt.
type Class string

// The classes, in the order of the protocol's table.
const (
	ClassDelivered   Class = "delivered"          // 2xx, whatever happens to the body
	ClassGone        Class = "gone"               // 410
	ClassRefused     Class = "refused"            // 3xx and other 4xx
	ClassUnavailable Class = "unavailable"        // 408, 425, 429, 5xx and any other number
	ClassDNS         Class = "dns"                // the name could not be looked up
	ClassConnect     Class = "connect"            // no connection
	ClassTLS         Class = "tls"                // the handshake failed; Detail says how
	ClassTimeout     Class = "timeout"            // the deadline passed
	ClassReset       Class = "reset"              // the connection broke before an answer
	ClassBadAnswer   Class = "bad answer"         // an answer that breaks off or is malformed
	ClassNotHTTP     Class = "not HTTP"           // an answer in another protocol
	ClassLongHeaders Class = "headers too large"  // more than is read
	ClassBlocked     Class = "blocked"            // the address is not public, or not one that is called
	ClassSealed      Class = "sealed for another" // what is stored does not open for this address; nothing was sent
	ClassOurs        Class = "ours"               // our own fault: not a try
	ClassUnknown     Class = "unknown"            // settled: the outcome was lost
)

// Effect is what follows from a class.
type Effect int

// A class ends the delivery one way or the other, or leads to the next try.
const (
	EffectDelivered Effect = iota
	EffectFailed
	EffectFailedAndPaused
	EffectNextTry
	EffectNotATry
)

// Effect says what follows from the class.
func (c Class) Effect() Effect {
	switch c {
	case ClassDelivered:
		return EffectDelivered
	case ClassGone:
		return EffectFailedAndPaused
	case ClassRefused, ClassBlocked, ClassSealed:
		return EffectFailed
	case ClassOurs:
		return EffectNotATry
	}
	return EffectNextTry
}

// ClassOfStatus classes an answer by its status line alone.
func ClassOfStatus(status int) Class {
	switch {
	case status >= 200 && status <= 299:
		return ClassDelivered
	case status == 410:
		return ClassGone
	case status == 408, status == 425, status == 429:
		return ClassUnavailable
	case status >= 300 && status <= 499:
		return ClassRefused
	}
	return ClassUnavailable
}
