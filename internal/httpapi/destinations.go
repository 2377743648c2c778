package httpapi

import (
	"context"
	"fmt"

	"colophon/internal/content"
	"colophon/internal/delivery"
	"colophon/internal/destination"
	"colophon/internal/egress"
	"colophon/internal/httpapi/openapi"
)

// CreateDestination adds a destination and shows its secret, once.
func (a *API) CreateDestination(ctx context.Context, req *openapi.NewDestination, params openapi.CreateDestinationParams) (*openapi.CreatedDestinationHeaders, error) {
	added, err := a.c.Announcing.Add(ctx, params.Project, destination.Addition{
		Name: req.Name, URL: req.URL, Headers: map[string]string(req.Headers.Value),
	})
	if err != nil {
		return nil, err
	}
	shown := showDestination(ctx, added.Destination)
	return &openapi.CreatedDestinationHeaders{
		ETag: shown.Etag, Response: openapi.CreatedDestination{Destination: shown, Secret: added.Secret},
	}, nil
}

// ListDestinations lists a project's destinations.
func (a *API) ListDestinations(ctx context.Context, params openapi.ListDestinationsParams) (*openapi.DestinationList, error) {
	list, err := a.c.Announcing.List(ctx, params.Project)
	if err != nil {
		return nil, err
	}
	return &openapi.DestinationList{Destinations: each(list, func(d destination.Destination) openapi.Destination {
		return showDestination(ctx, d)
	})}, nil
}

// GetDestination reads a destination.
func (a *API) GetDestination(ctx context.Context, params openapi.GetDestinationParams) (*openapi.DestinationHeaders, error) {
	d, err := a.c.Announcing.Get(ctx, params.Project, params.Destination)
	return withETag(ctx, d, err)
}

// UpdateDestination changes what is named of a destination.
func (a *API) UpdateDestination(ctx context.Context, req *openapi.DestinationChange, params openapi.UpdateDestinationParams) (*openapi.DestinationHeaders, error) {
	version, err := ifMatch(params.IfMatch)
	if err != nil {
		return nil, err
	}
	change := destination.Change{Version: version}
	if req.Name.Set {
		change.Name = &req.Name.Value
	}
	if req.URL.Set {
		change.URL = &req.URL.Value
	}
	if req.Headers.Set {
		headers := map[string]string(req.Headers.Value)
		change.Headers = &headers
	}
	d, err := a.c.Announcing.Change(ctx, params.Project, params.Destination, change)
	return withETag(ctx, d, err)
}

func withETag(ctx context.Context, d destination.Destination, err error) (*openapi.DestinationHeaders, error) {
	if err != nil {
		return nil, err
	}
	shown := showDestination(ctx, d)
	return &openapi.DestinationHeaders{ETag: shown.Etag, Response: shown}, nil
}

// RemoveDestination takes a destination away.
func (a *API) RemoveDestination(ctx context.Context, params openapi.RemoveDestinationParams) error {
	return a.c.Announcing.Remove(ctx, params.Project, params.Destination)
}

// PauseDestination stops sending to a destination.
func (a *API) PauseDestination(ctx context.Context, params openapi.PauseDestinationParams) (*openapi.Destination, error) {
	d, err := a.c.Announcing.Pause(ctx, params.Project, params.Destination)
	if err != nil {
		return nil, err
	}
	shown := showDestination(ctx, d)
	return &shown, nil
}

// ResumeDestination sends to it again, and offers what it missed.
func (a *API) ResumeDestination(ctx context.Context, params openapi.ResumeDestinationParams) (*openapi.ResumedDestination, error) {
	resumed, err := a.c.Announcing.Resume(ctx, params.Project, params.Destination)
	if err != nil {
		return nil, err
	}
	shown := &openapi.ResumedDestination{Destination: showDestination(ctx, resumed.Destination)}
	if resumed.SendNewest {
		shown.Offer = openapi.NewOptInt64(resumed.Newest)
	}
	return shown, nil
}

// RotateDestinationSecret replaces the signing secret and shows the new one, once.
func (a *API) RotateDestinationSecret(ctx context.Context, req openapi.OptRotateSecret, params openapi.RotateDestinationSecretParams) (*openapi.RotatedSecretHeaders, error) {
	version, err := ifMatch(params.IfMatch)
	if err != nil {
		return nil, err
	}
	rotated, err := a.c.Announcing.Rotate(ctx, params.Project, params.Destination, destination.Rotation{
		RevokeOld: req.Value.RevokeOld.Value, Secret: req.Value.Secret.Value, Version: version,
	})
	if err != nil {
		return nil, err
	}
	return &openapi.RotatedSecretHeaders{
		ETag:     etag(rotated.Destination.Version),
		Response: openapi.RotatedSecret{Secret: rotated.Secret, PreviousUntil: optionalTime(rotated.PreviousUntil)},
	}, nil
}

