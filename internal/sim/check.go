package sim

import (
	"errors"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"

	"colophon/internal/content"
	"colophon/internal/delivery"
	"colophon/internal/failure"
	"colophon/internal/killpoint"
	"colophon/internal/store"
)

// claim is one holder of a slot.
type claim struct {
	of      *address
	duty    *duty
	token   string
	round   int64
	attempt int64
	process *process
	until   time.Time     // by its own clock
	off     time.Duration // of that clock, when it claimed
	told    delivery.Class
	refused bool   // giving it back was refused, and its worker has time to do so again
	stood   moment // how long its process had stood still by then
}

// refuse notes that giving the claim back was refused, where there is time for another try.
func (c *claim) refuse() {
	const enough = 3 * time.Second
	p := c.process
	c.refused = c.left() > enough && p.deadline-p.world.now > enough
	c.stood = p.stood
}

// live says whether the claim's lease has not run out by its own clock. A clock
// that was put out of bounds since is no reason for it to last.
func (c *claim) live() bool { return c.left() > 0 }

func (c *claim) left() time.Duration { return c.until.Sub(c.process.wall().Add(c.off - c.process.off)) }

// duty is what is known of a delivery.
type duty struct {
	of       *address
	release  int64
	status   string
	round    int64
	id, body string
	over     int64 // forced: the newest release that the person saw
	tryAt    int64
	out      int64 // attempts of this round whose bytes left
	numbers  map[int64]bool
	expired  bool
	damaged  bool   // nothing but its end is asked of it
	shown    moment // readers meet it from then on; negative: not yet
}

func (d *duty) terminal() bool { return delivery.Status(d.status).Terminal() }

// address is what is known of a destination.
type address struct {
	delivery.Destination
	name      string // in the story
	duties    map[int64]*duty
	newest    int64 // the newest release that was announced to it
	claims    map[string]*claim
	received  int64 // the newest release that arrived
	delivered int64 // the newest release that was recorded as delivered
	slot      store.Item
	damaged   bool // its slot is
}

// check holds the rules. It sees what is committed, what is sent and what
// arrives, and knows nothing of how the code under test comes to it.
type check struct {
	w        *World
	byPK     map[string]*address
	order    []*address
	ids      map[string]*duty
	releases map[string]int64 // project to its last
	uses     map[string]int64 // idempotency item to its release
	pending  int              // deliveries that have not ended
}

func newCheck(w *World) *check {
	return &check{
		w: w, byPK: map[string]*address{}, ids: map[string]*duty{}, releases: map[string]int64{}, uses: map[string]int64{},
	}
}

// at is the destination's address; one that is not known yet is made.
func (c *check) at(d delivery.Destination) *address {
	pk := "P#" + d.Project + "#D#" + d.ID
	a := c.byPK[pk]
	if a == nil {
		a = &address{Destination: d, name: "site " + strconv.Itoa(len(c.order)+1), duties: map[int64]*duty{}, claims: map[string]*claim{}}
		c.byPK[pk] = a
		c.order = append(c.order, a)
	}
	return a
}

func (c *check) byKey(pk string) *address {
	if a := c.byPK[pk]; a != nil {
		return a
	}
	project, id, _ := strings.Cut(strings.TrimPrefix(pk, "P#"), "#D#")
	return c.at(delivery.Destination{Project: project, ID: id})
}

// called is a partition's name in the story.
func (c *check) called(pk string) string {
	if a := c.byPK[pk]; a != nil {
		return a.name
	}
	return "the project"
}

// committed sees a write or a transaction at the moment at which it is decided.
// It may be long since it was sent.
func (c *check) committed(origin *task, r request, changes []change) {
	var slot *change
	for i := range changes {
		if ch := &changes[i]; ch.table == deliveryTable && ch.key.SK == "SLOT" {
			slot = ch
		}
	}
	for i := range changes {
		ch := &changes[i]
		switch {
		case ch.table == contentTable:
			c.content(ch)
		case strings.HasPrefix(ch.key.SK, "R#"):
			c.delivery(origin, ch, slot)
		}
	}
	if slot != nil {
		c.slot(origin, r, slot)
	}
}

