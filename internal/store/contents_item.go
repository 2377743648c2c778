package store

import (
	"fmt"
	"strings"

	"colophon/internal/content"
)

// The attributes of the content table's items that no delivery has.
const (
	attrSeq          = "seq"
	attrManifest     = "manifest" // hashes of the manifest's parts, one behind the other
	attrDestinations = "destinations"
	attrHash         = "hash"
	attrSize         = "size"
	attrType         = "type"
	attrWho          = "who"
	attrWhoID        = "whoId" // absent in what was written before it was recorded
	attrDeleted      = "deleted"
	attrMessage      = "message"
	attrDocuments    = "documents"
	attrBytes        = "bytes"
	attrRequest      = "request"
	attrData         = "data"
	attrPublishes    = "publishesFull" // of a project: the whole state of its limit of publishes
)

// encodeProject gives a project's whole item but its key.
func encodeProject(p content.Project) Item {
	return Item{
		attrName: Text(p.Name), attrSeq: Number(p.Seq), attrManifest: encodeHashes(p.Manifest),
		attrDestinations: Texts(p.Destinations), attrVersion: Number(p.Version), attrCreatedAt: millis(p.CreatedAt),
	}
}

// decodeProject reads a project's item.
func decodeProject(id string, item Item) (content.Project, error) {
	a := &attributes{item: item}
	p := content.Project{
		ID: id, Name: a.text(attrName), Seq: a.count(attrSeq), Manifest: decodeHashes(a, attrManifest),
		Destinations: a.optionalTexts(attrDestinations), Version: a.positive(attrVersion), CreatedAt: a.time(attrCreatedAt),
		PublishesFull: a.optionalTime(attrPublishes),
	}
	return p, a.faultIn("project")
}

// changeDestinations replaces a project's list of destinations, if nothing has
// moved the project since it was read with this version.
func changeDestinations(table, project string, version int64, ids []string) Write {
	return Write{
		Table: table, Key: metaKey(project),
		Changes: []Change{Set(At(attrDestinations), Texts(ids)), Set(At(attrVersion), Number(version+1))},
		If:      Equal(At(attrVersion), Number(version)),
	}
}

// moveProject makes the release the project's last, if nothing has moved the
// project since it was read.
func moveProject(table string, c content.Commit) Write {
	changes := []Change{
		Set(At(attrSeq), Number(c.Release.Number)), Set(At(attrManifest), encodeHashes(c.Release.Manifest)),
		Set(At(attrVersion), Number(c.Read.Version+1)),
	}
	if !c.PublishesFull.IsZero() {
		changes = append(changes, Set(At(attrPublishes), millis(c.PublishesFull)))
	}
	return Write{
		Table: table, Key: metaKey(c.Read.ID), Changes: changes,
		If: Equal(At(attrVersion), Number(c.Read.Version)),
	}
}

// encodeDraft gives a draft's whole item but its key, which holds its path.
func encodeDraft(d content.Draft) Item {
	item := Item{
		attrHash: Bytes(d.Hash[:]), attrSize: Number(d.Size), attrType: Text(d.Type),
		attrVersion: Number(d.Version), attrWho: Text(d.Who), attrAt: millis(d.At),
	}
	addWhoID(item, d.WhoID)
	return item
}

func decodeDraft(item Item) (content.Draft, error) {
	a := &attributes{item: item}
	d := content.Draft{
		Document: content.Document{
			Path: strings.TrimPrefix(a.text(attrSK), prefixDraft), Hash: decodeHash(a, attrHash), Size: a.count(attrSize), Type: a.text(attrType),
		},
		Version: a.positive(attrVersion), Who: a.text(attrWho), WhoID: a.optionalText(attrWhoID), At: a.time(attrAt),
	}
	return d, a.faultIn("draft")
}

// encodeRelease gives a release's whole item but its key.
func encodeRelease(r content.Release) Item {
	item := Item{
		attrMessage: Text(r.Message), attrWho: Text(r.Who), attrAt: millis(r.At),
		attrDocuments: Number(r.Documents), attrBytes: Number(r.Bytes), attrManifest: encodeHashes(r.Manifest),
		attrDestinations: Texts(r.Destinations), attrToken: Text(r.Token), attrRelease: Number(r.Number),
	}
	addWhoID(item, r.WhoID)
	return item
}

func decodeRelease(project string, item Item) (content.Release, error) {
	a := &attributes{item: item}
	r := content.Release{
		Project: project, Number: a.positive(attrRelease), Message: a.text(attrMessage), Who: a.text(attrWho), WhoID: a.optionalText(attrWhoID),
		At: a.time(attrAt), Documents: a.count(attrDocuments), Bytes: a.count(attrBytes),
		Manifest: decodeHashes(a, attrManifest), Destinations: a.optionalTexts(attrDestinations), Token: a.text(attrToken),
	}
	return r, a.faultIn("release")
}

// addWhoID adds the id of the token named by attrWho, where it is known.
func addWhoID(item Item, id string) {
	if id != "" {
		item[attrWhoID] = Text(id)
	}
}

// encodeUse gives the item of a key's use: it expires by itself.
func encodeUse(u content.Use) Item {
	return Item{attrRequest: Bytes(u.Request[:]), attrRelease: Number(u.Release), attrExpiresAt: seconds(u.ExpiresAt)}
}

func decodeUse(item Item) (content.Use, error) {
	a := &attributes{item: item}
	u := content.Use{
		Request: decodeHash(a, attrRequest), Release: a.positive(attrRelease),
		ExpiresAt: fromMillis(a.positive(attrExpiresAt) * 1000),
	}
	return u, a.faultIn("use of a key")
}

func encodeHashes(hashes []content.Hash) Value {
	joined := make([]byte, 0, len(hashes)*len(content.Hash{}))
	for _, hash := range hashes {
		joined = append(joined, hash[:]...)
	}
	return Bytes(joined)
}

func decodeHashes(a *attributes, name string) []content.Hash {
	joined := a.optionalBytes(name)
	size := len(content.Hash{})
	if len(joined)%size != 0 {
		a.wrong(name, "a row of hashes")
		return nil
	}
	var hashes []content.Hash
	for ; len(joined) > 0; joined = joined[size:] {
		hashes = append(hashes, content.Hash(joined[:size]))
	}
	return hashes
}

func decodeHash(a *attributes, name string) content.Hash {
	hash := a.optionalBytes(name)
	if len(hash) != len(content.Hash{}) {
		a.wrong(name, "a hash")
		return content.Hash{}
	}
	return content.Hash(hash)
}

// faultIn names the item that cannot be read.
func (a *attributes) faultIn(what string) error {
	if a.fault == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, a.fault)
}
