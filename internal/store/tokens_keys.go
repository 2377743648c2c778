package store

import (
	"encoding/hex"
	"time"

	"colophon/internal/access"
)

// A token stands in the content table twice: under its hash, where whoever
// brings it is recognized, and in its project's list (or that of all projects).
const (
	prefixToken     = "TOKEN#"
	skToken         = "TOKEN"
	prefixTokenList = "TOKENS#" // + project; nothing follows for tokens of all projects

	attrID      = "id"
	attrRole    = "role"
	attrProject = "project"
	attrEnding  = "ending"

	// attrEpoch is the name of the table that the token was written to. A restore
	// makes a table of another name, where the tokens it brings back are nothing.
	// Tokens of earlier builds have none and count as their table's.
	attrEpoch = "epoch"

	// What requests change, in the item under the hash alone.
	attrUsedAt    = "usedAt"
	attrLimitedAt = "limitedAt" // nanoseconds, because what one request adds can be less than a millisecond
)

func tokenKey(hash []byte) Key {
	return Key{PK: prefixToken + hex.EncodeToString(hash), SK: skToken}
}

func listedTokenKey(project, id string) Key { return Key{PK: prefixTokenList + project, SK: id} }

// ofEpoch says whether a token belongs to the table: it was written there, or by
// a build that did not record where.
func ofEpoch(item Item, table string) (bool, error) {
	a := &attributes{item: item}
	epoch := a.optionalText(attrEpoch)
	return epoch == "" || epoch == table, a.faultIn("token")
}

// encodeToken gives a token's whole item but its key.
func encodeToken(table string, hash []byte, t access.Token) Item {
	item := Item{
		attrEpoch: Text(table),
		attrID:    Text(t.ID), attrName: Text(t.Name), attrRole: Text(string(t.Role)), attrProject: Text(t.Project),
		attrEnding: Text(t.Ending), attrCreatedAt: millis(t.CreatedAt), attrHash: Bytes(hash),
	}
	if !t.ExpiresAt.IsZero() {
		item[attrExpiresAt] = seconds(t.ExpiresAt)
	}
	return item
}

func decodeToken(item Item) (access.Token, error) {
	a := &attributes{item: item}
	t := access.Token{
		ID: a.text(attrID), Name: a.text(attrName), Role: access.Role(a.text(attrRole)), Project: a.text(attrProject),
		Ending: a.text(attrEnding), CreatedAt: a.time(attrCreatedAt),
	}
	if !t.Role.Valid() {
		a.wrong(attrRole, "a role")
	}
	t.LastUsedAt = a.optionalTime(attrUsedAt)
	if a.has(attrLimitedAt) {
		t.LimitedAt = time.Unix(0, a.count(attrLimitedAt)).UTC()
	}
	if a.has(attrExpiresAt) {
		t.ExpiresAt = fromMillis(a.positive(attrExpiresAt) * 1000)
	}
	return t, a.faultIn("token")
}