// slot sees a change of a slot.
func (c *check) slot(origin *task, r request, ch *change) {
	w, a := c.w, c.byKey(ch.key.PK)
	a.slot = ch.new
	if a.damaged {
		return
	}
	if ch.new == nil {
		w.violate(ruleForeignWrite, "%s takes the slot of %s away", origin.process.name, a.name)
		return
	}
	if len(ch.old) > 0 && numberOf(ch.new["version"]) <= numberOf(ch.old["version"]) && !ch.checked() {
		w.violate(ruleVersion, "%s writes the slot of %s and leaves its version at %d", origin.process.name, a.name, numberOf(ch.new["version"]))
	}
	if numberOf(ch.new["sentThrough"]) < numberOf(ch.old["sentThrough"]) || numberOf(ch.new["deliveredThrough"]) < numberOf(ch.old["deliveredThrough"]) {
		w.violate(ruleVersion, "%s sets sentThrough or deliveredThrough of %s back", origin.process.name, a.name)
	}
	before, after := mapOf(ch.old["holder"]), mapOf(ch.new["holder"])
	had, has := textOf(before["token"]), textOf(after["token"])
	if had != has && had != "" {
		if old := a.claims[had]; old != nil && old.process != origin.process && old.live() {
			w.violate(ruleOneLease, "%s takes the slot of %s from %s, whose token %s is good for another %v",
				origin.process.name, a.name, old.process.name, had, old.left())
		} else if old != nil && old.refused && old.process != origin.process && !old.process.dead && !old.process.abandoned && old.stood == old.process.stood {
			w.violate(ruleGivenBack, "%s finds %s held under token %s, which sent nothing and was given back once only", origin.process.name, a.name, had)
		} else if has == "" && origin.point != killpoint.AfterRecord { // a record has been told
			w.tell("%s frees the slot of %s (token %s)", origin.process.name, a.name, had)
		}
	}
	if was, is := textOf(ch.old["state"]), textOf(ch.new["state"]); was != is && was != "" {
		w.tell("%s: %s is %s now", origin.process.name, a.name, is)
	}
	if had != has && has != "" {
		if state := delivery.SlotState(textOf(ch.old["state"])); state != delivery.SlotActive {
			w.violate(ruleActive, "%s claims %s, which is %s", origin.process.name, a.name, state)
		}
		c.claimed(origin, r, a, after)
	}
}

// claimed sees a new holder.
func (c *check) claimed(origin *task, r request, a *address, holder store.Item) {
	w := c.w
	w.counts.Claims++
	token := textOf(holder["token"])
	cl := &claim{
		of: a, duty: a.duties[numberOf(holder["release"])], token: token, round: numberOf(holder["round"]),
		attempt: numberOf(holder["attempt"]), process: origin.process, until: time.UnixMilli(numberOf(holder["until"])),
		off: r.off,
	}
	// By the clock as it was when this was sent: that of a host may have been set since.
	if longest := origin.process.wall().Add(r.off - origin.process.off).Add(delivery.LeaseTime + delivery.ClockAllowance); cl.until.After(longest) {
		w.violate(ruleLeaseTime, "%s claims %s until %v", origin.process.name, a.name, cl.until.Sub(w.start))
	}
	if a.claims[token] != nil {
		w.violate(ruleOneLease, "token %s is in the slot of %s a second time", token, a.name)
	}
	a.claims[token] = cl
	if origin == w.current {
		origin.claim, origin.point = cl, killpoint.AfterClaim
	}
	if cl.duty == nil {
		w.violate(ruleForeignWrite, "%s claims a release that was never announced to %s", origin.process.name, a.name)
		return
	}
	w.tell("%s claims release %d for %s: token %s, round %d, attempt %d", origin.process.name, cl.duty.release, a.name, token, cl.round, cl.attempt)
	if cl.duty.damaged {
		return
	}
	if cl.duty.terminal() || cl.duty.round != cl.round {
		w.violate(ruleOver, "%s claims release %d of round %d for %s; it is %s in round %d",
			origin.process.name, cl.duty.release, cl.round, a.name, cl.duty.status, cl.duty.round)
	}
	for release, newer := range a.duties {
		if release > cl.duty.release && cl.duty.over == 0 && newer.shown >= 0 && newer.shown < r.read && !newer.expired && !newer.damaged {
			w.violate(ruleShown, "%s claims release %d for %s; release %d was there to be read", origin.process.name, cl.duty.release, a.name, a.newest)
			break
		}
	}
	// A process reads its clock before it claims, and its clock may have moved since.
	if now := w.start.Add(w.now).Add(2 * delivery.ClockAllowance); now.UnixMilli() < cl.duty.tryAt {
		w.violate(ruleEarly, "%s claims release %d for %s %v before its time", origin.process.name, cl.duty.release, a.name,
			time.UnixMilli(cl.duty.tryAt).Sub(w.start.Add(w.now)))
	}
}

