package store

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"colophon/internal/clock"
	"colophon/internal/failure"
)

// callTime bounds one table call with its retries; one attempt of it is bounded
// by the HTTP client (2 s). A claim and a record must fit in the time that an
// invocation keeps aside for them.
const callTime = 3 * time.Second

// Consumption is what DynamoDB says one call used.
type Consumption struct {
	Call       string // the operation's name
	ReadUnits  float64
	WriteUnits float64
}

// DynamoConfig is what a Dynamo needs.
type DynamoConfig struct {
	Client *dynamodb.Client
	// Observe is told the units of each call; nil: they are not asked for.
	Observe func(Consumption)
	// Clock is the host's wall clock, which no test build moves: it is compared with
	// the table's. nil: time.Now.
	Clock func() time.Time
}

func (c DynamoConfig) validate() error {
	if c.Client == nil {
		return errors.New("store: no DynamoDB client")
	}
	return nil
}

// Dynamo is the Engine that speaks to DynamoDB.
type Dynamo struct {
	client  *dynamodb.Client
	observe func(Consumption)
	clock   func() time.Time
	repeats repeats
}

// NewClient makes a DynamoDB client.
func NewClient(c aws.Config) *dynamodb.Client { return dynamodb.NewFromConfig(c) }

// NewDynamo makes an Engine of a DynamoDB client.
func NewDynamo(c DynamoConfig) (*Dynamo, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	return &Dynamo{client: c.Client, observe: c.Observe, clock: c.Clock}, nil
}

func (d *Dynamo) capacity() types.ReturnConsumedCapacity {
	if d.observe == nil {
		return types.ReturnConsumedCapacityNone
	}
	return types.ReturnConsumedCapacityTotal
}

// consumed reports a call that reads or writes: DynamoDB names units of one kind
// for simple calls and both kinds for transactions only.
func (d *Dynamo) consumed(call string, read bool, capacities ...types.ConsumedCapacity) {
	if d.observe == nil {
		return
	}
	total := Consumption{Call: call}
	for _, c := range capacities {
		switch {
		case c.ReadCapacityUnits != nil || c.WriteCapacityUnits != nil:
			total.ReadUnits += aws.ToFloat64(c.ReadCapacityUnits)
			total.WriteUnits += aws.ToFloat64(c.WriteCapacityUnits)
		case read:
			total.ReadUnits += aws.ToFloat64(c.CapacityUnits)
		default:
			total.WriteUnits += aws.ToFloat64(c.CapacityUnits)
		}
	}
	d.observe(total)
}

func one(c *types.ConsumedCapacity) []types.ConsumedCapacity {
	if c == nil {
		return nil
	}
	return []types.ConsumedCapacity{*c}
}

// Get reads one item, strongly.
func (d *Dynamo) Get(ctx context.Context, table string, key Key) (Item, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	out, err := d.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &table, Key: key.item(), ConsistentRead: aws.Bool(true), ReturnConsumedCapacity: d.capacity(),
	})
	if err != nil {
		return nil, readFault("get item", err)
	}
	d.consumed("GetItem", true, one(out.ConsumedCapacity)...)
	return out.Item, nil
}

// BatchGet reads up to 100 items, strongly, and asks again for those that
// DynamoDB left out for their size or its load.
func (d *Dynamo) BatchGet(ctx context.Context, table string, keys []Key) ([]Item, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	asked := types.KeysAndAttributes{ConsistentRead: aws.Bool(true)}
	for _, key := range keys {
		asked.Keys = append(asked.Keys, key.item())
	}
	var items []Item
	pending := map[string]types.KeysAndAttributes{table: asked}
	for round := 0; len(pending) > 0; round++ {
		if round > 0 {
			if err := clock.Sleep(ctx, time.Duration(round)*10*time.Millisecond); err != nil {
				return nil, readFault("batch get items", err)
			}
		}
		out, err := d.client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{
			RequestItems: pending, ReturnConsumedCapacity: d.capacity(),
		})
		if err != nil {
			return nil, readFault("batch get items", err)
		}
		d.consumed("BatchGetItem", true, out.ConsumedCapacity...)
		items = append(items, out.Responses[table]...)
		pending = out.UnprocessedKeys
	}
	return items, nil
}

// Query reads one page.
func (d *Dynamo) Query(ctx context.Context, q Query) (Page, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	var e expression
	partition, sort := attrPK, attrSK
	if q.Index != "" {
		partition, sort = attrSweepShard, attrSweepAt
	}
	condition := e.path(At(partition)) + " = " + e.value(q.PK)
	switch {
	case q.From != nil && q.To != nil:
		condition += " AND " + e.path(At(sort)) + " BETWEEN " + e.value(q.From) + " AND " + e.value(q.To)
	case q.From != nil:
		condition += " AND " + e.path(At(sort)) + " >= " + e.value(q.From)
	case q.To != nil:
		condition += " AND " + e.path(At(sort)) + " <= " + e.value(q.To)
	}
	in := &dynamodb.QueryInput{
		TableName: &q.Table, KeyConditionExpression: &condition,
		ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values,
		ScanIndexForward: aws.Bool(!q.Descending), ExclusiveStartKey: q.After,
		ConsistentRead: aws.Bool(q.Index == ""), ReturnConsumedCapacity: d.capacity(),
	}
	if q.Index != "" {
		in.IndexName = &q.Index
	}
	if q.Limit > 0 {
		in.Limit = &q.Limit
	}
	last := exchange{clock: d.clock}
	out, err := d.client.Query(ctx, in, last.watch)
	if err != nil {
		return Page{}, readFault("query", err)
	}
	d.consumed("Query", true, one(out.ConsumedCapacity)...)
	return Page{Items: out.Items, Last: out.LastEvaluatedKey, Clock: last.offset()}, nil
}

