package content

import (
	"time"

	"colophon/internal/ratelimit"
)

// Limits of what people can write.
const (
	LargestDocument = 256 << 10 // bytes; an item of the table holds 400 KB
	MostDocuments   = 2000      // in a release
	LongestPath     = 512       // bytes
	LongestMessage  = 1000      // characters
	LongestName     = 100       // characters, of a project
	LongestType     = 127       // bytes, of a document's content type
	LongestKey      = 255       // bytes, of an idempotency key
	LongestAddress  = 2048      // bytes, of the address that links begin with
	SavesKept       = 20        // the last saves of each document
	LargestPage     = 100       // entries of a list that is read in pages

	// MostContent is how many bytes of documents' content a project may have,
	// where nobody configured another number: 10 GiB.
	MostContent = 10 << 30

	// KeyTime is for how long an idempotency key is remembered.
	KeyTime = 24 * time.Hour
)

// Publishes is how often a project may be published, where nobody configured
// another limit. A publish is announced to up to 50 addresses of others.
var Publishes = ratelimit.PerMinute(60, 60)

// Project is documents, releases, destinations and members that belong together.
type Project struct {
	ID           string
	Name         string
	Seq          int64    // the last release's number; 0: none yet
	Manifest     []Hash   // the last release's
	Destinations []string // ids, active and paused
	Version      int64    // rises with every release and every change of destinations
	// PublishesFull is when as many publishes at once are allowed again as ever are;
	// zero: nothing was published yet.
	PublishesFull time.Time
	CreatedAt     time.Time
}

// Document is a path and what stands there. Its content is kept by its hash.
type Document struct {
	Path string
	Hash Hash // of the content
	Size int64
	Type string // a media type
}

// Draft is a document as editors change it.
type Draft struct {
	Document
	Version int64 // 1, 2, 3 … with every save; goes on after a deletion
	Who     string
	WhoID   string // empty: saved before ids were recorded
	At      time.Time
}

// Release is an immutable, numbered set of documents.
type Release struct {
	Project      string
	Number       int64
	Message      string
	Who          string
	WhoID        string // empty: published before ids were recorded
	At           time.Time
	Documents    int64 // how many
	Bytes        int64 // of their content in all
	Manifest     []Hash
	Destinations []string // ids of those it was announced to
	Token        string   // of the transaction that wrote it
}

// Save is what an editor writes. At most one of the two preconditions is set.
type Save struct {
	Path    string
	Content []byte
	Type    string // empty: TypeOfPath(Path)
	Who     string // the name of the caller's token
	WhoID   string // that token's id: two tokens may share a name
	// IfVersion saves over this version only; 0 saves over any.
	IfVersion int64
	// IfAbsent saves only where there is no draft.
	IfAbsent bool
}

// Deletion is what an editor deletes.
type Deletion struct {
	Path      string
	IfVersion int64 // deletes this version only; 0 deletes any
	Who       string
	WhoID     string
}

// Saved is a draft as it is after a save.
type Saved struct {
	Draft
	Created bool // there was none before
	Changed bool // false: the same content and type were there already
}

// PublishRequest asks for a release of a project's drafts.
type PublishRequest struct {
	Message        string
	Force          bool   // also if nothing has changed
	IdempotencyKey string // empty: none
	Who            string
	WhoID          string
	BaseURL        string // links begin with it where no public address is configured
}

// Published is the answer to a publish.
type Published struct {
	Release
	Replayed bool // the key was used before, with the same request: this is that release
}

// DraftPage is a part of a project's drafts, by path.
type DraftPage struct {
	Drafts []Draft
	Next   string // the cursor of the next page; empty: there is none
}

// ReleasePage is a part of a project's releases, newest first.
type ReleasePage struct {
	Releases []Release
	Next     string // the cursor of the next page; empty: there is none
}

// ProjectPage is a part of all projects, by id.
type ProjectPage struct {
	Projects []Project
	Next     string // the cursor of the next page; empty: there is none
}

// Announcement is what receivers are told about a release.
type Announcement struct {
	Project     string // id
	ProjectName string
	Release     int64
	Documents   int64
	Message     string
	URL         string // of the release
	At          time.Time
}
