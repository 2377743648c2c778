package api

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/kms"

	"colophon/internal/access"
	"colophon/internal/content"
	"colophon/internal/destination"
	"colophon/internal/egress"
	"colophon/internal/httpapi"
	"colophon/internal/lambdahttp"
	"colophon/internal/runtime"
	"colophon/internal/runtime/sealing"
	"colophon/internal/store"
	"colophon/internal/webhook"
)

// Config is what a Main is built from.
type Config struct {
	Environment runtime.API
	Getenv      func(string) string // of the AWS clients
	Log         *slog.Logger
	Clock       func() time.Time
	Observe     func(store.Consumption) // nil: units are not asked for
}

// Main is the api function.
type Main struct {
	// Handler answers the API's paths without a stage before them.
	Handler http.Handler
	handle  func(context.Context, events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error)
}

// New builds the function.
func New(c Config) (*Main, error) {
	tables, err := runtime.AWS(c.Getenv, "dynamodb")
	if err != nil {
		return nil, err
	}
	keys, err := runtime.AWS(c.Getenv, "kms")
	if err != nil {
		return nil, err
	}
	engine, err := store.NewDynamo(store.DynamoConfig{Client: store.NewClient(tables), Observe: c.Observe})
	if err != nil {
		return nil, err
	}
	sealer, err := sealing.NewSealer(sealing.SealerConfig{Encrypt: kms.NewFromConfig(keys).Encrypt, Key: c.Environment.SealingKey})
	if err != nil {
		return nil, err
	}
	return assemble(c, engine, sealer)
}

func assemble(c Config, engine store.Engine, sealer destination.Sealer) (*Main, error) {
	e := c.Environment
	tokenStore, err := store.NewTokens(store.TokensConfig{Engine: engine, Table: e.ContentTable})
	if err != nil {
		return nil, err
	}
	tokens, err := access.New(access.Config{Tokens: tokenStore, Now: c.Clock})
	if err != nil {
		return nil, err
	}
	contents, err := store.NewContents(store.ContentsConfig{Engine: engine, ContentTable: e.ContentTable, DeliveryTable: e.DeliveryTable})
	if err != nil {
		return nil, err
	}
	publishing, err := content.New(content.Config{Store: contents, Announce: announce, PublicAddress: e.PublicAddress})
	if err != nil {
		return nil, err
	}
	destinations, err := store.NewDestinations(store.DestinationsConfig{Engine: engine, ContentTable: e.ContentTable, DeliveryTable: e.DeliveryTable})
	if err != nil {
		return nil, err
	}
	announcing, err := destination.New(destination.Config{
		Store: destinations, History: destinations, Sealer: sealer,
		ParseTarget: parseTarget(e.AllowsLoopback), Clock: c.Clock, Random: rand.Reader,
	})
	if err != nil {
		return nil, err
	}
	handler, err := httpapi.New(httpapi.Config{
		Tokens: tokens, Content: publishing, Announcing: announcing, Log: c.Log, Clock: c.Clock, RequestID: rand.Text,
	})
	if err != nil {
		return nil, err
	}
	return &Main{Handler: handler, handle: lambdahttp.Handle(handler)}, nil
}

// Handle answers one request that came through the gateway.
func (m *Main) Handle(ctx context.Context, event events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
	return m.handle(ctx, event)
}

// announce makes a delivery's id and body (I4: once, for the transaction that
// writes them).
func announce(a content.Announcement) (id string, body []byte, err error) {
	if id, err = webhook.NewID(rand.Reader); err != nil {
		return "", nil, err
	}
	body, err = webhook.Release{
		Project: webhook.Project{ID: a.Project, Name: a.ProjectName},
		Number:  a.Release, Documents: int(a.Documents), Message: a.Message, URL: a.URL,
	}.Body(a.At)
	return id, body, err
}

func parseTarget(allowsLoopback bool) func(string) (*url.URL, error) {
	return func(raw string) (*url.URL, error) {
		if allowsLoopback {
			return egress.ParseTarget(raw, egress.AllowLoopback())
		}
		return egress.ParseTarget(raw)
	}
}
