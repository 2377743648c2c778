package outbox

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"time"
)

// traceContextKey is where the Lambda runtime client keeps an invocation's
// X-Ray header (aws-lambda-go, lambda/invoke_loop.go).
const traceContextKey = "x-amzn-trace-id"

// traceID is the trace that an invocation belongs to: the root of its X-Ray
// header, or one made in the same form.
func traceID(ctx context.Context, now time.Time, random io.Reader) (string, error) {
	header, _ := ctx.Value(traceContextKey).(string)
	for part := range strings.SplitSeq(header, ";") {
		if root, ok := strings.CutPrefix(strings.TrimSpace(part), "Root="); ok && isTrace(root) {
			return root, nil
		}
	}
	var made [12]byte
	if _, err := io.ReadFull(random, made[:]); err != nil {
		return "", fmt.Errorf("make a trace id: %w", err)
	}
	return fmt.Sprintf("1-%08x-%s", uint32(now.Unix()), hex.EncodeToString(made[:])), nil
}
