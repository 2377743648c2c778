package api

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/url"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/kms"

	"colophon/internal/access"
	"colophon/internal/clock"
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

// Main is the api function.
type Main struct {
	// Handler answers the API's paths, without a stage before them.
	Handler http.Handler
	handle  func(context.Context, events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error)
}

// Handle answers one request that came through the gateway.
func (m *Main) Handle(ctx context.Context, event events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
	return m.handle(ctx, event)
}

// New builds the function from its environment. Observe is told the units of
// each table call; nil: they are not asked for.
func New(getenv func(string) string, observe func(store.Consumption)) (*Main, error) {
	runtime.FitSandbox(getenv)
	e, err := runtime.ReadAPI(getenv)
	if err != nil {
		return nil, err
	}
	tables, err := runtime.AWS(getenv, "dynamodb")
	if err != nil {
		return nil, err
	}
	engine, err := store.NewDynamo(store.DynamoConfig{Client: store.NewClient(tables), Observe: observe})
	if err != nil {
		return nil, err
	}
	tokens, err := newTokens(e, engine)
	if err != nil {
		return nil, err
	}
	publishing, err := newContent(e, engine)
	if err != nil {
		return nil, err
	}
	announcing, err := newDestinations(e, engine, getenv)
	if err != nil {
		return nil, err
	}
	handler, err := httpapi.New(httpapi.Config{
		Tokens: tokens, Content: publishing, Announcing: announcing,
		Log: runtime.NewLog(), Clock: clock.Now, RequestID: rand.Text,
	})
	if err != nil {
		return nil, err
	}
	return &Main{Handler: handler, handle: lambdahttp.Handle(handler)}, nil
}

func newTokens(e runtime.API, engine store.Engine) (*access.Service, error) {
	tokens, err := store.NewTokens(store.TokensConfig{Engine: engine, Table: e.ContentTable})
	if err != nil {
		return nil, err
	}
	return access.New(access.Config{Tokens: tokens, Clock: clock.Now, Limit: e.TokenLimit})
}

func newContent(e runtime.API, engine store.Engine) (*content.Service, error) {
	contents, err := store.NewContents(store.ContentsConfig{Engine: engine, ContentTable: e.ContentTable, DeliveryTable: e.DeliveryTable})
	if err != nil {
		return nil, err
	}
	return content.New(content.Config{
		Store: contents, Announce: announce, PublicAddress: e.PublicAddress, Clock: clock.System{},
		Publishes: e.PublishLimit, MostContent: int64(e.ProjectContentLimit) << 30,
	})
}

func newDestinations(e runtime.API, engine store.Engine, getenv func(string) string) (*destination.Service, error) {
	keys, err := runtime.AWS(getenv, "kms")
	if err != nil {
		return nil, err
	}
	sealer, err := sealing.NewSealer(sealing.SealerConfig{Encrypt: kms.NewFromConfig(keys).Encrypt, Key: e.SealingKey})
	if err != nil {
		return nil, err
	}
	destinations, err := store.NewDestinations(store.DestinationsConfig{Engine: engine, ContentTable: e.ContentTable, DeliveryTable: e.DeliveryTable})
	if err != nil {
		return nil, err
	}
	return destination.New(destination.Config{
		Store: destinations, History: destinations, Sealer: sealer,
		ParseTarget: parseTarget(e), Clock: clock.Now, Random: rand.Reader,
		Limits: destination.Limits{Destination: e.DestinationLimit, Origin: e.OriginLimit},
	})
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

// parseTarget takes the addresses that the stage allows, but for the API's own:
// the public address, and what the gateway says of the request.
func parseTarget(e runtime.API) func(context.Context, string) (*url.URL, error) {
	return func(ctx context.Context, raw string) (*url.URL, error) {
		gateway, _ := lambdahttp.GatewayOf(ctx)
		options := []egress.TargetOption{egress.RefuseOwnAPI(egress.OwnAPI{
			ID: gateway.APIID, Hosts: []string{gateway.Domain, hostOf(e.PublicAddress)},
		})}
		if e.AllowsLoopback {
			options = append(options, egress.AllowLoopback())
		}
		return egress.ParseTarget(raw, options...)
	}
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Hostname()
}
