package main

import (
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/spf13/cobra"

	"colophon/internal/clock"
	"colophon/internal/restore"
	"colophon/internal/store"
)

func newRestore(c *connection) *cobra.Command {
	command := &cobra.Command{
		Use: "restore", Short: "Prepare restored tables for a stack, with AWS credentials",
		Args: noArguments, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	command.AddCommand(newRestorePrepare(c))
	return command
}

func newRestorePrepare(c *connection) *cobra.Command {
	var content, deliveries string
	command := &cobra.Command{
		Use:   "prepare",
		Short: "Set what a restore leaves out, and print the parameters to deploy",
		Long: `Makes two tables that DynamoDB restored ready for the stack: the delivery table's stream, expiry,
point-in-time recovery, tags, and in production protection against deletion. Tokens that the restore
brought back are deleted. It can be run again after a failure; a second run changes nothing.

The stack's four parameters go to standard output, on one line, what was done to standard error.
Stop the functions before, and deploy the parameters afterwards: see docs/operations.md.`,
		Example: `  colophon restore prepare --content-table handbook-content-1129 --delivery-table handbook-delivery-1129`,
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if content == "" || deliveries == "" {
				return usage("--content-table and --delivery-table are needed: the names of the two restored tables")
			}
			o, settings, err := c.outputs(cmd.Context())
			if err != nil {
				return err
			}
			var own [3]string
			for i, name := range []string{"ContentTableName", "DeliveryTableName", "SealingKeyArn"} {
				if own[i], err = o.need(name); err != nil {
					return err
				}
			}
			tables := dynamodb.NewFromConfig(settings)
			prepared, err := restore.Prepare(cmd.Context(), restore.Config{
				Tables: tables, Wait: clock.Sleep,
				Tokens: func(table string) (restore.Tokens, error) {
					engine, err := store.NewDynamo(store.DynamoConfig{Client: tables})
					if err != nil {
						return nil, err
					}
					return store.NewRestoredTokens(store.RestoredTokensConfig{Engine: engine, Table: table})
				},
				Say: func(step string) { fmt.Fprintln(cmd.ErrOrStderr(), step) },
			}, restore.Plan{
				Content: content, Delivery: deliveries, OwnContent: own[0], OwnDelivery: own[1],
				// Where a stack does not say what it is, it is protected.
				ProtectedAgainstDeletion: o["Environment"] == "" || o["Environment"] == "production",
			})
			if errors.Is(err, restore.ErrPlan) {
				return usage("%s", err)
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "ContentTableName=%s DeliveryTableName=%s DeliveryStreamArn=%s SealingKeyArn=%s\n",
				prepared.ContentTable, prepared.DeliveryTable, prepared.DeliveryStream, own[2])
			return err
		},
	}
	command.Flags().StringVar(&content, "content-table", "", "the restored content table")
	command.Flags().StringVar(&deliveries, "delivery-table", "", "the restored delivery table")
	return command
}
