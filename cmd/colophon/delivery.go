package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"colophon/client"
)

func newDelivery(c *connection) *cobra.Command {
	command := &cobra.Command{
		Use: "delivery", Short: "Look at deliveries, redeliver them, try them now",
		Args: noArguments, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	command.AddCommand(newDeliveryList(c), newDeliveryShow(c), newRedeliver(c), newTryNow(c))
	return command
}

func newDeliveryList(c *connection) *cobra.Command {
	var limit int
	command := &cobra.Command{
		Use: "list PROJECT DESTINATION", Short: "List a destination's latest deliveries", Args: arguments("PROJECT", "DESTINATION"),
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := c.client()
			if err != nil {
				return err
			}
			page, err := api.ListDestinationDeliveries(cmd.Context(), client.ListDestinationDeliveriesParams{
				Project: args[0], Destination: args[1], Limit: client.NewOptInt(limit),
			})
			if err != nil {
				return err
			}
			table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(table, "RELEASE\tSTANDING")
			for _, d := range page.Deliveries {
				fmt.Fprintf(table, "%d\t%s\n", d.Release, standing(d))
			}
			return table.Flush()
		},
	}
	command.Flags().IntVar(&limit, "limit", 20, "how many")
	return command
}

func newDeliveryShow(c *connection) *cobra.Command {
	return &cobra.Command{
		Use: "show PROJECT DESTINATION RELEASE", Short: "Tell a delivery's story in sentences",
		Args: arguments("PROJECT", "DESTINATION", "RELEASE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return onDelivery(cmd, c, args, func(api *client.Client, release int64) (*client.Delivery, error) {
				return api.GetDelivery(cmd.Context(), client.GetDeliveryParams{Project: args[0], Destination: args[1], Release: release})
			})
		},
	}
}

func newRedeliver(c *connection) *cobra.Command {
	var force bool
	var over int64
	command := &cobra.Command{
		Use:   "redeliver PROJECT DESTINATION RELEASE",
		Short: "Deliver a release again: same id, same bytes, new tries",
		Long: `Delivers a release again that was delivered, failed or skipped. The newest release needs
nothing else. An older one would arrive after a newer one, so it needs --force and --over with
the number of the newest release that you know of: if there is a newer one by then, nothing is sent.

A receiver that ignores a release lower than one it has seen, as examples/receiver does, answers
a forced older one as received and does nothing about it.`,
		Args: arguments("PROJECT", "DESTINATION", "RELEASE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if force != (over > 0) {
				return usage("--force and --over go together")
			}
			return onDelivery(cmd, c, args, func(api *client.Client, release int64) (*client.Delivery, error) {
				ask := client.Redeliver{}
				if force {
					ask.Force, ask.Over = client.NewOptBool(true), client.NewOptInt64(over)
				}
				return api.Redeliver(cmd.Context(), client.NewOptRedeliver(ask), client.RedeliverParams{Project: args[0], Destination: args[1], Release: release})
			})
		},
	}
	command.Flags().BoolVar(&force, "force", false, "send it although a newer release was sent")
	command.Flags().Int64Var(&over, "over", 0, "with --force: the newest release that you know of")
	return command
}

func newTryNow(c *connection) *cobra.Command {
	return &cobra.Command{
		Use: "try-now PROJECT DESTINATION RELEASE", Short: "Bring the next try forward; it costs no extra try",
		Args: arguments("PROJECT", "DESTINATION", "RELEASE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return onDelivery(cmd, c, args, func(api *client.Client, release int64) (*client.Delivery, error) {
				return api.TryNow(cmd.Context(), client.TryNowParams{Project: args[0], Destination: args[1], Release: release})
			})
		},
	}
}

// onDelivery does something about a delivery and tells its story.
func onDelivery(cmd *cobra.Command, c *connection, args []string, do func(*client.Client, int64) (*client.Delivery, error)) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	release, err := releaseNumber(args[2])
	if err != nil {
		return err
	}
	d, err := do(api, release)
	if err != nil {
		return err
	}
	for _, line := range d.Timeline {
		fmt.Fprintln(cmd.OutOrStdout(), line)
	}
	return nil
}
