//go:build killpoints

package clock

import (
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Now is the time, moved by what the file says. A missing file moves nothing; a
// test that wrote no duration is told so.
func Now() time.Time {
	orders := os.Getenv("COLOPHON_ORDERS")
	if orders == "" {
		return time.Now()
	}
	text, err := os.ReadFile(filepath.Join(orders, "clock"))
	if err != nil {
		return time.Now()
	}
	by, err := time.ParseDuration(strings.TrimSpace(string(text)))
	if err != nil {
		panic("clock: " + err.Error())
	}
	return time.Now().Add(by)
}
