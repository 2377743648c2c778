// Tables holds a deployment to the tables and the key that the stack runs on:
// go run ./deploy/tables FOLDER reads the stack that is deployed and lets the
// template in sam's build folder take its ContentTableName, DeliveryTableName,
// DeliveryStreamArn and SealingKeyArn alone, which are then the defaults too.
// CloudFormation refuses anything else; without this, Enter at the prompts of
// `sam deploy --guided` would give the stack new, empty tables.
//
// For people it prints to standard error what it did, and to standard output the
// arguments with which sam deploys that same stack.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/smithy-go"
)

func main() {
	var given target
	flag.StringVar(&given.Stack, "stack", "", "the stack that is deployed; as samconfig.toml says where it is empty")
	flag.StringVar(&given.Region, "region", "", "its region, where samconfig.toml says none")
	settings := flag.String("config", "samconfig.toml", "sam's settings")
	move := flag.Bool("move", false, "let the stack move to other tables: for a second restore")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: tables [-stack NAME] [-region REGION] [-move] FOLDER, where FOLDER is sam's build folder (.aws-sam/build)")
		os.Exit(2)
	}
	if err := run(context.Background(), flag.Arg(0), *settings, given, *move); err != nil {
		fmt.Fprintln(os.Stderr, "colophon:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, folder, settings string, given target, move bool) error {
	text, err := os.ReadFile(settings)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	to, err := choose(string(text), given)
	if err != nil {
		return fmt.Errorf("%s: %w", settings, err)
	}
	found, err := look(ctx, to)
	if err != nil {
		return err
	}
	plan, err := decide(to, found, move)
	if err != nil {
		return err
	}
	path := filepath.Join(folder, "template.yaml")
	template, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("%w: run sam build first", err)
	}
	if template, err = narrow(template, plan.hold, move); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := os.WriteFile(path, template, 0o644); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, plan.says)
	fmt.Println(strings.Join(to.arguments(), " "))
	return nil
}

// look reads the stack's parameters; nil where there is no such stack.
func look(ctx context.Context, to target) (map[string]string, error) {
	settings, err := config.LoadDefaultConfig(ctx, config.WithRegion(to.Region), config.WithSharedConfigProfile(to.Profile))
	if err != nil {
		return nil, fmt.Errorf("read the AWS settings: %w", err)
	}
	out, err := cloudformation.NewFromConfig(settings).DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: &to.Stack})
	if err != nil {
		return nil, unread(to, err)
	}
	found := map[string]string{}
	for _, stack := range out.Stacks {
		for _, parameter := range stack.Parameters {
			found[aws.ToString(parameter.ParameterKey)] = aws.ToString(parameter.ParameterValue)
		}
	}
	return found, nil
}

// unread is the error for a stack that could not be read, and none where AWS says
// that there is no such stack. It has no code of its own for that.
func unread(to target, err error) error {
	refused := smithy.APIError(nil)
	if !errors.As(err, &refused) {
		return fmt.Errorf("stack %s in %s could not be read, so nothing is deployed: are there AWS credentials, and is AWS reachable? (%w)", to.Stack, to.Region, err)
	}
	if refused.ErrorCode() == "ValidationError" && strings.Contains(refused.ErrorMessage(), "does not exist") {
		return nil
	}
	return fmt.Errorf("stack %s in %s could not be read, so nothing is deployed: AWS refused cloudformation:DescribeStacks (%s); use credentials that may call it", to.Stack, to.Region, refused.ErrorCode())
}
