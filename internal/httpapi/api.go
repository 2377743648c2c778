package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"colophon/internal/access"
	"colophon/internal/content"
	"colophon/internal/delivery"
	"colophon/internal/destination"
	"colophon/internal/httpapi/openapi"
)

// Tokens says who brings a token, and how often it may: *access.Service.
type Tokens interface {
	Authenticate(ctx context.Context, bearer string) (access.Principal, error)
	// TakeRequest takes one request from the token's limit.
	TakeRequest(ctx context.Context, p access.Principal) error
	// UseIsDue says whether RecordUse is to be called.
	UseIsDue(p access.Principal) bool
	RecordUse(ctx context.Context, p access.Principal) error
}

// Content keeps documents and publishes them: *content.Service.
type Content interface {
	Projects
	Documents
	Releases
	ReleaseContent
}

// Projects makes and reads projects.
type Projects interface {
	CreateProject(ctx context.Context, name string) (content.Project, error)
	Project(ctx context.Context, id string) (content.Project, error)
	ListProjects(ctx context.Context, cursor string, limit int) (content.ProjectPage, error)
}

// Documents keeps drafts.
type Documents interface {
	PutDocument(ctx context.Context, project string, s content.Save) (content.Saved, error)
	GetDocument(ctx context.Context, project, path string) (content.Draft, []byte, error)
	DeleteDocument(ctx context.Context, project string, d content.Deletion) error
	ListDocuments(ctx context.Context, project, cursor string, limit int) (content.DraftPage, error)
}

// Releases publishes and reads releases.
type Releases interface {
	Publish(ctx context.Context, project string, r content.PublishRequest) (content.Published, error)
	Release(ctx context.Context, project string, number int64) (content.Release, error)
	ListReleases(ctx context.Context, project, cursor string, limit int) (content.ReleasePage, error)
	ReleasesSince(ctx context.Context, project string, since int64, limit int) (content.Feed, error)
}

// ReleaseContent reads what a release holds.
type ReleaseContent interface {
	ReleaseDocuments(ctx context.Context, project string, number int64) ([]content.Document, error)
	ReleaseDocument(ctx context.Context, project string, number int64, path string) (content.Document, []byte, error)
}

// Announcing keeps destinations and what is sent to them: *destination.Service.
type Announcing interface {
	Destinations
	Secrets
	Switches
	Deliveries
	Resending
	Tests
}

// Destinations keeps destinations.
type Destinations interface {
	Add(ctx context.Context, project string, a destination.Addition) (destination.Added, error)
	List(ctx context.Context, project string) ([]destination.Destination, error)
	Get(ctx context.Context, project, id string) (destination.Destination, error)
	Change(ctx context.Context, project, id string, c destination.Change) (destination.Destination, error)
}

// Secrets replaces signing secrets.
type Secrets interface {
	Rotate(ctx context.Context, project, id string, r destination.Rotation) (destination.Rotated, error)
	RevokePrevious(ctx context.Context, project, id string, r destination.Revocation) error
}

// Switches turns destinations off and on.
type Switches interface {
	Pause(ctx context.Context, project, id string) (destination.Destination, error)
	Resume(ctx context.Context, project, id string) (destination.Resumed, error)
	Remove(ctx context.Context, project, id string) error
}

// Deliveries reads what became of announcements.
type Deliveries interface {
	Deliveries(ctx context.Context, project string, release int64) ([]destination.Delivery, error)
	DestinationDeliveries(ctx context.Context, project, id string, r destination.Range) (destination.DeliveryPage, error)
	Delivery(ctx context.Context, key delivery.Key) (destination.Delivery, error)
}

// Resending sends what a person wants sent.
type Resending interface {
	Redeliver(ctx context.Context, key delivery.Key, r destination.Redelivery) (destination.Delivery, error)
	TryNow(ctx context.Context, key delivery.Key) (destination.Delivery, error)
}

// Tests sends tests.
type Tests interface {
	SendTest(ctx context.Context, project, id string) (delivery.TestSend, error)
	Test(ctx context.Context, project, id, test string) (delivery.TestSend, error)
	Examine(ctx context.Context, project, id string) (delivery.TestSend, error)
	Examination(ctx context.Context, project, id, examination string) (delivery.TestSend, error)
}

// Config is what an API needs.
type Config struct {
	Tokens     Tokens
	Content    Content
	Announcing Announcing
	Log        *slog.Logger
	Clock      func() time.Time
	// RequestID names a request that did not come through the gateway, which
	// names its own.
	RequestID func() string
}

func (c Config) validate() error {
	if c.Tokens == nil || c.Content == nil || c.Announcing == nil || c.Log == nil || c.Clock == nil || c.RequestID == nil {
		return errors.New("httpapi: tokens, content, announcing, a log, a clock and request ids are needed")
	}
	return nil
}

// API answers the operations of the description.
type API struct{ c Config }

var (
	_ openapi.Handler         = (*API)(nil)
	_ openapi.SecurityHandler = (*API)(nil)
)

// New makes the API's http.Handler.
func New(c Config) (http.Handler, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	a := &API{c}
	server, err := openapi.NewServer(a, a,
		openapi.WithMiddleware(a.authorize),
		openapi.WithErrorHandler(a.refuseRequest),
		openapi.WithNotFound(a.refuseRoute),
		openapi.WithMethodNotAllowed(a.refuseMethod),
	)
	if err != nil {
		return nil, err
	}
	return a.guard(server), nil
}

// GetHealth says that the API answers. It reads nothing: a table that does not
// answer is not mended by taking the API away too.
func (a *API) GetHealth(context.Context) (*openapi.Health, error) {
	return &openapi.Health{Status: openapi.HealthStatusOk}, nil
}
