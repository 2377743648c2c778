package restore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"colophon/internal/enginetest"
	"colophon/internal/restore"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

// world is a stack's tables and two that were restored: as DynamoDB makes them, without stream, expiry, recovery, tags and
// protection.
type world struct {
	restore.Plan
	client *tables
	steps  []string
	tokens []string // the tables whose tokens were deleted
}

func newWorld(t *testing.T) *world {
	t.Helper()
	own := enginetest.NewTables(t)
	w := &world{client: &tables{Client: own.Client, recovered: map[string]bool{}}, Plan: restore.Plan{
		OwnContent: own.Content, OwnDelivery: own.Delivery, ProtectedAgainstDeletion: true,
		Content: enginetest.RandomName("restored-content"), Delivery: enginetest.RandomName("restored-delivery"),
	}}
	for restored, of := range map[string]string{w.Content: own.Content, w.Delivery: own.Delivery} {
		must(t, enginetest.RestoreTable(t.Context(), own.Client, of, restored))
		w.tag(t, of, map[string]string{"team": "docs", "cost": "42"})
	}
	return w
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (w *world) describe(t *testing.T, table string) *types.TableDescription {
	t.Helper()
	out, err := w.client.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &table})
	must(t, err)
	return out.Table
}

func (w *world) tag(t *testing.T, table string, tags map[string]string) {
	t.Helper()
	var list []types.Tag
	for key, value := range tags {
		list = append(list, types.Tag{Key: aws.String(key), Value: aws.String(value)})
	}
	_, err := w.client.TagResource(t.Context(), &dynamodb.TagResourceInput{ResourceArn: w.describe(t, table).TableArn, Tags: list})
	must(t, err)
}

func (w *world) Delete(context.Context) (int, error) { return 2, nil }

func (w *world) config(client restore.Tables) restore.Config {
	return restore.Config{
		Tables: client, Wait: func(context.Context, time.Duration) error { return nil },
		Tokens: func(table string) (restore.Tokens, error) {
			w.tokens = append(w.tokens, table)
			return w, nil
		},
		Say: func(step string) { w.steps = append(w.steps, step) },
	}
}

func (w *world) prepare(t *testing.T) (restore.Prepared, error) {
	t.Helper()
	return restore.Prepare(t.Context(), w.config(w.client), w.Plan)
}

// lacks says what a restored table has not of what the template gives it.
func (w *world) lacks(t *testing.T, table string) (missing []string) {
	t.Helper()
	d := w.describe(t, table)
	if w.ProtectedAgainstDeletion != aws.ToBool(d.DeletionProtectionEnabled) {
		missing = append(missing, "protection")
	}
	expiry, err := w.client.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: &table})
	must(t, err)
	if e := expiry.TimeToLiveDescription; e == nil || e.TimeToLiveStatus != types.TimeToLiveStatusEnabled || aws.ToString(e.AttributeName) != "expiresAt" {
		missing = append(missing, "expiry")
	}
	backups, err := w.client.DescribeContinuousBackups(t.Context(), &dynamodb.DescribeContinuousBackupsInput{TableName: &table})
	must(t, err)
	if b := backups.ContinuousBackupsDescription.PointInTimeRecoveryDescription; b == nil || b.PointInTimeRecoveryStatus != types.PointInTimeRecoveryStatusEnabled {
		missing = append(missing, "recovery")
	}
	tags, err := w.client.ListTagsOfResource(t.Context(), &dynamodb.ListTagsOfResourceInput{ResourceArn: d.TableArn})
	must(t, err)
	if len(tags.Tags) != 2 {
		missing = append(missing, "tags")
	}
	if s := d.StreamSpecification; table == w.Delivery && (s == nil || s.StreamViewType != types.StreamViewTypeNewImage) {
		missing = append(missing, "stream")
	}
	return missing
}

