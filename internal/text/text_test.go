package text_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"colophon/internal/text"
)

// tags writes a text in tag characters, which nobody sees.
func tags(s string) string {
	var b strings.Builder
	for _, c := range s {
		b.WriteRune(0xE0000 + c)
	}
	return b.String()
}

const (
	flag   = "\U0001F3F4"
	endTag = "\U000E007F"
)

func TestATextPassesOrIsRefusedByItsCharacters(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text  string
		line, prose bool
	}{
		{"nothing", "", true, true},
		{"ASCII", "Opening hours: 9-17, #1 <&>", true, true},
		{"umlauts, composed and not", "Café, Cafe\u0301", true, true},
		{"Arabic with its marks", "\u200fمرحبا\u200e (RLM, LRM)\u061c", true, true},
		{"Persian with a zero width non-joiner", "می\u200cخواهم", true, true},
		{"a family, joined", "👨\u200d👩\u200d👧\ufe0f", true, true},
		{"a flag of two letters", "🇩🇪", true, true},
		{"a flag of a country's part", flag + tags("gbeng") + endTag, true, true},
		{"two such flags", flag + tags("gbsct") + endTag + flag + tags("usca") + endTag + "!", true, true},
		{"a black flag", "a " + flag + " flag", true, true},
		{"a pirate's", flag + "\u200d☠\ufe0f", true, true},
		{"line ends and tabs", "One\n\tTwo", false, true},
		{"a carriage return", "One\rTwo", false, false},
		{"a null", "a\x00", false, false},
		{"delete", "a\x7f", false, false},
		{"a C1 control", "a\u0085", false, false},
		{"what is not UTF-8", "caf\xe9", false, false},
		{"a surrogate in UTF-8", "\xed\xa0\x80", false, false},
		{"what stands for lost bytes", "caf\ufffd", false, false},
		{"a flag whose end is cut off", flag + tags("gbeng"), false, false},
		{"a flag without a code", flag + endTag, false, false},
		{"a flag with a short code", flag + tags("gb") + endTag, false, false},
		{"a flag with a message in it", flag + tags("ignoreall") + endTag, false, false},
		{"a flag with other tags", flag + tags("GBENG") + endTag, false, false},
		{"a flag that ends twice", flag + tags("gbeng") + endTag + endTag, false, false},
		{"tags behind something else", "🏁" + tags("gbeng") + endTag, false, false},
		{"tags alone", tags("hidden"), false, false},
	} {
		for kind, passes := range map[text.Kind]bool{text.Line: c.line, text.Prose: c.prose} {
			if wrong := text.Check(c.text, kind); (wrong == "") != passes {
				t.Errorf("%s, kind %d: %q", c.name, kind, wrong)
			}
		}
	}
}

// between names all characters from one to another.
func between(from, to rune) (all []rune) {
	for r := from; r <= to; r++ {
		all = append(all, r)
	}
	return all
}

func TestHiddenCharactersAreRefusedOneByOne(t *testing.T) {
	t.Parallel()
	never := map[rune]bool{0xFFFD: true}
	for _, r := range [][]rune{
		between(0x202A, 0x202E), between(0x2066, 0x2069), between(0x2028, 0x2029), between(0xFFF9, 0xFFFB), between(0xE0000, 0xE007F),
		between(0, '\t'-1), between('\n'+1, 0x1f), between(0x7f, 0x9f),
	} {
		for _, one := range r {
			never[one] = true
		}
	}
	inProse := map[rune]bool{'\n': true, '\t': true, 0x200B: true, 0x00AD: true, 0xFEFF: true}
	for _, one := range between(0x2060, 0x2064) {
		inProse[one] = true
	}
	for r := range rune(utf8.MaxRune + 1) {
		if !utf8.ValidRune(r) {
			continue
		}
		s := "a" + string(r) + "b"
		if got, want := text.Check(s, text.Prose) == "", !never[r]; got != want {
			t.Errorf("%U in prose passes: %v", r, got)
		}
		if got, want := text.Check(s, text.Line) == "", !never[r] && !inProse[r]; got != want {
			t.Errorf("%U in a line passes: %v", r, got)
		}
	}
}

func FuzzATextThatPassesHidesNothing(f *testing.F) {
	for _, s := range []string{"", "a", "\xff", "\ufffd", flag, flag + tags("gbeng") + endTag, flag + tags("g") + flag, "\u202e", "a\nb"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if text.Check(s, text.Line) != "" {
			return
		}
		if wrong := text.Check(s, text.Prose); wrong != "" {
			t.Errorf("%q is fit for a line and not for prose: %s", s, wrong)
		}
		if !utf8.ValidString(s) || strings.ContainsAny(s, "\ufffd\u202e\u2067\u2028\u200b\ufeff\x00\n") {
			t.Errorf("%q passes", s)
		}
		// Whatever tags there are belong to a flag that people see.
		for at, r := range s {
			if r >= 0xE0000 && r <= 0xE007F && !strings.Contains(s[:at], flag) {
				t.Errorf("%q passes", s)
			}
		}
	})
}
