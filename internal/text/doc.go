// Package text checks the texts that people send: names, messages, paths.
//
// It promises one rule for all of them, in one place ([Check]): a text is UTF-8
// that shows what it holds. Bytes that were lost on the way are refused, and so
// are characters that cannot be seen or that show other characters in another
// order than the one in which programs read them. What scripts and emoji need
// passes.
//
// It leaves lengths, and what a path or a name may look like otherwise, to those
// whose texts they are. It checks what is new: what is stored already is read and
// deleted without it.
package text