func TestARestoredPairOfTablesGetsWhatARestoreLeavesOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if lacks := append(w.lacks(t, w.Content), w.lacks(t, w.Delivery)...); len(lacks) != 9 {
		t.Fatalf("before it is prepared a pair lacks %v alone", lacks)
	}
	prepared, err := w.prepare(t)
	must(t, err)
	for _, table := range []string{w.Content, w.Delivery} {
		if lacks := w.lacks(t, table); len(lacks) > 0 {
			t.Errorf("%s lacks %v", table, lacks)
		}
	}
	if s := w.describe(t, w.Content).StreamSpecification; s != nil && aws.ToBool(s.StreamEnabled) {
		t.Error("the content table has a stream")
	}
	want := restore.Prepared{ContentTable: w.Content, DeliveryTable: w.Delivery, DeliveryStream: aws.ToString(w.describe(t, w.Delivery).LatestStreamArn)}
	if prepared != want || !strings.Contains(prepared.DeliveryStream, ":table/"+w.Delivery+"/stream/") {
		t.Errorf("got %+v, want %+v", prepared, want)
	}
	if !slices.Equal(w.tokens, []string{w.Content}) {
		t.Errorf("tokens were deleted in %v", w.tokens)
	}
}

func TestPreparingAgainChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, err := w.prepare(t)
	must(t, err)
	again, err := restore.Prepare(t.Context(), w.config(refusing{w.client}), w.Plan)
	if err != nil || again != first {
		t.Errorf("got %+v, %v, want %+v", again, err, first)
	}
}

func TestPreparingThatBrokeOffAnywhereIsFinishedByTheNextRun(t *testing.T) {
	t.Parallel()
	for calls := 1; ; calls++ {
		w := newWorld(t)
		broken := &breaking{tables: w.client, left: calls}
		_, err := restore.Prepare(t.Context(), w.config(broken), w.Plan)
		if err == nil {
			if calls < 20 {
				t.Errorf("preparing makes %d calls alone", calls)
			}
			return
		}
		prepared, err := w.prepare(t)
		if lacks := append(w.lacks(t, w.Content), w.lacks(t, w.Delivery)...); err != nil || len(lacks) > 0 || prepared.DeliveryStream == "" {
			t.Fatalf("broken off at call %d, then run again: %+v, %v, lacks %v", calls, prepared, err, lacks)
		}
	}
}

func TestOutsideOfProductionTablesAreNotProtected(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ProtectedAgainstDeletion = false
	_, err := w.prepare(t)
	if lacks := append(w.lacks(t, w.Content), w.lacks(t, w.Delivery)...); err != nil || len(lacks) > 0 {
		t.Errorf("%v, lacks %v", err, lacks)
	}
}

func TestWhereTheStacksTablesAreGoneTheRestoredOnesGetNoTags(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.OwnContent, w.OwnDelivery = "gone-content-table", "gone-delivery-table"
	if _, err := w.prepare(t); err != nil || !slices.ContainsFunc(w.steps, func(s string) bool { return strings.Contains(s, "no tags, for gone-content-table is gone") }) {
		t.Errorf("%v: %v", err, w.steps)
	}
}

func TestTablesThatCannotBeTheStacksAreRefusedBeforeAnythingIsChanged(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(*restore.Plan)
		says   string
	}{
		"one name twice":            {func(p *restore.Plan) { p.Delivery = p.Content }, "named twice"},
		"the stack's own content":   {func(p *restore.Plan) { p.Content = p.OwnContent }, "uses"},
		"the stack's own delivery":  {func(p *restore.Plan) { p.Delivery = p.OwnDelivery }, "uses"},
		"no name":                   {func(p *restore.Plan) { p.Delivery = "" }, "both names are needed"},
		"each in the other's place": {func(p *restore.Plan) { p.Content, p.Delivery = p.Delivery, p.Content }, "name the tables in their places"},
		"a table that is not there": {func(p *restore.Plan) { p.Delivery = "nowhere-to-be-found" }, "look at nowhere-to-be-found"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			test.change(&w.Plan)
			_, err := restore.Prepare(t.Context(), w.config(refusing{w.client}), w.Plan)
			if err == nil || !strings.Contains(err.Error(), test.says) || len(w.tokens) > 0 {
				t.Errorf("got %v", err)
			}
		})
	}
}

