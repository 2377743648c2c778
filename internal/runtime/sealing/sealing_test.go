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

	"colophon/internal/delivery"
	"colophon/internal/runtime/sealing"
)

var (
	website = delivery.Destination{Project: "prj_a", ID: "dst_website"}
	search  = delivery.Destination{Project: "prj_a", ID: "dst_search"}
)

// key behaves as a KMS key does towards the calls of this package: it opens what
// it sealed under the same encryption context only.
type key struct {
	id        string
	decrypted atomic.Int64
}

var errContext = errors.New("InvalidCiphertextException")

func written(context map[string]string) string {
	return fmt.Sprintf("%v", context) // maps print in the order of their keys
}

func (k *key) encrypt(_ context.Context, in *kms.EncryptInput, _ ...func(*kms.Options)) (*kms.EncryptOutput, error) {
	if *in.KeyId != k.id {
		return nil, errors.New("NotFoundException")
	}
	return &kms.EncryptOutput{CiphertextBlob: []byte(written(in.EncryptionContext) + "|" + string(in.Plaintext))}, nil
}

func (k *key) decrypt(_ context.Context, in *kms.DecryptInput, _ ...func(*kms.Options)) (*kms.DecryptOutput, error) {
	k.decrypted.Add(1)
	plain, ok := bytes.CutPrefix(in.CiphertextBlob, []byte(written(in.EncryptionContext)+"|"))
	if !ok || *in.KeyId != k.id {
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
	opener, err := sealing.NewOpener(sealing.OpenerConfig{Decrypt: k.decrypt, Key: k.id, Clock: c.time})
	if err != nil {
		t.Fatal(err)
	}
	return sealer, opener, k, c
}

func seal(t *testing.T, s *sealing.Sealer, d delivery.Destination, plain string) []byte {
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
			return &kms.EncryptOutput{}, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	seal(t, sealer, website, "whsec_a")
	// Exactly what the template's roles ask for.
	if want := map[string]string{"project": "prj_a", "destination": "dst_website"}; !maps.Equal(got, want) {
		t.Errorf("got the context %v", got)
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
		if plain, err := opener.Open(t.Context(), search, sealed); !errors.Is(err, errContext) {
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
		if _, err := opener.Open(t.Context(), website, []byte("garbage")); !errors.Is(err, errContext) {
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
		d := delivery.Destination{Project: "prj_a", ID: name}
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
		{Key: "key", Clock: time.Now}, {Decrypt: k.decrypt, Clock: time.Now}, {Decrypt: k.decrypt, Key: "key"},
	} {
		if _, err := sealing.NewOpener(c); err == nil {
			t.Errorf("%+v makes an opener", c)
		}
	}
}
