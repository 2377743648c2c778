package text

import (
	"fmt"
	"unicode"
	"unicode/utf8"
)

// Kind is what a text is for.
type Kind int

const (
	// Line is a text of one line that identifies something: a name, a path, an
	// address. Two of them that look alike should be alike.
	Line Kind = iota
	// Prose is a text that is only read: a message. It may hold line ends and tabs.
	Prose
)

// hidden are the characters that no text may hold: they change the direction or
// the lines of what follows, or annotate it where nobody sees it.
var hidden = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x2028, Hi: 0x2029, Stride: 1}, // line and paragraph separator
		{Lo: 0x202A, Hi: 0x202E, Stride: 1}, // directional embeddings and overrides
		{Lo: 0x2066, Hi: 0x2069, Stride: 1}, // directional isolates
		{Lo: 0xFFF9, Hi: 0xFFFB, Stride: 1}, // interlinear annotations
	},
	R32: []unicode.Range32{
		{Lo: firstTag, Hi: lastTag, Stride: 1}, // but in an emoji flag
	},
}

// hiddenInLines are those that a Line may not hold either: with them two names
// that look alike differ.
var hiddenInLines = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x00AD, Hi: 0x00AD, Stride: 1}, // soft hyphen
		{Lo: 0x200B, Hi: 0x200B, Stride: 1}, // zero width space
		{Lo: 0x2060, Hi: 0x2064, Stride: 1}, // word joiner, invisible operators
		{Lo: 0xFEFF, Hi: 0xFEFF, Stride: 1}, // byte order mark
	},
	LatinOffset: 1,
}

// Check says what is wrong with a text, as the end of a sentence that begins
// with what it is ("The name …"), without a full stop. It is empty where nothing
// is wrong.
func Check(s string, kind Kind) (wrong string) {
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError:
			return "holds bytes that are not UTF-8, or the character U+FFFD, which stands for such bytes: something on its way took it for another encoding. Send it as UTF-8"
		case unicode.IsControl(r) && !(kind == Prose && (r == '\n' || r == '\t')):
			return "holds a control character. Take it out"
		case r == blackFlag:
			size = flagLength(s[i:])
		case unicode.Is(hidden, r), kind == Line && unicode.Is(hiddenInLines, r):
			return fmt.Sprintf("holds the character %U, which cannot be seen or changes how others are shown. Take it out", r)
		}
		i += size
	}
	return ""
}

// An emoji flag of a part of a country is a black flag, the part's code in tags
// and a last tag (UTS #51, annex B; UTS #35 on the codes of subdivisions).
const (
	blackFlag    = 0x1F3F4
	firstTag     = 0xE0000
	lastTag      = 0xE007F // ends a sequence
	shortestCode = 3
	longestCode  = 7
)

// flagLength is how many bytes the flag that a text begins with has: its tags
// too, where they are a code and its end.
func flagLength(s string) int {
	end := utf8.RuneLen(blackFlag)
	for n := 0; ; n++ {
		r, size := utf8.DecodeRuneInString(s[end:])
		end += size
		letter := r-firstTag >= 'a' && r-firstTag <= 'z'
		digit := r-firstTag >= '0' && r-firstTag <= '9'
		switch {
		case r == lastTag && n >= shortestCode:
			return end
		case !letter && !digit, n == longestCode:
			return utf8.RuneLen(blackFlag) // the tags, if there are any, are judged on their own
		}
	}
}
