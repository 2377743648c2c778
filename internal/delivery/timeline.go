package delivery

import (
	"fmt"
	"strconv"
	"time"

	"colophon/internal/egress"
)

// Timeline tells a delivery's story in sentences: what happened, what happens
// next, and what a person can do. Times are in UTC. Sending says that the slot
// holds it at this moment.
func Timeline(d Delivery, sending bool, now time.Time) []string {
	story := []string{at(d.CreatedAt) + fmt.Sprintf("Release %d was published.", d.Release)}
	if older := d.Numbered - int64(len(d.Attempts)); older > 0 {
		story = append(story, fmt.Sprintf("%s made before these; they are not kept.", were(older, "attempt")))
	}
	round := int64(1)
	for _, a := range d.Attempts {
		if a.Round > round {
			round = a.Round
			story = append(story, fmt.Sprintf("Somebody asked for it to be delivered again (round %d).", round))
		}
		story = append(story, at(a.At)+a.sentence())
	}
	if d.Round > round {
		story = append(story, fmt.Sprintf("Somebody asked for it to be delivered again (round %d).", d.Round))
	}
	if d.Ours.Count > 0 {
		story = append(story, at(d.Ours.Since)+fmt.Sprintf(
			"We could not send it for a fault of our own (%s since). This costs no try; it is repeated for up to a day.", times(d.Ours.Count)))
	}
	return append(story, d.standing(sending, now)...)
}

// standing says where it stands now.
func (d Delivery) standing(sending bool, now time.Time) []string {
	switch d.Status {
	case Delivered:
		return []string{ended(d) + "Delivered."}
	case Skipped:
		return d.skipped()
	case Failed:
		return d.failed()
	}
	switch {
	case sending:
		return []string{"It is being sent right now."}
	case d.Ours.Count > 0:
		return []string{"It is tried again by itself."}
	case d.TryAt.After(now):
		line := fmt.Sprintf("Try %d of %d follows at %s.", d.Tries+1, Tries, clock(d.TryAt))
		if d.Asked > 0 {
			line += fmt.Sprintf(" The receiver asked to wait %s; %s are waited.", span(d.Asked), span(d.Used))
		}
		return []string{line, "To send it sooner, use “try now”: it costs no extra try."}
	case d.Forced():
		return []string{fmt.Sprintf("It waits to be sent although release %d is newer, because somebody forced it.", d.Over)}
	}
	return []string{"It waits to be sent."}
}

func (d Delivery) skipped() []string {
	var lines []string
	switch d.Reason {
	case Superseded:
		lines = append(lines, ended(d)+fmt.Sprintf("Skipped: release %d is newer and is sent in its place.", d.Successor))
	case Paused:
		lines = append(lines, ended(d)+"Skipped: the destination was paused.", "After resuming, the current release can be redelivered.")
	case Removed:
		lines = append(lines, ended(d)+"Skipped: the destination was removed.")
	default:
		lines = append(lines, ended(d)+"Skipped.")
	}
	if d.Before != nil {
		lines = append(lines, fmt.Sprintf("What the rounds before came to still holds: %s.", d.Before.Status))
	}
	return lines
}

func (d Delivery) failed() []string {
	const again = "When that is mended, redeliver it."
	switch d.Reason {
	case Reason(ClassRefused):
		return []string{ended(d) + "Failed: the receiver refused it, so it is not tried again.", d.hint(), again}
	case Reason(ClassGone):
		return []string{ended(d) + "Failed: the receiver says that it is gone (410), so the destination was paused.",
			"Check the address, resume the destination, then redeliver the current release."}
	case Reason(ClassBlocked):
		detail := ""
		if len(d.Attempts) > 0 {
			detail = d.Attempts[len(d.Attempts)-1].Detail
		}
		return []string{ended(d) + fmt.Sprintf("Failed: %s, so nothing was sent.", blocked(detail)), blockedHint(detail)}
	case Reason(ClassSealed):
		return []string{ended(d) + "Failed: what is stored for this destination is sealed for another address or destination, so nothing was sent.",
			sealedHint, "When that is done, redeliver it."}
	case OurFault:
		return []string{ended(d) + "Failed: faults of our own lasted for a day.", "Tell the operator of this stack, then redeliver it."}
	case Unreadable:
		return []string{ended(d) + "Failed: its record in the table, or its destination's, cannot be read.",
			"Publish again to announce the current release. Where that fails too, remove the destination and add it again."}
	}
	return []string{ended(d) + fmt.Sprintf("Failed: all %d tries are used.", d.Tries), d.hint(), again}
}

// hint says what the last attempt's end usually means.
func (d Delivery) hint() string {
	if len(d.Attempts) == 0 {
		return "Look at the receiver's log."
	}
	return d.Attempts[len(d.Attempts)-1].hint()
}

