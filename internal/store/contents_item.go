package store

import (
	"fmt"

	"colophon/internal/content"
)

// The attributes of the content table's items that no delivery has.
const (
	attrSeq          = "seq"
	attrManifest     = "manifest" // hashes of the manifest's parts, one behind the other
	attrDestinations = "destinations"
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
	}
	if a.fault != nil {
		return p, fmt.Errorf("project: %w", a.fault)
	}
	return p, nil
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
	hashes := make([]content.Hash, 0, len(joined)/size)
	for ; len(joined) > 0; joined = joined[size:] {
		hashes = append(hashes, content.Hash(joined[:size]))
	}
	return hashes
}
