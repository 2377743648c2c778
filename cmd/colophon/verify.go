package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"colophon/client"
	"colophon/internal/webhook"
)

// comparison is what a receiver tells about a request and what it made of it.
type comparison struct {
	attempt   int64
	id        string
	timestamp string
	body      string // a file
	digest    string
	signature string
	request   string // a file: headers, an empty line, the body

	secret      string
	secretStdin bool
}

func newVerify(c *connection) *cobra.Command {
	told := &comparison{}
	command := &cobra.Command{
		Use:   "verify PROJECT DESTINATION RELEASE",
		Short: "Show what an attempt signed, and which part differs at the receiver",
		Long: `Shows what an attempt of a delivery signed: the id, the timestamp and the body's digest. Given what
the receiver got or computed, it says which part differs and what that usually means.

A saved request (--request) is its headers, an empty line and the body, byte for byte. Without
--attempt it is the attempt that the request names, else one with its timestamp, else the last.

A signature is compared where the destination's secret is given: in COLOPHON_SECRET, on standard
input with --secret-stdin, or with --secret, which others on this machine can see. It is not sent
anywhere and never shown.`,
		Example: "  colophon verify prj_… dst_… 6 --request request.txt\n  colophon verify prj_… dst_… 6 --body body.json --signature 'v1,…'",
		Args:    arguments("PROJECT", "DESTINATION", "RELEASE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			got, err := told.read()
			if err != nil {
				return err
			}
			api, err := c.client()
			if err != nil {
				return err
			}
			flagged := cmd.Flags().Changed("secret")
			secret, err := told.readSecret(cmd.InOrStdin(), flagged)
			if err != nil {
				return err
			}
			if flagged {
				warnOfArgument(cmd, "--secret", "COLOPHON_SECRET or --secret-stdin")
			}
			release, err := releaseNumber(args[2])
			if err != nil {
				return err
			}
			signed, err := api.GetSigned(cmd.Context(), client.GetSignedParams{Project: args[0], Destination: args[1], Release: release})
			if err != nil {
				return err
			}
			attempt, err := choose(signed.Attempts, got)
			if err != nil {
				return err
			}
			sent := webhook.Sent{ID: signed.WebhookId, At: time.Unix(attempt.Timestamp, 0), Body: []byte(signed.Body)}
			if !secret.IsZero() {
				sent.Secrets = []webhook.Secret{secret}
			}
			showSigned(cmd.OutOrStdout(), release, attempt.Number, sent.Signed())
			return compare(cmd.OutOrStdout(), sent, got)
		},
	}
	flags := command.Flags()
	flags.Int64Var(&told.attempt, "attempt", 0, "the attempt's number")
	flags.StringVar(&told.request, "request", "", "a file with the request as it arrived")
	flags.StringVar(&told.id, "id", "", "the webhook-id that the receiver signs with")
	flags.StringVar(&told.timestamp, "timestamp", "", "the webhook-timestamp that it signs with")
	flags.StringVar(&told.body, "body", "", "a file with the body that it signs")
	flags.StringVar(&told.digest, "body-digest", "", "that body's SHA-256 in hexadecimal digits")
	flags.StringVar(&told.signature, "signature", "", "the signature that it computes")
	flags.StringVar(&told.secret, "secret", "", "the destination's signing secret (COLOPHON_SECRET)")
	flags.BoolVar(&told.secretStdin, "secret-stdin", false, "read the secret from standard input")
	return command
}

// received is what a receiver told, and the signature that arrived with a saved
// request.
type received struct {
	webhook.Computed
	arrived string
	attempt int64 // 0: not told
}

func (c *comparison) read() (received, error) {
	var got received
	if c.request != "" {
		text, err := os.ReadFile(c.request)
		if err != nil {
			return got, fmt.Errorf("read the saved request: %w", err)
		}
		if got, err = parseRequest(text); err != nil {
			return got, err
		}
	}
	for value, part := range map[*string]*string{
		&c.id: &got.ID, &c.timestamp: &got.Timestamp, &c.digest: &got.BodyDigest, &c.signature: &got.Signature,
	} {
		if *value != "" {
			*part = *value
		}
	}
	if c.body != "" {
		body, err := os.ReadFile(c.body)
		if err != nil {
			return got, fmt.Errorf("read the body: %w", err)
		}
		got.Body = append([]byte{}, body...) // an empty one is told too
	}
	if c.digest != "" && got.Body != nil {
		return got, usage("--body-digest stands for a body that is not at hand: give one of them")
	}
	if c.attempt != 0 {
		got.attempt = c.attempt
	}
	return got, nil
}

// readSecret reads the secret from where it is given; zero where it is not.
func (c *comparison) readSecret(in io.Reader, flagged bool) (webhook.Secret, error) {
	switch fromEnvironment := os.Getenv("COLOPHON_SECRET"); {
	case c.secretStdin && flagged:
		return webhook.Secret{}, usage("--secret and --secret-stdin are two ways of giving one secret")
	case c.secretStdin:
		line, err := bufio.NewReader(io.LimitReader(in, 1<<10)).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return webhook.Secret{}, fmt.Errorf("read the secret: %w", err)
		}
		return signingSecret("what standard input gives", line)
	case flagged:
		return signingSecret("--secret", c.secret)
	case fromEnvironment != "":
		return signingSecret("COLOPHON_SECRET", fromEnvironment)
	}
	return webhook.Secret{}, nil
}

