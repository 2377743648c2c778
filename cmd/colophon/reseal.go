package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/spf13/cobra"

	"colophon/internal/destination"
	"colophon/internal/runtime/sealing"
	"colophon/internal/store"
)

func newDestinationReseal(c *connection) *cobra.Command {
	return &cobra.Command{
		Use:   "reseal [PROJECT…]",
		Short: "Bind what was sealed by an older version to its purpose and address",
		Long: `For operators, with AWS credentials of the stack's account. Secrets and headers' values that an
older version of Colophon sealed are bound to their project and destination only. This binds them to
their purpose too, and headers to the scheme, host and port of the address that they are stored with.
The key does it by itself (kms:ReEncrypt): no value is opened. Values that are bound already are left
alone, so it can be repeated. Without a project it does all projects.`,
		RunE: func(cmd *cobra.Command, projects []string) error {
			o, settings, err := c.outputs(cmd.Context())
			if err != nil {
				return err
			}
			var names [3]string
			for i, output := range []string{"ContentTableName", "DeliveryTableName", "SealingKeyArn"} {
				if names[i], err = o.need(output); err != nil {
					return err
				}
			}
			engine, err := store.NewDynamo(store.DynamoConfig{Client: dynamodb.NewFromConfig(settings)})
			if err != nil {
				return err
			}
			destinations, err := store.NewDestinations(store.DestinationsConfig{Engine: engine, ContentTable: names[0], DeliveryTable: names[1]})
			if err != nil {
				return err
			}
			keys, err := sealing.NewResealer(sealing.ResealerConfig{ReEncrypt: kms.NewFromConfig(settings).ReEncrypt, Key: names[2]})
			if err != nil {
				return err
			}
			resealer, err := destination.NewResealer(destination.ResealerConfig{
				Store: destinations, Reseal: keys.Reseal, Clock: time.Now, Random: rand.Reader,
			})
			if err != nil {
				return err
			}
			if len(projects) == 0 {
				contents, err := store.NewContents(store.ContentsConfig{Engine: engine, ContentTable: names[0], DeliveryTable: names[1]})
				if err != nil {
					return err
				}
				for after := ""; ; after = projects[len(projects)-1] {
					page, err := contents.ListProjects(cmd.Context(), after, 100)
					if err != nil {
						return err
					}
					if len(page) == 0 {
						break
					}
					for _, project := range page {
						projects = append(projects, project.ID)
					}
				}
			}
			moved, failed := 0, 0
			for _, project := range projects {
				err := resealer.Project(cmd.Context(), project, func(done destination.Resealed) {
					moved, failed = moved+done.Moved, failed+len(done.Failed)
					fmt.Fprintf(cmd.OutOrStdout(), "%s  %s  resealed: %d", project, done.Destination, done.Moved)
					if done.Origin != "" {
						fmt.Fprintf(cmd.OutOrStdout(), ", headers for %s", done.Origin)
					}
					if len(done.Failed) > 0 {
						fmt.Fprintf(cmd.OutOrStdout(), ", sealed for another destination: %s", strings.Join(done.Failed, ", "))
					}
					fmt.Fprintln(cmd.OutOrStdout())
				})
				if err != nil {
					return fmt.Errorf("project %s: %w", project, err)
				}
			}
			fmt.Fprintf(cmd.OutOrStdout(), "values resealed: %d, failed: %d\n", moved, failed)
			if failed > 0 {
				return errors.New("some values were sealed for another destination; an admin sets the headers again, or rotates the secret and revokes the old one")
			}
			return nil
		},
	}
}