// RevokeOldDestinationSecret ends replaced secrets before their time.
func (a *API) RevokeOldDestinationSecret(ctx context.Context, req openapi.OptRevokeSecret, params openapi.RevokeOldDestinationSecretParams) error {
	version, err := ifMatch(params.IfMatch)
	if err != nil {
		return err
	}
	if req.Value.Position.Set && version == 0 {
		return &content.Error{Code: codePreconditionRequired, Field: "If-Match", Message: "Positions shift when a secret is rotated, revoked or ends. " +
			"Read the destination, and send its ETag as If-Match together with the position. Nothing was revoked."}
	}
	return a.c.Announcing.RevokePrevious(ctx, params.Project, params.Destination, destination.Revocation{
		Position: req.Value.Position.Value, Version: version,
	})
}

// CreateTest sends a test.
func (a *API) CreateTest(ctx context.Context, params openapi.CreateTestParams) (*openapi.Test, error) {
	return a.showTest(a.c.Announcing.SendTest(ctx, params.Project, params.Destination))
}

// GetTest reads what became of a test.
func (a *API) GetTest(ctx context.Context, params openapi.GetTestParams) (*openapi.Test, error) {
	return a.showTest(a.c.Announcing.Test(ctx, params.Project, params.Destination, params.Test))
}

func (a *API) showTest(t delivery.TestSend, err error) (*openapi.Test, error) {
	if err != nil {
		return nil, err
	}
	shown := &openapi.Test{
		ID: t.ID, Project: t.Project, Destination: t.Destination.ID, CreatedAt: t.CreatedAt.UTC(),
		State: a.testState(t), Attempt: testAttempt(t),
		Link: fmt.Sprintf("/projects/%s/destinations/%s/tests/%s", t.Project, t.Destination.ID, t.ID),
	}
	return shown, nil
}

func (a *API) testState(t delivery.TestSend) openapi.TestState {
	switch state := t.State(a.c.Clock()); {
	case state != delivery.TestEnded:
		return openapi.TestState(state)
	case t.Result.Class == delivery.ClassDelivered:
		return openapi.TestStateDelivered
	}
	return openapi.TestStateFailed
}

func testAttempt(t delivery.TestSend) openapi.OptAttempt {
	if t.Result == nil {
		return openapi.OptAttempt{}
	}
	return openapi.NewOptAttempt(showAttempt(*t.Result))
}

// CreateExamination has a destination examined.
func (a *API) CreateExamination(ctx context.Context, params openapi.CreateExaminationParams) (*openapi.Examination, error) {
	return a.showExamination(a.c.Announcing.Examine(ctx, params.Project, params.Destination))
}

// GetExamination reads what an examination found.
func (a *API) GetExamination(ctx context.Context, params openapi.GetExaminationParams) (*openapi.Examination, error) {
	return a.showExamination(a.c.Announcing.Examination(ctx, params.Project, params.Destination, params.Examination))
}

func (a *API) showExamination(t delivery.TestSend, err error) (*openapi.Examination, error) {
	if err != nil {
		return nil, err
	}
	return &openapi.Examination{
		ID: t.ID, Project: t.Project, Destination: t.Destination.ID, CreatedAt: t.CreatedAt.UTC(),
		State: a.testState(t), Attempt: testAttempt(t),
		Findings: each(t.Findings, func(f delivery.Finding) openapi.Finding {
			return openapi.Finding{Check: openapi.FindingCheck(f.Check), Verdict: openapi.FindingVerdict(f.Verdict), Words: f.Words}
		}),
		Link: fmt.Sprintf("/projects/%s/destinations/%s/doctor/%s", t.Project, t.Destination.ID, t.ID),
	}, nil
}

func showDestination(ctx context.Context, d destination.Destination) openapi.Destination {
	shown := openapi.Destination{
		ID: d.ID, Project: d.Project, Name: d.Name, URL: shownAddress(ctx, d), State: openapi.DestinationState(d.State),
		Slow: d.Slow, Damaged: d.Damaged, Sending: optionalNumber(d.Sending),
		SentThrough: optionalNumber(d.SentThrough), DeliveredThrough: optionalNumber(d.DeliveredThrough),
		Headers: each(d.HeaderNames, func(name string) string { return name }),
		Etag:    etag(d.Version), PreviousSecretUntil: optionalTime(d.PreviousUntil),
		CreatedAt: d.CreatedAt.UTC(), UpdatedAt: d.UpdatedAt.UTC(),
	}
	for i, until := range d.PreviousSecrets {
		shown.PreviousSecrets = append(shown.PreviousSecrets, openapi.PreviousSecret{Position: i + 1, Until: until.UTC()})
	}
	if d.State == delivery.SlotPaused && d.PausedBy != "" {
		shown.PausedBy = openapi.NewOptDestinationPausedBy(openapi.DestinationPausedBy(d.PausedBy))
	}
	return shown
}

// shownAddress is the whole address for admins, who set it. For chat services the
// address is the credential, so that others see where it leads and no more.
func shownAddress(ctx context.Context, d destination.Destination) string {
	origin := egress.Origin(d.URL)
	if origin == "" || mayAdminister(ctx, d.Project) {
		return d.URL
	}
	return origin + "/…"
}
