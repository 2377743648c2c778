package enginetest_test

import (
	"context"
	"net"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"colophon/internal/enginetest"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

func TestTablesAreAsTheTemplateMakesThem(t *testing.T) {
	tables := enginetest.NewTables(t)
	for _, name := range []string{tables.Content, tables.Delivery} {
		if len(name) < 11 || len(name) > 48 {
			t.Errorf("table name %q has %d characters", name, len(name))
		}
	}
	out, err := tables.Client.DescribeTable(context.Background(), &dynamodb.DescribeTableInput{TableName: &tables.Delivery})
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Table.GlobalSecondaryIndexes) != 1 || *out.Table.GlobalSecondaryIndexes[0].IndexName != "sweep" {
		t.Errorf("indexes: %+v", out.Table.GlobalSecondaryIndexes)
	}
	if out.Table.StreamSpecification == nil || out.Table.StreamSpecification.StreamViewType != types.StreamViewTypeNewImage {
		t.Errorf("stream: %+v", out.Table.StreamSpecification)
	}
}

func TestAStoppedEngineIsGone(t *testing.T) {
	t.Parallel()
	e, err := enginetest.Start()
	if err != nil {
		t.Fatal(err)
	}
	e.Stop()
	if conn, err := net.Dial("tcp", e.Address); err == nil {
		conn.Close()
		t.Error("the engine still listens")
	}
}

func TestAMissingEngineIsOneClearLine(t *testing.T) {
	t.Setenv("DYNOXIDE_BIN", "/nowhere/dynoxide")
	_, err := enginetest.Start()
	if err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "DYNOXIDE_BIN") {
		t.Errorf("got %v", err)
	}
}
