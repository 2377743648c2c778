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
	forms, err := formsOf(path)
	if err != nil {
		return Document{}, nil, err
	}
	r, err := s.Release(ctx, project, number)
	if err != nil {
		return Document{}, nil, err
	}
	for _, form := range forms {
		d, found, err := s.documentOf(ctx, r, form)
		if err != nil {
			return Document{}, nil, err
		}
		if !found {
			continue
		}
		blobs, err := s.c.Store.Blobs(ctx, project, []Hash{d.Hash})
		if err != nil {
			return Document{}, nil, Explain("read a document's content", err)
		}
		return d, blobs[0], nil
	}
	return Document{}, nil, refuse(CodeNotFound, "Release %d has no document at this path. The release's list of documents shows which it has.", number)
}

// documentOf finds a path in a release. Its manifest's parts are in the order of
// the paths, so that half of those that are left are ruled out by each that is read.
func (s *Service) documentOf(ctx context.Context, r Release, path string) (Document, bool, error) {
	for parts := r.Manifest; len(parts) > 0; {
		middle := len(parts) / 2
		data, err := s.c.Store.Blobs(ctx, r.Project, parts[middle:middle+1])
		if err != nil {
			return Document{}, false, Explain("read a release's manifest", err)
		}
		documents, err := parsePart(data[0])
		if err != nil || len(documents) == 0 {
			return Document{}, false, fmt.Errorf("read the manifest of release %d: an empty or damaged part: %w", r.Number, err)
		}
		switch {
		case path < documents[0].Path:
			parts = parts[:middle]
		case path > documents[len(documents)-1].Path:
			parts = parts[middle+1:]
		default:
			i := sort.Search(len(documents), func(i int) bool { return documents[i].Path >= path })
			return documents[i], documents[i].Path == path, nil
		}
	}
	return Document{}, false, nil
}
