package runtime

import (
	"log/slog"

	"github.com/aws/aws-lambda-go/lambdacontext"
)

// NewLog makes a function's logger: one JSON object a line with Lambda's request
// id in it, in the format and from the level on that the template sets
// (LoggingConfig).
func NewLog() *slog.Logger { return slog.New(lambdacontext.NewLogHandler()) }
