package content

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"strings"
	"time"

	"colophon/internal/clock"
	"colophon/internal/ratelimit"
	"colophon/internal/retry"
	"colophon/internal/text"
)

// patience is for how long a write is tried again while others are at work on
// the same items or its outcome is unknown.
const patience = 5 * time.Second

// The wait before the next try is random, up to what the last one took, doubled
// with each try. So it fits the table's pace of the day: a fixed one is too short
// where many publish into one project, and each then spoils the others' tries.
// Whoever has used up a quarter of its patience doubles no more, or those who come
// newly would be served first for ever.
const (
	shortestWait = 5 * time.Millisecond
	mostDoubled  = 3 // times
	longestWait  = time.Second
	doubledFor   = patience / 4
)

// Clock tells the time and waits.
type Clock interface {
	Now() time.Time
	// Sleep waits, or returns the context's error if it ends first.
	Sleep(ctx context.Context, d time.Duration) error
}

// Config is what a Service needs.
type Config struct {
	Store Store
	// Announce makes what one destination is told about a release: a new id, and
	// the body. It is asked once for each destination and transaction.
	Announce    func(Announcement) (id string, body []byte, err error)
	Publishes   ratelimit.Limit // of each project; zero: Publishes
	MostContent int64           // bytes of new content of each project; 0: MostContent
	// PublicAddress is what links begin with; empty: each request's BaseURL.
	PublicAddress string

	Clock  Clock                                  // nil: the system's
	Random func() string                          // at least 26 random characters A–Z, 2–7; nil: the system's randomness
	Jitter func(most time.Duration) time.Duration // a random wait; nil: evenly from 0 to most
}

func (c *Config) validate() error {
	if c.Store == nil || c.Announce == nil {
		return errors.New("content: a store and an announcer are needed")
	}
	if c.PublicAddress != "" {
		address, err := checkAddress(c.PublicAddress)
		if err != nil {
			return fmt.Errorf("content: the public address is %w", err)
		}
		c.PublicAddress = address
	}
	if c.Publishes == (ratelimit.Limit{}) {
		c.Publishes = Publishes
	}
	if err := c.Publishes.Validate(); err != nil {
		return fmt.Errorf("content: publishes: %w", err)
	}
	if c.MostContent == 0 {
		c.MostContent = MostContent
	}
	if c.MostContent < 0 {
		return errors.New("content: a project may have less than no content")
	}
	if c.Clock == nil {
		c.Clock = clock.System{}
	}
	if c.Random == nil {
		c.Random = rand.Text
	}
	if c.Jitter == nil {
		c.Jitter = func(most time.Duration) time.Duration { return mathrand.N(most + 1) }
	}
	return nil
}

// Service keeps documents and publishes them.
type Service struct{ c Config }

// New makes a Service.
func New(c Config) (*Service, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &Service{c: c}, nil
}

// now is the time as a store keeps it, so that an answer given twice is the same.
func (s *Service) now() time.Time { return s.c.Clock.Now().UTC().Truncate(time.Millisecond) }

func (s *Service) newTrial() *retry.Loop {
	return retry.New(retry.Clock{Now: s.c.Clock.Now, Sleep: s.c.Clock.Sleep}, s.wait)
}

// wait is the policy of every write here.
func (s *Service) wait(t retry.Try) (time.Duration, bool) {
	if t.Total >= patience {
		return 0, false
	}
	doubled := min(t.Number, mostDoubled)
	if t.Total > doubledFor {
		doubled = 0
	}
	return s.c.Jitter(min(max(t.Took, shortestWait)<<doubled, longestWait)), true
}

// settled asks for one transaction until its outcome is known.
func (s *Service) settled(ctx context.Context, t *retry.Loop, write func(token string) error) error {
	token := s.c.Random()
	return t.UntilKnown(ctx, func() error { return write(token) })
}

// CreateProject makes a project.
func (s *Service) CreateProject(ctx context.Context, name string) (Project, error) {
	name = strings.TrimSpace(name)
	if name == "" {
		return Project{}, invalid("name", "A project needs a name.")
	}
	if err := checkText("name", name, LongestName, text.Line); err != nil {
		return Project{}, err
	}
	p := Project{
		ID:   projectIDPrefix + strings.ToLower(s.c.Random()[:projectIDRandom]),
		Name: name, Version: 1, CreatedAt: s.now(),
	}
	t := s.newTrial()
	for {
		err := s.settled(ctx, t, func(token string) error { return s.c.Store.AddProject(ctx, token, p) })
		if err == nil {
			return p, nil
		}
		if !errors.Is(err, ErrBusy) && !errors.Is(err, ErrUnavailable) || !t.Again(ctx) {
			return Project{}, Explain("create a project", err)
		}
	}
}

// Project reads a project.
func (s *Service) Project(ctx context.Context, id string) (Project, error) {
	if !IsProjectID(id) {
		return Project{}, NoSuchProject()
	}
	p, err := s.c.Store.Project(ctx, id)
	if errors.Is(err, ErrMissing) {
		return Project{}, NoSuchProject()
	}
	return p, Explain("read a project", err)
}

// ListProjects lists all projects. Who may see which is not judged here.
func (s *Service) ListProjects(ctx context.Context, cursor string, limit int) (ProjectPage, error) {
	after, err := decodeCursor(projectCursor, cursor, IsProjectID)
	if err != nil {
		return ProjectPage{}, err
	}
	if limit, err = checkLimit(limit); err != nil {
		return ProjectPage{}, err
	}
	projects, err := s.c.Store.ListProjects(ctx, after, limit+1)
	if err != nil {
		return ProjectPage{}, Explain("list projects", err)
	}
	page := ProjectPage{Projects: projects}
	if len(projects) > limit {
		page.Projects, page.Next = projects[:limit], encodeCursor(projectCursor, projects[limit-1].ID)
	}
	return page, nil
}
