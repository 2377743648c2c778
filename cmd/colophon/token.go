package main

import (
	"fmt"
	"strconv"
	"strings"
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
	var name, role, project, expires string
	var all bool
	command := &cobra.Command{
		Use:   "create",
		Short: "Make a token and show it once",
		Long: `Makes a token and writes it to standard output, alone on its line. It is kept as its
SHA-256 only: what is not noted down now cannot be read again.

Its reach has to be said: --project ID or --all-projects. It is good for 90 days, unless --expires
says otherwise: a time as 12h or 30d, or never.

It goes straight to the stack's table with your AWS credentials, so it needs no token.`,
		Example: "  export COLOPHON_TOKEN=$(colophon token create --name alice --role admin --all-projects)\n" +
			"  colophon token create --name ci --project prj_… --expires 30d > token",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if name == "" {
				return usage("--name is missing: who or what has the token")
			}
			if (project == "") != all {
				return usage("what may the token reach? Give --project ID or --all-projects")
			}
			lifetime, forever, err := parseLifetime(expires)
			if err != nil {
				return err
			}
			service, err := c.tokens(cmd.Context())
			if err != nil {
				return err
			}
			token, plain, err := service.CreateToken(cmd.Context(), access.NewToken{
				Name: name, Role: access.Role(role), Project: project, AllProjects: all, For: lifetime, Forever: forever,
			})
			if err != nil {
				return err
			}
			reach := "all projects"
			if token.Project != "" {
				reach = "project " + token.Project
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s of %s, id %s, expires %s\n", token.Name, token.Role, reach, token.ID, orNever(token.ExpiresAt))
			fmt.Fprintln(cmd.OutOrStdout(), plain)
			return nil
		},
	}
	command.Flags().StringVar(&name, "name", "", "who or what has it; releases name it")
	command.Flags().StringVar(&role, "role", string(access.Editor), "viewer, editor or admin")
	command.Flags().StringVar(&project, "project", "", "the one project it reaches")
	command.Flags().BoolVar(&all, "all-projects", false, "it reaches all projects, those to come among them")
	command.Flags().StringVar(&expires, "expires", "90d", "how long it is good for, as 12h or 30d, or never")
	return command
}

// parseLifetime reads how long a token is to be good for: days, Go's durations, or never.
func parseLifetime(text string) (lifetime time.Duration, forever bool, err error) {
	if text == "never" {
		return 0, true, nil
	}
	const longest = 100 * 365 // days; more overflows a duration
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n > 0 && n <= longest {
			return time.Duration(n) * 24 * time.Hour, false, nil
		}
	}
	if lifetime, err = time.ParseDuration(text); err != nil || lifetime <= 0 {
		return 0, false, usage("--expires is a time as 12h or 30d, or never")
	}
	return lifetime, false, nil
}

func orNever(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.UTC().Format(time.DateTime)
}

func newTokenList(c *connection) *cobra.Command {
	var project string
	command := &cobra.Command{
		Use: "list", Short: "List tokens, without showing them; LAST USED is right to the hour", Args: noArguments,
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
			fmt.Fprintln(table, "ID\tNAME\tROLE\tENDS IN\tCREATED\tEXPIRES\tLAST USED")
			for _, t := range list {
				fmt.Fprintf(table, "%s\t%s\t%s\t…%s\t%s\t%s\t%s\n", t.ID, t.Name, t.Role, t.Ending,
					t.CreatedAt.UTC().Format(time.DateTime), orNever(t.ExpiresAt), orNever(t.LastUsedAt))
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
