// Command testfunction is a Lambda function that misbehaves on demand: the tests of the local stack run it.
//
// With RELAY set it posts each event there and returns what comes back, so that a test is the handler. Otherwise the
// event says what to do: see command.
package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
)

type command struct {
	Do      string `json:"do"`      // error, panic, exit, sleep, print, large, child, environment; empty: answer
	Code    int    `json:"code"`    // exit's status
	Millis  int    `json:"millis"`  // sleep's time
	Bytes   int    `json:"bytes"`   // large's size
	Message string `json:"message"` // print's and sleep's line, error's text

	// Of an API's event.
	HTTPMethod      string            `json:"httpMethod"`
	Headers         map[string]string `json:"headers"`
	Body            string            `json:"body"`
	IsBase64Encoded bool              `json:"isBase64Encoded"`
}

// echo is what an API's caller gets: what came.
type echo struct {
	PID     int               `json:"pid"`
	Method  string            `json:"method"`
	Headers map[string]string `json:"headers"`
	Body    []byte            `json:"body"`
}

type answer struct {
	PID         int               `json:"pid"`
	Count       int               `json:"count"` // invocations of this process
	RequestID   string            `json:"requestId"`
	Remaining   float64           `json:"remaining"` // seconds to the deadline
	Child       int               `json:"child,omitempty"`
	Environment map[string]string `json:"environment,omitempty"`
}

var count int

func main() {
	switch os.Getenv("INIT") {
	case "panic":
		panic("init panics")
	case "exit":
		fmt.Println("about to exit in init")
		os.Exit(3)
	case "hang":
		time.Sleep(time.Hour)
	}
	if address := os.Getenv("RELAY"); address != "" {
		lambda.Start(func(ctx context.Context, event json.RawMessage) (json.RawMessage, error) {
			return relay(ctx, address, event)
		})
		return
	}
	lambda.Start(handle)
}

func relay(ctx context.Context, address string, event json.RawMessage) (json.RawMessage, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(event))
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the test answered %d", response.StatusCode)
	}
	return body, nil
}

func handle(ctx context.Context, c command) (any, error) {
	count++
	a := answer{PID: os.Getpid(), Count: count}
	if lc, ok := lambdacontext.FromContext(ctx); ok {
		a.RequestID = lc.AwsRequestID
	}
	if deadline, ok := ctx.Deadline(); ok {
		a.Remaining = time.Until(deadline).Seconds()
	}
	if c.HTTPMethod != "" {
		return answerToAPI(c)
	}
	switch c.Do {
	case "error":
		return nil, errors.New(c.Message)
	case "panic":
		panic("the handler panics")
	case "exit":
		os.Exit(c.Code)
	case "sleep":
		fmt.Println(c.Message)
		time.Sleep(time.Duration(c.Millis) * time.Millisecond)
	case "print":
		fmt.Println(c.Message)
	case "large":
		return strings.Repeat("x", c.Bytes), nil
	case "child":
		child := exec.Command("sleep", "600")
		child.Stdout = os.Stdout // holds the log's pipe open, as a careless child would
		if err := child.Start(); err != nil {
			return nil, err
		}
		a.Child = child.Process.Pid
	case "environment":
		a.Environment = map[string]string{}
		for _, pair := range os.Environ() {
			name, value, _ := strings.Cut(pair, "=")
			a.Environment[name] = value
		}
	}
	return a, nil
}

func answerToAPI(c command) (any, error) {
	body := []byte(c.Body)
	if c.IsBase64Encoded {
		var err error
		if body, err = base64.StdEncoding.DecodeString(c.Body); err != nil {
			return nil, err
		}
	}
	text, err := json.Marshal(echo{PID: os.Getpid(), Method: c.HTTPMethod, Headers: c.Headers, Body: body})
	return map[string]any{"statusCode": http.StatusOK, "body": string(text)}, err
}
