package store_test

import (
	"testing"

	"colophon/internal/store"
)

func TestAKeyThatRingsIsReadAsItWasMade(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pk, sk      string
		release     int64
		test        string
		destination string
	}{
		{"P#p1#D#d1", "R#000000000001", 1, "", "d1"},
		{"P#p1#D#d1", "R#999999999999", 999999999999, "", "d1"},
		{"P#p1#D#d1", "T#x", 0, "x", "d1"},
	} {
		d, release, test, ok := store.ParseRing(c.pk, c.sk)
		if !ok || d.Project != "p1" || d.ID != c.destination || release != c.release || test != c.test {
			t.Errorf("%s %s: %+v %d %q %v", c.pk, c.sk, d, release, test, ok)
		}
	}
	for _, k := range [][2]string{
		{"P#p1", "META"}, {"P#p1#D#d1", "SLOT"}, {"P#p1#D#d1", "SETTINGS"}, {"P#p1#D#d1", "LIMIT"}, {"P#p1#D#d1", "T#"},
		{"P#p1#D#d1", "R#000000000000"}, {"P#p1#D#d1", "R#1"}, {"P#p1#D#d1", "R#00000000000a"}, {"P#p1#D#d1", "R#-00000000001"},
		{"P#p1#D#d1", "R#0000000000001"}, {"P#p1#D#", "R#000000000001"}, {"P##D#d1", "R#000000000001"},
		{"P#p#1#D#d1", "R#000000000001"}, {"P#p1#D#d#1", "T#x"}, {"p1#D#d1", "R#000000000001"}, {"", ""},
	} {
		if d, release, test, ok := store.ParseRing(k[0], k[1]); ok {
			t.Errorf("%s %s is read as %+v %d %q", k[0], k[1], d, release, test)
		}
	}
}
