package access_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"colophon/internal/access"
	"colophon/internal/content"
	"colophon/internal/enginetest"
	"colophon/internal/failure"
	"colophon/internal/ratelimit"
	"colophon/internal/store"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

const missing = "prj_aaaaaaaaaaaaaaaaaaaa"

// gate is a Service on a real engine, and a project.
type gate struct {
	*access.Service
	engine  store.Engine
	table   string
	now     time.Time
	project string
}

func newGate(t *testing.T) *gate {
	t.Helper()
	tables := enginetest.NewTables(t)
	engine, err := store.NewDynamo(store.DynamoConfig{Client: tables.Client})
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{engine: engine, table: tables.Content, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	tokens, err := store.NewTokens(store.TokensConfig{Engine: engine, Table: tables.Content})
	if err != nil {
		t.Fatal(err)
	}
	if g.Service, err = access.New(access.Config{Tokens: tokens, Clock: func() time.Time { return g.now }}); err != nil {
		t.Fatal(err)
	}
	contents, err := store.NewContents(store.ContentsConfig{Engine: engine, ContentTable: tables.Content, DeliveryTable: tables.Delivery})
	if err != nil {
		t.Fatal(err)
	}
	documents, err := content.New(content.Config{Store: contents, Announce: func(content.Announcement) (string, []byte, error) {
		return "", nil, errors.New("nothing is published here")
	}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := documents.CreateProject(t.Context(), "Handbook")
	if err != nil {
		t.Fatal(err)
	}
	g.project = p.ID
	return g
}

func (g *gate) token(t *testing.T, n access.NewToken) (access.Token, string) {
	t.Helper()
	n.AllProjects = n.Project == ""
	token, plain, err := g.CreateToken(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	return token, plain
}

func code(t *testing.T, err error) content.Code {
	t.Helper()
	if err == nil {
		return ""
	}
	var refusal *content.Error
	if !errors.As(err, &refusal) {
		t.Fatalf("not a refusal: %v", err)
	}
	return refusal.Code
}

func TestATokenIsRecognizedUntilItExpires(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	made, plain := g.token(t, access.NewToken{Name: "Ada", Role: access.Editor, Project: g.project, For: time.Hour})
	if !regexp.MustCompile(`^clp_[a-z2-7]{52}$`).MatchString(plain) || made.Ending != plain[len(plain)-4:] {
		t.Errorf("token %q, ending %q", plain, made.Ending)
	}
	who, err := g.Authenticate(t.Context(), plain)
	if err != nil || who.Token != made || who.Who() != "Ada" {
		t.Errorf("recognized as %+v, made as %+v (%v)", who.Token, made, err)
	}
	g.now = g.now.Add(time.Hour - time.Second)
	if _, err := g.Authenticate(t.Context(), plain); err != nil {
		t.Errorf("a second before: %v", err)
	}
	g.now = g.now.Add(time.Second)
	if _, err := g.Authenticate(t.Context(), plain); code(t, err) != content.CodeUnauthenticated {
		t.Errorf("when it expires: %v", err)
	}
}

func TestATokenWithoutAnEndLastsUntilItIsRevoked(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	made, plain := g.token(t, access.NewToken{Name: "Ada", Role: access.Admin, Forever: true})
	other, otherPlain := g.token(t, access.NewToken{Name: "CI", Role: access.Viewer, Forever: true})
	g.now = g.now.AddDate(50, 0, 0)
	if _, err := g.Authenticate(t.Context(), plain); err != nil {
		t.Errorf("after 50 years: %v", err)
	}
	if listed, err := g.ListTokens(t.Context(), ""); err != nil || len(listed) != 2 {
		t.Errorf("listed: %+v, %v", listed, err)
	}
	if err := g.RevokeToken(t.Context(), g.project, made.ID); code(t, err) != content.CodeNotFound {
		t.Errorf("revoked as a project's: %v", err)
	}
	if err := g.RevokeToken(t.Context(), "", made.ID); err != nil {
		t.Errorf("revoke: %v", err)
	}
	if _, err := g.Authenticate(t.Context(), plain); code(t, err) != content.CodeUnauthenticated {
		t.Errorf("after it was revoked: %v", err)
	}
	if err := g.RevokeToken(t.Context(), "", made.ID); code(t, err) != content.CodeNotFound {
		t.Errorf("revoke again: %v", err)
	}
	if who, err := g.Authenticate(t.Context(), otherPlain); err != nil || who.Token != other {
		t.Errorf("another token: %+v, %v", who, err)
	}
}

func TestWhatIsNoTokenLetsNobodyIn(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	_, plain := g.token(t, access.NewToken{Name: "Ada", Role: access.Admin})
	for name, bearer := range map[string]string{
		"nothing":             "",
		"another prefix":      "ghp_" + plain[4:],
		"its end is missing":  plain[:len(plain)-1],
		"more behind it":      plain + "a",
		"one character wrong": plain[:10] + flip(plain[10]) + plain[11:],
		"in upper case":       strings.ToUpper(plain),
		"white space":         " " + plain[1:],
		"very long":           strings.Repeat(plain, 1000),
	} {
		if _, err := g.Authenticate(t.Context(), bearer); code(t, err) != content.CodeUnauthenticated {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func flip(c byte) string {
	if c == 'a' {
		return "b"
	}
	return "a"
}

// countingWrites counts writes of single items.
type countingWrites struct {
	store.Engine
	count func()
}

func (c *countingWrites) Write(ctx context.Context, w store.Write) (store.Item, error) {
	c.count()
	return c.Engine.Write(ctx, w)
}

// recorder notes all that is written.
type recorder struct {
	store.Engine
	written []store.Write
}

func (r *recorder) Transact(ctx context.Context, token string, writes []store.Write) error {
	r.written = append(r.written, writes...)
	return r.Engine.Transact(ctx, token, writes)
}

func TestOnlyTheHashOfATokenIsWritten(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	table := &recorder{Engine: g.engine}
	tokens, err := store.NewTokens(store.TokensConfig{Engine: table, Table: g.table})
	if err != nil {
		t.Fatal(err)
	}
	random := []byte("these are thirty-two bytes, no less, and ten more")
	s, err := access.New(access.Config{Tokens: tokens, Random: bytes.NewReader(random)})
	if err != nil {
		t.Fatal(err)
	}
	_, plain, err := s.CreateToken(t.Context(), access.NewToken{Name: "Ada", Role: access.Admin, AllProjects: true})
	if err != nil {
		t.Fatal(err)
	}
	written, err := json.Marshal(table.written)
	if err != nil || len(table.written) != 2 {
		t.Fatalf("%d writes, %v", len(table.written), err)
	}
	for _, secret := range []string{plain, plain[4:20], plain[20:40], base64.StdEncoding.EncodeToString(random[:30])} {
		if bytes.Contains(written, []byte(secret)) {
			t.Errorf("%s is written", secret)
		}
	}
	hash := sha256.Sum256([]byte(plain))
	if !bytes.Contains(written, []byte(hex.EncodeToString(hash[:]))) {
		t.Errorf("no hash in %s", written)
	}
}

func TestATokenIsMadeForSomebodyAndSomething(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	for name, c := range map[string]struct {
		token access.NewToken
		code  content.Code
	}{
		"no reach":            {access.NewToken{Name: "Ada", Role: access.Viewer}, content.CodeInvalid},
		"two reaches":         {access.NewToken{Name: "Ada", Role: access.Viewer, Project: g.project, AllProjects: true}, content.CodeInvalid},
		"an end and none":     {access.NewToken{Name: "Ada", Role: access.Viewer, AllProjects: true, For: time.Hour, Forever: true}, content.CodeInvalid},
		"no name":             {access.NewToken{Role: access.Viewer}, content.CodeInvalid},
		"a name of spaces":    {access.NewToken{Name: "  ", Role: access.Viewer}, content.CodeInvalid},
		"a name on two lines": {access.NewToken{Name: "Ada\nGrace", Role: access.Viewer}, content.CodeInvalid},
		"a spoilt name":       {access.NewToken{Name: "Caf\ufffd", Role: access.Viewer}, content.CodeInvalid},
		"a backward name":     {access.NewToken{Name: "nimda\u202e", Role: access.Viewer}, content.CodeInvalid},
		"a name with a gap":   {access.NewToken{Name: "Ada\u200b", Role: access.Viewer}, content.CodeInvalid},
		"a name too long":     {access.NewToken{Name: strings.Repeat("ö", 101), Role: access.Viewer}, content.CodeInvalid},
		"no role":             {access.NewToken{Name: "Ada"}, content.CodeInvalid},
		"an unknown role":     {access.NewToken{Name: "Ada", Role: "owner"}, content.CodeInvalid},
		"an end in the past":  {access.NewToken{Name: "Ada", Role: access.Viewer, For: -time.Second}, content.CodeInvalid},
		"a missing project":   {access.NewToken{Name: "Ada", Role: access.Viewer, Project: missing}, content.CodeNotFound},
		"no project's id":     {access.NewToken{Name: "Ada", Role: access.Viewer, Project: "*"}, content.CodeNotFound},
	} {
		if _, plain, err := g.CreateToken(t.Context(), c.token); code(t, err) != c.code || plain != "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if listed, err := g.ListTokens(t.Context(), ""); err != nil || len(listed) > 0 {
		t.Errorf("listed: %+v, %v", listed, err)
	}
}

func TestWhatRolesMayDo(t *testing.T) {
	t.Parallel()
	const mine, foreign = "prj_mine", "prj_foreign"
	const yes, forbidden, notFound = content.Code(""), content.CodeForbidden, content.CodeNotFound
	for _, c := range []struct {
		has     access.Role
		scope   string
		needed  access.Role
		project string
		want    content.Code
	}{
		{access.Viewer, mine, access.Viewer, mine, yes},
		{access.Viewer, mine, access.Editor, mine, forbidden},
		{access.Viewer, mine, access.Admin, mine, forbidden},
		{access.Editor, mine, access.Viewer, mine, yes},
		{access.Editor, mine, access.Editor, mine, yes},
		{access.Editor, mine, access.Admin, mine, forbidden},
		{access.Admin, mine, access.Admin, mine, yes},
		{access.Admin, mine, access.Viewer, foreign, notFound},
		{access.Viewer, mine, access.Admin, foreign, notFound}, // it is not said that a higher role would help
		{access.Admin, mine, access.Viewer, "", forbidden},
		{access.Viewer, "", access.Viewer, foreign, yes},
		{access.Viewer, "", access.Editor, foreign, forbidden},
		{access.Admin, "", access.Admin, "", yes},
		{access.Editor, "", access.Admin, "", forbidden},
		{"", "", access.Viewer, mine, forbidden},
		{"owner", "", access.Viewer, mine, forbidden},
		{access.Admin, "", "owner", mine, forbidden},
		{access.Admin, "", "", mine, forbidden},
	} {
		p := access.Principal{Token: access.Token{Role: c.has, Project: c.scope}}
		if got := code(t, p.May(c.needed, c.project)); got != c.want {
			t.Errorf("a %s of %q who needs %s on %q: %q, want %q", c.has, c.scope, c.needed, c.project, got, c.want)
		}
	}
}

func TestAForeignProjectLooksLikeAMissingOne(t *testing.T) {
	t.Parallel()
	p := access.Principal{Token: access.Token{Role: access.Admin, Project: "prj_mine"}}
	var foreign *content.Error
	if !errors.As(p.May(access.Viewer, "prj_foreign"), &foreign) || *foreign != *content.NoSuchProject() {
		t.Errorf("foreign: %+v, missing: %+v", foreign, content.NoSuchProject())
	}
}

func TestATableThatDoesNotAnswerIsNoRefusalOfTheToken(t *testing.T) {
	t.Parallel()
	s, err := access.New(access.Config{Tokens: silent{}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Authenticate(t.Context(), "clp_"+strings.Repeat("a", 52))
	if code(t, err) != content.CodeUnavailable {
		t.Errorf("got %v", err)
	}
}

// silent is a store whose table does not answer.
type silent struct{ access.Tokens }

func (silent) TakeRequest(context.Context, [sha256.Size]byte, time.Time, time.Time, ratelimit.Limit) (time.Duration, error) {
	return 0, failure.ErrThrottled
}

func (silent) Token(context.Context, [sha256.Size]byte) (access.Token, error) {
	return access.Token{}, content.ErrUnavailable
}