// delivery sees a change of a delivery.
func (c *check) delivery(origin *task, ch, slot *change) {
	w, a := c.w, c.byKey(ch.key.PK)
	release, _ := strconv.ParseInt(strings.TrimPrefix(ch.key.SK, "R#"), 10, 64)
	if len(ch.old) == 0 {
		c.announced(origin, a, release, ch.new)
		return
	}
	d := a.duties[release]
	if len(ch.new) == 0 {
		w.violate(ruleForeignWrite, "%s deletes release %d for %s", origin.process.name, release, a.name)
		return
	}
	if d.damaged {
		c.mended(origin, a, d, ch)
		return
	}
	if textOf(ch.new["webhookId"]) != d.id || textOf(ch.new["body"]) != d.body {
		w.violate(ruleSameBytes, "%s changes the id or body of release %d for %s", origin.process.name, release, a.name)
	}
	was, is := d.status, textOf(ch.new["status"])
	wasEnded, ended := delivery.Status(was).Terminal(), delivery.Status(is).Terminal()
	round := numberOf(ch.new["round"])
	again := round != d.round
	attempts, before := mapOf(ch.new["attempts"]), mapOf(ch.old["attempts"])
	number := numberOf(ch.new["numbered"])
	added := number != numberOf(ch.old["numbered"])

	_, rings := ch.new["ring"]
	if rings && origin.asked == nil {
		w.violate(ruleRing, "%s writes release %d for %s and leaves it ringing", origin.process.name, release, a.name)
	}
	switch {
	case again:
		if !wasEnded || round != d.round+1 || is != string(delivery.Queued) || origin.asked == nil {
			w.violate(ruleEnd, "%s moves release %d for %s from %s in round %d to %s in round %d",
				origin.process.name, release, a.name, was, d.round, is, round)
		}
		if forced := numberOf(mapOf(ch.new["force"])["over"]); origin.asked != nil && forced > origin.asked.over {
			w.violate(ruleForce, "release %d for %s is forced over %d, its person saw %d", release, a.name, forced, origin.asked.over)
		}
		d.over, d.out = 0, 0
		if origin.asked != nil && ch.new["force"] != nil {
			d.over = origin.asked.over
		}
		c.pending++
		w.tell("release %d for %s is %s again: round %d%s", release, a.name, is, round, overText(d.over))
	case wasEnded && (is != was || added || len(attempts) != len(before)):
		w.violate(ruleEnd, "%s writes %s over release %d for %s, which is %s", origin.process.name, is, release, a.name, was)
	}
	d.round, d.status, d.tryAt = round, is, numberOf(ch.new["tryAt"])
	if added {
		c.attempted(origin, a, d, ch, slot, number)
	}
	if ended && !wasEnded {
		c.pending--
		c.ended(origin, a, d, ch, slot, added)
		if w.happens(faultExpire) {
			after := [...]moment{time.Second, time.Minute, 10 * time.Minute, time.Hour}[w.choices.below(faultExpire, 4)]
			w.calendar.add(event{at: w.now + after, do: func() { w.tables.expire(ch.key) }})
		}
	}
	if ended == (ch.new["sweepShard"] != nil) || ended == (ch.new["expiresAt"] == nil) {
		w.violate(ruleSwept, "%s leaves release %d for %s as %s, and its place in the sweep index is not that of one",
			origin.process.name, release, a.name, is)
	}
	if at := time.UnixMilli(numberOf(ch.new["sweepAt"])); !ended && at.After(w.start.Add(w.now).Add(65*time.Minute)) {
		w.violate(ruleSwept, "%s puts release %d for %s off until %v", origin.process.name, release, a.name, at.Sub(w.start))
	}
	if slot != nil && len(slot.new) > 0 && numberOf(slot.new["version"]) <= numberOf(slot.old["version"]) {
		w.violate(ruleVersion, "%s writes release %d for %s and leaves the slot's version at %d", origin.process.name, release, a.name, numberOf(slot.new["version"]))
	}
	if slot != nil && numberOf(ch.new["rev"]) <= numberOf(ch.old["rev"]) {
		w.violate(ruleRev, "%s writes slot and release %d for %s, and its rev stays %d", origin.process.name, release, a.name, numberOf(ch.new["rev"]))
	}
}

func overText(over int64) string {
	if over == 0 {
		return ""
	}
	return fmt.Sprintf(", forced over %d", over)
}

