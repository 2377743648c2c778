package enginetest

import (
	"context"
	"os"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

var shared struct {
	sync.Mutex
	engine *Engine
	err    error
	asked  bool
}

// Main runs a package's tests and ends the engine after them:
//
//	func TestMain(m *testing.M) { enginetest.Main(m) }
func Main(m *testing.M) {
	code := m.Run()
	shared.Lock()
	defer shared.Unlock()
	if shared.engine != nil {
		shared.engine.Stop()
	}
	os.Exit(code)
}

// Shared is the test binary's engine.
func Shared(t testing.TB) *Engine {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if !shared.asked {
		shared.asked = true
		shared.engine, shared.err = Start()
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.engine
}

// Tables is a fresh pair of tables.
type Tables struct {
	Client            *dynamodb.Client
	Content, Delivery string // their names
}

// NewTables makes a fresh pair of tables in the test binary's engine. Packages
// that call it have a TestMain that calls Main.
func NewTables(t testing.TB, change ...func(*dynamodb.Options)) Tables {
	t.Helper()
	tables := Tables{
		Client:  Shared(t).Client(change...),
		Content: RandomName("content"), Delivery: RandomName("delivery"),
	}
	if err := CreateTables(context.Background(), tables.Client, tables.Content, tables.Delivery); err != nil {
		t.Fatal(err)
	}
	return tables
}
