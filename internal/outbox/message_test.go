package outbox_test

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"colophon/internal/delivery"
	"colophon/internal/outbox"
)

func destination(id string) delivery.Destination { return delivery.Destination{Project: "p1", ID: id} }

func TestAMessageIsKeysAndATraceIDAndNothingElse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		message outbox.Message
		want    string
	}{
		{
			outbox.Message{Destination: destination("d1"), Release: 6, Trace: "1-5f-ab"},
			`{"v":1,"project":"p1","destination":"d1","release":6,"trace":"1-5f-ab"}`,
		},
		{
			outbox.Message{Destination: destination("d1"), Test: "t1"},
			`{"v":1,"project":"p1","destination":"d1","test":"t1"}`,
		},
	} {
		got, err := c.message.Encode()
		if err != nil || got != c.want {
			t.Errorf("got %s, %v; want %s", got, err, c.want)
		}
	}
}

func TestEveryMessageReadsAsItWasWritten(t *testing.T) {
	t.Parallel()
	id := rapid.StringMatching(`[A-Za-z0-9_-]{1,64}`)
	rapid.Check(t, func(t *rapid.T) {
		m := outbox.Message{
			Destination: delivery.Destination{Project: id.Draw(t, "project"), ID: id.Draw(t, "destination")},
			Trace:       rapid.StringMatching(`([A-Za-z0-9_=:;.-]{1,128})?`).Draw(t, "trace"),
		}
		if rapid.Bool().Draw(t, "test") {
			m.Test = id.Draw(t, "id")
		} else {
			m.Release = rapid.Int64Min(1).Draw(t, "release")
		}
		body, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := outbox.Decode(body); err != nil || got != m {
			t.Fatalf("%s: got %+v, %v; want %+v", body, got, err, m)
		}
	})
}

func TestAMessageOfANewerVersionWaitsAndIsNotTakenForAnUnreadableOne(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{"v":2}`,
		`{"v":2,"project":"p1","destination":"d1","release":6,"lane":"slow"}`,
		`{"what":["ever"],"v":9223372036854775807}`,
	} {
		var unknown *outbox.UnknownVersionError
		if _, err := outbox.Decode(body); !errors.As(err, &unknown) || unknown.Version < 2 {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func TestAMessageThatCannotBeReadSaysWhyInOurWords(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ body, reason string }{
		"nothing":                 {``, "not a JSON object"},
		"no JSON":                 {`hello`, "not a JSON object"},
		"a list":                  {`[1]`, "not a JSON object"},
		"cut off":                 {`{"v":1,"project":"p1"`, "not JSON"},
		"cut off in a value":      {`{"v":1,"project":"p`, "not JSON"},
		"two objects":             {`{"v":1}{"v":1}`, "more than one JSON object"},
		"something behind":        {`{"v":1} x`, "more than one JSON object"},
		"no version":              {`{"project":"p1","destination":"d1","release":6}`, "v is not a version"},
		"version 0":               {`{"v":0}`, "v is not a version"},
		"a fraction of a version": {`{"v":1.5}`, "v is not a version"},
		"a version as text":       {`{"v":"1"}`, "v is not a version"},
		"a huge version":          {`{"v":9223372036854775808}`, "v is not a version"},
		"a name too many":         {`{"v":1,"project":"p1","destination":"d1","release":6,"secret":"x"}`, "a name that does not belong there"},
		"a name in another case":  {`{"v":1,"Project":"p1","destination":"d1","release":6}`, "a name that does not belong there"},
		"a name twice":            {`{"v":1,"project":"p1","destination":"d1","release":6,"release":7}`, "a name that comes twice"},
		"no project":              {`{"v":1,"destination":"d1","release":6}`, "no project's id"},
		"a number for a project":  {`{"v":1,"project":1,"destination":"d1","release":6}`, "project is not of its type"},
		"null for a project":      {`{"v":1,"project":null,"destination":"d1","release":6}`, "project is not of its type"},
		"a # in an id":            {`{"v":1,"project":"p#1","destination":"d1","release":6}`, "no project's id"},
		"a long id":               {`{"v":1,"project":"` + strings.Repeat("p", 65) + `","destination":"d1","release":6}`, "no project's id"},
		"no destination":          {`{"v":1,"project":"p1","release":6}`, "no destination's id"},
		"neither release nor test": {
			`{"v":1,"project":"p1","destination":"d1"}`, "no release's number",
		},
		"release and test":     {`{"v":1,"project":"p1","destination":"d1","release":6,"test":"t"}`, "both a release and a test"},
		"release 0":            {`{"v":1,"project":"p1","destination":"d1","release":0}`, "no release's number"},
		"a negative release":   {`{"v":1,"project":"p1","destination":"d1","release":-6}`, "no release's number"},
		"a broken release":     {`{"v":1,"project":"p1","destination":"d1","release":6.5}`, "release is not of its type"},
		"a release as text":    {`{"v":1,"project":"p1","destination":"d1","release":"6"}`, "release is not of its type"},
		"a test with a space":  {`{"v":1,"project":"p1","destination":"d1","test":"a b"}`, "no test's id"},
		"a trace with a space": {`{"v":1,"project":"p1","destination":"d1","release":6,"trace":"a b"}`, "no trace id"},
		"a long one":           {`{"v":1,"project":"p1","destination":"d1","release":6}` + strings.Repeat(" ", 4096), "too long"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := outbox.Decode(c.body)
			var unreadable *outbox.UnreadableError
			if !errors.As(err, &unreadable) || unreadable.Reason != c.reason {
				t.Errorf("got %v, want %q", err, c.reason)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	for _, body := range []string{
		`{"v":1,"project":"p1","destination":"d1","release":6,"trace":"1-5f-ab"}`,
		`{"v":1,"project":"p1","destination":"d1","test":"t1"}`,
		`{ "release" : 6, "destination":"d1","project":"\u00701","v":1 }`,
		`{"v":2,"new":{"a":[1,{"b":null}]}}`,
		`{"v":1,"v":2}`, `{"V":1}`, `{"v":1e0}`, `{"v":-1}`, `{`, `{"v"`, `[]`, `"v"`, `{"v":1}}`, "\x00", "\xff{",
	} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		m, err := outbox.Decode(body)
		if err != nil {
			var unknown *outbox.UnknownVersionError
			var unreadable *outbox.UnreadableError
			if errors.As(err, &unknown) == errors.As(err, &unreadable) {
				t.Fatalf("%q: neither or both of the two kinds: %v", body, err)
			}
			if m != (outbox.Message{}) {
				t.Fatalf("%q: a message beside an error: %+v", body, m)
			}
			return
		}
		written, err := m.Encode()
		if err != nil {
			t.Fatalf("%q was read and cannot be written: %v", body, err)
		}
		if again, err := outbox.Decode(written); err != nil || again != m {
			t.Fatalf("%q: %+v became %+v, %v", body, m, again, err)
		}
	})
}