// announced sees a new delivery.
func (c *check) announced(origin *task, a *address, release int64, item store.Item) {
	w := c.w
	d := &duty{
		of: a, release: release, status: textOf(item["status"]), round: numberOf(item["round"]),
		id: textOf(item["webhookId"]), body: textOf(item["body"]), numbers: map[int64]bool{}, shown: -1,
	}
	if other := c.ids[d.id]; other != nil {
		w.violate(ruleOwnID, "release %d for %s has the id of release %d for %s", release, a.name, other.release, other.of.name)
	}
	if release <= a.newest || d.status != string(delivery.Queued) || d.round != 1 || item["ring"] == nil || item["sweepShard"] == nil {
		w.violate(rulePublished, "release %d for %s begins as %s in round %d, after release %d", release, a.name, d.status, d.round, a.newest)
	}
	a.duties[release], c.ids[d.id], a.newest = d, d, release
	d.damaged = a.damaged
	c.damage(d, store.Key{PK: "P#" + a.Project + "#D#" + a.ID, SK: fmt.Sprintf("R#%012d", release)})
	c.pending++
	w.tell("%s announces release %d to %s", origin.process.name, release, a.name)
}

// shown sees that readers can meet a new delivery from now on.
func (c *check) shown(k store.Key) {
	release, _ := strconv.ParseInt(strings.TrimPrefix(k.SK, "R#"), 10, 64)
	if d := c.byKey(k.PK).duties[release]; d != nil {
		d.shown = c.w.now
	}
}

// expired sees that a delivery is gone after its time.
func (c *check) expired(k store.Key) {
	release, _ := strconv.ParseInt(strings.TrimPrefix(k.SK, "R#"), 10, 64)
	a := c.byKey(k.PK)
	a.duties[release].expired = true
	c.w.tell("release %d for %s is expired", release, a.name)
}

// attempted sees that an attempt was written.
func (c *check) attempted(origin *task, a *address, d *duty, ch, slot *change, number int64) {
	w := c.w
	attempt := mapOf(mapOf(ch.new["attempts"])[strconv.FormatInt(number, 10)])
	token, by, class := textOf(attempt["token"]), textOf(attempt["by"]), textOf(attempt["class"])
	if number != numberOf(ch.old["numbered"])+1 {
		w.violate(ruleNumber, "release %d for %s goes from attempt %d to %d", d.release, a.name, numberOf(ch.old["numbered"]), number)
	}
	var holder store.Item
	if slot != nil {
		holder = mapOf(slot.old["holder"])
	}
	cl := a.claims[token]
	if token == "" || textOf(holder["token"]) != token || cl == nil || cl.duty != d || cl.round != d.round {
		w.violate(ruleToken, "%s writes attempt %d of release %d for %s under token %q; in the slot is %q",
			origin.process.name, number, d.release, a.name, token, textOf(holder["token"]))
		return
	}
	tries, had := numberOf(ch.new["tries"]), numberOf(ch.old["tries"])
	if tries != had+1 {
		w.violate(ruleCounted, "%s writes attempt %d of release %d for %s, and its tries go from %d to %d",
			origin.process.name, number, d.release, a.name, had, tries)
	}
	if tries > delivery.Tries {
		w.violate(ruleTries, "release %d for %s has %d tries in round %d", d.release, a.name, tries, d.round)
	}
	switch delivery.Writer(by) {
	case delivery.ByRecord:
		if cl.process != origin.process {
			w.violate(ruleToken, "%s records what %s sent", origin.process.name, cl.process.name)
		}
		if string(cl.told) != class {
			w.violate(ruleTrue, "%s records %q for release %d to %s; the attempt told %q", origin.process.name, class, d.release, a.name, cl.told)
		}
		origin.point = killpoint.AfterRecord
		w.tell("%s records release %d for %s: %s, try %d → %s%s", origin.process.name, d.release, a.name, class, tries, d.status, c.next(d, ch))
	case delivery.BySettle:
		w.counts.Settled++
		w.tell("%s settles release %d for %s: token %s was lost, try %d → %s%s", origin.process.name, d.release, a.name, token, tries, d.status, c.next(d, ch))
	default:
		w.violate(ruleToken, "attempt %d of release %d for %s was written by %q", number, d.release, a.name, by)
	}
}

func (c *check) next(d *duty, ch *change) string {
	if d.terminal() {
		return ""
	}
	return fmt.Sprintf(", next at %v", time.UnixMilli(d.tryAt).Sub(c.w.start))
}

