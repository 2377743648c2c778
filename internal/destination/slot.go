package destination

import (
	"slices"
	"time"

	"colophon/internal/delivery"
)

// pause says how a destination is paused; nil: it is.
func pause(h Holding) (*Switching, error) {
	if err := inUse(h); err != nil || h.Slot.State == delivery.SlotPaused {
		return nil, err
	}
	return &Switching{From: delivery.SlotActive, To: delivery.SlotPaused, By: delivery.PausedByPerson}, nil
}

// resume says how a destination takes deliveries again; nil: it does.
func resume(h Holding) (*Switching, error) {
	if err := inUse(h); err != nil || h.Slot.State == delivery.SlotActive {
		return nil, err
	}
	return &Switching{From: delivery.SlotPaused, To: delivery.SlotActive}, nil
}

// undelivered says whether the newest release ended without having been
// delivered, so that only a redelivery sends it.
func undelivered(newest delivery.Delivery) bool {
	return newest.Fault == "" && newest.Status.Terminal() && newest.Result().Status != delivery.Delivered
}

// add says how a project gets a destination more.
func add(p *Project, d delivery.Destination, s delivery.Settings) (Adding, error) {
	switch {
	case p == nil:
		return Adding{}, errNoProject()
	case len(p.Destinations) >= MostDestinations:
		return Adding{}, refuse(CodeTooMany, "This project has %d destinations, which is the limit. Remove one first.", MostDestinations)
	}
	return Adding{
		Destination: d, ProjectVersion: p.Version, IDs: append(slices.Clone(p.Destinations), d.ID), Settings: s,
	}, nil
}

// remove says how a project loses a destination; nil: it was removed before.
func remove(p *Project, d delivery.Destination, h Holding, now time.Time) (*Removing, error) {
	switch {
	case p == nil:
		return nil, errNoProject()
	case !slices.Contains(p.Destinations, d.ID) && h.Slot.Version == 0 && !h.Slot.Unreadable:
		return nil, errNotFound()
	case !slices.Contains(p.Destinations, d.ID):
		return nil, nil
	}
	return &Removing{
		Destination: d, ProjectVersion: p.Version, At: now, Damaged: damaged(h),
		IDs: slices.DeleteFunc(slices.Clone(p.Destinations), func(id string) bool { return id == d.ID }),
	}, nil
}

// damaged says whether a destination in use is not what it should be.
func damaged(h Holding) bool {
	return h.Slot.Unreadable || h.Slot.Version == 0 || h.Settings.Version == 0
}

func errNoProject() *Error { return refuse(CodeNotFound, "There is no such project.") }
