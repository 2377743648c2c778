//go:build stack

package e2e_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamodbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/kms"

	"colophon/client"
	"colophon/internal/webhook"
)

// What is given for one address only. Receivers on loopback have a port each, so
// each is an origin of its own.
const (
	oldPassword = "given-for-the-old-place"
	newPassword = "given-for-the-new-place"
)

func headersWith(password string) map[string]string {
	return map[string]string{"Authorization": "Bearer " + password, "X-Team": password}
}

// addWithHeaders adds a destination that has custom headers, as the project's first.
func (p *project) addWithHeaders(url, password string) {
	p.t.Helper()
	created, err := p.api.CreateDestination(p.t.Context(), &client.NewDestination{
		Name: "receiver", URL: url, Headers: client.NewOptNewDestinationHeaders(headersWith(password)),
	}, client.CreateDestinationParams{Project: p.id})
	must(p.t, err)
	p.hooks, p.secret = []string{created.Response.Destination.ID}, []string{created.Response.Secret}
}

// move changes the first destination's address, and its headers where there are any given.
func (p *project) move(url string, headers map[string]string) error {
	change := &client.DestinationChange{URL: client.NewOptString(url)}
	if headers != nil {
		change.Headers = client.NewOptDestinationChangeHeaders(headers)
	}
	_, err := p.api.UpdateDestination(p.t.Context(), change, client.UpdateDestinationParams{Project: p.id, Destination: p.hooks[0]})
	return err
}

// test sends a test to the first destination and waits for its end.
func (p *project) test() client.Test {
	p.t.Helper()
	sent, err := p.api.CreateTest(p.t.Context(), client.CreateTestParams{Project: p.id, Destination: p.hooks[0]})
	must(p.t, err)
	eventually(p.t, "the test send has ended", func() bool {
		sent, err = p.api.GetTest(p.t.Context(), client.GetTestParams{Project: p.id, Destination: p.hooks[0], Test: sent.ID})
		must(p.t, err)
		return sent.State != client.TestStateWaiting && sent.State != client.TestStateSending
	}, func() string { return fmt.Sprintf("it is %s", sent.State) })
	return *sent
}

// redeliver redelivers a release and waits until its new attempt is in the state.
func (p *project) redeliver(release int64, state client.DeliveryState) client.Delivery {
	p.t.Helper()
	before := len(p.delivery(release).Attempts)
	_, err := p.api.Redeliver(p.t.Context(), client.OptRedeliver{}, client.RedeliverParams{Project: p.id, Destination: p.hooks[0], Release: release})
	must(p.t, err)
	var d client.Delivery
	eventually(p.t, fmt.Sprintf("the redelivery is %s", state), func() bool {
		d = p.delivery(release)
		return len(d.Attempts) > before && d.State == state
	}, func() string { return fmt.Sprintf("it is %s: %s", d.State, strings.Join(d.Timeline, " ")) })
	return d
}

// signedWith says whether one of the request's signatures is the secret's.
func (r request) signedWith(t testing.TB, secret string) bool {
	t.Helper()
	key, err := webhook.ParseSecret(secret)
	must(t, err)
	seconds, err := strconv.ParseInt(r.Header.Get(webhook.HeaderTimestamp), 10, 64)
	must(t, err)
	wanted := webhook.Sign(r.id(), time.Unix(seconds, 0), []byte(r.Body), key)
	return slices.Contains(strings.Fields(r.Header.Get(webhook.HeaderSignature)), wanted)
}

// holds says whether a text is anywhere in the request.
func (r request) holds(text string) bool { return strings.Contains(fmt.Sprint(r.Header, r.Body), text) }

func TestAnAdminWhoChangesOnlyADestinationsAddressNeverGetsTheOldHeadersAtTheNewPlace(t *testing.T) {
	t.Parallel()
	old, fresh := newReceiver(t), newReceiver(t)
	p := newProject(t)
	p.addWithHeaders(old.URL, oldPassword)
	p.becomes(p.publish(), client.DeliveryStateDelivered)

	problem := client.AsProblem(p.move(fresh.URL, nil))
	if problem == nil || problem.StatusCode != http.StatusBadRequest || problem.Response.Field.Value != "headers" {
		t.Fatalf("the address alone: %+v", problem)
	}
	p.becomes(p.publish(), client.DeliveryStateDelivered)
	for i, q := range old.requests() {
		if !q.holds("Bearer " + oldPassword) {
			t.Errorf("request %d at the old place has no header: %v", i+1, q.Header)
		}
	}
	if len(old.requests()) != 2 || len(fresh.requests()) != 0 {
		t.Fatalf("%d requests at the old place and %d at the new one, want 2 and none", len(old.requests()), len(fresh.requests()))
	}

	must(t, p.move(fresh.URL, map[string]string{}))
	if sent := p.test(); sent.State != client.TestStateDelivered {
		t.Errorf("the test send is %s", sent.State)
	}
	release := p.publish()
	p.becomes(release, client.DeliveryStateDelivered)
	p.redeliver(release, client.DeliveryStateDelivered)
	command(t, "doctor", p.id, p.hooks[0])

	if len(old.requests()) != 2 || len(fresh.requests()) != 4 {
		t.Errorf("%d requests at the old place and %d at the new one, want 2 and 4", len(old.requests()), len(fresh.requests()))
	}
	for i, q := range fresh.requests() {
		if q.holds(oldPassword) || q.Header.Get("Authorization") != "" || q.Header.Get("X-Team") != "" {
			t.Errorf("request %d at the new place has an old header: %v", i+1, q.Header)
		}
		if !q.signedWith(t, p.secret[0]) {
			t.Errorf("request %d at the new place is not signed with the secret of before", i+1)
		}
	}
}