// signingSecret reads a destination's secret, with what pasting it leaves around
// it. Source says in a refusal what to look at; the text itself is not repeated.
func signingSecret(source, text string) (webhook.Secret, error) {
	secret, err := webhook.ParseSecret(strings.Trim(text, " \t\r\n"))
	if err != nil {
		return webhook.Secret{}, usage("%s is not a signing secret: it is whsec_ and the base64 of %d to %d bytes",
			source, webhook.MinSecretBytes, webhook.MaxSecretBytes)
	}
	return secret, nil
}

// parseRequest reads a saved request: its headers, with or without the request's
// line before them, an empty line, and the body to the file's end.
func parseRequest(text []byte) (received, error) {
	head, body, found := bytes.Cut(text, []byte("\r\n\r\n"))
	if plain, rest, ok := bytes.Cut(text, []byte("\n\n")); ok && (!found || len(plain) < len(head)) {
		head, body, found = plain, rest, true
	}
	if !found {
		return received{}, usage("the saved request has no empty line between its headers and its body")
	}
	first, rest, _ := bytes.Cut(head, []byte("\n"))
	if name, _, named := bytes.Cut(first, []byte(":")); !named || bytes.ContainsAny(name, " ") {
		head = rest // the request's own line
	}
	header, err := textproto.NewReader(bufio.NewReader(io.MultiReader(bytes.NewReader(head), strings.NewReader("\r\n\r\n")))).ReadMIMEHeader()
	if err != nil { // whose text would show a header
		return received{}, usage("the headers of the saved request cannot be read: each is on a line of its own, NAME: VALUE")
	}
	h := http.Header(header)
	got := received{
		Computed: webhook.Computed{ID: h.Get(webhook.HeaderID), Timestamp: h.Get(webhook.HeaderTimestamp), Body: append([]byte{}, body...)},
		arrived:  h.Get(webhook.HeaderSignature),
	}
	if n, err := strconv.ParseInt(h.Get(webhook.HeaderAttempt), 10, 64); err == nil && n > 0 {
		got.attempt = n
	}
	return got, nil
}

// choose finds the attempt that is meant.
func choose(attempts []client.SignedAttempt, got received) (client.SignedAttempt, error) {
	if len(attempts) == 0 {
		return client.SignedAttempt{}, errors.New("nothing was signed yet: this delivery has no attempt")
	}
	for _, attempt := range attempts {
		if attempt.Number == got.attempt {
			return attempt, nil
		}
	}
	if got.attempt != 0 {
		return client.SignedAttempt{}, usage("attempt %d is not known; kept are %d to %d", got.attempt, attempts[0].Number, attempts[len(attempts)-1].Number)
	}
	for _, attempt := range attempts {
		if strconv.FormatInt(attempt.Timestamp, 10) == got.Timestamp {
			return attempt, nil
		}
	}
	return attempts[len(attempts)-1], nil
}

func showSigned(out io.Writer, release, attempt int64, s webhook.Signed) {
	fmt.Fprintf(out, `Attempt %d of release %d signed:
  id         %s
  timestamp  %d (%s UTC)
  body       %d bytes, SHA-256 %s
with dots between them: id.timestamp.body
`, attempt, release, s.ID, s.Timestamp, time.Unix(s.Timestamp, 0).UTC().Format(time.DateTime), s.BodyBytes, s.BodyDigest)
}

// compare says which part of what was told differs: the parts first, then the
// secret, then how they were put together. A difference is an error.
func compare(out io.Writer, sent webhook.Sent, got received) error {
	parts := got.Computed
	parts.Signature = ""
	if difference := webhook.Explain(sent, parts); difference.Part != webhook.PartNone {
		fmt.Fprintln(out, "\n"+difference.Hint)
		if got.Body != nil && difference.Part == webhook.PartBody {
			fmt.Fprintf(out, "The body that was given has %d bytes; from byte %d on it is another.\n", len(got.Body), same(got.Body, sent.Body)+1)
		}
		return fmt.Errorf("the %s differs", difference.Part)
	}
	if got.arrived != "" && len(sent.Secrets) > 0 {
		if webhook.Explain(sent, webhook.Computed{Signature: got.arrived}).Part != webhook.PartNone {
			fmt.Fprintln(out, "\nThe signature that arrived was not made with the secret that was given: that one is another destination's, or from before a rotation.")
			return errors.New("the secret differs")
		}
		fmt.Fprintln(out, "\nThe signature that arrived is right for the secret that was given.")
	}
	if got.Signature == "" {
		if got.ID != "" || got.Timestamp != "" || got.Body != nil || got.BodyDigest != "" {
			fmt.Fprintln(out, "\nWhat was compared is the same.")
		}
		return nil
	}
	difference := webhook.Explain(sent, webhook.Computed{Signature: got.Signature})
	fmt.Fprintln(out, "\n"+difference.Hint)
	switch difference.Part {
	case webhook.PartNone:
		return nil
	case webhook.PartUnknown:
		return errors.New("the signature is not explained")
	case webhook.PartForm:
		return errors.New("the signature's form differs")
	}
	return fmt.Errorf("the %s differs", difference.Part)
}

// same counts the bytes that two bodies begin with alike.
func same(a, b []byte) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}
