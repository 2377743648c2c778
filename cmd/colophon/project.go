package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"colophon/client"
	"colophon/internal/content"
)

func newProject(c *connection) *cobra.Command {
	command := &cobra.Command{
		Use: "project", Short: "Create and list projects",
		Args: noArguments, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	command.AddCommand(
		&cobra.Command{
			Use: "create NAME", Short: "Create a project and print its id", Args: arguments("NAME"),
			RunE: func(cmd *cobra.Command, args []string) error {
				api, err := c.client()
				if err != nil {
					return err
				}
				project, err := api.CreateProject(cmd.Context(), &client.NewProject{Name: args[0]})
				if err != nil {
					return err
				}
				fmt.Fprintln(cmd.OutOrStdout(), project.ID)
				return nil
			},
		},
		&cobra.Command{
			Use: "list", Short: "List projects", Args: noArguments,
			RunE: func(cmd *cobra.Command, _ []string) error {
				api, err := c.client()
				if err != nil {
					return err
				}
				table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
				fmt.Fprintln(table, "ID\tNAME\tNEWEST RELEASE")
				for cursor := (client.OptString{}); ; {
					page, err := api.ListProjects(cmd.Context(), client.ListProjectsParams{Cursor: cursor})
					if err != nil {
						return err
					}
					for _, p := range page.Projects {
						fmt.Fprintf(table, "%s\t%s\t%s\n", p.ID, p.Name, number(p.NewestRelease))
					}
					if cursor = page.Next; !cursor.Set {
						return table.Flush()
					}
				}
			},
		},
	)
	return command
}

func number(n client.OptInt64) string {
	if !n.Set {
		return "-"
	}
	return fmt.Sprint(n.Value)
}

func newDocument(c *connection) *cobra.Command {
	command := &cobra.Command{
		Use: "document", Short: "Write, read and list a project's documents",
		Args: noArguments, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	command.AddCommand(newDocumentPut(c), newDocumentGet(c), newDocumentList(c), newDocumentDelete(c))
	return command
}

func newDocumentPut(c *connection) *cobra.Command {
	var kind, ifMatch string
	command := &cobra.Command{
		Use:     "put PROJECT PATH FILE",
		Short:   "Save a document's draft from a file (- for standard input)",
		Example: "  colophon document put prj_… guide/index.md index.md",
		Args:    arguments("PROJECT", "PATH", "FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := c.client()
			if err != nil {
				return err
			}
			from := cmd.InOrStdin()
			if _, spent := from.(spentInput); spent && args[2] == "-" {
				return errSpentInput // before the request is begun
			}
			if args[2] != "-" {
				file, err := os.Open(args[2])
				if err != nil {
					return fmt.Errorf("read the document: %w", err)
				}
				defer file.Close()
				from = file
			}
			params := client.PutDocumentParams{Project: args[0], Path: args[1]}
			if ifMatch != "" {
				params.IfMatch = client.NewOptString(ifMatch)
			}
			saved, err := putDocument(cmd.Context(), api, params, cmp.Or(kind, content.TypeOfPath(args[1])), from)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: %d bytes, %s\n", saved.Path, saved.Size, saved.Etag)
			return nil
		},
	}
	command.Flags().StringVar(&kind, "type", "", "its content type (by the path's ending, if not given)")
	command.Flags().StringVar(&ifMatch, "if-match", "", "save only over this version, an ETag")
	return command
}

func newDocumentGet(c *connection) *cobra.Command {
	return &cobra.Command{
		Use: "get PROJECT PATH", Short: "Write a document's draft to standard output", Args: arguments("PROJECT", "PATH"),
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := c.client()
			if err != nil {
				return err
			}
			got, err := api.GetDocument(cmd.Context(), client.GetDocumentParams{Project: args[0], Path: args[1]})
			if err != nil {
				return err
			}
			if document, ok := got.(*client.GetDocumentOKHeaders); ok {
				_, err = io.Copy(cmd.OutOrStdout(), document.Response)
			}
			return err
		},
	}
}

func newDocumentList(c *connection) *cobra.Command {
	return &cobra.Command{
		Use: "list PROJECT", Short: "List a project's documents", Args: arguments("PROJECT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := c.client()
			if err != nil {
				return err
			}
			table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(table, "PATH\tBYTES\tTYPE\tSAVED")
			for cursor := (client.OptString{}); ; {
				page, err := api.ListDocuments(cmd.Context(), client.ListDocumentsParams{Project: args[0], Cursor: cursor})
				if err != nil {
					return err
				}
				for _, d := range page.Documents {
					fmt.Fprintf(table, "%s\t%d\t%s\t%s\n", d.Path, d.Size, d.ContentType, d.SavedAt.UTC().Format(time.DateTime))
				}
				if cursor = page.Next; !cursor.Set {
					return table.Flush()
				}
			}
		},
	}
}

func newDocumentDelete(c *connection) *cobra.Command {
	return &cobra.Command{
		Use: "delete PROJECT PATH", Short: "Delete a document's draft; releases keep theirs", Args: arguments("PROJECT", "PATH"),
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := c.client()
			if err != nil {
				return err
			}
			return api.DeleteDocument(cmd.Context(), client.DeleteDocumentParams{Project: args[0], Path: args[1]})
		},
	}
}
