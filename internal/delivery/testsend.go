package delivery

import "time"

// Times of a test send.
const (
	TestWaits     = 2 * time.Minute    // one that nobody claimed by then is not sent any more
	TestRetention = 7 * 24 * time.Hour // its item expires after it
)

// TestKind says what a test send was asked for.
type TestKind string

// The kinds of test sends. Both are the same request.
const (
	TestPlain  TestKind = ""       // to see whether it arrives
	TestDoctor TestKind = "doctor" // to have looked at all that stands between us and the receiver
)

// TestSend is one request that a person asked for to see whether a destination
// answers. It has one try, takes no slot and is allowed while paused.
type TestSend struct {
	Destination
	ID        string
	Kind      TestKind
	WebhookID string
	Body      []byte
	CreatedAt time.Time
	Token     string    // the claim it is sent under; empty: not claimed
	Since     time.Time // of the claim
	Until     time.Time // of the claim: past it, without a Result, the outcome is unknown
	Result    *Attempt  // nil: none yet; number and round are 1
	Findings  []Finding // of a doctor's, with the Result
}

// TestState is where a test send stands.
type TestState string

// The states of a test send. The last three are the end of it.
const (
	TestWaiting TestState = "waiting"
	TestSending TestState = "sending"
	TestEnded   TestState = "ended"    // Result says how
	TestNotSent TestState = "not-sent" // nobody took it in time
	TestUnknown TestState = "unknown"  // it may have been received
)

// State says where the test send stands.
func (t TestSend) State(now time.Time) TestState {
	switch {
	case t.Result != nil:
		return TestEnded
	case t.Token != "" && now.Before(t.Until):
		return TestSending
	case t.Token != "":
		return TestUnknown
	case now.Before(t.CreatedAt.Add(TestWaits)):
		return TestWaiting
	}
	return TestNotSent
}

// Claimable says whether a worker may still send it. Its clock may be behind
// the one that says "not sent".
func (t TestSend) Claimable(now time.Time) bool {
	return t.Token == "" && t.Result == nil && now.Before(t.CreatedAt.Add(TestWaits-ClockAllowance))
}
