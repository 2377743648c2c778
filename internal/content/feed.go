package content

import (
	"context"
	"slices"
)

// Feed is a project's releases above a number, oldest first.
type Feed struct {
	Releases []Release
	Newest   int64 // the project's newest release; 0: none yet
}

// ReleasesSince lists releases above since. Numbers have no gap, so the page is
// known before it is read.
func (s *Service) ReleasesSince(ctx context.Context, project string, since int64, limit int) (Feed, error) {
	limit, err := checkLimit(limit)
	if err != nil {
		return Feed{}, err
	}
	if since < 0 {
		return Feed{}, invalid("since", "Since is a release's number, or 0 for all.")
	}
	p, err := s.Project(ctx, project)
	if err != nil || since >= p.Seq {
		return Feed{Newest: p.Seq}, err
	}
	through := min(since+int64(limit), p.Seq)
	releases, err := s.c.Store.ListReleases(ctx, project, through+1, int(through-since))
	if err != nil {
		return Feed{}, Explain("list releases", err)
	}
	slices.Reverse(releases)
	// A transaction's items become visible one by one. A reader goes on from the
	// last number that it was given, so what is behind a gap comes with the next page.
	for i, r := range releases {
		if r.Number != since+int64(i)+1 {
			releases = releases[:i]
			break
		}
	}
	return Feed{Releases: releases, Newest: p.Seq}, nil
}
