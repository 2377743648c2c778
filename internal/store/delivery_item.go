package store

import (
	"fmt"
	"sort"
	"strconv"
	"time"

	"colophon/internal/delivery"
)

// The attributes of the delivery table's items.
const (
	attrFormat     = "v" // of the item and its body; a reader waits on one that it does not know
	attrStatus     = "status"
	attrReason     = "reason"
	attrSuccessor  = "successor"
	attrRound      = "round"
	attrRev        = "rev"
	attrWebhookID  = "webhookId"
	attrBody       = "body"
	attrFirstTryAt = "firstTryAt"
	attrTryAt      = "tryAt"
	attrTries      = "tries"
	attrLost       = "lost"
	attrOurs       = "ours"
	attrAttempts   = "attempts"
	attrNumbered   = "numbered"
	attrForce      = "force"
	attrAsked      = "asked"
	attrUsed       = "used"
	attrSweeps     = "sweeps"
	attrRing       = "ring"
	attrCreatedAt  = "createdAt"
	attrEndedAt    = "endedAt"
	attrBefore     = "before"
	attrExpiresAt  = "expiresAt"

	attrCount = "count"
	attrSince = "since"
	attrOver  = "over"

	attrBy       = "by"
	attrAt       = "at"
	attrElapsed  = "elapsed"
	attrClass    = "class"
	attrDetail   = "detail"
	attrReceived = "received"
	attrLate     = "late"

	attrState            = "state"
	attrPausedBy         = "pausedBy"
	attrVersion          = "version"
	attrHolder           = "holder"
	attrToken            = "token"
	attrRelease          = "release"
	attrAttempt          = "attempt"
	attrUntil            = "until"
	attrLast             = "last"
	attrWaiting          = "waiting"
	attrSentThrough      = "sentThrough"
	attrDeliveredThrough = "deliveredThrough"
	attrSlow             = "slow"

	attrName          = "name"
	attrURL           = "url"
	attrSecret        = "secret"
	attrPrevious      = "previous"
	attrPreviousUntil = "previousUntil"
	attrHeaders       = "headers"
	attrHeaderNames   = "headerNames"
	attrSeal          = "seal"              // the context of each sealed attribute, by its name; missing: the first
	attrOlder         = "olderSecrets"      // the secrets before "previous", the newest first
	attrFingerprint   = "secretFingerprint" // recognizes the current secret
	attrUpdatedAt     = "updatedAt"
)

// deliveryFormat is the version of delivery items and their bodies that is
// written; every one up to it is read.
const deliveryFormat = 1

func deliveryKey(k delivery.Key) Key {
	return Key{PK: destinationPK(k.Project, k.ID), SK: releaseSK(k.Release)}
}

func slotKey(d delivery.Destination) Key {
	return Key{PK: destinationPK(d.Project, d.ID), SK: skSlot}
}

func settingsKey(d delivery.Destination) Key {
	return Key{PK: destinationPK(d.Project, d.ID), SK: skSettings}
}

// putDelivery writes a new delivery, if there is none, and rings for it.
func putDelivery(table string, d delivery.Delivery, ring time.Time) Write {
	item := encodeDelivery(d)
	item[attrRing] = millis(ring)
	return Write{Table: table, Key: deliveryKey(d.Key), Put: item, If: Absent(At(attrPK))}
}

// encodeDelivery gives the whole item but its key and ring. A terminal delivery
// expires and is in no sweep; any other is in the sweep index.
func encodeDelivery(d delivery.Delivery) Item {
	item := Item{
		attrFormat:    Number(deliveryFormat),
		attrStatus:    Text(string(d.Status)),
		attrRound:     Number(d.Round),
		attrRev:       Number(d.Rev),
		attrWebhookID: Text(d.WebhookID),
		attrBody:      Text(string(d.Body)),
		attrTryAt:     millis(d.TryAt),
		attrTries:     Number(d.Tries),
		attrNumbered:  Number(d.Numbered),
		attrCreatedAt: millis(d.CreatedAt),
	}
	attempts := make(Item, len(d.Attempts))
	for _, a := range d.Attempts {
		attempts[strconv.FormatInt(a.Number, 10)] = encodeAttempt(a)
	}
	item[attrAttempts] = Map(attempts)
	optional := func(name string, there bool, v Value) {
		if there {
			item[name] = v
		}
	}
	optional(attrReason, d.Reason != "", Text(string(d.Reason)))
	optional(attrSuccessor, d.Successor > 0, Number(d.Successor))
	optional(attrFirstTryAt, !d.FirstTryAt.IsZero(), millis(d.FirstTryAt))
	optional(attrLost, d.Lost > 0, Number(d.Lost))
	optional(attrOurs, d.Ours.Count > 0, encodeOurs(d.Ours))
	optional(attrForce, d.Forced(), Map(Item{attrOver: Number(d.Over)}))
	optional(attrAsked, d.Asked > 0, durationMillis(d.Asked))
	optional(attrUsed, d.Used > 0, durationMillis(d.Used))
	if d.Before != nil {
		item[attrBefore] = encodeResult(*d.Before)
	}
	if d.Status.Terminal() {
		item[attrEndedAt] = millis(d.EndedAt)
		item[attrExpiresAt] = seconds(d.EndedAt.Add(delivery.RetentionTime))
		return item
	}
	item[attrSweepShard] = Number(sweepShard(d.Project, d.ID, d.Release))
	item[attrSweepAt] = millis(d.SweepAt)
	optional(attrSweeps, d.Sweeps > 0, Number(d.Sweeps))
	return item
}

