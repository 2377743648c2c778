package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

// Config says which API to speak to.
type Config struct {
	Address string       // the API's address with its stage: the stack's output ApiUrl
	Token   string       // a token made by "colophon token create"
	HTTP    *http.Client // nil: http.DefaultClient
}

func (c Config) validate() error {
	address, err := url.Parse(c.Address)
	if err != nil || address.Host == "" || (address.Scheme != "https" && address.Scheme != "http") {
		return fmt.Errorf("client: %q is not an address of an API: it begins with https:// or http://", c.Address)
	}
	if c.Token == "" {
		return errors.New("client: no token")
	}
	return nil
}

// New makes a client.
func New(c Config) (*Client, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	var options []ClientOption
	if c.HTTP != nil {
		options = append(options, WithClient(c.HTTP))
	}
	return NewClient(c.Address, bearerToken(c.Token), options...)
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
