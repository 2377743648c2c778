package sealing_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"

	"colophon/internal/delivery"
	"colophon/internal/runtime/sealing"
)

var (
	website = secretOf("dst_website")
	search  = secretOf("dst_search")
)

func secretOf(id string) delivery.Binding {
	return delivery.Binding{Destination: delivery.Destination{Project: "prj_a", ID: id}, Purpose: delivery.PurposeSecret}
}

func headersOf(id, origin string) delivery.Binding {
	return delivery.Binding{Destination: delivery.Destination{Project: "prj_a", ID: id}, Purpose: delivery.PurposeHeaders, Origin: origin}
}

// key behaves as a KMS key does towards the calls of this package: it opens what
// it sealed under the same encryption context only.
type key struct {
	id        string
	decrypted atomic.Int64
	old       atomic.Int64 // openings under the older context
}

var errContext = &types.InvalidCiphertextException{}

func written(context map[string]string) string {
	return fmt.Sprintf("%v", context) // maps print in the order of their keys
}

func (k *key) encrypt(_ context.Context, in *kms.EncryptInput, _ ...func(*kms.Options)) (*kms.EncryptOutput, error) {
	if *in.KeyId != k.id {
		return nil, errors.New("NotFoundException")
	}
	return &kms.EncryptOutput{CiphertextBlob: []byte(written(in.EncryptionContext) + "|" + string(in.Plaintext))}, nil
}

func (k *key) reEncrypt(ctx context.Context, in *kms.ReEncryptInput, _ ...func(*kms.Options)) (*kms.ReEncryptOutput, error) {
	plain, ok := bytes.CutPrefix(in.CiphertextBlob, []byte(written(in.SourceEncryptionContext)+"|"))
	if !ok || *in.SourceKeyId != k.id {
		return nil, errContext
	}
	out, err := k.encrypt(ctx, &kms.EncryptInput{KeyId: in.DestinationKeyId, Plaintext: plain, EncryptionContext: in.DestinationEncryptionContext})
	if err != nil {
		return nil, err
	}
	return &kms.ReEncryptOutput{CiphertextBlob: out.CiphertextBlob}, nil
}

func (k *key) decrypt(_ context.Context, in *kms.DecryptInput, _ ...func(*kms.Options)) (*kms.DecryptOutput, error) {
	k.decrypted.Add(1)
	plain, ok := bytes.CutPrefix(in.CiphertextBlob, []byte(written(in.EncryptionContext)+"|"))
	switch {
	case *in.KeyId != k.id:
		return nil, &types.IncorrectKeyException{}
	case !ok:
		return nil, errContext
	}
	return &kms.DecryptOutput{Plaintext: plain}, nil
}

type clock struct{ now time.Time }

func (c *clock) time() time.Time { return c.now }

func newPair(t *testing.T) (*sealing.Sealer, *sealing.Opener, *key, *clock) {
	t.Helper()
	k, c := &key{id: "key"}, &clock{time.Unix(1795995000, 0)}
	sealer, err := sealing.NewSealer(sealing.SealerConfig{Encrypt: k.encrypt, Key: k.id})
	if err != nil {
		t.Fatal(err)
	}
	opener, err := sealing.NewOpener(sealing.OpenerConfig{Decrypt: k.decrypt, Key: k.id, Clock: c.time, OldContext: func() { k.old.Add(1) }})
	if err != nil {
		t.Fatal(err)
	}
	return sealer, opener, k, c
}

func seal(t *testing.T, s *sealing.Sealer, d delivery.Binding, plain string) delivery.Sealed {
	t.Helper()
	sealed, err := s.Seal(t.Context(), d, []byte(plain))
	if err != nil {
		t.Fatal(err)
	}
	return sealed
}

