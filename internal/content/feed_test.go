package content_test

import (
	"context"
	"slices"
	"testing"

	"colophon/internal/content"
)

// releaseHidden is a store that shows a release's number before the release.
type releaseHidden struct {
	content.Store
	hidden int64
}

func (s releaseHidden) ListReleases(ctx context.Context, project string, before int64, limit int) ([]content.Release, error) {
	releases, err := s.Store.ListReleases(ctx, project, before, limit)
	return slices.DeleteFunc(releases, func(r content.Release) bool { return r.Number == s.hidden }), err
}

func TestTheFeedEndsBeforeAReleaseThatIsNotVisibleYet(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range 4 {
		w.publish(content.PublishRequest{Force: true})
	}
	for hidden, want := range map[int64][]int64{1: nil, 2: {1}, 3: {1, 2}, 4: {1, 2, 3}, 5: {1, 2, 3, 4}} {
		s := w.service(func(c *content.Config) { c.Store = releaseHidden{c.Store, hidden} })
		feed, err := s.ReleasesSince(t.Context(), w.project, 0, 10)
		var got []int64
		for _, r := range feed.Releases {
			got = append(got, r.Number)
		}
		if err != nil || !slices.Equal(got, want) || feed.Newest != 4 {
			t.Errorf("while release %d is not visible: %v of %d, %v; want %v", hidden, got, feed.Newest, err, want)
		}
	}
}