func encodeResult(r delivery.Result) Value {
	item := Item{attrStatus: Text(string(r.Status)), attrRound: Number(r.Round), attrAt: millis(r.At)}
	if r.Reason != "" {
		item[attrReason] = Text(string(r.Reason))
	}
	if r.Successor > 0 {
		item[attrSuccessor] = Number(r.Successor)
	}
	return Map(item)
}

func encodeOurs(o delivery.Ours) Value {
	return Map(Item{attrCount: Number(o.Count), attrSince: millis(o.Since)})
}

func encodeAttempt(a delivery.Attempt) Value {
	item := Item{
		attrRound:    Number(a.Round),
		attrToken:    Text(a.Token),
		attrBy:       Text(string(a.By)),
		attrAt:       millis(a.At),
		attrElapsed:  durationMillis(a.Elapsed),
		attrClass:    Text(string(a.Class)),
		attrReceived: Text(string(a.Received)),
	}
	if a.Status > 0 {
		item[attrStatus] = Number(int64(a.Status))
	}
	if a.Detail != "" {
		item[attrDetail] = Text(a.Detail)
	}
	if a.Asked > 0 {
		item[attrAsked] = durationMillis(a.Asked)
	}
	if a.Used > 0 {
		item[attrUsed] = durationMillis(a.Used)
	}
	if a.Late != "" {
		item[attrLate] = Text(a.Late)
	}
	return Map(item)
}

// decodeDelivery reads a delivery item. It always returns what could be read:
// with a Fault where that is not all of it.
func decodeDelivery(key delivery.Key, item Item) *delivery.Delivery {
	a := &attributes{item: item}
	format := a.positive(attrFormat)
	d := &delivery.Delivery{Key: key, Status: delivery.Status(a.text(attrStatus)), Rev: a.optionalCount(attrRev)}
	if format > deliveryFormat { // whatever else is in it: a newer build may have new states
		d.Fault = delivery.FaultUnknownVersion
		return d
	}
	switch d.Status {
	case delivery.Queued, delivery.Retrying, delivery.Delivered, delivery.Failed, delivery.Skipped:
	default:
		a.wrong(attrStatus, "a state of a delivery")
	}
	d.Reason = delivery.Reason(a.optionalText(attrReason))
	d.Successor = a.optionalCount(attrSuccessor)
	d.Round = a.positive(attrRound)
	d.WebhookID = a.text(attrWebhookID)
	d.Body = []byte(a.text(attrBody))
	d.FirstTryAt = a.optionalTime(attrFirstTryAt)
	d.TryAt = a.time(attrTryAt)
	d.Tries = a.count(attrTries)
	d.Lost = a.optionalCount(attrLost)
	d.Numbered = a.count(attrNumbered)
	d.Asked = a.optionalDuration(attrAsked)
	d.Used = a.optionalDuration(attrUsed)
	d.SweepAt = a.optionalTime(attrSweepAt)
	d.Sweeps = a.optionalCount(attrSweeps)
	d.CreatedAt = a.time(attrCreatedAt)
	d.EndedAt = a.optionalTime(attrEndedAt)
	if a.has(attrOurs) {
		a.within(attrOurs, func(a *attributes) {
			d.Ours = delivery.Ours{Count: a.count(attrCount), Since: a.time(attrSince)}
		})
	}
	if a.has(attrForce) {
		a.within(attrForce, func(a *attributes) { d.Over = a.positive(attrOver) })
	}
	if a.has(attrBefore) {
		a.within(attrBefore, func(a *attributes) {
			d.Before = &delivery.Result{
				Status: delivery.Status(a.text(attrStatus)), Reason: delivery.Reason(a.optionalText(attrReason)),
				Successor: a.optionalCount(attrSuccessor), Round: a.positive(attrRound), At: a.time(attrAt),
			}
		})
	}
	a.within(attrAttempts, func(a *attributes) { d.Attempts = decodeAttempts(a) })
	if a.fault == nil && (d.WebhookID == "" || len(d.Body) == 0) {
		a.wrong(attrBody, "there")
	}
	if a.fault != nil {
		d.Fault = delivery.FaultUnreadable
	}
	return d
}

