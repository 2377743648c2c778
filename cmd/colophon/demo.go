package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"colophon/client"
	"colophon/internal/access"
	"colophon/internal/runtime"
)

func newDemo(c *connection) *cobra.Command {
	var listen string
	command := &cobra.Command{
		Use:   "demo",
		Short: "A tour: publish a release and watch its webhook arrive here",
		Long: `Makes a token, a project, a document and a destination on this machine, publishes a release,
and waits for its announcement to arrive: through the API, the table's stream, the queue and
the delivering function, as everywhere else.

It is for a stack that may call this machine: a local one. It refuses a production stack
(an API and a token that are given are used as they are). It needs
AWS credentials for the token, which is good for an hour and revoked if the demo fails, unless
COLOPHON_TOKEN has an admin's.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return demo(cmd.Context(), c, listen, cmd.OutOrStdout()) },
	}
	command.Flags().StringVar(&listen, "listen", "127.0.0.1:0", "where the demo's receiver listens")
	return command
}

// demoTime is how long the announcement may take: most of it is a cold start.
const demoTime = time.Minute

func demo(ctx context.Context, c *connection, listen string, out io.Writer) (err error) {
	step := func(format string, args ...any) { fmt.Fprintf(out, "• "+format+"\n", args...) }
	revoke, err := c.bootstrap(ctx, step)
	if err != nil {
		return err
	}
	defer func() {
		if err == nil {
			return
		}
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), revokeTime)
		defer cancel()
		if failed := revoke(ending); failed != nil {
			err = fmt.Errorf("%w; and the demo's token, which is good for %s, could not be revoked: %w", err, demoTokenTime, failed)
		}
	}()
	api, err := c.client()
	if err != nil {
		return err
	}

	project, err := api.CreateProject(ctx, &client.NewProject{Name: "Demo"})
	if err != nil {
		return err
	}
	step("project %s", project.ID)
	saved, err := putDocument(ctx, api, client.PutDocumentParams{Project: project.ID, Path: "guide/welcome.md"},
		"text/markdown; charset=utf-8", strings.NewReader("# Welcome\n\nThis document was published by the demo.\n"))
	if err != nil {
		return err
	}
	step("document %s, %d bytes", saved.Path, saved.Size)

	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return fmt.Errorf("listen for the announcement: %w", err)
	}
	address := "http://" + listener.Addr().String() + "/announcements"
	created, err := api.CreateDestination(ctx, &client.NewDestination{Name: "this machine", URL: address},
		client.CreateDestinationParams{Project: project.ID})
	if err != nil {
		listener.Close()
		return err
	}
	step("destination %s at %s", created.Response.Destination.ID, address)
	arrivals, stop, err := startReceiver(ctx, listener, created.Response.Secret)
	if err != nil {
		return err
	}
	defer stop()

	began := time.Now()
	release, err := api.PublishRelease(ctx, client.NewOptPublish(client.Publish{Message: client.NewOptString("Hello from the demo")}),
		client.PublishReleaseParams{Project: project.ID, IdempotencyKey: client.NewOptString("demo-" + project.ID)})
	if err != nil {
		return err
	}
	step("release %d published after %d ms", release.Response.Number, time.Since(began).Milliseconds())

	waiting, cancel := context.WithTimeout(ctx, demoTime)
	defer cancel()
	select {
	case a := <-arrivals:
		step("announcement arrived after %d ms: %s", time.Since(began).Milliseconds(), a)
		if a.Problem != "" {
			return errors.New("what arrived was not right")
		}
	case <-waiting.Done():
		if ctx.Err() != nil {
			return errInterrupted
		}
		return fmt.Errorf("%w: no announcement arrived within %s; \"make logs\" shows what happened", errUndelivered, demoTime)
	}
	if err := watch(waiting, api, out, project.ID, release.Response.Number); err != nil {
		return err
	}
	fmt.Fprintf(out, `
delivered

The API:  export COLOPHON_API=%s
A token:  export COLOPHON_TOKEN=%s
Go on:    colophon receive &
          colophon destination add %[3]s http://127.0.0.1:8099/
          colophon publish %[3]s --force --watch
          colophon delivery show %[3]s %[4]s %[5]d
`, c.api, c.token, project.ID, created.Response.Destination.ID, release.Response.Number)
	return nil
}

// demoTokenTime is how long the demo's own token is good for: to go on with by
// hand. RevokeTime bounds revoking it.
const (
	demoTokenTime = time.Hour
	revokeTime    = 10 * time.Second
)

// bootstrap finds the API and makes a token where none was given. What it returns
// revokes that token.
func (c *connection) bootstrap(ctx context.Context, step func(string, ...any)) (revoke func(context.Context) error, err error) {
	revoke = func(context.Context) error { return nil }
	if err := c.readToken(os.Getenv); err != nil {
		return nil, err
	}
	if c.api != "" && c.token != "" {
		return revoke, nil
	}
	o, settings, err := c.outputs(ctx)
	if err != nil {
		return nil, err
	}
	if err := o.demonstrable(c.stack); err != nil {
		return nil, err
	}
	if c.api == "" {
		if c.api, err = o.address(settings); err != nil {
			return nil, err
		}
	}
	step("API %s", c.api)
	if c.token != "" {
		return revoke, nil
	}
	service, err := o.tokens(settings)
	if err != nil {
		return nil, err
	}
	token, plain, err := service.CreateToken(ctx, access.NewToken{Name: "demo", Role: access.Admin, AllProjects: true, For: demoTokenTime})
	if err != nil {
		return nil, err
	}
	step("token %s, an admin's, for an hour", token.ID)
	c.token = plain
	return func(ctx context.Context) error { return service.RevokeToken(ctx, "", token.ID) }, nil
}

// demonstrable refuses a production stack: the demo leaves a project and a
// destination there. A stack that does not say what it is counts as production,
// as a function does that is not told.
func (o outputs) demonstrable(stack string) error {
	switch environment := runtime.Stage(o["Environment"]); environment {
	case runtime.Local, runtime.Staging:
		return nil
	case "":
		return fmt.Errorf("stack %q does not say that it is none of production (it has no output Environment): "+
			"deploy it from this template, or name another with --stack", stack)
	}
	return fmt.Errorf("stack %q is a production stack, and the demo would leave a project and a destination there: "+
		"name a local or staging stack with --stack", stack)
}

// startReceiver receives what arrives at the listener until stop is called.
func startReceiver(ctx context.Context, listener net.Listener, secret string) (arrivals <-chan arrival, stop func(), err error) {
	check, err := webhooks.NewWebhook(secret)
	if err != nil {
		listener.Close()
		return nil, nil, errors.New("the signing secret is not one")
	}
	arrived := make(chan arrival, 16)
	r := &receiver{secret: check, status: http.StatusNoContent, arrived: func(a arrival) {
		select {
		case arrived <- a:
		default: // nobody is looking any more
		}
	}}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = r.serve(ctx, listener) // that it stopped shows by nothing arriving
	}()
	return arrived, func() { cancel(); <-ended }, nil
}
