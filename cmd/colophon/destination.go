package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"colophon/client"
	"colophon/internal/webhook"
)

func newDestination(c *connection) *cobra.Command {
	command := &cobra.Command{
		Use: "destination", Short: "Add, pause, resume and remove webhook addresses",
		Args: noArguments, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	command.AddCommand(newDestinationAdd(c), newDestinationList(c), newDestinationTest(c), newDestinationRotate(c),
		newDestinationRevoke(c), newDestinationReseal(c))
	for _, one := range []struct {
		use, short string
		do         func(cmd *cobra.Command, api *client.Client, project, destination string) error
	}{
		{"pause PROJECT DESTINATION", "Stop sending; what is published meanwhile is skipped, visibly", func(cmd *cobra.Command, api *client.Client, project, destination string) error {
			_, err := api.PauseDestination(cmd.Context(), client.PauseDestinationParams{Project: project, Destination: destination})
			return err
		}},
		{"resume PROJECT DESTINATION", "Send again from the next release on", resume},
		{"remove PROJECT DESTINATION", "Remove it for good; what is pending is skipped", func(cmd *cobra.Command, api *client.Client, project, destination string) error {
			return api.RemoveDestination(cmd.Context(), client.RemoveDestinationParams{Project: project, Destination: destination})
		}},
	} {
		command.AddCommand(&cobra.Command{
			Use: one.use, Short: one.short, Args: arguments("PROJECT", "DESTINATION"),
			RunE: func(cmd *cobra.Command, args []string) error {
				api, err := c.client()
				if err != nil {
					return err
				}
				return one.do(cmd, api, args[0], args[1])
			},
		})
	}
	return command
}

func resume(cmd *cobra.Command, api *client.Client, project, destination string) error {
	resumed, err := api.ResumeDestination(cmd.Context(), client.ResumeDestinationParams{Project: project, Destination: destination})
	if err != nil {
		return err
	}
	if resumed.Offer.Set {
		fmt.Fprintf(cmd.OutOrStdout(), "Release %d, the current one, has not arrived. To send it:\n  colophon delivery redeliver %s %s %d\n",
			resumed.Offer.Value, project, destination, resumed.Offer.Value)
	}
	return nil
}

func newDestinationRotate(c *connection) *cobra.Command {
	var revoke, bring bool
	command := &cobra.Command{
		Use:   "rotate-secret PROJECT DESTINATION",
		Short: "Make a new signing secret; the replaced one signs for a day too",
		Long: `Makes a new signing secret and writes it to standard output, this once. The replaced one goes on
signing for 24 hours in addition to it; at most three replaced ones do at the same time. With
--secret-stdin you bring the secret, whsec_ and the base64 of 24 to 64 random bytes: then the command
can be repeated when its answer was lost.`,
		Example: `  SECRET=$(colophon destination rotate-secret prj_… dst_…)
  SECRET="whsec_$(openssl rand -base64 32)"
  printf %s "$SECRET" | colophon destination rotate-secret prj_… dst_… --secret-stdin`,
		Args: arguments("PROJECT", "DESTINATION"),
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := c.client()
			if err != nil {
				return err
			}
			ask := client.RotateSecret{RevokeOld: client.NewOptBool(revoke)}
			if bring {
				text, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), 1024))
				if err != nil {
					return fmt.Errorf("read the secret: %w", err)
				}
				secret, err := webhook.ParseSecret(strings.TrimSpace(string(text)))
				if err != nil {
					return usage("what came on standard input is not a signing secret: it is whsec_ and the base64 of 24 to 64 bytes")
				}
				ask.Secret = client.NewOptString(secret.Reveal())
			}
			rotated, err := api.RotateDestinationSecret(cmd.Context(), client.NewOptRotateSecret(ask),
				client.RotateDestinationSecretParams{Project: args[0], Destination: args[1]})
			if err != nil {
				return err
			}
			if until, ok := rotated.Response.PreviousUntil.Get(); ok {
				fmt.Fprintf(cmd.ErrOrStderr(), "The secret before it signs too until %s UTC.\n", until.UTC().Format(time.DateTime))
			}
			fmt.Fprintln(cmd.OutOrStdout(), rotated.Response.Secret)
			return nil
		},
	}
	command.Flags().BoolVar(&revoke, "revoke-old", false, "end the current secret and those it replaced at once")
	command.Flags().BoolVar(&bring, "secret-stdin", false, "read the new secret from standard input")
	return command
}

