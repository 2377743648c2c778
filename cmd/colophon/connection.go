package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
	"unicode"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/spf13/cobra"

	"colophon/client"
	"colophon/internal/access"
	"colophon/internal/store"
)

// connection is what commands reach the system through.
type connection struct {
	api, token, stack string
	tokenStdin        bool           // the token comes on standard input
	command           *cobra.Command // the one that is being carried out
}

// requestTime bounds one request of the API: its gateway ends any after 29 s.
const requestTime = 35 * time.Second

func (c *connection) client() (*client.Client, error) {
	if c.api == "" {
		return nil, usage("which API? Give --api, or set COLOPHON_API to the stack's output ApiUrl")
	}
	if err := c.readToken(os.Getenv); err != nil {
		return nil, err
	}
	if c.token == "" {
		return nil, usage(`as whom? Set COLOPHON_TOKEN or COLOPHON_TOKEN_FILE, or give --token-stdin; "colophon token create" makes a token`)
	}
	return client.New(client.Config{Address: c.api, Token: c.token, HTTP: &http.Client{Timeout: requestTime}})
}

// stdinAsToken is the value of --token that stands for standard input.
const stdinAsToken = "-"

// longestToken bounds what is read as a token.
const longestToken = 1 << 10

// readToken finds the token to act with, of four places that one can come from;
// c.token stays empty where none has one. It is called when a token is needed and
// not before: "colophon token create" may be about to write the file.
func (c *connection) readToken(getenv func(string) string) error {
	cmd := c.command
	if cmd == nil { // it was read
		return nil
	}
	c.command = nil
	flagged := cmd.Flags().Changed("token")
	if flagged && c.token == stdinAsToken {
		c.tokenStdin, flagged, c.token = true, false, ""
	}
	inVariable, file := getenv("COLOPHON_TOKEN"), getenv("COLOPHON_TOKEN_FILE")
	switch {
	case c.tokenStdin && flagged:
		return usage("--token and --token-stdin are two ways of giving one token")
	case flagged:
		if c.token = strings.TrimSpace(c.token); c.token == "" {
			return usage("--token is empty")
		}
		warnOfArgument(cmd, "--token", "COLOPHON_TOKEN_FILE or --token-stdin")
		return nil
	case c.tokenStdin:
		err := c.setToken("standard input", cmd.InOrStdin())
		cmd.SetIn(spentInput{})
		return err
	case inVariable != "" && file != "":
		return usage("COLOPHON_TOKEN and COLOPHON_TOKEN_FILE are both set: unset one, so that it is clear which token acts")
	case file != "":
		f, err := os.Open(file)
		if err != nil {
			return fmt.Errorf("read COLOPHON_TOKEN_FILE: %w", err)
		}
		defer f.Close()
		return c.setToken("the file that COLOPHON_TOKEN_FILE names", f)
	}
	c.token = strings.TrimSpace(inVariable)
	return nil
}

// spentInput is standard input after the token was read from it.
type spentInput struct{}

func (spentInput) Read([]byte) (int, error) { return 0, errSpentInput }

var errSpentInput = usage("standard input gives the token and can give nothing else: set COLOPHON_TOKEN_FILE instead")

func (c *connection) setToken(source string, from io.Reader) error {
	text, err := io.ReadAll(io.LimitReader(from, longestToken+1))
	if err != nil {
		return fmt.Errorf("read the token from %s: %w", source, err)
	}
	c.token = strings.TrimSpace(string(text))
	if len(text) > longestToken || c.token == "" || strings.ContainsFunc(c.token, unicode.IsSpace) {
		c.token = ""
		return usage("%s does not hold a token and nothing else", source)
	}
	return nil
}

// warnOfArgument says that a secret was given where others can read it.
func warnOfArgument(cmd *cobra.Command, flag, instead string) {
	fmt.Fprintf(cmd.ErrOrStderr(), "colophon: others on this machine can read %s in the list of processes, and shells keep it in their history: use %s instead\n", flag, instead)
}

// outputs are what a stack says of itself.
type outputs map[string]string

func (c *connection) outputs(ctx context.Context) (outputs, aws.Config, error) {
	if c.stack == "" { // CloudFormation would take it for any stack
		return nil, aws.Config{}, usage("which stack? --stack names none")
	}
	settings, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, settings, fmt.Errorf("read the AWS settings: %w", err)
	}
	out, err := cloudformation.NewFromConfig(settings).DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: &c.stack})
	if err != nil {
		return nil, settings, fmt.Errorf("look at stack %q: %w", c.stack, err)
	}
	if len(out.Stacks) != 1 {
		return nil, settings, fmt.Errorf("there is no stack %q here; --stack names another", c.stack)
	}
	found := outputs{}
	for _, output := range out.Stacks[0].Outputs {
		found[aws.ToString(output.OutputKey)] = aws.ToString(output.OutputValue)
	}
	return found, settings, nil
}

func (o outputs) need(name string) (string, error) {
	if value := o[name]; value != "" {
		return value, nil
	}
	return "", fmt.Errorf("the stack has no output %s: was it deployed from this template?", name)
}

// address is the API's: on LocalStack the one that its endpoint serves.
func (o outputs) address(settings aws.Config) (string, error) {
	if endpoint := aws.ToString(settings.BaseEndpoint); endpoint != "" {
		id, err := o.need("ApiId")
		return strings.TrimRight(endpoint, "/") + "/_aws/execute-api/" + id + "/v1", err
	}
	return o.need("ApiUrl")
}

// tokens is the access service on the stack's own table: for operators, who have
// AWS credentials and no token yet.
func (c *connection) tokens(ctx context.Context) (*access.Service, error) {
	o, settings, err := c.outputs(ctx)
	if err != nil {
		return nil, err
	}
	return o.tokens(settings)
}

func (o outputs) tokens(settings aws.Config) (*access.Service, error) {
	table, err := o.need("ContentTableName")
	if err != nil {
		return nil, err
	}
	engine, err := store.NewDynamo(store.DynamoConfig{Client: dynamodb.NewFromConfig(settings)})
	if err != nil {
		return nil, err
	}
	kept, err := store.NewTokens(store.TokensConfig{Engine: engine, Table: table})
	if err != nil {
		return nil, err
	}
	return access.New(access.Config{Tokens: kept})
}

// errInterrupted says that a person stopped it.
var errInterrupted = errors.New("stopped before the end")
