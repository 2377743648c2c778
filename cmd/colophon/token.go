package main

import (
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"colophon/internal/access"
)

func newToken(c *connection) *cobra.Command {
	command := &cobra.Command{
		Use: "token", Short: "Make, list and revoke tokens, with AWS credentials",
		Args: noArguments, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	command.AddCommand(newTokenCreate(c), newTokenList(c), newTokenRevoke(c))
	return command
}

func newTokenCreate(c *connection) *cobra.Command {
	var name, role, project string
	var expires time.Duration
	command := &cobra.Command{
		Use:   "create",
		Short: "Make a token and show it once",
		Long: `Makes a token and writes it to standard output, alone on its line. It is kept as its
SHA-256 only: what is not noted down now cannot be read again.

It goes straight to the stack's table with your AWS credentials, so it needs no token.`,
		Example: "  export COLOPHON_TOKEN=$(colophon token create --name alice --role admin)",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if name == "" {
				return usage("--name is missing: who or what has the token")
			}
			service, err := c.tokens(cmd.Context())
			if err != nil {
				return err
			}
			token, plain, err := service.CreateToken(cmd.Context(), access.NewToken{
				Name: name, Role: access.Role(role), Project: project, For: expires,
			})
			if err != nil {
				return err
			}
			reach := "all projects"
			if token.Project != "" {
				reach = "project " + token.Project
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s of %s, id %s\n", token.Name, token.Role, reach, token.ID)
			fmt.Fprintln(cmd.OutOrStdout(), plain)
			return nil
		},
	}
	command.Flags().StringVar(&name, "name", "", "who or what has it; releases name it")
	command.Flags().StringVar(&role, "role", string(access.Editor), "viewer, editor or admin")
	command.Flags().StringVar(&project, "project", "", "the one project it reaches (all, if not given)")
	command.Flags().DurationVar(&expires, "expires", 0, "how long it is good for, as 720h (for ever, if not given)")
	return command
}

func newTokenList(c *connection) *cobra.Command {
	var project string
	command := &cobra.Command{
		Use: "list", Short: "List tokens, without showing them", Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			service, err := c.tokens(cmd.Context())
			if err != nil {
				return err
			}
			list, err := service.ListTokens(cmd.Context(), project)
			if err != nil {
				return err
			}
			table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(table, "ID\tNAME\tROLE\tENDS IN\tCREATED\tEXPIRES")
			for _, t := range list {
				expires := "never"
				if !t.ExpiresAt.IsZero() {
					expires = t.ExpiresAt.UTC().Format(time.DateTime)
				}
				fmt.Fprintf(table, "%s\t%s\t%s\t…%s\t%s\t%s\n", t.ID, t.Name, t.Role, t.Ending, t.CreatedAt.UTC().Format(time.DateTime), expires)
			}
			return table.Flush()
		},
	}
	command.Flags().StringVar(&project, "project", "", "the project whose tokens are listed (those of all projects, if not given)")
	return command
}

func newTokenRevoke(c *connection) *cobra.Command {
	var project string
	command := &cobra.Command{
		Use: "revoke TOKEN-ID", Short: "End a token at once", Args: arguments("TOKEN-ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			service, err := c.tokens(cmd.Context())
			if err != nil {
				return err
			}
			return service.RevokeToken(cmd.Context(), project, args[0])
		},
	}
	command.Flags().StringVar(&project, "project", "", "the project that it reaches (all, if not given)")
	return command
}
