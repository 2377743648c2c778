package store

import (
	"fmt"

	"colophon/internal/content"
)

// The keys of the content table. Neither ids nor paths hold a '#'.
const (
	skMeta       = "META"
	skUsage      = "USAGE"
	prefixDraft  = "DOC#"  // + path
	prefixSave   = "DOCV#" // + path + # + version, 12 digits
	prefixRecord = "REL#"  // + number, 12 digits
	prefixUse    = "IDEM#" // + SHA-256 of the idempotency key
	prefixBlob   = "B#"    // + project + # + the hash's first two digits, so that a project's blobs spread
	pkProjects   = "PROJECTS"
)

func projectPK(project string) string { return prefixProject + project }

// metaKey is the item that every publish and every change of a project's
// destinations writes, under the version that was read.
func metaKey(project string) Key { return Key{PK: projectPK(project), SK: skMeta} }

// usageKey is the item that counts what a project's documents keep.
func usageKey(project string) Key { return Key{PK: projectPK(project), SK: skUsage} }

// listedKey stands for a project in the list of all.
func listedKey(project string) Key { return Key{PK: pkProjects, SK: project} }

func draftKey(project, path string) Key {
	return Key{PK: projectPK(project), SK: prefixDraft + path}
}

func saveKey(project, path string, version int64) Key {
	return Key{PK: projectPK(project), SK: fmt.Sprintf("%s%s#%012d", prefixSave, path, version)}
}

func recordKey(project string, release int64) Key {
	return Key{PK: projectPK(project), SK: fmt.Sprintf("%s%012d", prefixRecord, release)}
}

func useKey(project, key string) Key {
	return Key{PK: projectPK(project), SK: prefixUse + content.HashOf([]byte(key)).String()}
}

func blobKey(project string, hash content.Hash) Key {
	digits := hash.String()
	return Key{PK: prefixBlob + project + "#" + digits[:2], SK: digits}
}
