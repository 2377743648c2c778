package content

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strconv"
)

// Release reads a release.
func (s *Service) Release(ctx context.Context, project string, number int64) (Release, error) {
	if !IsProjectID(project) {
		return Release{}, NoSuchProject()
	}
	if number < 1 {
		return Release{}, invalid("release", "A release's number is 1 or more.")
	}
	r, err := s.c.Store.Release(ctx, project, number)
	if errors.Is(err, ErrMissing) {
		p, err := s.Project(ctx, project)
		if err != nil {
			return Release{}, err
		}
		if p.Seq == 0 {
			return Release{}, refuse(CodeNotFound, "This project has no release yet. Publish makes the first.")
		}
		return Release{}, refuse(CodeNotFound, "There is no release %d. The newest is %d.", number, p.Seq)
	}
	return r, Explain("read a release", err)
}

// ListReleases lists a project's releases, newest first.
func (s *Service) ListReleases(ctx context.Context, project, cursor string, limit int) (ReleasePage, error) {
	last, err := decodeCursor(releaseCursor, cursor, isNumber)
	if err != nil {
		return ReleasePage{}, err
	}
	if limit, err = checkLimit(limit); err != nil {
		return ReleasePage{}, err
	}
	if !IsProjectID(project) {
		return ReleasePage{}, NoSuchProject()
	}
	below, _ := strconv.ParseInt(last, 10, 64) // 0 where there is no cursor
	releases, err := s.c.Store.ListReleases(ctx, project, below, limit+1)
	if err != nil {
		return ReleasePage{}, Explain("list releases", err)
	}
	if len(releases) == 0 {
		if _, err := s.Project(ctx, project); err != nil {
			return ReleasePage{}, err
		}
	}
	page := ReleasePage{Releases: releases}
	if len(releases) > limit {
		page.Releases = releases[:limit]
		page.Next = encodeCursor(releaseCursor, strconv.FormatInt(releases[limit-1].Number, 10))
	}
	return page, nil
}

// ReleaseDocuments lists what a release holds, by path: at most MostDocuments.
func (s *Service) ReleaseDocuments(ctx context.Context, project string, number int64) ([]Document, error) {
	r, err := s.Release(ctx, project, number)
	if err != nil {
		return nil, err
	}
	if len(r.Manifest) == 0 {
		return nil, nil
	}
	parts, err := s.c.Store.Blobs(ctx, project, r.Manifest)
	if err != nil {
		return nil, Explain("read a release's manifest", err)
	}
	var documents []Document
	for _, data := range parts {
		some, err := parsePart(data)
		if err != nil {
			return nil, fmt.Errorf("read the manifest of release %d: %w", number, err)
		}
		documents = append(documents, some...)
	}
	return documents, nil
}

// ReleaseDocument reads a document as a release holds it.
func (s *Service) ReleaseDocument(ctx context.Context, project string, number int64, path string) (Document, []byte, error) {
	if err := CheckPath(path); err != nil {
		return Document{}, nil, err
	}
	documents, err := s.ReleaseDocuments(ctx, project, number)
	if err != nil {
		return Document{}, nil, err
	}
	i := sort.Search(len(documents), func(i int) bool { return documents[i].Path >= path })
	if i == len(documents) || documents[i].Path != path {
		return Document{}, nil, refuse(CodeNotFound, "Release %d has no document at this path. The release's list of documents shows which it has.", number)
	}
	blobs, err := s.c.Store.Blobs(ctx, project, []Hash{documents[i].Hash})
	if err != nil {
		return Document{}, nil, Explain("read a document's content", err)
	}
	return documents[i], blobs[0], nil
}
