package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"colophon/internal/function/api"
	"colophon/internal/function/deliver"
	"colophon/internal/function/outboxstream"
	"colophon/internal/function/sweep"
	"colophon/internal/store"
)

// functionConfig is a function process's configuration; what the function reads
// itself stands in its environment, as on Lambda.
type functionConfig struct {
	Name  string
	Units bool // ask the table what each call consumed: production does not
}

// timeouts are the template's.
var timeouts = map[string]time.Duration{
	"api": 28 * time.Second, "outbox-stream": 30 * time.Second, "deliver": 20 * time.Second, "sweep": 60 * time.Second,
}

// counted is what a function did since it began.
type counted struct {
	Invocations, Faults int64
	Nanoseconds         int64 // of invocations, added up
	Calls               map[string]calls
}

// calls are table calls of one kind.
type calls struct {
	Number      int64
	Read, Write float64 // units
}

// functionRole is one function: POST /invoke is an invocation, decoded and
// encoded by the Lambda runtime's own code.
func functionRole(config []byte, mux *http.ServeMux) error {
	var c functionConfig
	if err := json.Unmarshal(config, &c); err != nil {
		return err
	}
	var mu sync.Mutex
	var invocations, faults, spent atomic.Int64
	byCall := map[string]calls{}
	var observe func(store.Consumption)
	if c.Units {
		observe = func(u store.Consumption) {
			mu.Lock()
			defer mu.Unlock()
			sum := byCall[u.Call]
			byCall[u.Call] = calls{sum.Number + 1, sum.Read + u.ReadUnits, sum.Write + u.WriteUnits}
		}
	}
	handler, err := newFunction(c.Name, observe)
	if err != nil {
		return err
	}
	timeout := timeouts[c.Name]
	mux.HandleFunc("POST /invoke", func(w http.ResponseWriter, r *http.Request) {
		event, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		// The client's connection is the parent's business: an invocation goes on when nobody waits for it.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), timeout)
		defer cancel()
		number := invocations.Add(1)
		ctx = lambdacontext.NewContext(ctx, &lambdacontext.LambdaContext{AwsRequestID: c.Name + "-" + strconv.FormatInt(number, 10)})
		began := time.Now()
		out, err := handler.Invoke(ctx, event)
		spent.Add(int64(time.Since(began)))
		if err != nil {
			faults.Add(1)
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_, _ = w.Write(out)
	})
	mux.HandleFunc("/counted", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		writeJSON(w, counted{invocations.Load(), faults.Load(), spent.Load(), byCall})
	})
	return nil
}

func newFunction(name string, observe func(store.Consumption)) (lambda.Handler, error) {
	switch name {
	case "api":
		f, err := api.New(os.Getenv, observe)
		if err != nil {
			return nil, err
		}
		return lambda.NewHandler(f.Handle), nil
	case "outbox-stream":
		f, err := outboxstream.New(os.Getenv, os.Stdout)
		if err != nil {
			return nil, err
		}
		return lambda.NewHandler(f.Handle), nil
	case "deliver":
		f, err := deliver.New(os.Getenv, os.Stdout, observe)
		if err != nil {
			return nil, err
		}
		return lambda.NewHandler(f.Handle), nil
	case "sweep":
		f, err := sweep.New(os.Getenv, os.Stdout, observe)
		if err != nil {
			return nil, err
		}
		return lambda.NewHandler(f.Handle), nil
	}
	return nil, fmt.Errorf("no function %q", name)
}
