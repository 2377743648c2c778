package sealing

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"

	"colophon/internal/delivery"
)

// LargestPlain is how many bytes can be sealed at once: KMS takes no more.
const LargestPlain = 4096

const (
	keptTime = 5 * time.Minute
	kept     = 1000 // secrets and headers of 500 destinations, each under 4 KiB
)

// encryptionContext is what KMS binds a value to. The template's roles ask for
// exactly these keys.
func encryptionContext(b delivery.Binding, c delivery.SealContext) (map[string]string, error) {
	bound := map[string]string{"project": b.Project, "destination": b.ID}
	switch {
	case c == delivery.SealedForDestination:
		return bound, nil
	case c != delivery.SealedForPurpose:
		return nil, fmt.Errorf("context %d is not known", c)
	case b.Purpose == delivery.PurposeSecret:
		bound["purpose"] = string(b.Purpose)
		return bound, nil
	case b.Purpose == delivery.PurposeHeaders && b.Origin != "":
		bound["purpose"], bound["origin"] = string(b.Purpose), b.Origin
		return bound, nil
	}
	return nil, fmt.Errorf("purpose %q without what it is bound to", b.Purpose)
}

// SealerConfig is what a Sealer needs. Encrypt is a KMS client's method: a
// function, so that the client's other operations are not linked.
type SealerConfig struct {
	Encrypt func(context.Context, *kms.EncryptInput, ...func(*kms.Options)) (*kms.EncryptOutput, error)
	Key     string // id or ARN
}

func (c SealerConfig) validate() error {
	if c.Encrypt == nil || c.Key == "" {
		return errors.New("sealing: a sealer needs KMS and a key")
	}
	return nil
}

// Sealer seals.
type Sealer struct{ c SealerConfig }

// NewSealer makes a Sealer.
func NewSealer(c SealerConfig) (*Sealer, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &Sealer{c}, nil
}

// Seal encrypts up to LargestPlain bytes under the newest context.
func (s *Sealer) Seal(ctx context.Context, b delivery.Binding, plain []byte) (delivery.Sealed, error) {
	if len(plain) == 0 || len(plain) > LargestPlain {
		return delivery.Sealed{}, fmt.Errorf("seal: %d bytes instead of 1 to %d", len(plain), LargestPlain)
	}
	bound, err := encryptionContext(b, delivery.SealedForPurpose)
	if err != nil {
		return delivery.Sealed{}, fmt.Errorf("seal: %w", err)
	}
	out, err := s.c.Encrypt(ctx, &kms.EncryptInput{KeyId: &s.c.Key, Plaintext: plain, EncryptionContext: bound})
	if err != nil {
		return delivery.Sealed{}, fmt.Errorf("seal: %w", err)
	}
	return delivery.Sealed{Bytes: out.CiphertextBlob, Context: delivery.SealedForPurpose}, nil
}

// OpenerConfig is what an Opener needs. Decrypt is a KMS client's method.
type OpenerConfig struct {
	Decrypt func(context.Context, *kms.DecryptInput, ...func(*kms.Options)) (*kms.DecryptOutput, error)
	Key     string // id or ARN
	Clock   func() time.Time
	// OldContext is called for each value that was opened under the context of
	// before, SealedForDestination.
	OldContext func()
}

func (c OpenerConfig) validate() error {
	if c.Decrypt == nil || c.Key == "" || c.Clock == nil || c.OldContext == nil {
		return errors.New("sealing: an opener needs KMS, a key, a clock and a count of old contexts")
	}
	return nil
}

// Opener opens what a Sealer sealed, and remembers it for a while.
type Opener struct {
	c      OpenerConfig
	mu     sync.Mutex
	opened map[seal]plain
}

// seal is a sealed value and what it was opened for: for anything else KMS would
// refuse it, so what is remembered for one context is not another's.
type seal struct {
	delivery.Binding
	context delivery.SealContext
	sealed  [sha256.Size]byte
}

type plain struct {
	text  []byte
	until time.Time
}

// NewOpener makes an Opener.
func NewOpener(c OpenerConfig) (*Opener, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &Opener{c: c, opened: make(map[seal]plain)}, nil
}

