package api_test

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/kms"

	"colophon/client"
	"colophon/internal/access"
	"colophon/internal/delivery"
	"colophon/internal/function/api"
	"colophon/internal/store"
)

// save saves a document.
func save(t *testing.T, c *client.Client, project, path, text string) {
	t.Helper()
	_, err := c.PutDocument(t.Context(), &client.PutDocumentReqWithContentType{
		ContentType: "text/markdown", Content: client.PutDocumentReq{Data: strings.NewReader(text)},
	}, client.PutDocumentParams{Project: project, Path: path})
	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, r io.Reader) string {
	t.Helper()
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// refused asserts that an error is a problem of this code.
func refused(t *testing.T, err error, status int, code string) *client.ProblemStatusCodeWithHeaders {
	t.Helper()
	p := client.AsProblem(err)
	if p == nil || p.StatusCode != status || p.Response.Code.Value != code || p.Response.Detail.Value == "" {
		t.Fatalf("got %v, want %d %s", err, status, code)
	}
	return p
}

func must[T any](t *testing.T) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func TestDocumentsAreSavedReadAndPublishedThroughTheClient(t *testing.T) {
	t.Parallel()
	ways(t, func(t *testing.T, s *stack, over http.RoundTripper, address string) {
		c := newClient(t, over, address, s.token(t, access.Admin, ""))
		project := must[*client.Project](t)(c.CreateProject(t.Context(), &client.NewProject{Name: "Handbook"})).ID
		in := client.GetProjectParams{Project: project}

		// Paths of all kinds, the ones that a gateway would spoil in an address among them.
		paths := []string{"guide/index.md", "guide/über uns.md", "a+b & c?d=e.md", "100%/50%25.md", "guide/a%2Fb.md", "日本.md"}
		for _, path := range paths {
			save(t, c, project, path, "# "+path)
		}
		list := must[*client.DocumentPage](t)(c.ListDocuments(t.Context(), client.ListDocumentsParams{Project: project}))
		var listed []string
		for _, d := range list.Documents {
			listed = append(listed, d.Path)
		}
		if slices.Sort(paths); !slices.Equal(listed, paths) {
			t.Errorf("listed are %q", listed)
		}
		for _, path := range paths {
			answer := must[client.GetDocumentRes](t)(c.GetDocument(t.Context(), client.GetDocumentParams{Project: project, Path: path}))
			got, ok := answer.(*client.GetDocumentOKHeaders)
			if !ok || read(t, got.Response) != "# "+path || got.ContentType != "text/markdown" || got.ETag != `"1"` {
				t.Errorf("%s: got %+v", path, answer)
			}
		}

		// Two who read the same version: the second one's save is refused.
		for i, status := range []int{200, 412} {
			answer, text := send(t, over, "PUT", address+"/projects/"+project+"/document?path=guide%2Findex.md",
				s.token(t, access.Editor, project), "# Again "+string(rune('a'+i)), "If-Match", `"1"`)
			if answer.StatusCode != status {
				t.Errorf("save %d: got %d %s", i, answer.StatusCode, text)
			}
		}
		if err := c.DeleteDocument(t.Context(), client.DeleteDocumentParams{Project: project, Path: "日本.md"}); err != nil {
			t.Fatal(err)
		}

		key := client.NewOptString("a-key")
		ask := client.NewOptPublish(client.Publish{Message: client.NewOptString("First")})
		first := must[*client.ReleaseHeaders](t)(c.PublishRelease(t.Context(), ask, client.PublishReleaseParams{Project: project, IdempotencyKey: key}))
		if r := first.Response; r.Number != 1 || r.Documents != 5 || r.Message != "First" || r.PublishedBy.Value != "the admin" || first.IdempotentReplayed.Set {
			t.Errorf("published %+v", first)
		}
		save(t, c, project, "guide/index.md", "# Later")
		again := must[*client.ReleaseHeaders](t)(c.PublishRelease(t.Context(), ask, client.PublishReleaseParams{Project: project, IdempotencyKey: key}))
		if again.Response.Number != 1 || !again.IdempotentReplayed.Value || again.Response.PublishedAt != first.Response.PublishedAt {
			t.Errorf("the same again is %+v", again)
		}
		_, err := c.PublishRelease(t.Context(), client.OptPublish{}, client.PublishReleaseParams{Project: project, IdempotencyKey: key})
		refused(t, err, 422, "idempotency-mismatch")
		second := must[*client.ReleaseHeaders](t)(c.PublishRelease(t.Context(), client.OptPublish{}, client.PublishReleaseParams{Project: project}))
		if second.Response.Number != 2 {
			t.Errorf("published %+v", second)
		}
		_, err = c.PublishRelease(t.Context(), client.OptPublish{}, client.PublishReleaseParams{Project: project})
		refused(t, err, 409, "nothing-to-publish")

		// A release keeps what it was published with.
		held := must[*client.GetReleaseDocumentOKHeaders](t)(c.GetReleaseDocument(t.Context(), client.GetReleaseDocumentParams{Project: project, Release: 1, Path: "guide/index.md"}))
		if text := read(t, held.Response); text != "# Again a" {
			t.Errorf("release 1 holds %q", text)
		}
		var inRelease []string
		params := client.ListReleaseDocumentsParams{Project: project, Release: 1, Limit: client.NewOptInt(2)}
		for {
			page := must[*client.ReleasedDocumentPage](t)(c.ListReleaseDocuments(t.Context(), params))
			for _, d := range page.Documents {
				inRelease = append(inRelease, d.Path)
			}
			if params.Cursor = page.Next; !page.Next.Set {
				break
			}
		}
		if want := slices.DeleteFunc(paths, func(path string) bool { return path == "日本.md" }); !slices.Equal(inRelease, want) {
			t.Errorf("release 1 holds %q", inRelease)
		}

		for range 3 {
			force := client.NewOptPublish(client.Publish{Force: client.NewOptBool(true)})
			must[*client.ReleaseHeaders](t)(c.PublishRelease(t.Context(), force, client.PublishReleaseParams{Project: project}))
		}
		for _, step := range []struct {
			since int64
			limit int
			want  []int64
		}{{0, 2, []int64{1, 2}}, {2, 2, []int64{3, 4}}, {4, 2, []int64{5}}, {5, 2, nil}, {9, 2, nil}, {0, 100, []int64{1, 2, 3, 4, 5}}} {
			feed := must[*client.Feed](t)(c.GetFeed(t.Context(), client.GetFeedParams{
				Project: project, Since: client.NewOptInt64(step.since), Limit: client.NewOptInt(step.limit),
			}))
			if got := numbers(feed.Releases); !slices.Equal(got, step.want) || feed.Newest != 5 {
				t.Errorf("since %d: got %v of %d", step.since, got, feed.Newest)
			}
		}
		releases := must[*client.ReleasePage](t)(c.ListReleases(t.Context(), client.ListReleasesParams{Project: project, Limit: client.NewOptInt(2)}))
		if got := numbers(releases.Releases); !slices.Equal(got, []int64{5, 4}) || !releases.Next.Set {
			t.Errorf("listed are %v", got)
		}
		if p := must[*client.Project](t)(c.GetProject(t.Context(), in)); p.Name != "Handbook" || p.NewestRelease.Value != 5 {
			t.Errorf("the project is %+v", p)
		}
	})
}

func TestTwoTokensOfOneNameAreToldApartInDraftsAndReleases(t *testing.T) {
	t.Parallel()
	ways(t, func(t *testing.T, s *stack, over http.RoundTripper, address string) {
		var clients []*client.Client
		var ids []string
		for range 2 {
			made, plain, err := s.tokens.CreateToken(t.Context(), access.NewToken{Name: "build", Role: access.Admin, AllProjects: true})
			if err != nil {
				t.Fatal(err)
			}
			clients, ids = append(clients, newClient(t, over, address, plain)), append(ids, made.ID)
		}
		project := must[*client.Project](t)(clients[0].CreateProject(t.Context(), &client.NewProject{Name: "Handbook"})).ID
		for i, c := range clients {
			save(t, c, project, string(rune('a'+i))+".md", "Text")
			save(t, c, project, "both.md", "Text "+ids[i])
			params := client.PublishReleaseParams{Project: project, IdempotencyKey: client.NewOptString("key-" + ids[i])}
			first := must[*client.ReleaseHeaders](t)(c.PublishRelease(t.Context(), client.OptPublish{}, params))
			if r := first.Response; r.PublishedBy.Value != "build" || r.PublishedByTokenId.Value != ids[i] {
				t.Errorf("published by %+v %+v, want %s", r.PublishedBy, r.PublishedByTokenId, ids[i])
			}
			// A repeat under the other token is answered with who published.
			again := must[*client.ReleaseHeaders](t)(clients[1-i].PublishRelease(t.Context(), client.OptPublish{}, params))
			if !again.IdempotentReplayed.Value || !reflect.DeepEqual(again.Response, first.Response) {
				t.Errorf("a repeat is answered with %+v, the first was %+v", again, first)
			}
		}

		saved := map[string]string{}
		list := must[*client.DocumentPage](t)(clients[0].ListDocuments(t.Context(), client.ListDocumentsParams{Project: project}))
		for _, d := range list.Documents {
			if d.SavedBy.Value != "build" {
				t.Errorf("%s was saved by %q", d.Path, d.SavedBy.Value)
			}
			saved[d.Path] = d.SavedByTokenId.Value
		}
		if want := map[string]string{"a.md": ids[0], "b.md": ids[1], "both.md": ids[1]}; !maps.Equal(saved, want) {
			t.Errorf("drafts were saved by %v, want %v", saved, want)
		}
		releases := must[*client.ReleasePage](t)(clients[0].ListReleases(t.Context(), client.ListReleasesParams{Project: project}))
		feed := must[*client.Feed](t)(clients[0].GetFeed(t.Context(), client.GetFeedParams{Project: project}))
		for _, r := range append(releases.Releases, feed.Releases...) {
			if r.PublishedByTokenId.Value != ids[r.Number-1] {
				t.Errorf("release %d was published by %s, want %s", r.Number, r.PublishedByTokenId.Value, ids[r.Number-1])
			}
		}
		if len(releases.Releases) != 2 || len(feed.Releases) != 2 {
			t.Errorf("%d releases are listed, and %d in the feed", len(releases.Releases), len(feed.Releases))
		}

		if err := clients[0].DeleteDocument(t.Context(), client.DeleteDocumentParams{Project: project, Path: "both.md"}); err != nil {
			t.Fatal(err)
		}
		deletions := 0
		scan := &dynamodb.ScanInput{TableName: &s.tables.Content, ConsistentRead: aws.Bool(true)}
		for _, item := range must[*dynamodb.ScanOutput](t)(s.tables.Client.Scan(t.Context(), scan)).Items {
			if item["deleted"] == nil {
				continue
			}
			deletions++
			if by, ok := item["whoId"].(*types.AttributeValueMemberS); !ok || by.Value != ids[0] {
				t.Errorf("the deletion is recorded as by %v, want %s", item["whoId"], ids[0])
			}
		}
		if deletions != 1 {
			t.Errorf("%d deletions are recorded", deletions)
		}

		// What was written before ids were recorded has none, and is read.
		for _, item := range must[*dynamodb.ScanOutput](t)(s.tables.Client.Scan(t.Context(), scan)).Items {
			if item["whoId"] == nil {
				continue
			}
			delete(item, "whoId")
			must[*dynamodb.PutItemOutput](t)(s.tables.Client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &s.tables.Content, Item: item}))
		}
		for _, target := range []string{"/documents", "/releases", "/releases/1"} {
			answer, text := send(t, over, "GET", address+"/projects/"+project+target, s.token(t, access.Viewer, ""), "")
			if answer.StatusCode != http.StatusOK || !strings.Contains(text, `edBy":"build"`) || strings.Contains(text, "ByTokenId") {
				t.Errorf("%s: got %d %s", target, answer.StatusCode, text)
			}
		}
	})
}

