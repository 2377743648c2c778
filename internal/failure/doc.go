// Package failure is the one vocabulary of what can go wrong: the [Error] that a
// person can act on, and the outcomes of a call to the tables that did not simply
// succeed.
//
// A store wraps exactly one outcome around each error where calling again can
// help. The rules compare with errors.Is, and internal/httpapi turns an Error
// into an answer: nothing in between translates.
package failure