func newDestinationRevoke(c *connection) *cobra.Command {
	var position int
	command := &cobra.Command{
		Use:   "revoke-old-secret PROJECT DESTINATION",
		Short: "End replaced secrets before their time",
		Long: `Ends all replaced secrets, so that only the newest signs; --position ends one of them: 1 is the one
that the last rotation replaced. It takes effect within 15 seconds.`,
		Args: arguments("PROJECT", "DESTINATION"),
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := c.client()
			if err != nil {
				return err
			}
			ask, params := client.OptRevokeSecret{}, client.RevokeOldDestinationSecretParams{Project: args[0], Destination: args[1]}
			if cmd.Flags().Changed("position") {
				seen, err := api.GetDestination(cmd.Context(), client.GetDestinationParams{Project: args[0], Destination: args[1]})
				if err != nil {
					return err
				}
				ask = client.NewOptRevokeSecret(client.RevokeSecret{Position: client.NewOptInt(position)})
				params.IfMatch = client.NewOptString(seen.ETag)
			}
			err = api.RevokeOldDestinationSecret(cmd.Context(), ask, params)
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.ErrOrStderr(), "It signs nothing any more within 15 seconds.")
			return nil
		},
	}
	command.Flags().IntVar(&position, "position", 0, "which one: 1 is the newest; without it, all")
	return command
}

func newDestinationAdd(c *connection) *cobra.Command {
	var name string
	var headers []string
	command := &cobra.Command{
		Use:   "add PROJECT URL",
		Short: "Add a destination and show its signing secret once",
		Long: `Adds a webhook address. Its id goes to standard error; its signing secret, which is
shown this once, goes to standard output.`,
		Example: "  SECRET=$(colophon destination add prj_… https://hooks.example.com/colophon --name shop)",
		Args:    arguments("PROJECT", "URL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := c.client()
			if err != nil {
				return err
			}
			ask := &client.NewDestination{Name: name, URL: args[1]}
			if name == "" {
				ask.Name = args[1]
			}
			if len(headers) > 0 {
				custom := client.NewDestinationHeaders{}
				for _, header := range headers {
					key, value, ok := strings.Cut(header, ":")
					if !ok {
						return usage("--header is NAME: VALUE")
					}
					custom[strings.TrimSpace(key)] = strings.TrimSpace(value)
				}
				ask.Headers = client.NewOptNewDestinationHeaders(custom)
			}
			created, err := api.CreateDestination(cmd.Context(), ask, client.CreateDestinationParams{Project: args[0]})
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.ErrOrStderr(), created.Response.Destination.ID)
			fmt.Fprintln(cmd.OutOrStdout(), created.Response.Secret)
			return nil
		},
	}
	command.Flags().StringVar(&name, "name", "", "what people call it")
	command.Flags().StringArrayVar(&headers, "header", nil, "a custom header, NAME: VALUE, sent with each request (repeatable)")
	return command
}

func newDestinationList(c *connection) *cobra.Command {
	return &cobra.Command{
		Use: "list PROJECT", Short: "List a project's destinations", Args: arguments("PROJECT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := c.client()
			if err != nil {
				return err
			}
			list, err := api.ListDestinations(cmd.Context(), client.ListDestinationsParams{Project: args[0]})
			if err != nil {
				return err
			}
			table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(table, "ID\tNAME\tSTATE\tDELIVERED THROUGH\tURL")
			for _, d := range list.Destinations {
				state := string(d.State)
				if d.PausedBy.Set {
					state += " by " + string(d.PausedBy.Value)
				}
				fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", d.ID, d.Name, state, number(d.DeliveredThrough), d.URL)
			}
			return table.Flush()
		},
	}
}

func newDestinationTest(c *connection) *cobra.Command {
	return &cobra.Command{
		Use: "test PROJECT DESTINATION", Short: "Send a test request and show what became of it", Args: arguments("PROJECT", "DESTINATION"),
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := c.client()
			if err != nil {
				return err
			}
			test, err := api.CreateTest(cmd.Context(), client.CreateTestParams{Project: args[0], Destination: args[1]})
			if err != nil {
				return err
			}
			ticker := time.NewTicker(watchEvery)
			defer ticker.Stop()
			for {
				switch test.State {
				case client.TestStateDelivered, client.TestStateFailed:
					result := test.Attempt.Value
					fmt.Fprintf(cmd.OutOrStdout(), "%s after %d ms", result.Class, result.Milliseconds)
					if result.Status.Set {
						fmt.Fprintf(cmd.OutOrStdout(), ", answered %d", result.Status.Value)
					}
					fmt.Fprintln(cmd.OutOrStdout(), result.Detail.Or(""))
					if test.State == client.TestStateFailed {
						return fmt.Errorf("%w: the test send", errUndelivered)
					}
					return nil
				case client.TestStateNotSent:
					return fmt.Errorf("%w: nobody took the test send up within two minutes", errUndelivered)
				case client.TestStateUnknown:
					return fmt.Errorf("%w: the test send may have been received, its outcome is not known", errUndelivered)
				}
				select {
				case <-ticker.C:
				case <-cmd.Context().Done():
					return errInterrupted
				}
				test, err = api.GetTest(cmd.Context(), client.GetTestParams{Project: args[0], Destination: args[1], Test: test.ID})
				if err != nil {
					return err
				}
			}
		},
	}
}
