package restore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"colophon/internal/store"
)

// expiry is the attribute by which items expire: the template's.
const expiry = "expiresAt"

// Tables are the operations of DynamoDB that preparing needs.
type Tables interface {
	DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error)
	UpdateTable(context.Context, *dynamodb.UpdateTableInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateTableOutput, error)
	DescribeTimeToLive(context.Context, *dynamodb.DescribeTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error)
	UpdateTimeToLive(context.Context, *dynamodb.UpdateTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateTimeToLiveOutput, error)
	DescribeContinuousBackups(context.Context, *dynamodb.DescribeContinuousBackupsInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeContinuousBackupsOutput, error)
	UpdateContinuousBackups(context.Context, *dynamodb.UpdateContinuousBackupsInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateContinuousBackupsOutput, error)
	ListTagsOfResource(context.Context, *dynamodb.ListTagsOfResourceInput, ...func(*dynamodb.Options)) (*dynamodb.ListTagsOfResourceOutput, error)
	TagResource(context.Context, *dynamodb.TagResourceInput, ...func(*dynamodb.Options)) (*dynamodb.TagResourceOutput, error)
}

// Tokens deletes the tokens that a restore brought back, and returns how many.
type Tokens interface {
	Delete(ctx context.Context) (int, error)
}

// Config is what preparing needs.
type Config struct {
	Tables Tables
	Tokens func(contentTable string) (Tokens, error)
	// Wait waits between two looks at a table that is being changed.
	Wait func(context.Context, time.Duration) error
	// Say is called with each step that changes something.
	Say func(string)
}

func (c Config) validate() error {
	if c.Tables == nil || c.Tokens == nil || c.Wait == nil || c.Say == nil {
		return errors.New("restore: tables, tokens, a wait and a report are needed")
	}
	return nil
}

// Plan names the tables.
type Plan struct {
	Content, Delivery        string // restored
	OwnContent, OwnDelivery  string // those that the stack uses now; their tags are copied where they are there still
	ProtectedAgainstDeletion bool
}

// Prepared is what the stack is to be given. The key is not a table's: it stays.
type Prepared struct {
	ContentTable, DeliveryTable, DeliveryStream string
}

// Prepare makes the tables of a plan ready. Both are looked at before either is
// changed.
func Prepare(ctx context.Context, c Config, p Plan) (Prepared, error) {
	if err := c.validate(); err != nil {
		return Prepared{}, err
	}
	if err := p.check(); err != nil {
		return Prepared{}, err
	}
	for _, table := range []struct {
		name     string
		delivery bool
	}{{p.Content, false}, {p.Delivery, true}} {
		description, err := c.active(ctx, table.name)
		if err != nil {
			return Prepared{}, err
		}
		if err := checkShape(description, table.delivery); err != nil {
			return Prepared{}, err
		}
	}
	for restored, own := range map[string]string{p.Content: p.OwnContent, p.Delivery: p.OwnDelivery} {
		if err := c.prepare(ctx, restored, own, p.ProtectedAgainstDeletion); err != nil {
			return Prepared{}, err
		}
	}
	stream, err := c.stream(ctx, p.Delivery)
	if err != nil {
		return Prepared{}, err
	}
	tokens, err := c.Tokens(p.Content)
	if err != nil {
		return Prepared{}, err
	}
	deleted, err := tokens.Delete(ctx)
	if err != nil {
		return Prepared{}, fmt.Errorf("delete the tokens that the restore brought back: %w", err)
	}
	if deleted > 0 {
		c.Say(fmt.Sprintf("%s: %d tokens from before the restore deleted", p.Content, deleted))
	}
	return Prepared{ContentTable: p.Content, DeliveryTable: p.Delivery, DeliveryStream: stream}, nil
}

// ErrPlan says that the names given cannot be right.
var ErrPlan = errors.New("not two restored tables")

func (p Plan) check() error {
	own := []string{p.OwnContent, p.OwnDelivery}
	switch {
	case p.Content == "" || p.Delivery == "":
		return fmt.Errorf("%w: both names are needed", ErrPlan)
	case p.Content == p.Delivery:
		return fmt.Errorf("%w: %s is named twice", ErrPlan, p.Content)
	case slices.Contains(own, p.Content):
		return fmt.Errorf("%w: the stack uses %s already", ErrPlan, p.Content)
	case slices.Contains(own, p.Delivery):
		return fmt.Errorf("%w: the stack uses %s already", ErrPlan, p.Delivery)
	}
	return nil
}