// ended sees that a delivery has ended.
func (c *check) ended(origin *task, a *address, d *duty, ch, slot *change, added bool) {
	w := c.w
	reason := textOf(ch.new["reason"])
	var holder store.Item
	state := string(delivery.SlotRemoved)
	if slot != nil {
		holder = mapOf(slot.old["holder"])
	}
	if a.slot != nil {
		state = textOf(a.slot["state"])
	}
	switch delivery.Status(d.status) {
	case delivery.Delivered:
		w.counts.Delivered++
		a.delivered = max(a.delivered, d.release)
		if cl := a.claims[textOf(holder["token"])]; !added || cl == nil || cl.told != delivery.ClassDelivered {
			w.violate(ruleHeard, "%s ends release %d for %s as delivered", origin.process.name, d.release, a.name)
		}
		return
	case delivery.Failed:
		w.counts.Failed++
		if !added && reason != string(delivery.OurFault) {
			w.violate(ruleReason, "%s fails release %d for %s without an attempt: %q", origin.process.name, d.release, a.name, reason)
		}
		return
	}
	w.counts.Skipped++
	if !added {
		w.tell("%s skips release %d for %s: %s", origin.process.name, d.release, a.name, reason)
	}
	switch delivery.Reason(reason) {
	case delivery.Superseded:
		if d.over == 0 && a.newest <= d.release || d.over > 0 && a.newest <= d.over {
			w.violate(ruleNewest, "%s skips release %d for %s as superseded; the newest is %d", origin.process.name, d.release, a.name, a.newest)
		}
		if next := numberOf(ch.new["successor"]); next <= d.release || a.duties[next] == nil {
			w.violate(ruleReason, "release %d for %s is said to be superseded by %d", d.release, a.name, next)
		}
		if d.over > 0 && slot == nil {
			w.violate(ruleForcedSkip, "%s skips release %d for %s, which is forced", origin.process.name, d.release, a.name)
		}
	case delivery.Paused, delivery.Removed:
		if slot == nil || state != reason {
			w.violate(ruleReason, "%s skips release %d for %s as %s; it is %s", origin.process.name, d.release, a.name, reason, state)
		}
	default:
		w.violate(ruleReason, "release %d for %s is skipped: %q", d.release, a.name, reason)
	}
	if sending := mapOf(a.slot["holder"]); sending != nil && numberOf(sending["release"]) == d.release && !added {
		if cl := a.claims[textOf(sending["token"])]; cl != nil && cl.duty == d && cl.round == d.round && cl.live() {
			w.violate(ruleBeingSent, "%s skips release %d for %s while %s sends it", origin.process.name, d.release, a.name, cl.process.name)
		}
	}
}

// sent sees the last byte of a request leave.
func (c *check) sent(p *process, cl *claim, s delivery.Sending) {
	w := c.w
	w.counts.Sends++
	a := c.at(s.Delivery.Destination)
	if cl == nil || cl.process != p || cl.of != a || cl.duty == nil || cl.duty.release != s.Delivery.Release {
		w.violate(ruleInLease, "%s sends release %d to %s without a claim of its own", p.name, s.Delivery.Release, a.name)
		return
	}
	d := cl.duty
	if d.damaged || a.damaged {
		return // what a person did to it came between
	}
	w.tell("%s sends release %d to %s (token %s, attempt %d)", p.name, d.release, a.name, cl.token, s.Attempt)
	if s.ID != d.id || string(s.Body) != d.body {
		w.violate(ruleSameBytes, "%s sends release %d to %s with another id or body", p.name, d.release, a.name)
	}
	if !cl.live() {
		w.violate(ruleInLease, "%s sends release %d to %s %v after its lease", p.name, d.release, a.name, -cl.left())
	}
	if d.numbers[s.Attempt] || s.Attempt != cl.attempt {
		w.violate(ruleNumber, "%s sends attempt %d of release %d to %s again", p.name, s.Attempt, d.release, a.name)
	}
	d.numbers[s.Attempt] = true
	previous := a.delivered
	if previous >= d.release {
		previous = 0
	}
	if s.Previous != previous {
		w.violate(rulePrevious, "%s sends release %d to %s with colophon-previous %d; delivered was %d", p.name, d.release, a.name, s.Previous, previous)
	}
	if d.round == cl.round {
		if d.out++; d.out > delivery.Tries {
			w.violate(ruleTries, "%s sends release %d to %s a sixth time in round %d", p.name, d.release, a.name, d.round)
		}
	}
}