// sentence tells one attempt.
func (a Attempt) sentence() string {
	line := fmt.Sprintf("Attempt %d: %s", a.Number, a.ending())
	switch {
	case a.Class == ClassDelivered:
	case a.Received == MayHave:
		line += " The receiver may have got it."
	case a.Received == NotReceived:
		line += " The receiver did not get it."
	}
	if a.Asked > 0 {
		line += fmt.Sprintf(" It asked to wait %s", span(a.Asked))
		if a.Used > 0 {
			line += fmt.Sprintf("; %s were waited", span(a.Used))
		}
		line += "."
	}
	if a.Late != "" {
		line += fmt.Sprintf(" A result came after its time and changed nothing: %s.", a.Late)
	}
	return line
}

func (a Attempt) ending() string {
	detail := ""
	if a.Detail != "" {
		detail = " (" + a.Detail + ")"
	}
	switch a.Class {
	case ClassDelivered:
		return fmt.Sprintf("answered %d after %s.", a.Status, span(a.Elapsed))
	case ClassGone, ClassRefused, ClassUnavailable:
		return fmt.Sprintf("answered %d after %s: %s.", a.Status, span(a.Elapsed), a.Class)
	case ClassDNS:
		return "the name could not be looked up" + detail + "."
	case ClassConnect:
		return "no connection" + detail + "."
	case ClassTLS:
		return "no trusted connection, TLS failed" + detail + "."
	case ClassTimeout:
		return fmt.Sprintf("no complete answer within %s.", span(AttemptTime))
	case ClassReset:
		return "the connection broke before an answer."
	case ClassBadAnswer:
		return "the answer broke off or was malformed."
	case ClassNotHTTP:
		return "what answered does not speak HTTP."
	case ClassLongHeaders:
		return "the answer's headers were too large."
	case ClassBlocked:
		return blocked(a.Detail) + "; nothing was sent."
	case ClassSealed:
		return "what is stored for this destination is sealed for another address or destination; nothing was sent."
	case ClassUnknown:
		return "its outcome is not known: the sender was interrupted."
	}
	return string(a.Class) + detail + "."
}

// blocked says why an address was not called, without naming it.
func blocked(detail string) string {
	switch egress.Detail(detail) {
	case egress.DetailOwnAPI:
		return "the address is Colophon's own API"
	case egress.DetailNotAllowed:
		return "the address has a scheme, port or form that is not called"
	}
	return "the address is not public"
}

// blockedHint says what a person does about it.
func blockedHint(detail string) string {
	switch egress.Detail(detail) {
	case egress.DetailOwnAPI:
		return "Give the destination the receiver's address."
	case egress.DetailNotAllowed:
		return "Give the destination an address that starts with https:// and has no port."
	}
	return "Give the destination an address that leads to a public host."
}

// sealedHint holds for headers, whose record was changed without them, and for a
// secret that was put in another's place.
const sealedHint = "Its record was changed outside of Colophon. An admin sets the destination's address and headers again, " +
	"or rotates its secret and revokes the old one."

// hint says what a person does about it.
func (a Attempt) hint() string {
	switch a.Class {
	case ClassSealed:
		return sealedHint
	case ClassBlocked:
		return blockedHint(a.Detail)
	case ClassRefused:
		return refusedHint(a.Status)
	case ClassUnavailable:
		return "The receiver was not able to take it. Look at its log."
	case ClassDNS:
		return "Check the destination's host name."
	case ClassConnect:
		return "Check that the receiver runs and that its firewall lets the public in."
	case ClassTLS:
		return "Check the receiver's certificate: its dates, its name and the chain that is sent with it."
	case ClassTimeout:
		return "Let the receiver answer first and work afterwards: it has 10 seconds."
	case ClassUnknown:
		return "The receiver may have got it: it drops repeats by webhook-id."
	}
	return "Look at the receiver's log."
}

func refusedHint(status int) string {
	switch {
	case status >= 300 && status <= 399:
		return "Redirects are never followed. Give the destination the address that it redirects to."
	case status == 401, status == 403:
		return "The receiver does not accept the credentials. Check the destination's headers and its signing secret."
	case status == 404, status == 405:
		return "There is no webhook at that address. Check its path."
	case status == 413:
		return "The receiver takes no body of this size. Raise its limit."
	}
	return "The receiver does not accept the request. Its log says why."
}

func at(t time.Time) string { return clock(t) + " " }

func ended(d Delivery) string {
	if d.EndedAt.IsZero() {
		return ""
	}
	return at(d.EndedAt)
}

func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") }

// span writes a duration as people say it.
func span(d time.Duration) string {
	switch {
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	case d < 10*time.Second:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	case d < 2*time.Minute:
		return strconv.FormatInt(int64(d.Round(time.Second)/time.Second), 10) + " s"
	case d < 2*time.Hour:
		return strconv.FormatInt(int64(d.Round(time.Minute)/time.Minute), 10) + " min"
	}
	return strconv.FormatInt(int64(d.Round(time.Hour)/time.Hour), 10) + " h"
}

func were(n int64, what string) string {
	if n == 1 {
		return "One " + what + " was"
	}
	return fmt.Sprintf("%d %ss were", n, what)
}

func times(n int64) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
