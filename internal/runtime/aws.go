package runtime

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
)

const (
	attemptTime = 2 * time.Second        // one attempt of an AWS call, its answer read
	connectTime = 1 * time.Second        // of which the connection may take
	attempts    = 3                      // of one call
	backOff     = 100 * time.Millisecond // at most between two of them: the caller waits
	// A function works on up to ten messages side by side, each with a call or two.
	connectionsKept = 32
)

// AWS makes the configuration that clients of AWS services are made from, out of
// what Lambda puts into a function's environment. (The SDK's own loader looks in
// files and at other services too, which a function has not.) The regional
// endpoints are moved by AWS_ENDPOINT_URL, or for one service by
// AWS_ENDPOINT_URL_<SERVICE>, as the SDK's documentation has it.
func AWS(getenv func(string) string, service string) (aws.Config, error) {
	c := aws.Config{
		Region: getenv("AWS_REGION"),
		Credentials: environmentCredentials{aws.Credentials{
			AccessKeyID: getenv("AWS_ACCESS_KEY_ID"), SecretAccessKey: getenv("AWS_SECRET_ACCESS_KEY"),
			SessionToken: getenv("AWS_SESSION_TOKEN"), Source: "environment",
		}},
		HTTPClient: httpClient,
		Retryer: func() aws.Retryer {
			return retry.NewStandard(func(o *retry.StandardOptions) {
				o.MaxAttempts, o.MaxBackoff = attempts, backOff
			})
		},
	}
	if c.Region == "" {
		return aws.Config{}, errors.New("AWS_REGION is missing: Lambda sets it, elsewhere it must be set by hand")
	}
	for _, name := range []string{"AWS_ENDPOINT_URL_" + strings.ToUpper(service), "AWS_ENDPOINT_URL"} {
		if address := getenv(name); address != "" {
			c.BaseEndpoint = aws.String(address)
			break
		}
	}
	return c, nil
}

// environmentCredentials are those of the function's role. Lambda replaces the
// whole environment before they expire.
type environmentCredentials struct{ credentials aws.Credentials }

func (e environmentCredentials) Retrieve(context.Context) (aws.Credentials, error) {
	if !e.credentials.HasKeys() {
		return aws.Credentials{}, errors.New("AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are missing")
	}
	return e.credentials, nil
}

// httpClient is shared by all clients of a process: connections are kept, so
// that only a sandbox's first call of a service waits for one.
var httpClient = &http.Client{
	Timeout: attemptTime,
	Transport: &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: connectTime, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:   connectTime,
		MaxIdleConnsPerHost:   connectionsKept,
		IdleConnTimeout:       90 * time.Second,
		ResponseHeaderTimeout: attemptTime,
	},
	// An AWS API does not redirect; following would carry a signature elsewhere.
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}
