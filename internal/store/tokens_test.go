package store_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"colophon/internal/access"
	"colophon/internal/content"
	"colophon/internal/enginetest"
	"colophon/internal/failure"
	"colophon/internal/ratelimit"
	"colophon/internal/store"
)

// tokensOf is the store of a table's tokens. Its calls are added to calls.
func tokensOf(t *testing.T, tables enginetest.Tables, calls *[]string) (*store.Tokens, *store.RestoredTokens) {
	t.Helper()
	engine, err := store.NewDynamo(store.DynamoConfig{Client: tables.Client, Observe: func(c store.Consumption) {
		if calls != nil {
			*calls = append(*calls, c.Call)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := store.NewTokens(store.TokensConfig{Engine: engine, Table: tables.Content})
	if err != nil {
		t.Fatal(err)
	}
	restored, err := store.NewRestoredTokens(store.RestoredTokensConfig{Engine: engine, Table: tables.Content})
	if err != nil {
		t.Fatal(err)
	}
	return tokens, restored
}

func addToken(t *testing.T, s *store.Tokens, name string) (hash [sha256.Size]byte) {
	t.Helper()
	hash = sha256.Sum256([]byte(name))
	err := s.AddToken(t.Context(), hash, access.Token{
		ID: "tok_" + name, Name: name, Role: access.Admin, Ending: "abcd", CreatedAt: time.UnixMilli(1_700_000_000_000).UTC(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return hash
}

// itemsOf are a table's items.
func itemsOf(t *testing.T, tables enginetest.Tables) (items []store.Item) {
	t.Helper()
	pages := dynamodb.NewScanPaginator(tables.Client, &dynamodb.ScanInput{TableName: &tables.Content, ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, page.Items...)
	}
	return items
}

func putItem(t *testing.T, tables enginetest.Tables, item store.Item) {
	t.Helper()
	if _, err := tables.Client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &tables.Content, Item: item}); err != nil {
		t.Fatal(err)
	}
}

// textOf is an item's attribute, where it is a text.
func textOf(item store.Item, name string) string {
	text, _ := item[name].(*types.AttributeValueMemberS)
	if text == nil {
		return ""
	}
	return text.Value
}

func named(tokens []access.Token) (names []string) {
	for _, token := range tokens {
		names = append(names, token.Name)
	}
	slices.Sort(names)
	return names
}

func TestARestoreBringsNoTokenBack(t *testing.T) {
	t.Parallel()
	was, is := enginetest.NewTables(t), enginetest.NewTables(t)
	before, _ := tokensOf(t, was, nil)
	current := addToken(t, before, "current")
	early := addToken(t, before, "early")   // by a build that recorded no table
	unlisted := addToken(t, before, "torn") // and whose place in the list the restore left out
	for _, item := range itemsOf(t, was) {
		if name := textOf(item, "name"); name != "current" {
			delete(item, "epoch")
		}
		if textOf(item, "name") == "torn" && textOf(item, "sk") == "tok_torn" {
			continue
		}
		putItem(t, is, item) // the restore
	}
	for _, part := range []string{"a", "b", "c", "d"} { // a scan reads 1 MiB a page
		putItem(t, is, store.Item{"pk": store.Text("B#prj_a#" + part), "sk": store.Text(part), "data": store.Bytes(bytes.Repeat([]byte(part), 380_000))})
	}

	var calls []string
	tokens, restored := tokensOf(t, is, &calls)
	if _, err := tokens.Token(t.Context(), sha256.Sum256([]byte("nobody's"))); !errors.Is(err, content.ErrMissing) {
		t.Fatalf("an unknown token: %v", err)
	}
	unknown := calls
	calls = nil
	if _, err := tokens.Token(t.Context(), current); !errors.Is(err, content.ErrMissing) || !slices.Equal(calls, unknown) {
		t.Errorf("a token of the other table: %v by %v, an unknown one by %v", err, calls, unknown)
	}
	for _, hash := range [][sha256.Size]byte{early, unlisted} {
		if _, err := tokens.Token(t.Context(), hash); err != nil {
			t.Errorf("a token without a table's name, before the restored ones are deleted: %v", err)
		}
	}
	if list, err := tokens.ListTokens(t.Context(), ""); err != nil || !slices.Equal(named(list), []string{"early"}) {
		t.Errorf("listed as good: %v, %v", named(list), err)
	}
	anew := addToken(t, tokens, "anew")

	if list, err := restored.List(t.Context()); err != nil || !slices.Equal(named(list), []string{"current", "early", "torn"}) {
		t.Errorf("found: %v, %v", named(list), err)
	}
	if n, err := restored.Delete(t.Context()); err != nil || n != 3 {
		t.Errorf("deleted %d, %v", n, err)
	}
	for _, hash := range [][sha256.Size]byte{current, early, unlisted} {
		if _, err := tokens.Token(t.Context(), hash); !errors.Is(err, content.ErrMissing) {
			t.Errorf("after they were deleted: %v", err)
		}
	}
	if token, err := tokens.Token(t.Context(), anew); err != nil || token.Name != "anew" {
		t.Errorf("one that was made since: %+v, %v", token, err)
	}
	if items := itemsOf(t, is); len(items) != 4+2 { // the blobs, and the new token in its two places
		t.Errorf("%d items are left", len(items))
	}
	if n, err := restored.Delete(t.Context()); err != nil || n != 0 {
		t.Errorf("deleted again: %d, %v", n, err)
	}
	if _, err := before.Token(t.Context(), current); err != nil {
		t.Errorf("in the table it was written to: %v", err)
	}
}

// busyTable does not carry the second deletion out.
type busyTable struct {
	store.Engine
	deletes int
}

func (b *busyTable) Write(ctx context.Context, w store.Write) (store.Item, error) {
	if w.Delete {
		if b.deletes++; b.deletes == 2 {
			return nil, failure.ErrUnavailable
		}
	}
	return b.Engine.Write(ctx, w)
}

func TestATokenHasEndedAlsoWhereItsRevocationBrokeOff(t *testing.T) {
	t.Parallel()
	tables := enginetest.NewTables(t)
	engine, err := store.NewDynamo(store.DynamoConfig{Client: tables.Client})
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := store.NewTokens(store.TokensConfig{Engine: &busyTable{Engine: engine}, Table: tables.Content})
	if err != nil {
		t.Fatal(err)
	}
	hash := addToken(t, tokens, "ada")
	if err := tokens.RemoveToken(t.Context(), "", "tok_ada"); !errors.Is(err, content.ErrUnavailable) {
		t.Errorf("the second write failed: %v", err)
	}
	if _, err := tokens.Token(t.Context(), hash); !errors.Is(err, content.ErrMissing) {
		t.Errorf("it is still recognized: %v", err)
	}
	if err := tokens.RemoveToken(t.Context(), "", "tok_ada"); err != nil {
		t.Errorf("again: %v", err)
	}
	if items := itemsOf(t, tables); len(items) > 0 {
		t.Errorf("left: %v", items)
	}
}

func TestALimitThatIsFarAheadIsCorrectedAndHoldsAgain(t *testing.T) {
	t.Parallel()
	tokens, _ := tokensOf(t, enginetest.NewTables(t), nil)
	hash := addToken(t, tokens, "busy")
	limit := ratelimit.PerMinute(5, 1)
	now := time.UnixMilli(1_700_000_000_000)
	take := func(at time.Time) time.Duration {
		t.Helper()
		token, err := tokens.Token(t.Context(), hash)
		if err != nil {
			t.Fatal(err)
		}
		wait, err := tokens.TakeRequest(t.Context(), hash, token.LimitedAt, at, limit)
		if err != nil {
			t.Fatal(err)
		}
		return wait
	}
	if wait := take(now.Add(24 * time.Hour)); wait != 0 { // by a host whose clock is a day ahead
		t.Fatalf("the first request waits %v", wait)
	}
	if wait := take(now); wait != 0 {
		t.Errorf("the request that corrects the limit waits %v", wait)
	}
	if wait := take(now); wait != time.Minute {
		t.Errorf("the request after it waits %v, want a minute: the limit is exhausted", wait)
	}
}

func TestATokenThatIsWrittenAgainIsTheSameToken(t *testing.T) {
	t.Parallel()
	tables := enginetest.NewTables(t)
	tokens, _ := tokensOf(t, tables, nil)
	addToken(t, tokens, "Ada")
	addToken(t, tokens, "Ada") // as after an answer that was lost
	list, err := tokens.ListTokens(t.Context(), "")
	if err != nil || len(list) != 1 {
		t.Errorf("listed %v, %v", named(list), err)
	}
}
