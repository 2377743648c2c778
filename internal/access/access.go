package access

import (
	"crypto/sha256"
	"time"

	"colophon/internal/content"
)

// Role is what somebody may do; each includes the one before.
type Role string

// The roles.
const (
	Viewer Role = "viewer" // reads
	Editor Role = "editor" // writes documents, publishes, redelivers, tries now
	Admin  Role = "admin"  // destinations, members, tokens
)

var rank = map[Role]int{Viewer: 1, Editor: 2, Admin: 3}

// Valid says whether it is one of the roles.
func (r Role) Valid() bool { return rank[r] > 0 }

// Includes says whether whoever has this role may do what needs that one.
func (r Role) Includes(needed Role) bool { return needed.Valid() && rank[r] >= rank[needed] }

// Token is what is known of a token: all but the token.
type Token struct {
	ID        string
	Name      string // who or what has it; releases and drafts name it, with the ID
	Role      Role
	Project   string // empty: every project
	Ending    string // its last four characters, for telling tokens apart
	CreatedAt time.Time
	ExpiresAt time.Time // zero: never
	// LastUsedAt is within an hour of the last use; zero: never, or before it was recorded.
	LastUsedAt time.Time
	// LimitedAt is the shared state of the token's limit, as internal/ratelimit has it.
	LimitedAt time.Time
}

// Principal is whoever is asking.
type Principal struct {
	Token Token
	hash  [sha256.Size]byte // of the token
}

// Who names the principal in drafts and releases, with its ID.
func (p Principal) Who() string { return p.Token.Name }

// ID names the token, which its name does not: two can have the same.
func (p Principal) ID() string { return p.Token.ID }

// May says whether the principal may do on the project what needs the role. A
// project out of reach is answered like one that is not there. The empty
// project stands for what belongs to none: making and listing projects.
func (p Principal) May(needed Role, project string) error {
	if p.Token.Project != "" && p.Token.Project != project {
		if project == "" {
			return &content.Error{Code: content.CodeForbidden, Message: "Your token reaches one project only. Ask an admin of all projects to do this."}
		}
		return content.NoSuchProject()
	}
	if !p.Token.Role.Includes(needed) {
		return &content.Error{Code: content.CodeForbidden, Message: "Your token's role is " + string(p.Token.Role) + ", and this needs " + string(needed) + ". Ask an admin for a token with that role."}
	}
	return nil
}
