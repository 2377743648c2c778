package outbox

import "encoding/json"

// PanicOnRecords makes the reading of records that contain a text panic, until
// the test ends. Nothing known makes it panic by itself.
func PanicOnRecords(contains func(raw string) bool) (restore func()) {
	before := parseRecord
	parseRecord = func(raw json.RawMessage, r *reading) {
		if contains(string(raw)) {
			panic("a fault in the reading")
		}
		before(raw, r)
	}
	return func() { parseRecord = before }
}
