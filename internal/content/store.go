package content

import (
	"context"
	"errors"
	"strings"
	"time"

	"colophon/internal/failure"
)

// ErrNoProject is the ErrMissing of a whole project.
var ErrNoProject = errors.New("no such project")

// The outcomes that every store has, see package failure.
var (
	ErrMissing     = failure.ErrMissing
	ErrMoved       = failure.ErrMoved
	ErrBusy        = failure.ErrBusy
	ErrUnavailable = failure.ErrUnavailable
	ErrUnknown     = failure.ErrUnknown
)

// Store keeps what this package is about. All reads are strongly consistent. A
// token makes a repeat of the very same write harmless for ten minutes.
type Store interface {
	Projects
	Drafts
	Blobs
	Releases
}

// Projects keeps projects.
type Projects interface {
	// AddProject writes a new project.
	AddProject(ctx context.Context, token string, p Project) error
	// Project reads one; ErrMissing.
	Project(ctx context.Context, id string) (Project, error)
	// ListProjects reads up to limit projects behind the id after.
	ListProjects(ctx context.Context, after string, limit int) ([]Project, error)
}

// Drafts keeps what editors change.
type Drafts interface {
	// Drafts reads those of the paths that have a draft, in their order, and how
	// many bytes of content the project's documents have made; ErrNoProject.
	Drafts(ctx context.Context, project string, paths []string) (drafts []Draft, used int64, err error)
	// LastVersion is the last version that a draft ever had; 0: none.
	LastVersion(ctx context.Context, project, path string) (int64, error)
	// ListDrafts reads up to limit drafts behind the path after, by path.
	ListDrafts(ctx context.Context, project, after string, limit int) ([]Draft, error)
	// ChangeDraft writes a draft and its history, or removes it; ErrMoved.
	ChangeDraft(ctx context.Context, token string, c DraftChange) error
}

// DraftChange is one save or deletion.
type DraftChange struct {
	Project string
	Draft   Draft // as it is saved, or as it was with who deleted it; Version is the new one
	Deleted bool  // the draft goes; the history keeps that
	// From is the path that the draft had until now, where a save moves it; empty:
	// it stays at its own. What it was there ends, as after a deletion.
	From string
	Over int64 // the version that was read; 0: there was no draft
}

// Blobs keeps content, and parts of manifests, by hash.
type Blobs interface {
	// PutBlob writes content where it is not there yet; made: it was not.
	PutBlob(ctx context.Context, project string, hash Hash, data []byte) (made bool, err error)
	// HasBlob says whether content is there.
	HasBlob(ctx context.Context, project string, hash Hash) (bool, error)
	// AddUsage adds to the bytes of content that a project's documents have made.
	AddUsage(ctx context.Context, project string, bytes int64) error
	// Blobs reads content by hash, in the order asked. A missing one is an error.
	Blobs(ctx context.Context, project string, hashes []Hash) ([][]byte, error)
}

// Releases keeps releases and the keys that they were asked for with.
type Releases interface {
	// Commit writes a release, the use of its key and its deliveries, and moves
	// the project on; or does nothing: *Refusal, ErrUnavailable, ErrUnknown.
	Commit(ctx context.Context, token string, c Commit) error
	// Use reads what a key was used for; ErrMissing.
	Use(ctx context.Context, project, key string) (Use, error)
	// CheckUnused returns nil where, at one moment, the project was as read and the
	// key free at that time; *Refusal, ErrUnavailable. It writes nothing.
	CheckUnused(ctx context.Context, read Project, key string, at time.Time) error
	// Release reads a release; ErrMissing.
	Release(ctx context.Context, project string, number int64) (Release, error)
	// ListReleases reads up to limit releases below a number, newest first; 0: from the newest.
	ListReleases(ctx context.Context, project string, below int64, limit int) ([]Release, error)
}

// Commit is what one publish writes.
type Commit struct {
	Read    Project // as it was read: the release is its next
	Release Release
	// PublishesFull is the project's new one: the limit of publishes is kept with
	// the project, which every release writes anyway.
	PublishesFull time.Time
	Use           Use // an empty Key: none
	Deliveries    []NewDelivery
}

// Use is what an idempotency key was used for.
type Use struct {
	Key       string // as the caller gave it; a store keeps its hash alone and answers with none
	Request   Hash
	Release   int64
	ExpiresAt time.Time
}

// NewDelivery is the announcement of a release to one destination.
type NewDelivery struct {
	Destination string
	WebhookID   string
	Body        []byte
}

// Refusal says why a commit wrote nothing. More than one may be the reason.
type Refusal struct {
	Project   *Project // it has moved: as it stands
	Use       *Use     // the key was used: what for
	Busy      bool     // another transaction is at work on it
	Throttled bool     // the table is short of units
	Other     []string // what should not be: "delivery dst_x exists"
}

func (r *Refusal) Error() string {
	reasons := append([]string(nil), r.Other...)
	if r.Project != nil {
		reasons = append(reasons, "the project has moved")
	}
	if r.Use != nil {
		reasons = append(reasons, "the key was used")
	}
	if r.Busy {
		reasons = append(reasons, failure.ErrBusy.Error())
	}
	if r.Throttled {
		reasons = append(reasons, failure.ErrThrottled.Error())
	}
	return "commit refused: " + strings.Join(reasons, ", ")
}

// Unwrap is the outcome that a refusal comes to; nil where it is none: the key
// was used, or something is there that should not be.
func (r *Refusal) Unwrap() error {
	switch {
	case r.Project != nil:
		return failure.ErrMoved
	case r.Use != nil:
		return nil
	case r.Throttled:
		return failure.ErrThrottled
	case r.Busy:
		// While another transaction is at work, what else is refused may be its
		// doing: a release that exists where the project has not moved yet.
		return failure.ErrBusy
	}
	return nil
}
