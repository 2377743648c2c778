package content

// For tests of what no caller sees: where manifests are cut.
const (
	LargestPart  = largestPart
	SmallestPart = smallestPart
)

// Cut gives a manifest's parts.
func Cut(documents []Document) (hashes []Hash, parts [][]byte) {
	for _, p := range cut(documents) {
		hashes, parts = append(hashes, p.hash), append(parts, p.data)
	}
	return hashes, parts
}

// ParsePart reads a part.
var ParsePart = parsePart

// DecodeDraftCursor reads a cursor of the list of drafts.
func DecodeDraftCursor(cursor string) (string, error) {
	return decodeCursor(draftCursor, cursor, isPath)
}

// DecodeReleaseCursor reads a cursor of the list of releases.
func DecodeReleaseCursor(cursor string) (string, error) {
	return decodeCursor(releaseCursor, cursor, isNumber)
}

// EncodeDraftCursor makes one.
func EncodeDraftCursor(path string) string { return encodeCursor(draftCursor, path) }
