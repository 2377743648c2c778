package destination

import (
	"time"

	"colophon/internal/delivery"
)

// shown is a destination as people see it.
func shown(project string, h Holding, now time.Time) Destination {
	d := Destination{
		Project: project, ID: h.ID, Name: h.Settings.Name, URL: h.Settings.URL,
		State: h.Slot.State, PausedBy: h.Slot.PausedBy, HeaderNames: h.Settings.HeaderNames,
		Slow: h.Slot.Slow, Damaged: h.Slot.Unreadable || h.Settings.Version == 0,
		SentThrough: h.Slot.SentThrough, DeliveredThrough: h.Slot.DeliveredThrough,
		Version: h.Settings.Version, CreatedAt: h.Settings.CreatedAt, UpdatedAt: h.Settings.UpdatedAt,
	}
	if h.Slot.Holder != nil && sends(h.Slot, h.Slot.Holder.Release, now) {
		d.Sending = h.Slot.Holder.Release
	}
	for _, previous := range signing(h.Settings.Previous, now) {
		d.PreviousSecrets = append(d.PreviousSecrets, previous.Until)
	}
	if len(d.PreviousSecrets) > 0 {
		d.PreviousUntil = d.PreviousSecrets[0]
	}
	return d
}

// shownDelivery is a delivery as people see it.
func shownDelivery(d delivery.Delivery, h Holding, newest int64, now time.Time) Delivery {
	out := Delivery{Delivery: d, Destination: shown(d.Project, h, now), Newest: newest}
	if !d.Status.Terminal() && sends(h.Slot, d.Release, now) {
		out.Sending, out.Attempt, out.Since = true, h.Slot.Holder.Attempt, h.Slot.Holder.Since
	}
	return out
}

// replaced names the releases that were skipped for this one, of its older
// neighbours, newest first.
func replaced(release int64, older []delivery.Delivery) []int64 {
	var releases []int64
	for _, d := range older {
		if d.Status == delivery.Skipped && d.Successor == release && len(releases) < MostReplaced {
			releases = append(releases, d.Release)
		}
	}
	return releases
}