// settingsKey is where a destination's address and what it has sealed are stored.
func (p *project) settingsKey() map[string]dynamodbtypes.AttributeValue {
	return map[string]dynamodbtypes.AttributeValue{
		"pk": &dynamodbtypes.AttributeValueMemberS{Value: "P#" + p.id + "#D#" + p.hooks[0]},
		"sk": &dynamodbtypes.AttributeValueMemberS{Value: "SETTINGS"},
	}
}

func (p *project) settings() map[string]dynamodbtypes.AttributeValue {
	p.t.Helper()
	out, err := running.tables.GetItem(p.t.Context(), &dynamodb.GetItemInput{
		TableName: aws.String(running.Outputs["DeliveryTableName"]), Key: p.settingsKey(), ConsistentRead: aws.Bool(true),
	})
	must(p.t, err)
	return out.Item
}

// change changes the settings behind the api's back: "#name" is the attribute, ":name" its new value.
func (p *project) change(expression string, values map[string]dynamodbtypes.AttributeValue, names ...string) {
	p.t.Helper()
	update := &dynamodb.UpdateItemInput{
		TableName: aws.String(running.Outputs["DeliveryTableName"]), Key: p.settingsKey(),
		ConditionExpression: aws.String("attribute_exists(pk)"), UpdateExpression: &expression,
		ExpressionAttributeNames: map[string]string{}, ExpressionAttributeValues: values,
	}
	for _, name := range names {
		update.ExpressionAttributeNames["#"+name] = name
	}
	_, err := running.tables.UpdateItem(p.t.Context(), update)
	must(p.t, err)
}

func TestNothingArrivesWhereARecordWasChangedBehindTheApisBackAndTheDeliverySaysWhy(t *testing.T) {
	t.Parallel()
	const reason = "sealed for another address or destination"
	old, fresh := newReceiver(t), newReceiver(t)
	p := newProject(t)
	p.addWithHeaders(old.URL, oldPassword)
	p.becomes(p.publish(), client.DeliveryStateDelivered)

	p.change("SET #url = :url", map[string]dynamodbtypes.AttributeValue{
		":url": &dynamodbtypes.AttributeValueMemberS{Value: fresh.URL + "/"},
	}, "url")

	release := p.publish()
	for what, d := range map[string]client.Delivery{
		"the publish":    p.becomes(release, client.DeliveryStateFailed),
		"the redelivery": p.redeliver(release, client.DeliveryStateFailed),
	} {
		if says := strings.Join(d.Timeline, " "); !strings.Contains(says, reason) || !strings.Contains(says, "sets the destination's address and headers again") {
			t.Errorf("%s says: %s", what, says)
		}
	}
	if sent := p.test(); sent.State != client.TestStateFailed {
		t.Errorf("the test send is %s", sent.State)
	}
	if out, code := tryCommand(t, "doctor", p.id, p.hooks[0]); code != 4 {
		t.Errorf("doctor ends with %d: %s", code, out)
	}
	if len(old.requests()) != 1 || len(fresh.requests()) != 0 {
		t.Fatalf("%d requests at the old place and %d at the new one, want 1 and none", len(old.requests()), len(fresh.requests()))
	}

	// What the reason says to do is enough.
	must(t, p.move(fresh.URL, headersWith(newPassword)))
	p.redeliver(release, client.DeliveryStateDelivered)
	got := fresh.next(t)
	if !got.holds("Bearer "+newPassword) || got.holds(oldPassword) || !got.signedWith(t, p.secret[0]) {
		t.Errorf("after the headers were given again: %v", got.Header)
	}
}

