package delivery

import (
	"fmt"
	"time"

	"colophon/internal/egress"
)

// Check names one thing that an examination looks at.
type Check string

// The checks, in the order in which a request passes them. The last three can
// be made only where an answer came.
const (
	CheckName        Check = "name"        // the host is known, and may be called
	CheckConnection  Check = "connection"  // something listens there
	CheckCertificate Check = "certificate" // TLS: trusted, complete, not about to end
	CheckAnswer      Check = "answer"      // the signed test was answered with 2xx
	CheckRedirect    Check = "redirect"    // it is not sent elsewhere
	CheckClock       Check = "clock"       // the receiver's clock agrees with ours
)

// Verdict is what a check came to.
type Verdict string

// The verdicts.
const (
	VerdictGood       Verdict = "good"
	VerdictWarning    Verdict = "warning"     // it works, and will not for long or not everywhere
	VerdictBad        Verdict = "bad"         // releases do not arrive as long as this is so
	VerdictNotReached Verdict = "not-reached" // an earlier check failed, or the answer does not tell
)

// Finding is what an examination says about one check. Words are one or two
// sentences for a person; they hold no address and nothing that the receiver sent.
type Finding struct {
	Check   Check
	Verdict Verdict
	Words   string
}

const (
	certificateSoon = 14 * 24 * time.Hour // less is left: say so in time for a renewal by hand
	clockNotable    = 30 * time.Second    // further apart is worth a look
	clockTooFar     = 5 * time.Minute     // further apart, the standard's libraries refuse our signatures
)

// examined is an examination's one request.
type examined struct {
	egress.Result
	secured bool      // https
	at      time.Time // of the request's end
}

// Examine says what one request showed of a receiver: one finding a check, in
// their order. Secured tells whether the address is https; at is when the request
// ended.
func Examine(r egress.Result, secured bool, at time.Time) []Finding {
	e := examined{r, secured, at}
	return []Finding{e.name(), e.connection(), e.certificate(), e.answer(), e.redirect(), e.clock()}
}

// sealedFindings are those of an examination whose request was never made.
func sealedFindings() []Finding {
	findings := []Finding{}
	for _, c := range []Check{CheckName, CheckConnection, CheckCertificate, CheckAnswer, CheckRedirect, CheckClock} {
		findings = append(findings, Finding{c, VerdictNotReached, "It did not come to this."})
		if c == CheckAnswer {
			a := Attempt{Class: ClassSealed}
			findings[len(findings)-1] = bad(c, "The signed test was not sent: %s %s", a.ending(), a.hint())
		}
	}
	return findings
}

// took says how long a step took, and whether it was finished.
func (e examined) took(name egress.StepName) (string, bool) {
	for _, step := range e.Steps {
		if step.Name == name {
			return span(step.Took), true
		}
	}
	return "", false
}

func good(c Check, format string, args ...any) Finding {
	return Finding{c, VerdictGood, fmt.Sprintf(format, args...)}
}

func warning(c Check, format string, args ...any) Finding {
	return Finding{c, VerdictWarning, fmt.Sprintf(format, args...)}
}

func bad(c Check, format string, args ...any) Finding {
	return Finding{c, VerdictBad, fmt.Sprintf(format, args...)}
}

// notReached is the finding of a check that no step led to.
func (e examined) notReached(c Check) Finding {
	words := "It did not come to this."
	switch e.Failure {
	case egress.FailureClock, egress.FailureCanceled, egress.FailureOurs:
		words = "It did not come to this, for a fault of our own. Ask for another examination."
	}
	return Finding{c, VerdictNotReached, words}
}

func (e examined) name() Finding {
	const c = CheckName
	if took, ok := e.took(egress.StepLookup); ok {
		return good(c, "The host is known, and may be called (%s).", took)
	}
	switch {
	case e.Failure == egress.FailureBlocked:
		return bad(c, "Nothing was opened: %s. %s", blocked(string(e.Detail)), blockedHint(string(e.Detail)))
	case e.Failure != egress.FailureDNS:
		return e.notReached(c)
	}
	switch e.Detail {
	case egress.DetailNoSuchName:
		return bad(c, "There is no such host name. Check the destination's address.")
	case egress.DetailNoAddress:
		return bad(c, "The host name leads to no address. Check its entries in the DNS.")
	case egress.DetailTimeout:
		return bad(c, "The host name's servers did not answer in time.")
	}
	return bad(c, "The host name's servers do not answer as they should.")
}

func (e examined) connection() Finding {
	const c = CheckConnection
	if took, ok := e.took(egress.StepConnect); ok {
		return good(c, "A connection stood after %s.", took)
	}
	switch {
	case e.Failure == egress.FailureBlocked && len(e.Steps) > 0: // judged once more when it was dialled
		return bad(c, "Nothing was opened: %s. %s", blocked(string(e.Detail)), blockedHint(string(e.Detail)))
	case e.Failure != egress.FailureConnect:
		return e.notReached(c)
	}
	switch e.Detail {
	case egress.DetailConnectRefused:
		return bad(c, "Nothing listens there: the connection was refused. Check that the receiver runs, and its port.")
	case egress.DetailTimeout:
		return bad(c, "No connection came about in time. Check that the firewall lets the public in.")
	case egress.DetailClosed:
		return bad(c, "The connection was closed before it stood.")
	}
	return bad(c, "There is no way to the host's address.")
}