func numbers(releases []client.Release) []int64 {
	var all []int64
	for _, r := range releases {
		all = append(all, r.Number)
	}
	return all
}

func TestDestinationsAreKeptAndTheirDeliveriesReadThroughTheClient(t *testing.T) {
	t.Parallel()
	ways(t, func(t *testing.T, s *stack, over http.RoundTripper, address string) {
		c := newClient(t, over, address, s.token(t, access.Admin, ""))
		project := must[*client.Project](t)(c.CreateProject(t.Context(), &client.NewProject{Name: "Handbook"})).ID
		added := must[*client.CreatedDestinationHeaders](t)(c.CreateDestination(t.Context(), &client.NewDestination{
			Name: "Website", URL: "https://www.example.com/hook",
			Headers: client.NewOptNewDestinationHeaders(client.NewDestinationHeaders{"Authorization": "Bearer marked"}),
		}, client.CreateDestinationParams{Project: project}))
		id, secret := added.Response.Destination.ID, added.Response.Secret
		if !strings.HasPrefix(secret, "whsec_") || added.ETag != `"1"` {
			t.Errorf("added is %+v", added)
		}
		s.sealedAndNowhereElse(t, project, id, secret)

		// The address is judged, and said to be wrong without being repeated.
		_, err := c.CreateDestination(t.Context(), &client.NewDestination{Name: "Inside", URL: "https://10.0.0.1/marked"}, client.CreateDestinationParams{Project: project})
		if p := refused(t, err, 400, "invalid"); p.Response.Field.Value != "url" || strings.Contains(p.Response.Detail.Value, "marked") {
			t.Errorf("got %+v", p)
		}

		changed := must[*client.DestinationHeaders](t)(c.UpdateDestination(t.Context(), &client.DestinationChange{Name: client.NewOptString("Site")},
			client.UpdateDestinationParams{Project: project, Destination: id, IfMatch: client.NewOptString(`"1"`)}))
		if changed.Response.Name != "Site" || changed.ETag != `"2"` || !slices.Equal(changed.Response.Headers, []string{"Authorization"}) {
			t.Errorf("changed is %+v", changed)
		}
		_, err = c.UpdateDestination(t.Context(), &client.DestinationChange{Name: client.NewOptString("Late")},
			client.UpdateDestinationParams{Project: project, Destination: id, IfMatch: client.NewOptString(`"1"`)})
		refused(t, err, 412, "changed")

		rotated := must[*client.RotatedSecretHeaders](t)(c.RotateDestinationSecret(t.Context(), client.OptRotateSecret{}, client.RotateDestinationSecretParams{Project: project, Destination: id}))
		if rotated.Response.Secret == secret || !rotated.Response.PreviousUntil.Set || rotated.ETag != `"3"` {
			t.Errorf("rotated is %+v", rotated)
		}
		first := client.NewOptRevokeSecret(client.RevokeSecret{Position: client.NewOptInt(1)})
		byPosition := client.RevokeOldDestinationSecretParams{Project: project, Destination: id}
		refused(t, c.RevokeOldDestinationSecret(t.Context(), first, byPosition), 428, "precondition-required")
		byPosition.IfMatch = client.NewOptString(`"2"`)
		refused(t, c.RevokeOldDestinationSecret(t.Context(), first, byPosition), 412, "changed")
		byPosition.IfMatch = client.NewOptString(rotated.ETag)
		if err := c.RevokeOldDestinationSecret(t.Context(), first, byPosition); err != nil {
			t.Fatal(err)
		}
		if err := c.RevokeOldDestinationSecret(t.Context(), client.OptRevokeSecret{}, client.RevokeOldDestinationSecretParams{Project: project, Destination: id}); err != nil {
			t.Fatal(err)
		}
		if d := must[*client.DestinationHeaders](t)(c.GetDestination(t.Context(), client.GetDestinationParams{Project: project, Destination: id})); d.Response.PreviousSecretUntil.Set {
			t.Errorf("the old secret signs until %v", d.Response.PreviousSecretUntil)
		}

		save(t, c, project, "index.md", "# One")
		for range 3 {
			force := client.NewOptPublish(client.Publish{Force: client.NewOptBool(true)})
			published := must[*client.ReleaseHeaders](t)(c.PublishRelease(t.Context(), force, client.PublishReleaseParams{Project: project}))
			if links := published.Response.Deliveries; len(links) != 1 || links[0].Destination != id {
				t.Errorf("announced to %+v", links)
			}
			answer, text := send(t, over, "GET", address+published.Response.Deliveries[0].Link, s.token(t, access.Viewer, project), "")
			if answer.StatusCode != 200 {
				t.Errorf("the link leads to %d %s", answer.StatusCode, text)
			}
		}
		of := must[*client.DeliveryList](t)(c.ListReleaseDeliveries(t.Context(), client.ListReleaseDeliveriesParams{Project: project, Release: 2}))
		if len(of.Deliveries) != 1 || of.Deliveries[0].State != client.DeliveryStateQueued || of.Deliveries[0].Newest != 3 || len(of.Deliveries[0].Timeline) == 0 {
			t.Errorf("release 2 is %+v", of)
		}
		var seen []int64
		params := client.ListDestinationDeliveriesParams{Project: project, Destination: id, Limit: client.NewOptInt(1), From: client.NewOptInt64(2)}
		for {
			page := must[*client.DeliveryPage](t)(c.ListDestinationDeliveries(t.Context(), params))
			for _, d := range page.Deliveries {
				seen = append(seen, d.Release)
			}
			if params.Cursor = page.Next; !page.Next.Set {
				break
			}
		}
		if !slices.Equal(seen, []int64{3, 2}) {
			t.Errorf("deliveries from 2 on are %v", seen)
		}
		at := client.RedeliverParams{Project: project, Destination: id, Release: 3}
		_, err = c.Redeliver(t.Context(), client.OptRedeliver{}, at)
		refused(t, err, 409, "not-ended")
		now := must[*client.Delivery](t)(c.TryNow(t.Context(), client.TryNowParams(at)))
		if now.State != client.DeliveryStateQueued || now.Tries != 0 {
			t.Errorf("tried now is %+v", now)
		}
		_, err = c.TryNow(t.Context(), client.TryNowParams{Project: project, Destination: id, Release: 1})
		if p := refused(t, err, 409, "newer-release"); p.Response.Newest.Value != 3 {
			t.Errorf("the newest is told as %d", p.Response.Newest.Value)
		}

		test := must[*client.Test](t)(c.CreateTest(t.Context(), client.CreateTestParams{Project: project, Destination: id}))
		if again := must[*client.Test](t)(c.GetTest(t.Context(), client.GetTestParams{Project: project, Destination: id, Test: test.ID})); again.State != client.TestStateWaiting {
			t.Errorf("the test is %+v", again)
		}

		paused := must[*client.Destination](t)(c.PauseDestination(t.Context(), client.PauseDestinationParams{Project: project, Destination: id}))
		if paused.State != client.DestinationStatePaused || paused.PausedBy.Value != client.DestinationPausedByPerson {
			t.Errorf("paused is %+v", paused)
		}
		_, err = c.TryNow(t.Context(), client.TryNowParams(at))
		refused(t, err, 409, "destination-paused")
		resumed := must[*client.ResumedDestination](t)(c.ResumeDestination(t.Context(), client.ResumeDestinationParams{Project: project, Destination: id}))
		if resumed.Destination.State != client.DestinationStateActive || resumed.Offer.Set { // 3 is still to be sent
			t.Errorf("resumed is %+v", resumed)
		}
		if err := c.RemoveDestination(t.Context(), client.RemoveDestinationParams{Project: project, Destination: id}); err != nil {
			t.Fatal(err)
		}
		if list := must[*client.DestinationList](t)(c.ListDestinations(t.Context(), client.ListDestinationsParams{Project: project})); len(list.Destinations) != 0 {
			t.Errorf("there still are %+v", list)
		}
		_, err = c.PauseDestination(t.Context(), client.PauseDestinationParams{Project: project, Destination: id})
		refused(t, err, 409, "destination-removed")
	})
}