// checkShape refuses a table that the functions could not use: keys and index
// cannot be changed afterwards.
func checkShape(t *types.TableDescription, delivery bool) error {
	name := aws.ToString(t.TableName)
	kinds := map[string]types.ScalarAttributeType{}
	for _, a := range t.AttributeDefinitions {
		kinds[aws.ToString(a.AttributeName)] = a.AttributeType
	}
	if !hasKeys(t.KeySchema, "pk", "sk") || kinds["pk"] != types.ScalarAttributeTypeS || kinds["sk"] != types.ScalarAttributeTypeS {
		return fmt.Errorf("%s is not a table of Colophon's: its keys are not the texts pk and sk", name)
	}
	sweep := slices.IndexFunc(t.GlobalSecondaryIndexes, func(i types.GlobalSecondaryIndexDescription) bool {
		return aws.ToString(i.IndexName) == store.SweepIndex && hasKeys(i.KeySchema, "sweepShard", "sweepAt")
	})
	switch {
	case delivery && sweep < 0:
		return fmt.Errorf("%s is not a delivery table: it has no index %s. Restore with the indexes, and name the tables in their places", name, store.SweepIndex)
	case !delivery && sweep >= 0:
		return fmt.Errorf("%s is a delivery table: name the tables in their places", name)
	}
	return nil
}

func hasKeys(schema []types.KeySchemaElement, hash, sort string) bool {
	return len(schema) == 2 && aws.ToString(schema[0].AttributeName) == hash && schema[0].KeyType == types.KeyTypeHash &&
		aws.ToString(schema[1].AttributeName) == sort && schema[1].KeyType == types.KeyTypeRange
}

// prepare sets on one table what it lacks.
func (c Config) prepare(ctx context.Context, table, own string, protected bool) error {
	if err := c.expire(ctx, table); err != nil {
		return err
	}
	if err := c.recoverable(ctx, table); err != nil {
		return err
	}
	if err := c.tag(ctx, table, own); err != nil {
		return err
	}
	description, err := c.active(ctx, table)
	if err != nil || !protected || aws.ToBool(description.DeletionProtectionEnabled) {
		return err
	}
	c.Say(table + ": protected against deletion")
	if _, err := c.Tables.UpdateTable(ctx, &dynamodb.UpdateTableInput{TableName: &table, DeletionProtectionEnabled: aws.Bool(true)}); err != nil {
		return fmt.Errorf("protect %s against deletion: %w", table, err)
	}
	_, err = c.active(ctx, table)
	return err
}

func (c Config) expire(ctx context.Context, table string) error {
	out, err := c.Tables.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &table})
	if err != nil {
		return fmt.Errorf("look at the expiry of %s: %w", table, err)
	}
	d := out.TimeToLiveDescription
	if d != nil && (d.TimeToLiveStatus == types.TimeToLiveStatusEnabled || d.TimeToLiveStatus == types.TimeToLiveStatusEnabling) {
		if by := aws.ToString(d.AttributeName); by != expiry {
			return fmt.Errorf("the items of %s expire by %s, not by %s: switch that off first (it takes up to an hour)", table, by, expiry)
		}
		return nil
	}
	c.Say(table + ": items expire by " + expiry)
	_, err = c.Tables.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName: &table, TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String(expiry), Enabled: aws.Bool(true)},
	})
	if err != nil {
		return fmt.Errorf("switch the expiry of %s on: %w", table, err)
	}
	return nil
}

func (c Config) recoverable(ctx context.Context, table string) error {
	out, err := c.Tables.DescribeContinuousBackups(ctx, &dynamodb.DescribeContinuousBackupsInput{TableName: &table})
	if err != nil {
		return fmt.Errorf("look at the point-in-time recovery of %s: %w", table, err)
	}
	if d := out.ContinuousBackupsDescription; d != nil && d.PointInTimeRecoveryDescription != nil &&
		d.PointInTimeRecoveryDescription.PointInTimeRecoveryStatus == types.PointInTimeRecoveryStatusEnabled {
		return nil
	}
	c.Say(table + ": point-in-time recovery")
	_, err = c.Tables.UpdateContinuousBackups(ctx, &dynamodb.UpdateContinuousBackupsInput{
		TableName:                        &table,
		PointInTimeRecoverySpecification: &types.PointInTimeRecoverySpecification{PointInTimeRecoveryEnabled: aws.Bool(true)},
	})
	if err != nil {
		return fmt.Errorf("switch the point-in-time recovery of %s on: %w", table, err)
	}
	return nil
}