func (e examined) certificate() Finding {
	const c = CheckCertificate
	if _, connected := e.took(egress.StepConnect); !connected {
		return e.notReached(c)
	}
	if !e.secured {
		return warning(c, "The address is plain http: nothing is encrypted, and nobody shows who they are. Production refuses it.")
	}
	until := e.CertificateNotAfter
	if _, ok := e.took(egress.StepHandshake); ok {
		if until.Sub(e.at) < certificateSoon {
			return warning(c, "The certificate is right and its chain complete, but it ends on %s, in %s. Renew it.", day(until), days(until, e.at))
		}
		return good(c, "The certificate is right and its chain complete. It is good until %s, for %s.", day(until), days(until, e.at))
	}
	if e.Failure != egress.FailureTLS {
		return e.notReached(c)
	}
	f := bad(c, "%s", e.refusedTLS())
	switch e.Detail {
	case egress.DetailName, egress.DetailUnknownIssuer, egress.DetailIncompleteChain:
		if until.After(e.at) {
			f.Words += fmt.Sprintf(" It is good until %s, for %s.", day(until), days(until, e.at))
		}
	}
	return f
}

func (e examined) refusedTLS() string {
	switch e.Detail {
	case egress.DetailExpired:
		return fmt.Sprintf("The certificate, or one of its chain, ended on %s. Renew it.", day(e.CertificateNotAfter))
	case egress.DetailNotYetValid:
		return "The certificate is not good yet. Check the clock of the machine that made it."
	case egress.DetailName:
		return "The certificate is for another host name."
	case egress.DetailUnknownIssuer:
		return "No authority that is known has issued the certificate. Self-signed ones are not taken."
	case egress.DetailIncompleteChain:
		return "The certificate came without the intermediate certificate that leads to its authority. Have the server send the whole chain."
	case egress.DetailCertificate:
		return "The certificate cannot be used for this host."
	case egress.DetailNotTLS:
		return "What answers on this port does not speak TLS."
	case egress.DetailAlert:
		return "The receiver broke TLS off, perhaps because it wants a client's certificate. There is none to give."
	case egress.DetailClosed:
		return "The receiver closed the connection before TLS stood."
	case egress.DetailTimeout:
		return "TLS did not come about in time."
	}
	return "There is no way of speaking TLS that both sides know: 1.2 is the oldest that is used."
}

// answer is told in the words of a delivery's attempt.
func (e examined) answer() Finding {
	const c = CheckAnswer
	o := outcomeOf(e.Result)
	sent := e.Failure == egress.FailureNone
	switch e.Failure {
	case egress.FailureTimeout, egress.FailureReset, egress.FailureBadAnswer, egress.FailureNotHTTP, egress.FailureHeadersTooLarge:
		sent = true
	case egress.FailureTLS: // in TLS 1.3 a client's certificate is missed only after the handshake
		if _, secured := e.took(egress.StepHandshake); secured {
			return bad(c, "%s", e.refusedTLS())
		}
	}
	if !sent {
		return e.notReached(c)
	}
	a := Attempt{Class: o.Class, Status: o.Status, Detail: o.Detail, Elapsed: o.Elapsed}
	if o.Class == ClassDelivered {
		return good(c, "The signed test was %s", a.ending())
	}
	return bad(c, "The signed test was sent: %s %s", a.ending(), a.hint())
}

func (e examined) redirect() Finding {
	const c = CheckRedirect
	switch {
	case e.Failure != egress.FailureNone:
		return e.notReached(c)
	case e.Redirect:
		return bad(c, "It redirects (%d), and redirects are never followed. Give the destination the address that it redirects to.", e.Status)
	}
	return good(c, "It does not redirect.")
}

// clock allows the receiver's date any instant between the request's beginning
// and end: it counts in whole seconds, and the answer took its time.
func (e examined) clock() Finding {
	const c = CheckClock
	switch {
	case e.Failure != egress.FailureNone:
		return e.notReached(c)
	case e.ServerDate.IsZero():
		return Finding{c, VerdictNotReached, "The answer does not say what time it is there."}
	}
	begun := e.at.Add(-e.Elapsed - time.Second)
	apart, way := max(e.ServerDate.Sub(e.at), 0), "ahead of"
	if behind := begun.Sub(e.ServerDate); behind > 0 {
		apart, way = behind, "behind"
	}
	switch {
	case apart > clockTooFar:
		return bad(c, "The receiver's clock is %s %s ours. Signatures are good for 5 minutes, so it refuses them. Set its clock.", span(apart), way)
	case apart > clockNotable:
		return warning(c, "The receiver's clock is %s %s ours. From 5 minutes on it refuses our signatures. Set its clock.", span(apart), way)
	}
	return good(c, "The receiver's clock agrees with ours.")
}

func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// days is how many whole days are left.
func days(until, from time.Time) string {
	switch n := int(until.Sub(from) / (24 * time.Hour)); {
	case n < 1:
		return "less than a day"
	case n == 1:
		return "1 day"
	default:
		return fmt.Sprintf("%d days", n)
	}
}
