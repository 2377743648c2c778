package store

import (
	"fmt"
	"hash/fnv"
	"strings"

	"colophon/internal/delivery"
)

// The sweep index: a delivery is in it exactly while it is not terminal.
const (
	SweepIndex     = "sweep"
	SweepShards    = 64 // may only grow: an item keeps the shard it was given
	attrSweepShard = "sweepShard"
	attrSweepAt    = "sweepAt"
)

const (
	prefixProject    = "P#"
	prefixRelease    = "R#"
	prefixTest       = "T#"
	skSettings       = "SETTINGS" // sorts after every R#…, before SLOT
	skSlot           = "SLOT"     // sorts before T#…
	infixDestination = "#D#"
	infixOrigin      = "#O#"
)

// destinationPK is the partition of all that belongs to one destination.
func destinationPK(project, destination string) string {
	return prefixProject + project + infixDestination + destination
}

// releaseSK sorts releases by number; twelve digits outlast any project.
func releaseSK(release int64) string { return fmt.Sprintf("%s%012d", prefixRelease, release) }

// parseDeliveryKey is the inverse of destinationPK and releaseSK.
func parseDeliveryKey(pk, sk string) (project, destination string, release int64, ok bool) {
	project, destination, ok = parseDestinationPK(pk)
	if !ok || len(sk) != len(prefixRelease)+12 || !strings.HasPrefix(sk, prefixRelease) {
		return "", "", 0, false
	}
	for _, digit := range sk[len(prefixRelease):] {
		if digit < '0' || digit > '9' {
			return "", "", 0, false
		}
		release = release*10 + int64(digit-'0')
	}
	return project, destination, release, release > 0
}

// sweepShard spreads deliveries over the index's partitions.
func sweepShard(project, destination string, release int64) int64 {
	h := fnv.New32a()
	fmt.Fprintf(h, "%s#%s#%d", project, destination, release)
	return int64(h.Sum32() % SweepShards)
}

// ParseRing reads the key of an item that rings: a delivery's, with its release,
// or a test send's, with its id.
func ParseRing(pk, sk string) (d delivery.Destination, release int64, test string, ok bool) {
	project, destination, release, ok := parseDeliveryKey(pk, sk)
	if ok {
		return delivery.Destination{Project: project, ID: destination}, release, "", true
	}
	project, destination, ok = parseDestinationPK(pk)
	test, isTest := strings.CutPrefix(sk, prefixTest)
	if !ok || !isTest || test == "" {
		return delivery.Destination{}, 0, "", false
	}
	return delivery.Destination{Project: project, ID: destination}, 0, test, true
}

// parseDestinationPK is the inverse of destinationPK. Ids hold no #.
func parseDestinationPK(pk string) (project, destination string, ok bool) {
	rest, ok := strings.CutPrefix(pk, prefixProject)
	if !ok {
		return "", "", false
	}
	project, destination, ok = strings.Cut(rest, infixDestination)
	return project, destination, ok && project != "" && destination != "" && !strings.Contains(project+destination, "#")
}