func decodeAttempts(a *attributes) []delivery.Attempt {
	attempts := make([]delivery.Attempt, 0, len(a.item))
	for name := range a.item {
		number, err := strconv.ParseInt(name, 10, 64)
		if err != nil || number < 1 {
			a.wrong(name, "an attempt's number")
			return nil
		}
		a.within(name, func(a *attributes) {
			attempts = append(attempts, decodeAttempt(number, a))
		})
	}
	sort.Slice(attempts, func(i, j int) bool { return attempts[i].Number < attempts[j].Number })
	return attempts
}

func decodeAttempt(number int64, a *attributes) delivery.Attempt {
	return delivery.Attempt{
		Number:   number,
		Round:    a.positive(attrRound),
		Token:    a.text(attrToken),
		By:       delivery.Writer(a.text(attrBy)),
		At:       a.time(attrAt),
		Elapsed:  a.optionalDuration(attrElapsed),
		Class:    delivery.Class(a.text(attrClass)),
		Status:   int(a.optionalCount(attrStatus)),
		Detail:   a.optionalText(attrDetail),
		Received: delivery.Receipt(a.text(attrReceived)),
		Asked:    a.optionalDuration(attrAsked),
		Used:     a.optionalDuration(attrUsed),
		Late:     a.optionalText(attrLate),
	}
}

// encodeSlot gives a slot's whole item but its key.
func encodeSlot(s delivery.Slot) Item {
	item := Item{attrState: Text(string(s.State)), attrVersion: Number(s.Version)}
	if s.PausedBy != "" {
		item[attrPausedBy] = Text(string(s.PausedBy))
	}
	if s.Holder != nil {
		item[attrHolder] = encodeHolder(*s.Holder)
	}
	if s.LastRelease > 0 {
		item[attrLast] = encodeLast(s.LastRelease, s.LastRev)
	}
	for name, n := range map[string]int64{
		attrWaiting: s.Waiting, attrSentThrough: s.SentThrough, attrDeliveredThrough: s.DeliveredThrough,
	} {
		if n > 0 {
			item[name] = Number(n)
		}
	}
	if s.Slow {
		item[attrSlow] = Flag(true)
	}
	return item
}

func encodeHolder(h delivery.Holder) Value {
	return Map(Item{
		attrToken: Text(h.Token), attrRelease: Number(h.Release), attrRound: Number(h.Round),
		attrAttempt: Number(h.Attempt), attrSince: millis(h.Since), attrUntil: millis(h.Until),
	})
}

func encodeLast(release, rev int64) Value {
	return Map(Item{attrRelease: Number(release), attrRev: Number(rev)})
}

// longestLease is longer than that of any build: a lease that goes on for longer
// was not written by one, and would keep its destination waiting until then.
const longestLease = time.Hour

// decodeSlot reads a slot; nil counts as removed.
func decodeSlot(item Item) (delivery.Slot, error) {
	if item == nil {
		return delivery.Slot{State: delivery.SlotRemoved}, nil
	}
	a := &attributes{item: item}
	s := delivery.Slot{
		State:            delivery.SlotState(a.text(attrState)),
		PausedBy:         delivery.PausedBy(a.optionalText(attrPausedBy)),
		Version:          a.positive(attrVersion),
		Waiting:          a.optionalCount(attrWaiting),
		SentThrough:      a.optionalCount(attrSentThrough),
		DeliveredThrough: a.optionalCount(attrDeliveredThrough),
		Slow:             a.flag(attrSlow),
	}
	switch s.State {
	case delivery.SlotActive, delivery.SlotPaused, delivery.SlotRemoved:
	default:
		a.wrong(attrState, "a state of a destination")
	}
	if a.has(attrHolder) {
		a.within(attrHolder, func(a *attributes) {
			s.Holder = &delivery.Holder{
				Token: a.text(attrToken), Release: a.positive(attrRelease), Round: a.positive(attrRound),
				Attempt: a.positive(attrAttempt), Since: a.time(attrSince), Until: a.time(attrUntil),
			}
			if s.Holder.Until.Sub(s.Holder.Since) > longestLease {
				a.wrong(attrUntil, "within an hour of when the lease began")
			}
		})
	}
	if a.has(attrLast) {
		a.within(attrLast, func(a *attributes) {
			s.LastRelease, s.LastRev = a.positive(attrRelease), a.count(attrRev)
		})
	}
	if a.fault != nil {
		return s, fmt.Errorf("slot: %w", a.fault)
	}
	return s, nil
}

