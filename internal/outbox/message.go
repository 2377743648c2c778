package outbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"colophon/internal/delivery"
)

// Bounds of a message: keys and a trace id, nothing else.
const (
	MessageVersion = 1    // written; every version up to it is read
	longestMessage = 4096 // bytes; a newer version may say more than this one
	longestID      = 64   // bytes of a project's, destination's or test send's id
	longestTrace   = 128
)

// Message is a doorbell: it names a delivery, or a test send. Its JSON is
//
//	{"v":1,"project":"…","destination":"…","release":6,"trace":"…"}
//
// with "test" and an id in the place of "release" for a test send.
type Message struct {
	Destination delivery.Destination
	Release     int64  // from 1; 0 with Test
	Test        string // the test send's id; empty with Release
	Trace       string // of the write that rang; may be empty
}

// Key is the delivery's key; a test send has none.
func (m Message) Key() delivery.Key {
	return delivery.Key{Destination: m.Destination, Release: m.Release}
}

// UnknownVersionError says that a message is of a version that this build does
// not know. It waits for a build that does.
type UnknownVersionError struct{ Version int64 }

func (e *UnknownVersionError) Error() string {
	return fmt.Sprintf("message of version %d, known up to %d", e.Version, MessageVersion)
}

// UnreadableError says that a message can never be read, and why, in words that
// repeat nothing of it.
type UnreadableError struct{ Reason string }

func (e *UnreadableError) Error() string { return "message not readable: " + e.Reason }

// Encode gives the message's JSON. An error says that it names nothing that can
// be delivered.
func (m Message) Encode() (string, error) {
	if fault := m.fault(); fault != "" {
		return "", &UnreadableError{Reason: fault}
	}
	var b strings.Builder
	fmt.Fprintf(&b, `{"v":%d,"project":%q,"destination":%q`, MessageVersion, m.Destination.Project, m.Destination.ID)
	if m.Test != "" {
		fmt.Fprintf(&b, `,"test":%q`, m.Test)
	} else {
		fmt.Fprintf(&b, `,"release":%d`, m.Release)
	}
	if m.Trace != "" {
		fmt.Fprintf(&b, `,"trace":%q`, m.Trace)
	}
	b.WriteByte('}')
	return b.String(), nil
}

// Decode reads a message: an [UnknownVersionError] where a newer build will be
// able to, an [UnreadableError] where none will.
func Decode(body string) (Message, error) {
	if len(body) > longestMessage {
		return Message{}, &UnreadableError{Reason: "too long"}
	}
	fields, err := decodeObject(body)
	if err != nil {
		return Message{}, &UnreadableError{Reason: err.Error()}
	}
	version, err := strconv.ParseInt(string(fields["v"]), 10, 64)
	if err != nil || version < 1 {
		return Message{}, &UnreadableError{Reason: "v is not a version"}
	}
	if version > MessageVersion {
		return Message{}, &UnknownVersionError{Version: version}
	}
	var m Message
	for name, value := range fields {
		switch name {
		case "v":
		case "project":
			m.Destination.Project, err = decodeText(value)
		case "destination":
			m.Destination.ID, err = decodeText(value)
		case "test":
			m.Test, err = decodeText(value)
		case "trace":
			m.Trace, err = decodeText(value)
		case "release":
			m.Release, err = strconv.ParseInt(string(value), 10, 64)
		default:
			return Message{}, &UnreadableError{Reason: "a name that does not belong there"}
		}
		if err != nil {
			return Message{}, &UnreadableError{Reason: name + " is not of its type"}
		}
	}
	if fault := m.fault(); fault != "" {
		return Message{}, &UnreadableError{Reason: fault}
	}
	return m, nil
}

// fault says what is wrong with what the message names.
func (m Message) fault() string {
	switch {
	case !isID(m.Destination.Project):
		return "no project's id"
	case !isID(m.Destination.ID):
		return "no destination's id"
	case m.Test != "" && m.Release != 0:
		return "both a release and a test"
	case m.Test != "" && !isID(m.Test):
		return "no test's id"
	case m.Test == "" && m.Release < 1:
		return "no release's number"
	case m.Trace != "" && !isTrace(m.Trace):
		return "no trace id"
	}
	return ""
}

func isID(s string) bool { return s != "" && len(s) <= longestID && madeOf(s, "_-") }

func isTrace(s string) bool { return s != "" && len(s) <= longestTrace && madeOf(s, "_-=:;.") }

// madeOf says whether s has only ASCII letters, digits and these marks: then
// Go's and JSON's quotes around it are the same.
func madeOf(s, marks string) bool {
	for _, c := range []byte(s) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte(marks, c) >= 0:
		default:
			return false
		}
	}
	return true
}

// decodeObject reads one JSON object and nothing after it. Unlike Unmarshal into
// a struct it refuses a name that comes twice or in another case.
func decodeObject(body string) (map[string]json.RawMessage, error) {
	decoder := json.NewDecoder(strings.NewReader(body))
	if start, err := decoder.Token(); err != nil || start != json.Delim('{') {
		return nil, errors.New("not a JSON object")
	}
	fields := map[string]json.RawMessage{}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return nil, errors.New("not JSON")
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return nil, errors.New("not JSON")
		}
		if _, twice := fields[name.(string)]; twice {
			return nil, errors.New("a name that comes twice")
		}
		fields[name.(string)] = value
	}
	if _, err := decoder.Token(); err != nil {
		return nil, errors.New("not JSON")
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, errors.New("more than one JSON object")
	}
	return fields, nil
}

func decodeText(value json.RawMessage) (string, error) {
	if !bytes.HasPrefix(value, []byte(`"`)) {
		return "", errors.New("not a text")
	}
	var text string
	err := json.Unmarshal(value, &text)
	return text, err
}
