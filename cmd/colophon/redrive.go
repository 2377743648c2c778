package main

import (
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/spf13/cobra"

	"colophon/internal/outbox"
)

func newRedrive(c *connection) *cobra.Command {
	var most int
	var send, drop bool
	command := &cobra.Command{
		Use:   "redrive",
		Short: "Look at dead letters, and return or drop them",
		Long: `Shows the messages that were set aside because nothing could be done with them, each with
its reason. --return puts them back on the queue once their cause is mended; one that cannot be read
stays. --drop deletes them: no delivery ends by that, for the sweeper goes on ringing for it.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if send && drop {
				return usage("--return and --drop are two different things")
			}
			letters, err := deadLetters(cmd, c)
			if err != nil {
				return err
			}
			found, err := letters.Look(cmd.Context(), most)
			out := cmd.OutOrStdout()
			returned, dropped, left := 0, 0, 0
			for _, letter := range found {
				fmt.Fprintf(out, "%s  %s  from %s: %s\n  %s\n", letter.SentAt.UTC().Format(time.DateTime), letter.ID, letter.Source, letter.Reason, letter.Body)
				_, unreadable := letter.Message()
				var done error
				switch {
				case send && unreadable == nil:
					done = letters.Return(cmd.Context(), letter)
					returned++
				case drop:
					done = letters.Drop(cmd.Context(), letter)
					dropped++
				default:
					if send {
						fmt.Fprintln(out, "  stays:", unreadable)
					}
					done = letters.Leave(cmd.Context(), letter)
					left++
				}
				if done != nil {
					return done
				}
			}
			fmt.Fprintf(out, "%d dead letters: %d returned, %d dropped, %d left\n", len(found), returned, dropped, left)
			return err
		},
	}
	flags := command.Flags()
	flags.IntVar(&most, "most", 100, "how many to look at")
	flags.BoolVar(&send, "return", false, "put them back on the queue")
	flags.BoolVar(&drop, "drop", false, "delete them")
	return command
}

func deadLetters(cmd *cobra.Command, c *connection) (*outbox.DeadLetters, error) {
	o, settings, err := c.outputs(cmd.Context())
	if err != nil {
		return nil, err
	}
	dead, err := o.need("DeadLetterQueueUrl")
	if err != nil {
		return nil, err
	}
	queue, err := o.need("QueueUrl")
	if err != nil {
		return nil, err
	}
	queues := sqs.NewFromConfig(settings)
	back, err := outbox.NewSender(outbox.SenderConfig{QueueURL: queue, SendBatch: queues.SendMessageBatch})
	if err != nil {
		return nil, err
	}
	return outbox.NewDeadLetters(outbox.DeadLettersConfig{
		QueueURL: dead, Queue: back, Receive: queues.ReceiveMessage, Delete: queues.DeleteMessage,
		ChangeVisibility: queues.ChangeMessageVisibility,
	})
}
