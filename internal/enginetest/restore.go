package enginetest

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// RestoreTable makes a table as DynamoDB's restore makes one of another: with
// its keys, indexes and items; without its stream, expiry, point-in-time
// recovery, tags and protection against deletion.
func RestoreTable(ctx context.Context, client *dynamodb.Client, from, to string) error {
	described, err := client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &from})
	if err != nil {
		return fmt.Errorf("look at %s: %w", from, err)
	}
	create := &dynamodb.CreateTableInput{
		TableName: &to, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: described.Table.AttributeDefinitions, KeySchema: described.Table.KeySchema,
	}
	for _, index := range described.Table.GlobalSecondaryIndexes {
		create.GlobalSecondaryIndexes = append(create.GlobalSecondaryIndexes, types.GlobalSecondaryIndex{
			IndexName: index.IndexName, KeySchema: index.KeySchema, Projection: index.Projection,
		})
	}
	if _, err := client.CreateTable(ctx, create); err != nil {
		return fmt.Errorf("create table %s: %w", to, err)
	}
	if err := dynamodb.NewTableExistsWaiter(client).Wait(ctx, &dynamodb.DescribeTableInput{TableName: &to}, time.Minute); err != nil {
		return fmt.Errorf("wait for table %s: %w", to, err)
	}
	items := dynamodb.NewScanPaginator(client, &dynamodb.ScanInput{TableName: &from, ConsistentRead: aws.Bool(true)})
	for items.HasMorePages() {
		page, err := items.NextPage(ctx)
		if err != nil {
			return fmt.Errorf("read %s: %w", from, err)
		}
		for _, item := range page.Items {
			if _, err := client.PutItem(ctx, &dynamodb.PutItemInput{TableName: &to, Item: item}); err != nil {
				return fmt.Errorf("write %s: %w", to, err)
			}
		}
	}
	return nil
}