// arrived sees a request at its receiver.
func (c *check) arrived(cl *claim, s delivery.Sending) {
	w := c.w
	w.counts.Arrivals++
	if cl == nil || cl.duty == nil {
		return
	}
	a, d := cl.of, cl.duty
	if d.damaged || a.damaged {
		a.received = max(a.received, d.release)
		return
	}
	w.tell("release %d arrives at %s (token %s)", d.release, a.name, cl.token)
	if d.terminal() || d.round != cl.round {
		w.violate(ruleOver, "release %d of round %d arrives at %s; it is %s in round %d", d.release, cl.round, a.name, d.status, d.round)
	}
	switch {
	case d.release >= a.received:
	case d.over == 0:
		w.violate(ruleOrder, "release %d arrives at %s after release %d", d.release, a.name, a.received)
	case a.received > d.over:
		w.violate(ruleForce, "release %d, forced over %d, arrives at %s after release %d", d.release, d.over, a.name, a.received)
	}
	a.received = max(a.received, d.release)
}

// content sees a change of the content table.
func (c *check) content(ch *change) {
	w := c.w
	project := strings.TrimPrefix(ch.key.PK, "P#")
	switch {
	case ch.checked():
	case strings.HasPrefix(ch.key.SK, "REL#"):
		n, _ := strconv.ParseInt(strings.TrimPrefix(ch.key.SK, "REL#"), 10, 64)
		if len(ch.old) > 0 || n != c.releases[project]+1 {
			w.violate(ruleNumbers, "release %d follows release %d", n, c.releases[project])
		}
		c.releases[project] = n
		w.counts.Releases++
	case strings.HasPrefix(ch.key.SK, "IDEM#"):
		if before, ok := c.uses[ch.key.SK]; ok {
			w.violate(ruleToldOnce, "a key that made release %d makes another", before)
		}
		c.uses[ch.key.SK] = numberOf(ch.new["release"])
	}
}

// useKey is the item of an idempotency key.
func useKey(key string) string { return "IDEM#" + content.HashOf([]byte(key)).String() }

// used says whether a key has made a release by now.
func (c *check) used(key string) bool {
	_, used := c.uses[useKey(key)]
	return used
}

// published sees what a publisher was told; used: before it asked, the key had made a release.
func (c *check) published(project, key string, used bool, p content.Published) {
	w := c.w
	w.tell("a publisher is told that release %d is out", p.Number)
	if p.Number < 1 || p.Number > c.releases[project] {
		w.violate(rulePublished, "release %d was promised, the last is %d", p.Number, c.releases[project])
	}
	if key == "" {
		return
	}
	if made := c.uses[useKey(key)]; made != p.Number || used && !p.Replayed {
		w.violate(ruleToldOnce, "key %s made release %d, its publisher is told %d (replayed: %v)", key, made, p.Number, p.Replayed)
	}
}

// notPublished sees the error that a publisher got. A key that had made a release
// before the request is answered with that release, or with an error after which the
// same request is sent again.
func (c *check) notPublished(key string, used bool, err error) {
	var refusal *failure.Error
	if !used || !errors.As(err, &refusal) {
		return
	}
	switch refusal.Code {
	case content.CodeBusy, content.CodeUnavailable, content.CodeUnknownOutcome, content.CodeTooOften:
	default:
		c.w.violate(ruleReplayed, "key %s made release %d, its publisher is refused: %v", key, c.uses[useKey(key)], err)
	}
}

// end judges the world after the faults have ended and time went on.
func (c *check) end() {
	w := c.w
	for _, a := range c.order {
		releases := make([]int64, 0, len(a.duties))
		for release := range a.duties {
			releases = append(releases, release)
		}
		sort.Slice(releases, func(i, j int) bool { return releases[i] < releases[j] })
		for _, release := range releases {
			if d := a.duties[release]; !d.terminal() && !d.expired {
				w.violate(ruleEnds, "release %d for %s is still %s, long after the faults ended", release, a.name, d.status)
			}
		}
		holder := mapOf(a.slot["holder"])
		if cl := a.claims[textOf(holder["token"])]; cl != nil && cl.duty != nil && cl.duty.damaged {
			continue // it was ended without the slot's say; the next release settles it
		}
		if holder != nil && !a.damaged {
			w.violate(ruleSlotFree, "%s is still held for release %d under token %s", a.name, numberOf(holder["release"]), textOf(holder["token"]))
		}
	}
}