// sealedAndNowhereElse asserts that no item shows the secret or a header's value,
// and that both open with the key. (That they open for this destination alone is
// shown in internal/runtime/sealing: this KMS does not look.)
func (s *stack) sealedAndNowhereElse(t *testing.T, project, id, secret string) {
	t.Helper()
	opened := 0
	for _, table := range []string{s.tables.Content, s.tables.Delivery} {
		page, err := s.tables.Client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &table, ConsistentRead: aws.Bool(true)})
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range page.Items {
			text, err := json.Marshal(item)
			if err != nil || strings.Contains(string(text), secret) || strings.Contains(string(text), "marked") {
				t.Errorf("%v: an item shows a secret: %s", err, text)
			}
			for _, value := range item {
				sealed, ok := value.(*types.AttributeValueMemberB)
				if !ok {
					continue
				}
				for _, of := range []map[string]string{
					{"project": project, "destination": id, "purpose": "secret"},
					{"project": project, "destination": id, "purpose": "headers", "origin": "https://www.example.com"},
				} {
					out, err := s.keys.Decrypt(t.Context(), &kms.DecryptInput{KeyId: &s.key, CiphertextBlob: sealed.Value, EncryptionContext: of})
					if err == nil && (string(out.Plaintext) == secret || strings.Contains(string(out.Plaintext), "Bearer marked")) {
						opened++
					}
				}
			}
		}
	}
	if opened != 2 {
		t.Errorf("%d sealed values hold what was given, want the secret and the headers", opened)
	}
}

