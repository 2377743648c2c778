package content

import "colophon/internal/failure"

// Explain makes a store's error one that a person can act on.
func Explain(doing string, err error) error { return failure.Explain(doing, err) }
