package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/spf13/cobra"
	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// longestBody is what the receiver reads of a request: an announcement is a few
// kilobytes at the most.
const longestBody = 1 << 20

// receiver takes announcements, for local use.
type receiver struct {
	secret    *webhooks.Webhook // nil: signatures are not checked
	status    int
	failFirst int
	delay     time.Duration
	arrived   func(arrival)

	mu    sync.Mutex
	seen  map[string]bool
	count int
}

// arrival is one request.
type arrival struct {
	ID       string
	Attempt  string
	Previous string
	Release  int64
	Message  string
	Status   int    // answered
	Problem  string // why it was refused; empty: nothing was wrong
	Repeat   bool   // the id was accepted before
	Verified bool   // the signature was checked and is right
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, request.Body, longestBody))
	a := arrival{
		ID: request.Header.Get("Webhook-Id"), Attempt: request.Header.Get("Colophon-Attempt"),
		Previous: request.Header.Get("Colophon-Previous"), Status: r.status,
	}
	var announcement struct {
		Data struct {
			Release int64  `json:"release"`
			Message string `json:"message"`
		} `json:"data"`
	}
	switch {
	case err != nil:
		a.Status, a.Problem = http.StatusBadRequest, "the body could not be read"
	case a.ID == "":
		a.Status, a.Problem = http.StatusBadRequest, "there is no webhook-id: this is no announcement"
	case r.secret != nil && r.secret.Verify(body, request.Header) != nil:
		a.Status, a.Problem = http.StatusUnauthorized, "the signature is not right for this secret, or too old"
	case json.Unmarshal(body, &announcement) != nil:
		a.Status, a.Problem = http.StatusBadRequest, "the body is not JSON"
	default:
		a.Release, a.Message, a.Verified = announcement.Data.Release, announcement.Data.Message, r.secret != nil
		r.judge(&a)
	}
	select {
	case <-time.After(r.delay):
	case <-request.Context().Done():
		return
	}
	r.arrived(a)
	w.WriteHeader(a.Status)
}

// readSecret reads the secret from where it is given. An empty --secret is not
// "no secret": it is what an unset variable leaves.
func (r *receiver) readSecret(text string, flagged bool) error {
	source := "--secret"
	if !flagged {
		source, text = "COLOPHON_SECRET", os.Getenv("COLOPHON_SECRET")
		if text == "" {
			return nil
		}
	}
	secret, err := signingSecret(source, text)
	if err != nil {
		return err
	}
	r.secret, err = webhooks.NewWebhook(secret.Reveal())
	return err
}

// judge answers as it was told to, and knows a repeat by its id.
func (r *receiver) judge(a *arrival) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count++
	if r.count <= r.failFirst {
		a.Status = http.StatusServiceUnavailable
		return
	}
	a.Repeat = r.seen[a.ID]
	if a.Status >= 200 && a.Status <= 299 {
		r.seen[a.ID] = true
	}
}

// serve listens until the context ends.
func (r *receiver) serve(ctx context.Context, listener net.Listener) error {
	r.seen = map[string]bool{}
	server := &http.Server{Handler: r, ReadHeaderTimeout: 5 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return fmt.Errorf("receive: %w", err)
	case <-ctx.Done():
	}
	_ = server.Close()
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("receive: %w", err)
	}
	return nil
}

func (a arrival) String() string {
	line := fmt.Sprintf("release %d, attempt %s, %s", a.Release, a.Attempt, a.ID)
	if a.Problem != "" {
		line = "a request: " + a.Problem
	}
	if a.Repeat {
		line += ", a repeat: dropped"
	}
	if a.Previous != "" {
		line += ", the one before was " + a.Previous
	}
	if a.Verified {
		line += ", signature right"
	}
	return fmt.Sprintf("%s → answered %d", line, a.Status)
}

func newReceive() *cobra.Command {
	var listen, secret string
	r := &receiver{}
	command := &cobra.Command{
		Use:   "receive",
		Short: "Receive announcements on this machine and print them",
		Long: `Listens for announcements and prints each that arrives. It checks signatures where it
knows the secret, drops repeats by webhook-id, and can answer as a broken receiver would.

It is for trying things out: examples/receiver shows a receiver to build on.`,
		Example: "  COLOPHON_SECRET=whsec_… colophon receive\n  colophon receive --fail-first 1",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if r.status < 200 || r.status > 599 {
				return usage("--status is an HTTP status from 200 to 599")
			}
			if r.failFirst < 0 || r.delay < 0 {
				return usage("--fail-first and --delay are nought or more")
			}
			if err := r.readSecret(secret, cmd.Flags().Changed("secret")); err != nil {
				return err
			}
			if cmd.Flags().Changed("secret") {
				warnOfArgument(cmd, "--secret", "COLOPHON_SECRET")
			}
			listener, err := net.Listen("tcp", listen)
			if err != nil {
				return fmt.Errorf("receive: %w", err)
			}
			out := cmd.OutOrStdout()
			var mu sync.Mutex
			r.arrived = func(a arrival) {
				mu.Lock()
				defer mu.Unlock()
				fmt.Fprintln(out, time.Now().Format(time.TimeOnly), a)
			}
			fmt.Fprintf(out, "Receiving at http://%s/ ; Ctrl-C ends it.\n", listener.Addr())
			if r.secret == nil {
				fmt.Fprintln(out, "Signatures are not checked: COLOPHON_SECRET is not set.")
			}
			return r.serve(cmd.Context(), listener)
		},
	}
	flags := command.Flags()
	flags.StringVar(&listen, "listen", "127.0.0.1:8099", "host and port to listen on")
	flags.StringVar(&secret, "secret", "", "the destination's signing secret (COLOPHON_SECRET)")
	flags.IntVar(&r.status, "status", http.StatusNoContent, "the status to answer with")
	flags.IntVar(&r.failFirst, "fail-first", 0, "answer 503 to this many requests first")
	flags.DurationVar(&r.delay, "delay", 0, "how long to wait before each answer")
	return command
}