func TestAnAnnouncementLeadsToTheConfiguredAddressOrToTheGatewaysOwn(t *testing.T) {
	t.Parallel()
	for configured, want := range map[string]string{
		"https://colophon.example/base": "https://colophon.example/base",
		"":                              "https://api.example.com/v1",
	} {
		s := newStack(t, "PUBLIC_ADDRESS", configured)
		over, address := gateway{s.main}, "https://api.example.com/v1"
		admin := s.token(t, access.Admin, "")
		c := newClient(t, over, address, admin)
		project := must[*client.Project](t)(c.CreateProject(t.Context(), &client.NewProject{Name: "Handbook"})).ID
		added := must[*client.CreatedDestinationHeaders](t)(c.CreateDestination(t.Context(), &client.NewDestination{Name: "Local", URL: "http://127.0.0.1:8080/"}, client.CreateDestinationParams{Project: project}))
		save(t, c, project, "index.md", "# One")
		// What a caller says of the host is not believed.
		answer, text := send(t, over, "POST", address+"/projects/"+project+"/releases", admin, "",
			"Host", "attacker.example", "X-Forwarded-Host", "attacker.example")
		if answer.StatusCode != http.StatusCreated {
			t.Fatalf("got %d %s", answer.StatusCode, text)
		}
		engine := must[*store.Dynamo](t)(store.NewDynamo(store.DynamoConfig{Client: s.tables.Client}))
		kept := must[*store.Deliveries](t)(store.NewDeliveries(store.DeliveriesConfig{Engine: engine, Table: s.tables.Delivery, Clock: fixed}))
		d := must[*delivery.Delivery](t)(kept.ReadDelivery(t.Context(), delivery.Key{
			Destination: delivery.Destination{Project: project, ID: added.Response.Destination.ID}, Release: 1,
		}))
		var body struct{ Data struct{ URL string } }
		if err := json.Unmarshal(d.Body, &body); err != nil {
			t.Fatal(err)
		}
		if link, err := url.Parse(body.Data.URL); err != nil || !strings.HasPrefix(body.Data.URL, want+"/projects/"+project+"/releases/1") {
			t.Errorf("%q: the link is %v", configured, link)
		}
	}
}

