package access

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"colophon/internal/clock"
	"colophon/internal/content"
	"colophon/internal/failure"
	"colophon/internal/ratelimit"
	"colophon/internal/retry"
	"colophon/internal/text"
)

// A token is its prefix and 32 random bytes in lower-case base 32.
const (
	tokenPrefix = "clp_"
	tokenBytes  = 32
	tokenLength = len(tokenPrefix) + 52

	longestName = 100 // characters
)

var encoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// Tokens keeps tokens by their SHA-256. Its errors are those of content's stores.
type Tokens interface {
	// AddToken writes a new token; ErrNoProject. Writing the same one again is
	// the same write: it succeeds where the first did.
	AddToken(ctx context.Context, hash [sha256.Size]byte, t Token) error
	// Token reads one; ErrMissing.
	Token(ctx context.Context, hash [sha256.Size]byte) (Token, error)
	// ListTokens reads the tokens of one project, or those of all projects.
	ListTokens(ctx context.Context, project string) ([]Token, error)
	// RemoveToken ends a token at once; ErrMissing.
	RemoveToken(ctx context.Context, project, id string) error
	// RecordUse records that a token was used, if it is there and no use since
	// before is recorded.
	RecordUse(ctx context.Context, hash [sha256.Size]byte, at, before time.Time) error
	// TakeRequest takes one request from a token's shared limit, whose state was
	// read as limited. It returns how long to wait where nothing is left.
	TakeRequest(ctx context.Context, hash [sha256.Size]byte, limited, now time.Time, limit ratelimit.Limit) (time.Duration, error)
}

// Config is what a Service needs.
type Config struct {
	Tokens Tokens
	Clock  func() time.Time // nil: the system's
	Random io.Reader        // nil: the system's randomness
	// Sleep waits, or ends with the context; nil: clock.Sleep.
	Sleep func(ctx context.Context, d time.Duration) error
	// Limit is how many requests one token may make; zero: it is not limited.
	Limit ratelimit.Limit
}

func (c Config) validate() error {
	if c.Tokens == nil {
		return errors.New("access: no store of tokens")
	}
	return nil
}

// Service makes tokens and recognizes whoever brings one.
type Service struct {
	c             Config
	local, shared ratelimit.Limit

	mu    sync.Mutex
	taken map[[sha256.Size]byte]time.Time // the state of each token's local limit
}

// New makes a Service.
func New(c Config) (*Service, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Random == nil {
		c.Random = rand.Reader
	}
	if c.Sleep == nil {
		c.Sleep = clock.Sleep
	}
	local, shared := halves(c.Limit)
	return &Service{c: c, local: local, shared: shared, taken: map[[sha256.Size]byte]time.Time{}}, nil
}

// DefaultLifetime is how long a token is good for where nothing else is said.
const DefaultLifetime = 90 * 24 * time.Hour

// NewToken says what a token is made for. Its reach has to be said: a project, or
// all of them.
type NewToken struct {
	Name        string
	Role        Role
	Project     string
	AllProjects bool
	For         time.Duration // 0: DefaultLifetime
	Forever     bool          // it does not expire
}

func (n NewToken) validate() error {
	invalid := func(field, message string) error {
		return &content.Error{Code: content.CodeInvalid, Field: field, Message: message}
	}
	switch {
	case text.Check(n.Name, text.Line) != "":
		return invalid("name", "The name "+text.Check(n.Name, text.Line)+".")
	case strings.TrimSpace(n.Name) == "", utf8.RuneCountInString(n.Name) > longestName:
		return invalid("name", fmt.Sprintf("A token needs a name of 1 to %d characters that says who or what has it.", longestName))
	case !n.Role.Valid():
		return invalid("role", "A token's role is viewer, editor or admin.")
	case n.For < 0:
		return invalid("expires", "A token cannot have expired before it is made. Give a time to come, or none.")
	case n.For > 0 && n.Forever:
		return invalid("expires", "A token either expires or does not. Give one of the two.")
	case (n.Project == "") != n.AllProjects:
		return invalid("project", "A token reaches one project or all of them. Say which.")
	case n.Project != "" && !content.IsProjectID(n.Project):
		return content.NoSuchProject()
	}
	return nil
}

