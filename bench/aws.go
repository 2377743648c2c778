package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// service calls a local engine in AWS's JSON protocol as Lambda's own pollers
// would, without the SDK's work: that is not part of what is measured.
type service struct {
	address string // http://host:port
	prefix  string // of X-Amz-Target
	version string // of the JSON protocol
	client  *http.Client
}

func (s service) call(ctx context.Context, operation string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("%s: %w", operation, err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.address+"/", bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("%s: %w", operation, err)
	}
	r.Header.Set("Content-Type", "application/x-amz-json-"+s.version)
	r.Header.Set("X-Amz-Target", s.prefix+"."+operation)
	r.Header.Set("X-Amz-Date", "20260301T120000Z")
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=local/20260301/"+region+"/local/aws4_request, SignedHeaders=host, Signature=0")
	answer, err := s.client.Do(r)
	if err != nil {
		return fmt.Errorf("%s: %w", operation, err)
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(answer.Body)
	if err != nil {
		return fmt.Errorf("%s: %w", operation, err)
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %.300s", operation, answer.Status, said)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(said, out); err != nil {
		return fmt.Errorf("%s: %w", operation, err)
	}
	return nil
}

const region = "eu-west-1"

// keeping makes a client that keeps its connections.
func keeping(timeout time.Duration) *http.Client {
	return &http.Client{Timeout: timeout, Transport: &http.Transport{MaxIdleConnsPerHost: 512, IdleConnTimeout: time.Minute}}
}

func queueService(address string) service {
	return service{address: "http://" + address, prefix: "AmazonSQS", version: "1.0", client: keeping(30 * time.Second)}
}

func streamService(address string) service {
	return service{address: "http://" + address, prefix: "DynamoDBStreams_20120810", version: "1.0", client: keeping(10 * time.Second)}
}