func TestBadInputIsAProblemAndWritesNothing(t *testing.T) {
	t.Parallel()
	ways(t, func(t *testing.T, s *stack, over http.RoundTripper, address string) {
		admin := s.token(t, access.Admin, "")
		c := newClient(t, over, address, admin)
		project := must[*client.Project](t)(c.CreateProject(t.Context(), &client.NewProject{Name: "Handbook"})).ID
		other := must[*client.Project](t)(c.CreateProject(t.Context(), &client.NewProject{Name: "Other"})).ID
		save(t, c, project, "index.md", "# One")
		viewer, bound := s.token(t, access.Viewer, ""), s.token(t, access.Admin, other)
		in, missing := "/projects/"+project, "/projects/prj_aaaaaaaaaaaaaaaaaaaa"
		const isJSON = "application/json"
		before := s.items(t)
		for _, test := range []struct {
			name, method, target, token, body, kind string
			status                                  int
			code                                    string
		}{
			{"wrong JSON", "POST", in + "/releases", admin, `{"message":`, isJSON, 400, "invalid"},
			{"a field too many", "POST", in + "/releases", admin, `{"massage":"marked"}`, isJSON, 400, "invalid"},
			{"a body over the limit", "POST", in + "/releases", admin, `{"message":"` + strings.Repeat("marked", 200_000) + `"}`, isJSON, 413, "too-large"},
			{"a document over the limit", "PUT", in + "/document?path=b.md", admin, strings.Repeat("marked", 50_000), "", 413, "too-large"},
			{"a path that climbs", "PUT", in + "/document?path=..%2Fmarked", admin, "x", "", 400, "invalid"},
			{"a path with a #", "PUT", in + "/document?path=marked%23", admin, "x", "", 400, "invalid"},
			{"a message of control characters", "POST", in + "/releases", admin, `{"message":"marked\u0000"}`, isJSON, 400, "invalid"},
			{"no token", "POST", in + "/releases", "", `{}`, isJSON, 401, "unauthenticated"},
			{"a wrong token", "POST", in + "/releases", "clp_marked", `{}`, isJSON, 401, "unauthenticated"},
			{"a token of the right shape", "POST", in + "/releases", "clp_" + strings.Repeat("a", 52), `{}`, isJSON, 401, "unauthenticated"},
			{"a role too low", "PUT", in + "/document?path=b.md", viewer, "x", "", 403, "forbidden"},
			{"a project that is not there", "POST", missing + "/releases", admin, `{}`, isJSON, 404, "not-found"},
			{"a document of a project that is not there", "PUT", missing + "/document?path=b.md", admin, "x", "", 404, "not-found"},
			{"a destination of a project that is not there", "POST", missing + "/destinations", admin, `{"name":"a","url":"https://www.example.com/"}`, isJSON, 404, "not-found"},
			{"a foreign project", "POST", in + "/releases", bound, `{}`, isJSON, 404, "not-found"},
			{"a foreign project's document", "PUT", in + "/document?path=b.md", bound, "x", "", 404, "not-found"},
			{"a new project by a token of one", "POST", "/projects", bound, `{"name":"marked"}`, isJSON, 403, "forbidden"},
			{"a destination that is not there", "POST", in + "/destinations/dst_aaaaaaaaaaaa/pause", admin, "", "", 404, "not-found"},
			{"a delivery that is not there", "POST", in + "/destinations/dst_aaaaaaaaaaaa/deliveries/1/redeliver", admin, "", "", 404, "not-found"},
			{"a removal of what is not there", "DELETE", in + "/destinations/dst_aaaaaaaaaaaa", admin, "", "", 404, "not-found"},
			{"an address inside", "POST", in + "/destinations", admin, `{"name":"a","url":"https://169.254.169.254/marked"}`, isJSON, 400, "invalid"},
			{"an address that is none", "POST", in + "/destinations", admin, `{"name":"a","url":"marked"}`, isJSON, 400, "invalid"},
			{"a reserved header", "POST", in + "/destinations", admin, `{"name":"a","url":"https://www.example.com/","headers":{"Host":"marked"}}`, isJSON, 400, "invalid"},
			{"a wrong method", "PUT", in + "/releases", admin, "x", "", 405, "method-not-allowed"},
			{"an unknown route", "POST", in + "/marked", admin, `{}`, isJSON, 404, "not-found"},
			{"a wrong type", "POST", "/projects", admin, `name=marked`, "application/x-www-form-urlencoded", 415, "unsupported-media-type"},
		} {
			headers := []string{}
			if test.kind != "" {
				headers = append(headers, "Content-Type", test.kind)
			}
			answer, text := send(t, over, test.method, address+test.target, test.token, test.body, headers...)
			var p struct{ Type, Code, Detail, RequestID string }
			if err := json.Unmarshal([]byte(text), &p); err != nil || answer.StatusCode != test.status || p.Code != test.code ||
				p.Detail == "" || p.RequestID == "" || answer.Header.Get("Content-Type") != "application/problem+json" {
				t.Errorf("%s: got %d %s, want %d %s", test.name, answer.StatusCode, text, test.status, test.code)
			}
			if strings.Contains(text, "marked") {
				t.Errorf("%s: the answer repeats what was sent: %s", test.name, text)
			}
		}
		if after := s.items(t); after != before {
			t.Errorf("%d items were written", after-before)
		}
	})
}

