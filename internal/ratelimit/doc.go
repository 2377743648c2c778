// Package ratelimit says whether one more call is within a limit of so many at
// once and so many a minute from then on.
//
// It promises that the whole state of a limit is one instant, so that it can be
// stored in a single attribute and written under the condition that it has not
// changed; that a caller who waits as long as [Limit.Take] says is allowed; and
// that no stored instant, however far ahead, refuses anybody for longer than a
// minute more than it takes to restore the whole burst.
//
// It is pure: clocks, storage and the words of a refusal are its callers'.
package ratelimit