// tables is the engine's client, with the one setting that the engine does not keep.
type tables struct {
	*dynamodb.Client
	recovered map[string]bool // point-in-time recovery, by table
}

func (c *tables) DescribeContinuousBackups(_ context.Context, in *dynamodb.DescribeContinuousBackupsInput, _ ...func(*dynamodb.Options)) (*dynamodb.DescribeContinuousBackupsOutput, error) {
	status := types.PointInTimeRecoveryStatusDisabled
	if c.recovered[*in.TableName] {
		status = types.PointInTimeRecoveryStatusEnabled
	}
	return &dynamodb.DescribeContinuousBackupsOutput{ContinuousBackupsDescription: &types.ContinuousBackupsDescription{
		ContinuousBackupsStatus:        types.ContinuousBackupsStatusEnabled,
		PointInTimeRecoveryDescription: &types.PointInTimeRecoveryDescription{PointInTimeRecoveryStatus: status},
	}}, nil
}

func (c *tables) UpdateContinuousBackups(_ context.Context, in *dynamodb.UpdateContinuousBackupsInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateContinuousBackupsOutput, error) {
	c.recovered[*in.TableName] = aws.ToBool(in.PointInTimeRecoverySpecification.PointInTimeRecoveryEnabled)
	return &dynamodb.UpdateContinuousBackupsOutput{}, nil
}

var errRefused = errors.New("refused")

// refusing is a client that changes nothing.
type refusing struct{ *tables }

func (refusing) UpdateTable(context.Context, *dynamodb.UpdateTableInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateTableOutput, error) {
	return nil, errRefused
}

func (refusing) UpdateTimeToLive(context.Context, *dynamodb.UpdateTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateTimeToLiveOutput, error) {
	return nil, errRefused
}

func (refusing) UpdateContinuousBackups(context.Context, *dynamodb.UpdateContinuousBackupsInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateContinuousBackupsOutput, error) {
	return nil, errRefused
}

func (refusing) TagResource(context.Context, *dynamodb.TagResourceInput, ...func(*dynamodb.Options)) (*dynamodb.TagResourceOutput, error) {
	return nil, errRefused
}

// breaking is a client of which one call's answer is lost: what it changes is changed.
type breaking struct {
	*tables
	left int
}

func lost[T any](b *breaking, out T, err error) (T, error) {
	if b.left--; b.left == 0 && err == nil {
		var none T
		return none, fmt.Errorf("the answer is lost")
	}
	return out, err
}

func (b *breaking) DescribeTable(ctx context.Context, in *dynamodb.DescribeTableInput, o ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	out, err := b.tables.DescribeTable(ctx, in, o...)
	return lost(b, out, err)
}

func (b *breaking) UpdateTable(ctx context.Context, in *dynamodb.UpdateTableInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateTableOutput, error) {
	out, err := b.tables.UpdateTable(ctx, in, o...)
	return lost(b, out, err)
}

func (b *breaking) UpdateTimeToLive(ctx context.Context, in *dynamodb.UpdateTimeToLiveInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateTimeToLiveOutput, error) {
	out, err := b.tables.UpdateTimeToLive(ctx, in, o...)
	return lost(b, out, err)
}

func (b *breaking) UpdateContinuousBackups(ctx context.Context, in *dynamodb.UpdateContinuousBackupsInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateContinuousBackupsOutput, error) {
	out, err := b.tables.UpdateContinuousBackups(ctx, in, o...)
	return lost(b, out, err)
}

func (b *breaking) TagResource(ctx context.Context, in *dynamodb.TagResourceInput, o ...func(*dynamodb.Options)) (*dynamodb.TagResourceOutput, error) {
	out, err := b.tables.TagResource(ctx, in, o...)
	return lost(b, out, err)
}
