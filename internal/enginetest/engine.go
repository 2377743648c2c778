package enginetest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

const startTime = 30 * time.Second // a loaded machine's start is slow, a broken one never ends

// Engine is a running dynoxide.
type Engine struct {
	// Address is its host and port.
	Address string

	// Process is its process id.
	Process int

	dir   string
	kill  func() error
	ended chan struct{} // closed when the process is gone
}

// Start starts dynoxide on a free loopback port with a database file of its own.
func Start() (*Engine, error) {
	binary, err := find()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "colophon-engine-")
	if err != nil {
		return nil, fmt.Errorf("start dynoxide: %w", err)
	}
	// Between finding a free port and listening on it another process may take it.
	for range 3 {
		var e *Engine
		if e, err = start(binary, dir); err == nil {
			return e, nil
		}
	}
	os.RemoveAll(dir)
	return nil, err
}

// find looks for the binary that the Makefile installs.
func find() (string, error) {
	if path := os.Getenv("DYNOXIDE_BIN"); path != "" {
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("no dynoxide at DYNOXIDE_BIN (%s)", path)
		}
		return path, nil
	}
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	path := filepath.Join(root, ".tools", "bin", "dynoxide")
	if _, err := os.Stat(path); err != nil {
		return "", errors.New("dynoxide is not installed: run `make install`, or name it in DYNOXIDE_BIN")
	}
	return path, nil
}

func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no go.mod above the working directory")
		}
		dir = parent
	}
}

func start(binary, dir string) (*Engine, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, fmt.Errorf("start dynoxide: %w", err)
	}
	host, port, _ := net.SplitHostPort(address)
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, fmt.Errorf("start dynoxide: %w", err)
	}
	defer log.Close()
	cmd := exec.Command(binary, "--host", host, "--port", port, "--db-path", filepath.Join(dir, "db"), "--log", "quiet")
	cmd.Stdout, cmd.Stderr = log, log
	endWithParent(cmd)
	e := &Engine{Address: address, dir: dir, ended: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The kernel ends a child when the thread that started it ends.
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // how it ended is of no interest: it is always killed
			close(e.ended)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start dynoxide: %w", err)
	}
	e.kill, e.Process = cmd.Process.Kill, cmd.Process.Pid
	if err := e.ready(); err != nil {
		_ = e.kill()
		<-e.ended
		said, _ := os.ReadFile(log.Name())
		return nil, fmt.Errorf("start dynoxide: %w: %s", err, strings.TrimSpace(string(said)))
	}
	return e, nil
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// ready waits until the engine answers: it has no other sign of being there.
func (e *Engine) ready() error {
	deadline := time.NewTimer(startTime)
	defer deadline.Stop()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for {
		if answer, err := client.Get("http://" + e.Address + "/"); err == nil {
			answer.Body.Close()
			return nil
		}
		select {
		case <-e.ended:
			return errors.New("it ended at once")
		case <-deadline.C:
			return fmt.Errorf("no answer within %v", startTime)
		case <-again.C:
		}
	}
}

// Stop ends the engine and removes its database.
func (e *Engine) Stop() {
	_ = e.kill() // it may be gone already
	<-e.ended
	os.RemoveAll(e.dir)
}

// Client makes a client of the engine; change may adapt its options.
func (e *Engine) Client(change ...func(*dynamodb.Options)) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region:       "eu-west-1",
		BaseEndpoint: aws.String("http://" + e.Address),
		Credentials:  credentials.NewStaticCredentialsProvider("local", "local", ""),
	}, change...)
}

// RandomName gives a table's name that nobody else uses, of a length that
// stream mappings take (11 to 48 characters).
func RandomName(kind string) string { return kind + "-" + strings.ToLower(rand.Text()) }

// CreateTables makes both tables as the template does.
func CreateTables(ctx context.Context, client *dynamodb.Client, content, delivery string) error {
	keys := []types.KeySchemaElement{
		{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash},
		{AttributeName: aws.String("sk"), KeyType: types.KeyTypeRange},
	}
	attributes := []types.AttributeDefinition{
		{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS},
		{AttributeName: aws.String("sk"), AttributeType: types.ScalarAttributeTypeS},
	}
	for _, table := range []*dynamodb.CreateTableInput{
		{TableName: &content, AttributeDefinitions: attributes},
		{
			TableName: &delivery,
			AttributeDefinitions: append(attributes[:2:2],
				types.AttributeDefinition{AttributeName: aws.String("sweepShard"), AttributeType: types.ScalarAttributeTypeN},
				types.AttributeDefinition{AttributeName: aws.String("sweepAt"), AttributeType: types.ScalarAttributeTypeN}),
			GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{{
				IndexName: aws.String("sweep"),
				KeySchema: []types.KeySchemaElement{
					{AttributeName: aws.String("sweepShard"), KeyType: types.KeyTypeHash},
					{AttributeName: aws.String("sweepAt"), KeyType: types.KeyTypeRange},
				},
				Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly},
			}},
			StreamSpecification: &types.StreamSpecification{
				StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewImage,
			},
		},
	} {
		table.KeySchema, table.BillingMode = keys, types.BillingModePayPerRequest
		if _, err := client.CreateTable(ctx, table); err != nil {
			return fmt.Errorf("create table %s: %w", *table.TableName, err)
		}
		err := dynamodb.NewTableExistsWaiter(client).Wait(ctx,
			&dynamodb.DescribeTableInput{TableName: table.TableName}, time.Minute)
		if err != nil {
			return fmt.Errorf("wait for table %s: %w", *table.TableName, err)
		}
	}
	return nil
}