func TestWhatAnOlderVersionSealedIsSentAndIsResealedByTheOperator(t *testing.T) {
	t.Parallel()
	keys := kms.NewFromConfig(running.settings)
	r := newReceiver(t)
	p := newProject(t)
	p.addWithHeaders(r.URL, newPassword)
	older := map[string]string{"project": p.id, "destination": p.hooks[0]}
	seal := func(plain []byte) *dynamodbtypes.AttributeValueMemberB {
		out, err := keys.Encrypt(t.Context(), &kms.EncryptInput{
			KeyId: aws.String(running.Outputs["SealingKeyArn"]), Plaintext: plain, EncryptionContext: older,
		})
		must(t, err)
		return &dynamodbtypes.AttributeValueMemberB{Value: out.CiphertextBlob}
	}
	headers, err := json.Marshal(headersWith(oldPassword))
	must(t, err)
	p.change("SET #secret = :secret, #headers = :headers REMOVE #seal", map[string]dynamodbtypes.AttributeValue{
		":secret": seal([]byte(p.secret[0])), ":headers": seal(headers),
	}, "secret", "headers", "seal")
	arrives := func(when string) {
		t.Helper()
		p.becomes(p.publish(), client.DeliveryStateDelivered)
		if got := r.next(t); got.Header.Get("Authorization") != "Bearer "+oldPassword || !got.signedWith(t, p.secret[0]) {
			t.Errorf("%s: %v", when, got.Header)
		}
	}
	arrives("sealed by an older version")

	before := p.settings()
	if out := command(t, "destination", "reseal", p.id); !strings.Contains(out, "values resealed: 2, failed: 0") {
		t.Errorf("reseal says: %s", out)
	} else if strings.Contains(out, oldPassword) || strings.Contains(out, p.secret[0]) {
		t.Errorf("reseal shows a value: %s", out)
	}
	after := p.settings()
	// Each opens under its new context only.
	for name, bound := range map[string]map[string]string{
		"secret":  {"purpose": "secret"},
		"headers": {"purpose": "headers", "origin": r.URL},
	} {
		maps.Copy(bound, older)
		sealed := after[name].(*dynamodbtypes.AttributeValueMemberB).Value
		if slices.Equal(sealed, before[name].(*dynamodbtypes.AttributeValueMemberB).Value) {
			t.Errorf("%s is sealed as before", name)
		}
		if _, err := keys.Decrypt(t.Context(), &kms.DecryptInput{CiphertextBlob: sealed, EncryptionContext: bound}); err != nil {
			t.Errorf("%s under the new context: %v", name, err)
		}
		if _, err := keys.Decrypt(t.Context(), &kms.DecryptInput{CiphertextBlob: sealed, EncryptionContext: older}); err == nil {
			t.Errorf("%s still opens under the context of before", name)
		}
	}
	arrives("resealed")
	if out := command(t, "destination", "reseal", p.id); !strings.Contains(out, "values resealed: 0, failed: 0") {
		t.Errorf("reseal says the second time: %s", out)
	}
}

func TestAReceiversFirstSecretStillVerifiesAfterTwoRotationsWithinADay(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	p := newProject(t, r)
	for range 2 {
		rotated, err := p.api.RotateDestinationSecret(t.Context(), client.OptRotateSecret{},
			client.RotateDestinationSecretParams{Project: p.id, Destination: p.hooks[0]})
		must(t, err)
		p.secret = append(p.secret, rotated.Response.Secret)
	}
	p.becomes(p.publish(), client.DeliveryStateDelivered)
	got := r.next(t)
	for i, secret := range p.secret {
		if !got.signedWith(t, secret) {
			t.Errorf("secret %d does not verify", i+1)
		}
	}
	if n := len(strings.Fields(got.Header.Get(webhook.HeaderSignature))); n != len(p.secret) {
		t.Errorf("there are %d signatures", n)
	}
}

// Ten tests by hand are sent to a destination, which is removed and added again:
// so many in all that the limit of the receiver's origin is exhausted.
func TestFiftyTestSendsByAddTestRemoveEndInA429(t *testing.T) {
	t.Parallel()
	const atOnce, each = 40, 6 * time.Second // the template's defaults
	r := newReceiver(t)
	p := newProject(t)
	start, sent := time.Now(), 0
	var refused *client.ProblemStatusCodeWithHeaders
	for refused == nil {
		p.hooks = nil
		p.add("receiver", r.URL)
		for range 10 {
			_, err := p.api.CreateTest(t.Context(), client.CreateTestParams{Project: p.id, Destination: p.hooks[0]})
			if refused = client.AsProblem(err); refused != nil {
				break
			}
			must(t, err)
			sent++
		}
		must(t, p.api.RemoveDestination(t.Context(), client.RemoveDestinationParams{Project: p.id, Destination: p.hooks[0]}))
	}
	if most := atOnce + int(time.Since(start)/each) + 1; sent < atOnce || sent > most {
		t.Errorf("%d tests were sent in %v, want %d to %d", sent, time.Since(start), atOnce, most)
	}
	if wait := refused.RetryAfter.Value; refused.StatusCode != http.StatusTooManyRequests || wait < 1 || wait > int(each.Seconds()) {
		t.Errorf("it ends with %d %s, Retry-After %d", refused.StatusCode, refused.Response.Detail.Value, wait)
	}
	t.Logf("%d tests were sent in %v", sent, time.Since(start))
}