// Scan reads a page of a whole table, strongly, and returns those of its items
// whose partition key begins with the prefix. It costs what the page costs,
// whatever it returns. It is for operators: no function's role may scan.
func (d *Dynamo) Scan(ctx context.Context, table, prefix string, after Item) (Page, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	var e expression
	filter := "begins_with(" + e.path(At(attrPK)) + ", " + e.value(Text(prefix)) + ")"
	out, err := d.client.Scan(ctx, &dynamodb.ScanInput{
		TableName: &table, FilterExpression: &filter, ExclusiveStartKey: after,
		ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values,
		ConsistentRead: aws.Bool(true), ReturnConsumedCapacity: d.capacity(),
	})
	if err != nil {
		return Page{}, readFault("scan", err)
	}
	d.consumed("Scan", true, one(out.ConsumedCapacity)...)
	return Page{Items: out.Items, Last: out.LastEvaluatedKey}, nil
}

// Write carries one conditional write out.
func (d *Dynamo) Write(ctx context.Context, w Write) (Item, error) {
	if err := w.validate(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	var e expression
	var tried attempts
	switch {
	case w.Changes != nil:
		update := e.update(w.Changes)
		condition := e.condition(w.If)
		out, err := d.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName: &w.Table, Key: w.Key.item(), UpdateExpression: &update, ConditionExpression: condition,
			ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values,
			ReturnValues: types.ReturnValueAllNew, ReturnConsumedCapacity: d.capacity(),
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		}, tried.watch)
		if err != nil {
			return nil, tried.fault("update item", err)
		}
		d.consumed("UpdateItem", false, one(out.ConsumedCapacity)...)
		return out.Attributes, nil
	case w.Put != nil:
		condition := e.condition(w.If)
		out, err := d.client.PutItem(ctx, &dynamodb.PutItemInput{
			TableName: &w.Table, Item: w.keyed(), ConditionExpression: condition,
			ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values, ReturnConsumedCapacity: d.capacity(),
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		}, tried.watch)
		if err != nil {
			return nil, tried.fault("put item", err)
		}
		d.consumed("PutItem", false, one(out.ConsumedCapacity)...)
		return nil, nil
	case w.Delete:
		condition := e.condition(w.If)
		out, err := d.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{
			TableName: &w.Table, Key: w.Key.item(), ConditionExpression: condition,
			ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values, ReturnConsumedCapacity: d.capacity(),
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		}, tried.watch)
		if err != nil {
			return nil, tried.fault("delete item", err)
		}
		d.consumed("DeleteItem", false, one(out.ConsumedCapacity)...)
		return nil, nil
	}
	return nil, errors.New("store: a condition check stands in a transaction only")
}

func (w Write) keyed() Item {
	item := cloneItem(w.Put)
	item[attrPK], item[attrSK] = Text(w.Key.PK), Text(w.Key.SK)
	return item
}

// Transact carries all writes out or none.
func (d *Dynamo) Transact(ctx context.Context, token string, writes []Write) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	in := &dynamodb.TransactWriteItemsInput{ReturnConsumedCapacity: d.capacity()}
	if token != "" {
		in.ClientRequestToken = &token
	}
	for _, w := range writes {
		if err := w.validate(); err != nil {
			return err
		}
		in.TransactItems = append(in.TransactItems, w.transactItem())
	}
	var tried attempts
	var body []byte
	options := []func(*dynamodb.Options){tried.watch}
	if token != "" {
		options = append(options, d.repeats.asked(token, &body))
	}
	out, err := d.client.TransactWriteItems(ctx, in, options...)
	if err != nil {
		fault := tried.fault("transact write items", err)
		d.repeats.ended(token, body, errors.Is(fault, failure.ErrUnknown))
		return fault
	}
	d.repeats.ended(token, nil, false)
	d.consumed("TransactWriteItems", false, out.ConsumedCapacity...)
	return nil
}

func (w Write) transactItem() types.TransactWriteItem {
	var e expression
	old := types.ReturnValuesOnConditionCheckFailureAllOld
	switch {
	case w.Put != nil:
		condition := e.condition(w.If)
		return types.TransactWriteItem{Put: &types.Put{
			TableName: &w.Table, Item: w.keyed(), ConditionExpression: condition,
			ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values,
			ReturnValuesOnConditionCheckFailure: old,
		}}
	case w.Changes != nil:
		update := e.update(w.Changes)
		condition := e.condition(w.If)
		return types.TransactWriteItem{Update: &types.Update{
			TableName: &w.Table, Key: w.Key.item(), UpdateExpression: &update, ConditionExpression: condition,
			ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values,
			ReturnValuesOnConditionCheckFailure: old,
		}}
	case w.Delete:
		condition := e.condition(w.If)
		return types.TransactWriteItem{Delete: &types.Delete{
			TableName: &w.Table, Key: w.Key.item(), ConditionExpression: condition,
			ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values,
			ReturnValuesOnConditionCheckFailure: old,
		}}
	}
	condition := e.condition(w.If)
	return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
		TableName: &w.Table, Key: w.Key.item(), ConditionExpression: condition,
		ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values,
		ReturnValuesOnConditionCheckFailure: old,
	}}
}
