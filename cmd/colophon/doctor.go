package main

import (
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"colophon/client"
)

func newDoctor(c *connection) *cobra.Command {
	return &cobra.Command{
		Use:   "doctor PROJECT DESTINATION",
		Short: "Say what stands between Colophon and a receiver",
		Long: `Sends a signed test to a destination, on the same way as every announcement, and says what was
found: whether its host is known and may be called, whether something listens there, its
certificate, its chain and how long it is good for, what it answered, whether it redirects, and
whether its clock agrees. Also while the destination is paused.

The findings are kept for 7 days.`,
		Args: arguments("PROJECT", "DESTINATION"),
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := c.client()
			if err != nil {
				return err
			}
			e, err := api.CreateExamination(cmd.Context(), client.CreateExaminationParams{Project: args[0], Destination: args[1]})
			if err != nil {
				return err
			}
			ticker := time.NewTicker(watchEvery)
			defer ticker.Stop()
			for e.State == client.TestStateWaiting || e.State == client.TestStateSending {
				select {
				case <-ticker.C:
				case <-cmd.Context().Done():
					return errInterrupted
				}
				e, err = api.GetExamination(cmd.Context(), client.GetExaminationParams{Project: args[0], Destination: args[1], Examination: e.ID})
				if err != nil {
					return err
				}
			}
			return showExamination(cmd, e)
		},
	}
}

func showExamination(cmd *cobra.Command, e *client.Examination) error {
	table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	bad := 0
	for _, f := range e.Findings {
		if f.Verdict == client.FindingVerdictBad {
			bad++
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", f.Check, f.Verdict, f.Words)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	switch {
	case e.State == client.TestStateNotSent:
		return fmt.Errorf("%w: nobody took the examination up within two minutes", errUndelivered)
	case e.State == client.TestStateUnknown:
		return fmt.Errorf("%w: the examination was interrupted; ask for another", errUndelivered)
	case bad > 0 || e.State == client.TestStateFailed:
		return fmt.Errorf("%w: the signed test", errUndelivered)
	}
	return nil
}
