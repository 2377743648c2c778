package httpapi

import (
	"context"
	"strconv"
	"time"

	"colophon/internal/delivery"
	"colophon/internal/destination"
	"colophon/internal/httpapi/openapi"
	"colophon/internal/webhook"
)

// ListReleaseDeliveries says what became of a release at each destination.
func (a *API) ListReleaseDeliveries(ctx context.Context, params openapi.ListReleaseDeliveriesParams) (*openapi.DeliveryList, error) {
	list, err := a.c.Announcing.Deliveries(ctx, params.Project, params.Release)
	if err != nil {
		return nil, err
	}
	return &openapi.DeliveryList{Deliveries: each(list, a.showDelivery)}, nil
}

// ListDestinationDeliveries lists a destination's deliveries, newest first.
func (a *API) ListDestinationDeliveries(ctx context.Context, params openapi.ListDestinationDeliveriesParams) (*openapi.DeliveryPage, error) {
	asked := destination.Range{From: params.From.Value, To: params.To.Value, Limit: params.Limit.Value}
	if cursor := params.Cursor.Value; cursor != "" {
		next, err := cursorText(deliveryCursor, cursor)
		if err != nil {
			return nil, err
		}
		if asked.To, err = strconv.ParseInt(next, 10, 64); err != nil || asked.To < 1 {
			return nil, errCursor()
		}
	}
	page, err := a.c.Announcing.DestinationDeliveries(ctx, params.Project, params.Destination, asked)
	if err != nil {
		return nil, err
	}
	shown := &openapi.DeliveryPage{Deliveries: each(page.Deliveries, a.showDelivery)}
	if page.Next > 0 {
		shown.Next = optional(cursorOf(deliveryCursor, strconv.FormatInt(page.Next, 10)))
	}
	return shown, nil
}

// GetDelivery reads a delivery.
func (a *API) GetDelivery(ctx context.Context, params openapi.GetDeliveryParams) (*openapi.Delivery, error) {
	return a.oneDelivery(a.c.Announcing.Delivery(ctx, keyOf(params.Project, params.Destination, params.Release)))
}

// Redeliver starts a delivery's next round.
func (a *API) Redeliver(ctx context.Context, req openapi.OptRedeliver, params openapi.RedeliverParams) (*openapi.Delivery, error) {
	key := keyOf(params.Project, params.Destination, params.Release)
	return a.oneDelivery(a.c.Announcing.Redeliver(ctx, key, destination.Redelivery{
		Force: req.Value.Force.Value, Over: req.Value.Over.Value,
	}))
}

// TryNow brings a delivery's next try forward.
func (a *API) TryNow(ctx context.Context, params openapi.TryNowParams) (*openapi.Delivery, error) {
	return a.oneDelivery(a.c.Announcing.TryNow(ctx, keyOf(params.Project, params.Destination, params.Release)))
}

// GetSigned says what a delivery's attempts signed. An attempt is signed at the
// instant that is recorded as its beginning.
func (a *API) GetSigned(ctx context.Context, params openapi.GetSignedParams) (*openapi.Signed, error) {
	d, err := a.c.Announcing.Delivery(ctx, keyOf(params.Project, params.Destination, params.Release))
	if err != nil {
		return nil, err
	}
	signed := webhook.Sent{ID: d.WebhookID, Body: d.Body}.Signed()
	return &openapi.Signed{
		WebhookId: signed.ID, Body: string(d.Body), BodyBytes: int64(signed.BodyBytes), BodyDigest: signed.BodyDigest,
		Attempts: each(d.Attempts, func(at delivery.Attempt) openapi.SignedAttempt {
			return openapi.SignedAttempt{Number: at.Number, Timestamp: webhook.Sent{At: at.At}.Signed().Timestamp}
		}),
	}, nil
}

func keyOf(project, id string, release int64) delivery.Key {
	return delivery.Key{Destination: delivery.Destination{Project: project, ID: id}, Release: release}
}

func (a *API) oneDelivery(d destination.Delivery, err error) (*openapi.Delivery, error) {
	if err != nil {
		return nil, err
	}
	shown := a.showDelivery(d)
	return &shown, nil
}

func (a *API) showDelivery(d destination.Delivery) openapi.Delivery {
	shown := openapi.Delivery{
		Project: d.Project, Destination: d.ID, DestinationName: d.Destination.Name, Release: d.Release,
		WebhookId: d.WebhookID, State: stateOf(d.Delivery), Reason: optional(string(d.Reason)),
		Successor: optionalNumber(d.Successor), Replaced: d.Replaced, Sending: d.Sending,
		Round: d.Round, Tries: d.Tries, Attempts: each(d.Attempts, showAttempt),
		EarlierAttempts: max(0, d.Numbered-int64(len(d.Attempts))),
		Over:            optionalNumber(d.Over), Newest: d.Newest,
		QueuedAt: d.CreatedAt.UTC(), EndedAt: optionalTime(d.EndedAt),
		Timeline: delivery.Timeline(d.Delivery, d.Sending, a.c.Clock()),
		Link:     deliveryLink(d.Project, d.ID, d.Release),
	}
	if !d.Status.Terminal() {
		shown.TryAt = optionalTime(d.TryAt)
	}
	if d.Before != nil {
		shown.Before = openapi.NewOptRoundResult(openapi.RoundResult{
			State: openapi.RoundResultState(d.Before.Status), Reason: optional(string(d.Before.Reason)),
			Successor: optionalNumber(d.Before.Successor), Round: d.Before.Round, At: d.Before.At.UTC(),
		})
	}
	return shown
}

// stateOf is the delivery's state. A damaged record may hold none: it is still
// to end, as failed.
func stateOf(d delivery.Delivery) openapi.DeliveryState {
	if d.Status.Terminal() || d.Status == delivery.Retrying {
		return openapi.DeliveryState(d.Status)
	}
	return openapi.DeliveryStateQueued
}

func showAttempt(at delivery.Attempt) openapi.Attempt {
	shown := openapi.Attempt{
		Number: at.Number, Round: at.Round, At: at.At.UTC(), Milliseconds: at.Elapsed.Milliseconds(),
		Class: string(at.Class), Detail: optional(at.Detail), Received: openapi.AttemptReceived(at.Received),
		RetryAfterAsked: optionalSeconds(at.Asked), RetryAfterUsed: optionalSeconds(at.Used), Late: optional(at.Late),
	}
	if at.Status > 0 {
		shown.Status = openapi.NewOptInt(at.Status)
	}
	return shown
}

// optionalSeconds rounds up, as Retry-After counts.
func optionalSeconds(d time.Duration) openapi.OptInt64 {
	return optionalNumber(int64((d + time.Second - 1) / time.Second))
}