func TestATableOutOfReachIsA503AndLeavesTheHealthAlone(t *testing.T) {
	t.Parallel()
	s := newStack(t, "AWS_ENDPOINT_URL_DYNAMODB", "http://127.0.0.1:1")
	over, address := gateway{s.main}, "https://api.example.com/v1"
	answer, text := send(t, over, "GET", address+"/projects", s.token(t, access.Viewer, ""), "")
	if answer.StatusCode != 503 || !strings.Contains(text, `"unavailable"`) || strings.Contains(text, "127.0.0.1") || answer.Header.Get("Retry-After") != "1" {
		t.Errorf("got %d %s %v", answer.StatusCode, text, answer.Header)
	}
	if answer, text := send(t, over, "GET", address+"/health", "", ""); answer.StatusCode != 200 || text != `{"status":"ok"}` {
		t.Errorf("got %d %s", answer.StatusCode, text)
	}
}

func TestAKeyOutOfReachIsAFaultAndLeavesNoHalfDestination(t *testing.T) {
	t.Parallel()
	s := newStack(t, "AWS_ENDPOINT_URL_KMS", "http://127.0.0.1:1")
	c := newClient(t, gateway{s.main}, "https://api.example.com/v1", s.token(t, access.Admin, ""))
	project := must[*client.Project](t)(c.CreateProject(t.Context(), &client.NewProject{Name: "Handbook"})).ID
	before := s.items(t)
	_, err := c.CreateDestination(t.Context(), &client.NewDestination{Name: "a", URL: "https://www.example.com/"}, client.CreateDestinationParams{Project: project})
	p := client.AsProblem(err)
	if p == nil || p.StatusCode < 500 || strings.Contains(p.Response.Detail.Value, "127.0.0.1") || s.items(t) != before {
		t.Errorf("got %v, %d items before and %d after", err, before, s.items(t))
	}
}

func TestAFunctionWithoutItsEnvironmentIsNotBuilt(t *testing.T) {
	t.Parallel()
	for name, environment := range map[string]map[string]string{
		"nothing is set":    {},
		"no region":         {"CONTENT_TABLE": "a", "DELIVERY_TABLE": "b", "SEALING_KEY_ID": "c"},
		"loopback for real": {"CONTENT_TABLE": "a", "DELIVERY_TABLE": "b", "SEALING_KEY_ID": "c", "AWS_REGION": "eu-west-1", "ALLOW_LOOPBACK_RECEIVERS": "true"},
	} {
		if _, err := api.New(func(variable string) string { return environment[variable] }, nil); err == nil {
			t.Errorf("%s, and it starts", name)
		}
	}
}
