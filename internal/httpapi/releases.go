package httpapi

import (
	"context"
	"fmt"

	"colophon/internal/content"
	"colophon/internal/httpapi/openapi"
)

// PublishRelease publishes the drafts.
func (a *API) PublishRelease(ctx context.Context, req openapi.OptPublish, params openapi.PublishReleaseParams) (*openapi.ReleaseHeaders, error) {
	by := caller(ctx)
	published, err := a.c.Content.Publish(ctx, params.Project, content.PublishRequest{
		Message: req.Value.Message.Value, Force: req.Value.Force.Value,
		IdempotencyKey: params.IdempotencyKey.Value, Who: by.Who(), WhoID: by.ID(), BaseURL: inquiryOf(ctx).address,
	})
	if err != nil {
		return nil, err
	}
	shown := &openapi.ReleaseHeaders{Response: showRelease(published.Release)}
	if published.Replayed {
		shown.IdempotentReplayed = openapi.NewOptBool(true)
	}
	return shown, nil
}

// ListReleases lists releases, newest first.
func (a *API) ListReleases(ctx context.Context, params openapi.ListReleasesParams) (*openapi.ReleasePage, error) {
	page, err := a.c.Content.ListReleases(ctx, params.Project, params.Cursor.Value, params.Limit.Value)
	if err != nil {
		return nil, err
	}
	return &openapi.ReleasePage{Releases: each(page.Releases, showRelease), Next: optional(page.Next)}, nil
}

// GetRelease reads a release.
func (a *API) GetRelease(ctx context.Context, params openapi.GetReleaseParams) (*openapi.Release, error) {
	r, err := a.c.Content.Release(ctx, params.Project, params.Release)
	if err != nil {
		return nil, err
	}
	shown := showRelease(r)
	return &shown, nil
}

// GetFeed lists releases above a number, oldest first.
func (a *API) GetFeed(ctx context.Context, params openapi.GetFeedParams) (*openapi.Feed, error) {
	feed, err := a.c.Content.ReleasesSince(ctx, params.Project, params.Since.Value, params.Limit.Value)
	if err != nil {
		return nil, err
	}
	return &openapi.Feed{Releases: each(feed.Releases, showRelease), Newest: feed.Newest}, nil
}

func showRelease(r content.Release) openapi.Release {
	return openapi.Release{
		Project: r.Project, Number: r.Number, Message: r.Message, Documents: int(r.Documents),
		PublishedAt: r.At.UTC(), PublishedBy: optional(r.Who), PublishedByTokenId: optional(r.WhoID),
		Deliveries: each(r.Destinations, func(id string) openapi.DeliveryLink {
			return openapi.DeliveryLink{Destination: id, Link: deliveryLink(r.Project, id, r.Number)}
		}),
	}
}

func deliveryLink(project, destination string, release int64) string {
	return fmt.Sprintf("/projects/%s/destinations/%s/deliveries/%d", project, destination, release)
}
