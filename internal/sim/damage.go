package sim

import (
	"maps"
	"strconv"
	"strings"
	"time"

	"colophon/internal/delivery"
	"colophon/internal/store"
)

// damage makes an item what it should not be, as a person at a console does. It
// says what it did; empty: nothing could be done.
func (t *tables) damage(k store.Key) string {
	c := t.table(t.delivery).find(k)
	if c == nil || c.lock != nil || c.item == nil || c.item["expiresAt"] != nil {
		return ""
	}
	item := maps.Clone(c.item)
	kinds := []func() string{
		func() string { delete(item, "body"); return "its body is gone" },
		func() string { item["tries"] = store.Text("x"); return "its tries are no number" },
		func() string { delete(item, "webhookId"); return "its id is gone" },
		func() string { item["status"] = store.Text("odd"); return "its status is none" },
		func() string { delete(item, "attempts"); return "its attempts are gone" },
		func() string { item["round"] = store.Number(-1); return "its round is below zero" },
	}
	if k.SK == "SLOT" {
		kinds = []func() string{
			func() string { item["version"] = store.Text("x"); return "its version is no number" },
			func() string { item["state"] = store.Text("odd"); return "its state is none" },
		}
	}
	what := kinds[t.w.choices.below(faultDamage, len(kinds))]()
	c.item = item
	return what
}

// dress makes a delivery one of a newer build, or of this one again.
func (t *tables) dress(k store.Key, version int64) bool {
	c := t.table(t.delivery).find(k)
	if c == nil || c.lock != nil || c.item == nil {
		return false
	}
	c.item = maps.Clone(c.item)
	c.item["v"] = store.Number(version)
	return true
}

// damagedAt says whether somebody damaged an item, or the slot beside it.
func (c *check) damagedAt(k store.Key) bool {
	a := c.byKey(k.PK)
	release, _ := strconv.ParseInt(strings.TrimPrefix(k.SK, "R#"), 10, 64)
	d := a.duties[release]
	return a.damaged || d != nil && d.damaged
}

// damaged says whether anything of a destination is.
func (c *check) damaged(d delivery.Destination) bool {
	a := c.at(d)
	for _, duty := range a.duties {
		if duty.damaged {
			return true
		}
	}
	return a.damaged
}

// mended sees a change of a damaged delivery.
func (c *check) mended(origin *task, a *address, d *duty, ch *change) {
	w := c.w
	was, is := d.terminal(), delivery.Status(textOf(ch.new["status"]))
	d.status = string(is)
	switch {
	case was && !is.Terminal() && origin.asked != nil: // its end has mended it: it can be sent again
		c.pending++
	case was && !is.Terminal():
		w.violate(ruleEnd, "%s moves release %d for %s on, which is damaged and has ended", origin.process.name, d.release, a.name)
	case !was && is.Terminal():
		c.pending--
		if is == delivery.Delivered { // it was damaged while it was being sent
			a.delivered = max(a.delivered, d.release)
		}
		w.tell("%s ends release %d for %s, which is damaged: %s %s", origin.process.name, d.release, a.name, is, textOf(ch.new["reason"]))
	}
}

// damage plans what is done to a new delivery or to its slot, if anything is.
func (c *check) damage(d *duty, k store.Key) {
	w := c.w
	if !w.happens(faultDamage) {
		return
	}
	switch w.choices.below(faultDamage, 6) {
	case 4: // a deploy is under way: its readers come later
		w.calendar.add(event{at: w.now, do: func() {
			if w.tables.dress(k, 2) {
				w.tell("release %d for %s is of a newer build", d.release, d.of.name)
				w.dressed = append(w.dressed, k)
			}
		}})
	case 5:
		slot := store.Key{PK: k.PK, SK: "SLOT"}
		w.calendar.add(event{at: w.now + c.when(), do: func() {
			if what := w.tables.damage(slot); what != "" {
				w.tell("somebody damages the slot of %s: %s", d.of.name, what)
				d.of.damaged = true
				for _, other := range d.of.duties { // they are ended without the slot's say
					other.damaged = true
				}
			}
		}})
	default:
		w.calendar.add(event{at: w.now + c.when(), do: func() {
			if what := w.tables.damage(k); what != "" {
				w.tell("somebody damages release %d for %s: %s", d.release, d.of.name, what)
				d.damaged = true
			}
		}})
	}
}

func (c *check) when() moment {
	return [...]moment{0, 100 * time.Millisecond, 10 * time.Second, time.Minute, 10 * time.Minute}[c.w.choices.below(faultDamage, 5)]
}
