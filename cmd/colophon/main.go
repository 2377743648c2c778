// Command colophon does what editors and operators of Colophon do: it publishes
// releases, watches them being announced, and looks after destinations.
//
// It speaks to the API (--api, --token) and, for what only an operator may do,
// to AWS with the SDK's usual settings: profiles, AWS_REGION, AWS_ENDPOINT_URL.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/ogen-go/ogen/validate"
	"github.com/spf13/cobra"

	"colophon/client"
)

// The exit codes, as --help tells them.
const (
	exitDone        = 0
	exitFailed      = 1 // something went wrong on the way
	exitUsage       = 2 // the command's words are off
	exitRefused     = 3 // the API refused it
	exitUndelivered = 4 // a delivery failed or was skipped
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run carries one command line out and gives its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return exitDone
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		err = errInterrupted // whatever it was doing
	}
	fmt.Fprintln(stderr, "colophon: "+explain(err))
	return exitCode(err)
}

var (
	errUsage       = errors.New("usage")
	errUndelivered = errors.New("not delivered")
)

func usage(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{errUsage}, args...)...)
}

func exitCode(err error) int {
	switch {
	case errors.Is(err, errUsage):
		return exitUsage
	case client.AsProblem(err) != nil:
		return exitRefused
	case errors.Is(err, errUndelivered):
		return exitUndelivered
	}
	return exitFailed
}

// explain says what went wrong in the API's own words where it has some.
func explain(err error) string {
	problem := client.AsProblem(err)
	var foreign *validate.InvalidContentTypeError
	switch {
	case problem != nil:
	case errors.As(err, &foreign):
		return "what answered is not the API, or its function did not start; the stack's logs say more"
	default:
		return err.Error()
	}
	text := problem.Response.Detail.Or(problem.Response.Title)
	if id := problem.Response.RequestId; id != "" {
		text += " (request " + id + ")"
	}
	return text
}

func newRoot() *cobra.Command {
	c := &connection{}
	root := &cobra.Command{
		Use:   "colophon",
		Short: "Publish releases and watch them being announced",
		Long: `colophon publishes the documents of a project as numbered releases and shows how
each release is announced to the project's webhooks.

Which API:    --api or COLOPHON_API, the stack's output ApiUrl.
As whom:      COLOPHON_TOKEN, COLOPHON_TOKEN_FILE (a file that holds the token) or --token-stdin;
              "colophon token create" makes the first one.
Which stack:  --stack, for what goes straight to AWS with the SDK's usual settings.

Exit codes: 0 done, 1 something went wrong, 2 wrong usage, 3 the API refused it,
4 a delivery failed or was skipped.`,
		SilenceUsage:     true,
		SilenceErrors:    true,
		Args:             noArguments,
		RunE:             func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRun: func(cmd *cobra.Command, _ []string) { c.command = cmd },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage("%s", err) })
	flags := root.PersistentFlags()
	flags.StringVar(&c.api, "api", os.Getenv("COLOPHON_API"), "the API's address (COLOPHON_API)")
	flags.StringVar(&c.token, "token", "", "the token to act with, which others on this machine can then read; - for standard input")
	flags.BoolVar(&c.tokenStdin, "token-stdin", false, "read the token from standard input")
	flags.StringVar(&c.stack, "stack", "colophon", "the CloudFormation stack, for operators' commands")
	root.AddGroup(
		&cobra.Group{ID: "start", Title: "To begin with:"},
		&cobra.Group{ID: "publish", Title: "To publish:"},
		&cobra.Group{ID: "deliver", Title: "To look after deliveries:"},
		&cobra.Group{ID: "operate", Title: "To operate a stack:"},
	)
	add := func(group string, commands ...*cobra.Command) {
		for _, command := range commands {
			command.GroupID = group
			root.AddCommand(command)
		}
	}
	add("start", newDemo(c), newReceive())
	add("publish", newProject(c), newDocument(c), newPublish(c), newWatch(c))
	add("deliver", newDestination(c), newDelivery(c), newDoctor(c), newVerify(c))
	add("operate", newToken(c), newRedrive(c), newRestore(c))
	return root
}

func noArguments(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage("%q is not a command or takes no argument", args[0])
	}
	return nil
}

// arguments asks for exactly these, named as the usage line names them.
func arguments(names ...string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) < len(names) {
			return usage("%s is missing", names[len(args)])
		}
		if len(args) > len(names) {
			return usage("%q is one argument too many", args[len(names)])
		}
		return nil
	}
}
