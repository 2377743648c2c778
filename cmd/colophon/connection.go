package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"colophon/client"
	"colophon/internal/access"
	"colophon/internal/store"
)

// connection is what commands reach the system through.
type connection struct {
	api, token, stack string
}

// requestTime bounds one request of the API: its gateway ends any after 29 s.
const requestTime = 35 * time.Second

func (c *connection) client() (*client.Client, error) {
	if c.token == "" {
		c.token = os.Getenv("COLOPHON_TOKEN") // not a flag's default, which --help would show
	}
	if c.api == "" {
		return nil, usage("which API? Give --api, or set COLOPHON_API to the stack's output ApiUrl")
	}
	if c.token == "" {
		return nil, usage(`as whom? Give --token, or set COLOPHON_TOKEN; "colophon token create" makes one`)
	}
	return client.New(client.Config{Address: c.api, Token: c.token, HTTP: &http.Client{Timeout: requestTime}})
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
