// Package destination is what people do about a project's destinations and
// their deliveries: add, change, rotate, pause, resume and remove a destination;
// redeliver, try now, send a test and have a destination examined; and read what
// became of them.
//
// It promises that each action is one transaction that is refused where what
// was read no longer holds, and that a refusal says in plain words what to do
// next ([Error]). What is written is decided by pure functions of what was read.
//
// I2: nothing here writes over a delivery that has not ended, and a redelivery
// starts a new round, so that a result of an older one is refused. I3: an older
// release is sent again only by force, over the newest release that the person
// saw. I5: a redelivery rings and stands in the sweep index like a new delivery.
// I6: an address is judged by internal/egress before it is stored, and secrets
// are sealed before they are: this package can make them, not read them.
//
// It leaves the conditional writes to internal/store, sending to
// internal/delivery, and who may ask to internal/access.
package destination
