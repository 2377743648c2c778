package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// Config says which API to speak to.
type Config struct {
	// Address is the API's, with its stage: the stack's output ApiUrl. It begins
	// with https://, or with http:// where its host is this machine.
	Address string
	Token   string // a token made by "colophon token create"
	// HTTP makes the requests; nil: a client without a time limit. Whatever it
	// says of redirects, none is followed: see ErrRedirected.
	HTTP *http.Client
}

// ErrRedirected says that the address answered with a redirect. None is followed:
// the API makes none, and the request, with its token, would go elsewhere.
var ErrRedirected = errors.New("the address answers with a redirect, which is not followed: it is not the API's own address")

func (c Config) validate() error {
	address, err := url.Parse(c.Address)
	if err != nil || address.Host == "" || (address.Scheme != "https" && address.Scheme != "http") {
		return fmt.Errorf("client: %q is not an address of an API: it begins with https:// or http://", c.Address)
	}
	if address.Scheme != "https" && !isLoopback(address.Hostname()) {
		return fmt.Errorf("client: %q would carry the token over the network unencrypted: use https:// (http:// is for this machine alone)", c.Address)
	}
	if c.Token == "" {
		return errors.New("client: no token")
	}
	return nil
}

// isLoopback says whether a host is this machine by its name or number. What a
// name server says is not asked.
func isLoopback(host string) bool {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if address, err := netip.ParseAddr(host); err == nil {
		return address.Unmap().IsLoopback()
	}
	return host == "localhost"
}

// New makes a client. It sends a digest of each body.
func New(c Config) (*Client, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	sender := http.Client{}
	if c.HTTP != nil {
		sender = *c.HTTP
	}
	sender.CheckRedirect = func(*http.Request, []*http.Request) error { return ErrRedirected }
	return NewClient(c.Address, bearerToken(c.Token), WithClient(digesting{&sender}))
}

type bearerToken string

func (t bearerToken) Bearer(context.Context, OperationName) (Bearer, error) {
	return Bearer{Token: string(t)}, nil
}

// AsProblem returns the problem that the API answered, or nil where an error is
// of another kind.
func AsProblem(err error) *ProblemStatusCodeWithHeaders {
	var problem *ProblemStatusCodeWithHeaders
	if errors.As(err, &problem) {
		return problem
	}
	return nil
}