func TestWhatIsSealedIsBoundToItsDestination(t *testing.T) {
	t.Parallel()
	var got map[string]string
	sealer, err := sealing.NewSealer(sealing.SealerConfig{Key: "key",
		Encrypt: func(_ context.Context, in *kms.EncryptInput, _ ...func(*kms.Options)) (*kms.EncryptOutput, error) {
			got = in.EncryptionContext
			return &kms.EncryptOutput{CiphertextBlob: []byte("x")}, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	// Exactly what the template's roles ask for. A secret survives a change of
	// address, headers do not.
	for _, row := range []struct {
		of   delivery.Binding
		want map[string]string
	}{
		{website, map[string]string{"project": "prj_a", "destination": "dst_website", "purpose": "secret"}},
		{headersOf("dst_website", "https://a.example"), map[string]string{
			"project": "prj_a", "destination": "dst_website", "purpose": "headers", "origin": "https://a.example",
		}},
	} {
		sealed := seal(t, sealer, row.of, "plain")
		if !maps.Equal(got, row.want) || sealed.Context != delivery.SealedForPurpose {
			t.Errorf("%+v: got the context %v, said to be %d", row.of, got, sealed.Context)
		}
	}
	for _, wrong := range []delivery.Binding{headersOf("dst_website", ""), {Destination: website.Destination}, {Destination: website.Destination, Purpose: "other", Origin: "x"}} {
		if _, err := sealer.Seal(t.Context(), wrong, []byte("plain")); err == nil {
			t.Errorf("%+v was sealed", wrong)
		}
	}
}

// before is what was sealed under the older context.
func before(b delivery.Binding, plain string) delivery.Sealed {
	context := map[string]string{"project": b.Project, "destination": b.ID}
	return delivery.Sealed{Bytes: []byte(written(context) + "|" + plain), Context: delivery.SealedForDestination}
}

func TestAValueOpensUnderTheContextThatItIsStoredWithAndIsNotTriedUnderAnother(t *testing.T) {
	t.Parallel()
	sealer, opener, k, _ := newPair(t)
	newer, older := seal(t, sealer, website, "new"), before(website, "old")
	headers := headersOf("dst_website", "https://a.example")
	under := func(sealed delivery.Sealed, c delivery.SealContext) delivery.Sealed {
		return delivery.Sealed{Bytes: sealed.Bytes, Context: c}
	}
	for _, row := range []struct {
		name   string
		of     delivery.Binding
		sealed delivery.Sealed
		want   string
		calls  int64
	}{
		{"newer", website, newer, "new", 1},
		{"older", website, older, "old", 1},
		{"newer, said to be older", website, under(newer, 1), "", 1},
		{"older, said to be newer", website, under(older, 2), "", 1},
		{"a secret as headers", headers, newer, "", 1},
		{"headers", headers, seal(t, sealer, headers, "headers"), "headers", 1},
		{"headers for another origin", headersOf("dst_website", "https://b.example"), seal(t, sealer, headers, "headers"), "", 1},
		{"a context of a newer version", website, under(newer, 3), "", 0},
		{"no context", website, under(newer, 0), "", 0},
	} {
		calls := k.decrypted.Load()
		plain, err := opener.Open(t.Context(), row.of, row.sealed)
		if string(plain) != row.want || (err == nil) != (row.want != "") {
			t.Errorf("%s: got %q, %v", row.name, plain, err)
		}
		if n := k.decrypted.Load() - calls; n != row.calls {
			t.Errorf("%s: KMS was asked %d times", row.name, n)
		}
		if row.want == "" && row.calls == 1 && !errors.Is(err, delivery.ErrSealedForAnother) {
			t.Errorf("%s: %v", row.name, err)
		}
	}
}

func TestWhatIsRememberedForOneContextIsNotAnothers(t *testing.T) {
	t.Parallel()
	sealer, opener, _, _ := newPair(t)
	a, b := headersOf("dst_website", "https://a.example"), headersOf("dst_website", "https://b.example")
	sealed := seal(t, sealer, a, "headers")
	if _, err := opener.Open(t.Context(), a, sealed); err != nil {
		t.Fatal(err)
	}
	if plain, err := opener.Open(t.Context(), b, sealed); err == nil {
		t.Errorf("another origin got %q", plain)
	}
	sealed.Context = delivery.SealedForDestination
	if plain, err := opener.Open(t.Context(), a, sealed); err == nil {
		t.Errorf("another context got %q", plain)
	}
}

func TestOpeningsUnderTheOlderContextAreCounted(t *testing.T) {
	t.Parallel()
	sealer, opener, k, _ := newPair(t)
	for _, sealed := range []delivery.Sealed{before(website, "a"), before(website, "a"), before(website, "b"), seal(t, sealer, website, "c")} {
		if _, err := opener.Open(t.Context(), website, sealed); err != nil {
			t.Fatal(err)
		}
	}
	if n := k.old.Load(); n != 3 {
		t.Errorf("%d were counted, want 3: each use, remembered or not", n)
	}
}

func TestAKeyOutOfReachIsNotTheValuesFault(t *testing.T) {
	t.Parallel()
	sealer, _, k, c := newPair(t)
	opener, err := sealing.NewOpener(sealing.OpenerConfig{Decrypt: k.decrypt, Key: "another", Clock: c.time, OldContext: func() {}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := opener.Open(t.Context(), website, seal(t, sealer, website, "a")); err == nil || errors.Is(err, delivery.ErrSealedForAnother) {
		t.Errorf("got %v", err)
	}
}

func TestResealingMovesAValueToTheNewestContext(t *testing.T) {
	t.Parallel()
	_, opener, k, _ := newPair(t)
	resealer, err := sealing.NewResealer(sealing.ResealerConfig{ReEncrypt: k.reEncrypt, Key: k.id})
	if err != nil {
		t.Fatal(err)
	}
	headers := headersOf("dst_website", "https://a.example")
	for _, of := range []delivery.Binding{website, headers} {
		sealed, err := resealer.Reseal(t.Context(), of, before(of, "plain"))
		if err != nil || sealed.Context != delivery.SealedForPurpose {
			t.Fatalf("%+v: %v", sealed, err)
		}
		if plain, err := opener.Open(t.Context(), of, sealed); err != nil || string(plain) != "plain" {
			t.Errorf("got %q, %v", plain, err)
		}
	}
	if _, err := resealer.Reseal(t.Context(), search, before(website, "plain")); !errors.Is(err, delivery.ErrSealedForAnother) {
		t.Errorf("another destination's: %v", err)
	}
}

func TestWhatIsSealedForOneDestinationOpensForNoOther(t *testing.T) {
	t.Parallel()
	sealer, opener, _, _ := newPair(t)
	sealed := seal(t, sealer, website, "whsec_a")
	for range 2 { // the second time it is remembered for the right one
		if plain, err := opener.Open(t.Context(), website, sealed); err != nil || string(plain) != "whsec_a" {
			t.Errorf("got %q, %v", plain, err)
		}
		if plain, err := opener.Open(t.Context(), search, sealed); !errors.Is(err, delivery.ErrSealedForAnother) {
			t.Errorf("got %q, %v", plain, err)
		}
	}
}

func TestWhatWasOpenedIsRememberedForFiveMinutes(t *testing.T) {
	t.Parallel()
	sealer, opener, k, c := newPair(t)
	sealed := seal(t, sealer, website, "whsec_a")
	for _, step := range []struct {
		later time.Duration
		calls int64
	}{{0, 1}, {5*time.Minute - time.Nanosecond, 1}, {time.Nanosecond, 2}, {time.Minute, 2}} {
		c.now = c.now.Add(step.later)
		if _, err := opener.Open(t.Context(), website, sealed); err != nil {
			t.Fatal(err)
		}
		if k.decrypted.Load() != step.calls {
			t.Errorf("%v: %d calls, want %d", c.now, k.decrypted.Load(), step.calls)
		}
	}
}

func TestANewSecretIsNotMistakenForTheRememberedOne(t *testing.T) {
	t.Parallel()
	sealer, opener, _, _ := newPair(t)
	for _, secret := range []string{"whsec_a", "whsec_b", "whsec_a"} {
		if plain, err := opener.Open(t.Context(), website, seal(t, sealer, website, secret)); err != nil || string(plain) != secret {
			t.Errorf("got %q, %v", plain, err)
		}
	}
}

func TestARefusalIsNotRemembered(t *testing.T) {
	t.Parallel()
	_, opener, k, _ := newPair(t)
	for range 2 {
		if _, err := opener.Open(t.Context(), website, delivery.Sealed{Bytes: []byte("garbage"), Context: delivery.SealedForPurpose}); !errors.Is(err, delivery.ErrSealedForAnother) {
			t.Errorf("got %v", err)
		}
	}
	if k.decrypted.Load() != 2 {
		t.Errorf("%d calls", k.decrypted.Load())
	}
}

func TestMemoryIsBoundedAndFresherThanOldThingsAreKept(t *testing.T) {
	t.Parallel()
	sealer, opener, k, c := newPair(t)
	open := func(name string) {
		t.Helper()
		d := secretOf(name)
		if _, err := opener.Open(t.Context(), d, seal(t, sealer, d, name)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 999 {
		open(fmt.Sprintf("old-%d", i))
	}
	c.now = c.now.Add(4 * time.Minute)
	open("fresh") // the thousandth: it is full
	c.now = c.now.Add(time.Minute)
	open("newest") // what is over makes room, what is fresh stays
	before := k.decrypted.Load()
	open("fresh")
	if k.decrypted.Load() != before {
		t.Error("the fresh one was forgotten though others were over")
	}
	for i := range 5000 { // all of them fresh: something must go
		open(fmt.Sprintf("more-%d", i))
	}
	before = k.decrypted.Load()
	for i := range 5000 {
		open(fmt.Sprintf("more-%d", i))
	}
	if calls := k.decrypted.Load() - before; calls < 4000 {
		t.Errorf("%d of 5,000 were remembered, the bound is 1,000", 5000-calls)
	}
}

func TestOnlyWhatKMSTakesIsSealed(t *testing.T) {
	t.Parallel()
	sealer, _, _, _ := newPair(t)
	for _, size := range []int{0, 4097} {
		if _, err := sealer.Seal(t.Context(), website, []byte(strings.Repeat("x", size))); err == nil {
			t.Errorf("%d bytes were sealed", size)
		}
	}
	seal(t, sealer, website, strings.Repeat("x", 4096))
}

func TestAKeyOutOfReachIsAnErrorThatHoldsNoPlaintext(t *testing.T) {
	t.Parallel()
	sealer, err := sealing.NewSealer(sealing.SealerConfig{Encrypt: (&key{id: "another"}).encrypt, Key: "key"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sealer.Seal(t.Context(), website, []byte("whsec_marked")); err == nil || strings.Contains(err.Error(), "marked") {
		t.Errorf("got %v", err)
	}
}

func TestNeitherIsMadeOfHalfAConfiguration(t *testing.T) {
	t.Parallel()
	k := &key{id: "key"}
	for _, c := range []sealing.SealerConfig{{Key: "key"}, {Encrypt: k.encrypt}} {
		if _, err := sealing.NewSealer(c); err == nil {
			t.Errorf("%+v makes a sealer", c)
		}
	}
	for _, c := range []sealing.OpenerConfig{
		{Key: "key", Clock: time.Now, OldContext: func() {}}, {Decrypt: k.decrypt, Clock: time.Now, OldContext: func() {}},
		{Decrypt: k.decrypt, Key: "key", OldContext: func() {}}, {Decrypt: k.decrypt, Key: "key", Clock: time.Now},
	} {
		if _, err := sealing.NewOpener(c); err == nil {
			t.Errorf("%+v makes an opener", c)
		}
	}
	for _, c := range []sealing.ResealerConfig{{Key: "key"}, {ReEncrypt: k.reEncrypt}} {
		if _, err := sealing.NewResealer(c); err == nil {
			t.Errorf("%+v makes a resealer", c)
		}
	}
}