// encodeSettings gives a destination's settings' whole item but its key. The
// newest previous secret has attributes of its own, from when there was only one.
func encodeSettings(s delivery.Settings) Item {
	item := Item{
		attrName: Text(s.Name), attrURL: Text(s.URL), attrSecret: Bytes(s.Secret.Bytes),
		attrCreatedAt: millis(s.CreatedAt), attrUpdatedAt: millis(s.UpdatedAt), attrVersion: Number(s.Version),
	}
	seals := Item{}
	sealed := func(name string, v delivery.Sealed) {
		item[name] = Bytes(v.Bytes)
		if v.Context != delivery.SealedForDestination {
			seals[name] = Number(int64(v.Context))
		}
	}
	sealed(attrSecret, s.Secret)
	if len(s.SecretFingerprint) > 0 {
		item[attrFingerprint] = Bytes(s.SecretFingerprint)
	}
	if len(s.Previous) > 0 {
		sealed(attrPrevious, s.Previous[0].Sealed)
		item[attrPreviousUntil] = millis(s.Previous[0].Until)
	}
	if len(s.Previous) > 1 {
		older := make([]Value, 0, len(s.Previous)-1)
		for _, p := range s.Previous[1:] {
			older = append(older, Map(Item{
				attrSecret: Bytes(p.Bytes), attrSeal: Number(int64(p.Context)), attrUntil: millis(p.Until),
			}))
		}
		item[attrOlder] = List(older)
	}
	if !s.Headers.IsZero() {
		sealed(attrHeaders, s.Headers)
		item[attrHeaderNames] = Texts(s.HeaderNames)
	}
	if len(seals) > 0 {
		item[attrSeal] = Map(seals)
	}
	return item
}

// decodeSettings reads settings; a removed destination's tombstone has no url
// and no secret.
func decodeSettings(item Item) (delivery.Settings, error) {
	if item == nil {
		return delivery.Settings{}, nil
	}
	a := &attributes{item: item}
	s := delivery.Settings{
		Name: a.optionalText(attrName), URL: a.optionalText(attrURL), Secret: decodeSealed(a, attrSecret),
		SecretFingerprint: a.optionalBytes(attrFingerprint),
		Headers:           decodeSealed(a, attrHeaders), HeaderNames: a.optionalTexts(attrHeaderNames),
		CreatedAt: a.time(attrCreatedAt), UpdatedAt: a.time(attrUpdatedAt), Version: a.positive(attrVersion),
	}
	if previous := decodeSealed(a, attrPrevious); !previous.IsZero() {
		s.Previous = append(s.Previous, delivery.PreviousSecret{Sealed: previous, Until: a.time(attrPreviousUntil)})
	}
	a.eachIn(attrOlder, func(a *attributes) {
		s.Previous = append(s.Previous, delivery.PreviousSecret{
			Sealed: delivery.Sealed{Bytes: a.optionalBytes(attrSecret), Context: delivery.SealContext(a.positive(attrSeal))},
			Until:  a.time(attrUntil),
		})
	})
	if a.fault != nil {
		return s, fmt.Errorf("settings: %w", a.fault)
	}
	return s, nil
}

// decodeSealed reads a sealed attribute with the context that "seal" names for it.
func decodeSealed(a *attributes, name string) delivery.Sealed {
	sealed := delivery.Sealed{Bytes: a.optionalBytes(name)}
	if sealed.IsZero() {
		return sealed
	}
	sealed.Context = delivery.SealedForDestination
	if a.has(attrSeal) {
		a.within(attrSeal, func(a *attributes) {
			if a.has(name) {
				sealed.Context = delivery.SealContext(a.positive(name))
			}
		})
	}
	return sealed
}