// CreateToken makes a token. The second answer is the token itself: it is shown
// once and cannot be read again.
func (s *Service) CreateToken(ctx context.Context, n NewToken) (Token, string, error) {
	if err := n.validate(); err != nil {
		return Token{}, "", err
	}
	random := make([]byte, tokenBytes+10)
	if _, err := io.ReadFull(s.c.Random, random); err != nil {
		return Token{}, "", fmt.Errorf("make a token: %w", err)
	}
	plain := tokenPrefix + encoding.EncodeToString(random[:tokenBytes])
	t := Token{
		ID: "tok_" + encoding.EncodeToString(random[tokenBytes:]), Name: n.Name, Role: n.Role, Project: n.Project,
		Ending: plain[len(plain)-4:], CreatedAt: s.c.Clock(),
	}
	if !n.Forever {
		t.ExpiresAt = t.CreatedAt.Add(cmp.Or(n.For, DefaultLifetime))
	}
	err := s.write(ctx, func() error { return s.c.Tokens.AddToken(ctx, sha256.Sum256([]byte(plain)), t) })
	if errors.Is(err, content.ErrNoProject) {
		return Token{}, "", content.NoSuchProject()
	}
	if err != nil {
		return Token{}, "", content.Explain("make a token", err)
	}
	return t, plain, nil
}

// Authenticate says who brings a token. Refusals are content.CodeUnauthenticated.
func (s *Service) Authenticate(ctx context.Context, bearer string) (Principal, error) {
	if bearer == "" {
		return Principal{}, unauthenticated("This needs a token. Send it as \"Authorization: Bearer clp_…\"; \"colophon token create\" makes one.")
	}
	const unknown = "This token is not known: it may be mistyped, revoked or expired. Ask an admin for a new one."
	if len(bearer) != tokenLength || !strings.HasPrefix(bearer, tokenPrefix) {
		return Principal{}, unauthenticated(unknown)
	}
	hash := sha256.Sum256([]byte(bearer))
	t, err := s.c.Tokens.Token(ctx, hash)
	switch {
	case errors.Is(err, content.ErrMissing):
		return Principal{}, unauthenticated(unknown)
	case err != nil:
		return Principal{}, content.Explain("read a token", err)
	case !t.ExpiresAt.IsZero() && !s.c.Clock().Before(t.ExpiresAt):
		return Principal{}, unauthenticated("This token has expired. Ask an admin for a new one.")
	}
	return Principal{Token: t, hash: hash}, nil
}

// ListTokens lists a project's tokens; the empty project stands for those that
// reach every project.
func (s *Service) ListTokens(ctx context.Context, project string) ([]Token, error) {
	tokens, err := s.c.Tokens.ListTokens(ctx, project)
	if err != nil {
		return nil, content.Explain("list tokens", err)
	}
	return tokens, nil
}

// RevokeToken ends a token at once.
func (s *Service) RevokeToken(ctx context.Context, project, id string) error {
	unknown := false
	err := s.write(ctx, func() error {
		err := s.c.Tokens.RemoveToken(ctx, project, id)
		if unknown && errors.Is(err, content.ErrMissing) {
			return nil // the try before this one removed it
		}
		unknown = unknown || errors.Is(err, failure.ErrUnknown)
		return err
	})
	if errors.Is(err, content.ErrMissing) {
		return &content.Error{Code: content.CodeNotFound, Message: "There is no such token: it may have been revoked already."}
	}
	if err != nil {
		return content.Explain("revoke a token", err)
	}
	return nil
}

// retryTime is for how long a token's write is tried again.
const retryTime = 5 * time.Second

// write repeats a write that was not done, or whose outcome is not known. A
// repeat is the very same: it makes no second token.
func (s *Service) write(ctx context.Context, once func() error) error {
	waits := retry.Jittered(mathrand.Float64, retry.Doubling(10*time.Millisecond, 640*time.Millisecond))
	loop := retry.New(retry.Clock{Now: s.c.Clock, Sleep: s.c.Sleep}, retry.Within(retryTime, retry.Times(10, waits)))
	for {
		err := loop.UntilKnown(ctx, once)
		if !failure.NotDone(err) || !loop.Again(ctx) {
			return err
		}
	}
}

func unauthenticated(message string) error {
	return &content.Error{Code: content.CodeUnauthenticated, Message: message}
}