// Open decrypts what was sealed, under the context that is stored with it and no
// other. Callers share the result and must not write to it.
func (o *Opener) Open(ctx context.Context, b delivery.Binding, sealed delivery.Sealed) ([]byte, error) {
	bound, err := encryptionContext(b, sealed.Context)
	if err != nil {
		return nil, fmt.Errorf("open what is sealed: %w", err)
	}
	text, err := o.open(ctx, seal{b, sealed.Context, sha256.Sum256(sealed.Bytes)}, bound, sealed.Bytes)
	if err == nil && sealed.Context == delivery.SealedForDestination {
		o.c.OldContext()
	}
	return text, err
}

func (o *Opener) open(ctx context.Context, key seal, bound map[string]string, sealed []byte) ([]byte, error) {
	if text, ok := o.remembered(key); ok {
		return text, nil
	}
	out, err := o.c.Decrypt(ctx, &kms.DecryptInput{KeyId: &o.c.Key, CiphertextBlob: sealed, EncryptionContext: bound})
	// KMS's answer to another context, or to bytes that were changed. That the
	// key is another, or out of reach, is not the value's fault.
	if invalid := (*types.InvalidCiphertextException)(nil); errors.As(err, &invalid) {
		return nil, fmt.Errorf("open what is sealed: %w: %w", delivery.ErrSealedForAnother, err)
	}
	if err != nil {
		return nil, fmt.Errorf("open what is sealed: %w", err)
	}
	o.remember(key, out.Plaintext)
	return out.Plaintext, nil
}

func (o *Opener) remembered(key seal) ([]byte, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	p, ok := o.opened[key]
	return p.text, ok && o.c.Clock().Before(p.until)
}

func (o *Opener) remember(key seal, text []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.c.Clock()
	if len(o.opened) >= kept {
		o.forget(now)
	}
	o.opened[key] = plain{text, now.Add(keptTime)}
}

// forget makes room: what is over goes, and where nothing is, all of it: so many
// destinations in five minutes are no longer helped by a memory.
func (o *Opener) forget(now time.Time) {
	for key, p := range o.opened {
		if !now.Before(p.until) {
			delete(o.opened, key)
		}
	}
	if len(o.opened) >= kept {
		clear(o.opened)
	}
}

// ResealerConfig is what a Resealer needs. ReEncrypt is a KMS client's method.
type ResealerConfig struct {
	ReEncrypt func(context.Context, *kms.ReEncryptInput, ...func(*kms.Options)) (*kms.ReEncryptOutput, error)
	Key       string // id or ARN
}

func (c ResealerConfig) validate() error {
	if c.ReEncrypt == nil || c.Key == "" {
		return errors.New("sealing: a resealer needs KMS and a key")
	}
	return nil
}

// Resealer moves sealed values to the newest context. KMS does it by itself: the
// plain value does not leave it.
type Resealer struct{ c ResealerConfig }

// NewResealer makes a Resealer.
func NewResealer(c ResealerConfig) (*Resealer, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &Resealer{c}, nil
}

// Reseal returns the value under the newest context, bound to b.
func (r *Resealer) Reseal(ctx context.Context, b delivery.Binding, sealed delivery.Sealed) (delivery.Sealed, error) {
	before, err := encryptionContext(b, sealed.Context)
	if err != nil {
		return delivery.Sealed{}, fmt.Errorf("reseal: %w", err)
	}
	after, err := encryptionContext(b, delivery.SealedForPurpose)
	if err != nil {
		return delivery.Sealed{}, fmt.Errorf("reseal: %w", err)
	}
	out, err := r.c.ReEncrypt(ctx, &kms.ReEncryptInput{
		CiphertextBlob: sealed.Bytes, SourceKeyId: &r.c.Key, SourceEncryptionContext: before,
		DestinationKeyId: &r.c.Key, DestinationEncryptionContext: after,
	})
	if invalid := (*types.InvalidCiphertextException)(nil); errors.As(err, &invalid) {
		return delivery.Sealed{}, fmt.Errorf("reseal: %w: %w", delivery.ErrSealedForAnother, err)
	}
	if err != nil {
		return delivery.Sealed{}, fmt.Errorf("reseal: %w", err)
	}
	return delivery.Sealed{Bytes: out.CiphertextBlob, Context: delivery.SealedForPurpose}, nil
}