// tag gives a table the tags of the one that it replaces, where that is there
// still, but for those that AWS itself sets.
func (c Config) tag(ctx context.Context, table, own string) error {
	described, err := c.Tables.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &own})
	var none *types.ResourceNotFoundException
	if errors.As(err, &none) {
		c.Say(table + ": no tags, for " + own + " is gone")
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at %s: %w", own, err)
	}
	wanted, err := c.tags(ctx, own, described.Table.TableArn)
	if err != nil {
		return err
	}
	described, err = c.Tables.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &table})
	if err != nil {
		return fmt.Errorf("look at %s: %w", table, err)
	}
	has, err := c.tags(ctx, table, described.Table.TableArn)
	if err != nil {
		return err
	}
	var missing []types.Tag
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		if value, is := has[key]; !is || value != wanted[key] {
			missing = append(missing, types.Tag{Key: aws.String(key), Value: aws.String(wanted[key])})
		}
	}
	if len(missing) == 0 {
		return nil
	}
	c.Say(fmt.Sprintf("%s: %d tags of %s", table, len(missing), own))
	if _, err := c.Tables.TagResource(ctx, &dynamodb.TagResourceInput{ResourceArn: described.Table.TableArn, Tags: missing}); err != nil {
		return fmt.Errorf("tag %s: %w", table, err)
	}
	return nil
}

func (c Config) tags(ctx context.Context, table string, arn *string) (map[string]string, error) {
	found := map[string]string{}
	for next := (*string)(nil); ; {
		out, err := c.Tables.ListTagsOfResource(ctx, &dynamodb.ListTagsOfResourceInput{ResourceArn: arn, NextToken: next})
		if err != nil {
			return nil, fmt.Errorf("look at the tags of %s: %w", table, err)
		}
		for _, tag := range out.Tags {
			if key := aws.ToString(tag.Key); !strings.HasPrefix(key, "aws:") {
				found[key] = aws.ToString(tag.Value)
			}
		}
		if next = out.NextToken; aws.ToString(next) == "" {
			return found, nil
		}
	}
}

// stream gives the ARN of the delivery table's stream, which it switches on.
func (c Config) stream(ctx context.Context, table string) (string, error) {
	t, err := c.active(ctx, table)
	if err != nil {
		return "", err
	}
	if s := t.StreamSpecification; s != nil && aws.ToBool(s.StreamEnabled) {
		if s.StreamViewType != types.StreamViewTypeNewImage {
			return "", fmt.Errorf("the stream of %s has %s, not NEW_IMAGE: switch it off, and run this again", table, s.StreamViewType)
		}
		return aws.ToString(t.LatestStreamArn), nil
	}
	c.Say(table + ": a stream of new images")
	_, err = c.Tables.UpdateTable(ctx, &dynamodb.UpdateTableInput{
		TableName:           &table,
		StreamSpecification: &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewImage},
	})
	if err != nil {
		return "", fmt.Errorf("switch the stream of %s on: %w", table, err)
	}
	if t, err = c.active(ctx, table); err != nil {
		return "", err
	}
	arn := aws.ToString(t.LatestStreamArn)
	if arn == "" {
		return "", fmt.Errorf("%s has no stream though it was switched on: run this again", table)
	}
	return arn, nil
}

// active describes a table once it and its indexes are active: a restore takes
// minutes, and so can a change.
func (c Config) active(ctx context.Context, table string) (*types.TableDescription, error) {
	for {
		out, err := c.Tables.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &table})
		if err != nil {
			return nil, fmt.Errorf("look at %s: %w", table, err)
		}
		waits := out.Table.TableStatus != types.TableStatusActive
		for _, i := range out.Table.GlobalSecondaryIndexes {
			waits = waits || i.IndexStatus != types.IndexStatusActive
		}
		if !waits {
			return out.Table, nil
		}
		if out.Table.TableStatus != types.TableStatusCreating && out.Table.TableStatus != types.TableStatusUpdating &&
			out.Table.TableStatus != types.TableStatusActive {
			return nil, fmt.Errorf("%s is %s, and cannot be used", table, out.Table.TableStatus)
		}
		if err := c.Wait(ctx, 5*time.Second); err != nil {
			return nil, fmt.Errorf("wait for %s: %w", table, err)
		}
	}
}
