package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"colophon/client"
)

// putDocument saves a document and looks whether what was saved is what was sent.
func putDocument(ctx context.Context, api *client.Client, params client.PutDocumentParams, kind string, content io.Reader) (client.Document, error) {
	sent := sha256.New()
	response, err := api.PutDocument(ctx, &client.PutDocumentReqWithContentType{
		ContentType: kind, Content: client.PutDocumentReq{Data: io.TeeReader(content, sent)},
	}, params)
	if err != nil {
		return client.Document{}, err
	}
	var saved client.Document
	switch response := response.(type) {
	case *client.PutDocumentOK:
		saved = response.Response
	case *client.PutDocumentCreated:
		saved = response.Response
	default:
		return client.Document{}, fmt.Errorf("save the document: a response of type %T", response)
	}
	if saved.Digest != hex.EncodeToString(sent.Sum(nil)) {
		return client.Document{}, fmt.Errorf("%s was saved, but not as it was sent: %d bytes with the SHA-256 %s. Save it again", saved.Path, saved.Size, saved.Digest)
	}
	return saved, nil
}

func newPublish(c *connection) *cobra.Command {
	var message, key string
	var force, watched bool
	command := &cobra.Command{
		Use:   "publish PROJECT",
		Short: "Publish the drafts as the next release",
		Long: `Publishes the drafts of a project as its next release, which is announced to all of its
destinations. With --key the same command can be given again after any failure: it makes
one release, however often it is repeated within a day.`,
		Example: "  colophon publish prj_… -m \"New guide\" --watch",
		Args:    arguments("PROJECT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := c.client()
			if err != nil {
				return err
			}
			ask := client.Publish{}
			if message != "" {
				ask.Message = client.NewOptString(message)
			}
			if force {
				ask.Force = client.NewOptBool(true)
			}
			params := client.PublishReleaseParams{Project: args[0]}
			if key != "" {
				params.IdempotencyKey = client.NewOptString(key)
			}
			release, err := api.PublishRelease(cmd.Context(), client.NewOptPublish(ask), params)
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			note := ""
			if release.IdempotentReplayed.Or(false) {
				note = ", published before under this key"
			}
			fmt.Fprintf(out, "Release %d: %d documents%s\n", release.Response.Number, release.Response.Documents, note)
			if !watched {
				return nil
			}
			return watch(cmd.Context(), api, out, args[0], release.Response.Number)
		},
	}
	flags := command.Flags()
	flags.StringVarP(&message, "message", "m", "", "what is new; receivers get it")
	flags.StringVar(&key, "key", "", "an idempotency key")
	flags.BoolVar(&force, "force", false, "publish although nothing has changed")
	flags.BoolVar(&watched, "watch", false, "watch it being announced")
	return command
}

func newWatch(c *connection) *cobra.Command {
	return &cobra.Command{
		Use:   "watch PROJECT [RELEASE]",
		Short: "Watch a release being announced until every delivery has ended",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 {
				return nil
			}
			return arguments("PROJECT")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := c.client()
			if err != nil {
				return err
			}
			var release int64
			if len(args) == 2 {
				if release, err = releaseNumber(args[1]); err != nil {
					return err
				}
			} else {
				project, err := api.GetProject(cmd.Context(), client.GetProjectParams{Project: args[0]})
				if err != nil {
					return err
				}
				if !project.NewestRelease.Set {
					return fmt.Errorf("nothing was published of %s yet", args[0])
				}
				release = project.NewestRelease.Value
			}
			return watch(cmd.Context(), api, cmd.OutOrStdout(), args[0], release)
		},
	}
}

func releaseNumber(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		return 0, usage("%q is not a release's number", text)
	}
	return n, nil
}

// watchEvery is how often a watched release is looked at.
const watchEvery = 500 * time.Millisecond

// watch prints each delivery of a release whenever it moved, until all have ended.
func watch(ctx context.Context, api *client.Client, out io.Writer, project string, release int64) error {
	shown := map[string]string{}
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	for {
		list, err := api.ListReleaseDeliveries(ctx, client.ListReleaseDeliveriesParams{Project: project, Release: release})
		if err != nil {
			return err
		}
		pending, undelivered := 0, 0
		for _, d := range list.Deliveries {
			line := standing(d)
			if shown[d.Destination] != line {
				shown[d.Destination] = line
				fmt.Fprintf(out, "%s  %s: %s\n", time.Now().Format(time.TimeOnly), d.DestinationName, line)
			}
			switch d.State {
			case client.DeliveryStateDelivered:
			case client.DeliveryStateFailed, client.DeliveryStateSkipped:
				undelivered++
			default:
				pending++
			}
		}
		switch {
		case pending > 0:
		case len(list.Deliveries) == 0:
			fmt.Fprintln(out, "The release is announced to nobody: the project had no destination.")
			return nil
		case undelivered > 0:
			return fmt.Errorf("%w: %d of %d deliveries of release %d", errUndelivered, undelivered, len(list.Deliveries), release)
		default:
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return errInterrupted
		}
	}
}

// standing is a delivery in one line: its state and the timeline's last word.
func standing(d client.Delivery) string {
	line := string(d.State)
	if d.Sending {
		line = "sending"
	}
	if n := len(d.Attempts); n > 0 {
		last := d.Attempts[n-1]
		line += fmt.Sprintf(", attempt %d: %s", last.Number, last.Class)
		if last.Status.Set {
			line += fmt.Sprintf(" (%d)", last.Status.Value)
		}
	}
	if d.Successor.Set {
		line += fmt.Sprintf(", release %d is sent in its place", d.Successor.Value)
	}
	if d.TryAt.Set && d.State == client.DeliveryStateRetrying {
		line += ", next try at " + d.TryAt.Value.Local().Format(time.TimeOnly)
	}
	return line
}
