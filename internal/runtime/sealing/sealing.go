package sealing

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kms"

	"colophon/internal/delivery"
)

// LargestPlain is how many bytes can be sealed at once: KMS takes no more.
const LargestPlain = 4096

const (
	keptTime = 5 * time.Minute
	kept     = 1000 // secrets and headers of 500 destinations, each under 4 KiB
)

// encryptionContext binds what is sealed to its destination. The template's
// roles ask for exactly these keys.
func encryptionContext(d delivery.Destination) map[string]string {
	return map[string]string{"project": d.Project, "destination": d.ID}
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

// Seal encrypts up to LargestPlain bytes for a destination.
func (s *Sealer) Seal(ctx context.Context, d delivery.Destination, plain []byte) ([]byte, error) {
	if len(plain) == 0 || len(plain) > LargestPlain {
		return nil, fmt.Errorf("seal: %d bytes instead of 1 to %d", len(plain), LargestPlain)
	}
	out, err := s.c.Encrypt(ctx, &kms.EncryptInput{
		KeyId: &s.c.Key, Plaintext: plain, EncryptionContext: encryptionContext(d),
	})
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	return out.CiphertextBlob, nil
}

// OpenerConfig is what an Opener needs. Decrypt is a KMS client's method.
type OpenerConfig struct {
	Decrypt func(context.Context, *kms.DecryptInput, ...func(*kms.Options)) (*kms.DecryptOutput, error)
	Key     string // id or ARN
	Clock   func() time.Time
}

func (c OpenerConfig) validate() error {
	if c.Decrypt == nil || c.Key == "" || c.Clock == nil {
		return errors.New("sealing: an opener needs KMS, a key and a clock")
	}
	return nil
}

// Opener opens what a Sealer sealed, and remembers it for a while.
type Opener struct {
	c      OpenerConfig
	mu     sync.Mutex
	opened map[seal]plain
}

// seal is a sealed value and whom it was opened for: for another destination KMS
// would refuse it, so what is remembered for one is not another's.
type seal struct {
	delivery.Destination
	sealed [sha256.Size]byte
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

// Open decrypts what was sealed for this destination. The answer is shared:
// whoever gets it does not write to it.
func (o *Opener) Open(ctx context.Context, d delivery.Destination, sealed []byte) ([]byte, error) {
	key := seal{d, sha256.Sum256(sealed)}
	if text, ok := o.remembered(key); ok {
		return text, nil
	}
	out, err := o.c.Decrypt(ctx, &kms.DecryptInput{
		KeyId: &o.c.Key, CiphertextBlob: sealed, EncryptionContext: encryptionContext(d),
	})
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
