// Command receiver is a receiver of Colophon's announcements to build on: it
// needs nothing of Colophon but the Standard Webhooks library.
//
//	COLOPHON_SECRET=whsec_… go run ./examples/receiver -listen 127.0.0.1:8098 -inbox announcements
//
// It promises that an announcement that it answered with 2xx is acted on, also
// if it is killed at any moment, unless a newer release of the same project came
// first. What it acts on may be acted on again after a crash: act is given the
// webhook-id, to know that by. docs/receiving.md tells why it does what it does.
//
// It speaks plain HTTP and stands behind something that speaks TLS.
package main

import (
	"context"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8098", "host and port to listen on")
	path := flag.String("inbox", "announcements", "the file that announcements are kept in")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *listen, *path, os.Getenv("COLOPHON_SECRET"), act)
	stop()
	if err != nil {
		log.Fatal("receiver: ", err)
	}
}

// act is where the work goes that a release is to start: fetching its documents,
// building a site. A release is a whole state, so only the newest matters.
func act(_ context.Context, a announcement) error {
	_, err := fmt.Printf("release %d of project %s (%s): %s\n", a.Release, a.Project, a.ID, a.URL)
	return err
}

// signingKey reads COLOPHON_SECRET, with what pasting it leaves around it. What is
// no secret must not pass for one: anybody can sign with an empty key.
func signingKey(secret string) ([]byte, error) {
	text, named := strings.CutPrefix(strings.Trim(secret, " \t\r\n"), "whsec_")
	key, err := base64.StdEncoding.DecodeString(text)
	if err != nil || !named || len(key) < 24 || len(key) > 64 || base64.StdEncoding.EncodeToString(key) != text {
		return nil, errors.New("COLOPHON_SECRET is not a signing secret: it is whsec_ and the base64 of 24 to 64 bytes")
	}
	return key, nil
}

// run receives and acts until the context ends or the inbox cannot be written.
func run(ctx context.Context, listen, path, secret string, act func(context.Context, announcement) error) error {
	key, err := signingKey(secret)
	if err != nil {
		return err
	}
	signatures, err := webhooks.NewWebhookRaw(key)
	if err != nil {
		return err
	}
	box, err := openInbox(path)
	if err != nil {
		return err
	}
	defer box.close()
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	server := &http.Server{
		Handler:           &receiver{signatures: signatures, inbox: box},
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      10 * time.Second,
		MaxHeaderBytes:    16 << 10,
	}
	log.Printf("receiving at http://%s", listener.Addr())

	ctx, stop := context.WithCancel(ctx)
	defer stop()
	worked := make(chan struct{})
	go func() { defer close(worked); box.work(ctx, act) }()
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()

	select {
	case err = <-served:
	case <-box.broken:
		err = errors.New("the inbox cannot be written: start again when its disk is well")
	case <-ctx.Done():
	}
	stop()
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_ = server.Shutdown(ending) // what was not answered comes again
	<-worked
	return err
}
