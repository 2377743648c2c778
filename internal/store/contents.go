package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"colophon/internal/content"
	"colophon/internal/delivery"
)

// largestBatch is how many items one BatchGetItem reads.
const largestBatch = 100

// ContentsConfig is what Contents needs.
type ContentsConfig struct {
	Engine        Engine
	ContentTable  string
	DeliveryTable string
}

func (c ContentsConfig) validate() error {
	if c.Engine == nil || c.ContentTable == "" || c.DeliveryTable == "" {
		return errors.New("store: contents need an engine and two tables")
	}
	return nil
}

// Contents keeps projects, drafts and releases, and writes the deliveries that a
// release begins with.
type Contents struct {
	engine     Engine
	table      string
	deliveries string
}

// NewContents makes Contents.
func NewContents(c ContentsConfig) (*Contents, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &Contents{engine: c.Engine, table: c.ContentTable, deliveries: c.DeliveryTable}, nil
}

var _ content.Store = (*Contents)(nil)

// AddProject writes a project and its place in the list of all.
func (s *Contents) AddProject(ctx context.Context, token string, p content.Project) error {
	err := s.engine.Transact(ctx, token, []Write{
		{Table: s.table, Key: metaKey(p.ID), Put: encodeProject(p), If: Absent(At(attrPK))},
		{Table: s.table, Key: listedKey(p.ID), Put: Item{}},
	})
	return contentFault("add project", err)
}

// Project reads a project.
func (s *Contents) Project(ctx context.Context, id string) (content.Project, error) {
	item, err := s.engine.Get(ctx, s.table, metaKey(id))
	if err != nil {
		return content.Project{}, contentFault("read project", err)
	}
	if item == nil {
		return content.Project{}, content.ErrMissing
	}
	return decodeProject(id, item)
}

// ListProjects reads the list, and then the projects on it.
func (s *Contents) ListProjects(ctx context.Context, after string, limit int) ([]content.Project, error) {
	q := Query{Table: s.table, PK: Text(pkProjects)}
	if after != "" {
		q.After = listedKey(after).item()
	}
	listed, err := collect(ctx, s.engine, q, limit)
	if err != nil {
		return nil, contentFault("list projects", err)
	}
	keys := make([]Key, len(listed.Items))
	for i, item := range listed.Items {
		keys[i] = metaKey(textOf(item[attrSK]))
	}
	items, err := batch(ctx, s.engine, s.table, keys)
	if err != nil {
		return nil, contentFault("read listed projects", err)
	}
	projects := make([]content.Project, 0, len(keys))
	for i, key := range keys {
		p, err := decodeProject(textOf(listed.Items[i][attrSK]), items[key])
		if err != nil {
			return nil, err
		}
		projects = append(projects, p)
	}
	return projects, nil
}

// Drafts reads drafts, the project with them to tell apart which is missing, and
// what its documents' content comes to.
func (s *Contents) Drafts(ctx context.Context, project string, paths []string) ([]content.Draft, int64, error) {
	meta, usage := metaKey(project), usageKey(project)
	keys := []Key{meta, usage}
	for _, path := range paths {
		keys = append(keys, draftKey(project, path))
	}
	items, err := batch(ctx, s.engine, s.table, keys)
	if err != nil {
		return nil, 0, contentFault("read drafts", err)
	}
	if items[meta] == nil {
		return nil, 0, content.ErrNoProject
	}
	var drafts []content.Draft
	for _, key := range keys[2:] {
		if items[key] == nil {
			continue
		}
		draft, err := decodeDraft(items[key])
		if err != nil {
			return nil, 0, err
		}
		drafts = append(drafts, draft)
	}
	a := &attributes{item: items[usage]}
	return drafts, a.optionalCount(attrBytes), a.faultIn("usage of a project")
}

// LastVersion reads the newest entry of a draft's history: a deleted draft's too.
func (s *Contents) LastVersion(ctx context.Context, project, path string) (int64, error) {
	page, err := collect(ctx, s.engine, Query{
		Table: s.table, PK: Text(projectPK(project)), Descending: true,
		From: Text(saveKey(project, path, 0).SK), To: Text(saveKey(project, path, 1e12-1).SK),
	}, 1)
	if err != nil {
		return 0, contentFault("read a draft's last version", err)
	}
	if len(page.Items) == 0 {
		return 0, nil
	}
	a := &attributes{item: page.Items[0]}
	return a.positive(attrVersion), a.faultIn("history of a draft")
}

// ListDrafts reads drafts in the order of their paths' bytes.
func (s *Contents) ListDrafts(ctx context.Context, project, after string, limit int) ([]content.Draft, error) {
	q := Query{
		Table: s.table, PK: Text(projectPK(project)),
		From: Text(prefixDraft), To: Text(beyond(prefixDraft)),
	}
	if after != "" {
		q.After = draftKey(project, after).item()
	}
	page, err := collect(ctx, s.engine, q, limit)
	if err != nil {
		return nil, contentFault("list drafts", err)
	}
	drafts := make([]content.Draft, len(page.Items))
	for i, item := range page.Items {
		if drafts[i], err = decodeDraft(item); err != nil {
			return nil, err
		}
	}
	return drafts, nil
}

// ChangeDraft writes head and history together, and lets the oldest save go. A
// draft that moves takes the project's next version, so that no publish that
// listed the drafts meanwhile has it twice or not at all.
func (s *Contents) ChangeDraft(ctx context.Context, token string, c content.DraftChange) error {
	path, version := c.Draft.Path, c.Draft.Version
	head := Write{Table: s.table, Key: draftKey(c.Project, path), Put: encodeDraft(c.Draft), If: Absent(At(attrPK))}
	if c.Over > 0 && c.From == "" {
		head.If = Equal(At(attrVersion), Number(c.Over))
	}
	save := Write{Table: s.table, Key: saveKey(c.Project, path, version), Put: encodeDraft(c.Draft), If: Absent(At(attrPK))}
	if c.Deleted {
		head.Put, head.Delete = nil, true
		save.Put[attrDeleted] = Flag(true)
	}
	writes := []Write{head, save}
	if version > content.SavesKept {
		writes = append(writes, Write{Table: s.table, Key: saveKey(c.Project, path, version-content.SavesKept), Delete: true})
	}
	if c.From != "" {
		left := Write{
			Table: s.table, Key: saveKey(c.Project, c.From, c.Over+1), Put: encodeDraft(c.Draft), If: Absent(At(attrPK)),
		}
		left.Put[attrVersion], left.Put[attrDeleted] = Number(c.Over+1), Flag(true)
		writes = append(writes, left,
			Write{Table: s.table, Key: draftKey(c.Project, c.From), Delete: true, If: Equal(At(attrVersion), Number(c.Over))},
			Write{Table: s.table, Key: metaKey(c.Project), Changes: []Change{Add(At(attrVersion), 1)}, If: Exists(At(attrPK))},
		)
	}
	return contentFault("change draft", s.engine.Transact(ctx, token, writes))
}

// PutBlob writes content where it is not there yet. As the key is the content's
// hash, asking again is harmless, and an unknown outcome is no worse than none.
func (s *Contents) PutBlob(ctx context.Context, project string, hash content.Hash, data []byte) (made bool, err error) {
	_, err = s.engine.Write(ctx, Write{
		Table: s.table, Key: blobKey(project, hash), Put: Item{attrData: Bytes(data)}, If: Absent(At(attrPK)),
	})
	err = contentFault("put content", err)
	switch {
	case errors.Is(err, content.ErrMoved):
		return false, nil // it is there
	case errors.Is(err, content.ErrUnknown):
		return false, fmt.Errorf("put content: %w", content.ErrUnavailable)
	}
	return err == nil, err
}

// HasBlob reads the whole content, as DynamoDB counts it: it is asked only where
// a project has no room for more.
func (s *Contents) HasBlob(ctx context.Context, project string, hash content.Hash) (bool, error) {
	item, err := s.engine.Get(ctx, s.table, blobKey(project, hash))
	return item != nil, contentFault("look for content", err)
}

// AddUsage adds to a project's count.
func (s *Contents) AddUsage(ctx context.Context, project string, bytes int64) error {
	_, err := s.engine.Write(ctx, Write{Table: s.table, Key: usageKey(project), Changes: []Change{Add(At(attrBytes), bytes)}})
	return contentFault("count content", err)
}

// Blobs reads content by hash.
func (s *Contents) Blobs(ctx context.Context, project string, hashes []content.Hash) ([][]byte, error) {
	keys := make([]Key, len(hashes))
	for i, hash := range hashes {
		keys[i] = blobKey(project, hash)
	}
	items, err := batch(ctx, s.engine, s.table, keys)
	if err != nil {
		return nil, contentFault("read content", err)
	}
	blobs := make([][]byte, len(keys))
	for i, key := range keys {
		data, ok := items[key][attrData].(*types.AttributeValueMemberB)
		if !ok {
			return nil, fmt.Errorf("content %s: %w", hashes[i], content.ErrMissing)
		}
		blobs[i] = data.Value
	}
	return blobs, nil
}

// Commit writes all of a publish in one transaction: I4's id and body among it.
func (s *Contents) Commit(ctx context.Context, token string, c content.Commit) error {
	project, r := c.Read.ID, c.Release
	writes := []Write{
		moveProject(s.table, c),
		{Table: s.table, Key: recordKey(project, r.Number), Put: encodeRelease(r), If: Absent(At(attrPK))},
	}
	use := -1
	if c.Use.Key != "" {
		use = len(writes)
		writes = append(writes, Write{
			Table: s.table, Key: useKey(project, c.Use.Key), Put: encodeUse(c.Use),
			If: unused(r.At),
		})
	}
	for _, d := range c.Deliveries {
		writes = append(writes, putDelivery(s.deliveries, delivery.Delivery{
			Key:    delivery.Key{Destination: delivery.Destination{Project: project, ID: d.Destination}, Release: r.Number},
			Status: delivery.Queued, Round: 1, WebhookID: d.WebhookID, Body: d.Body,
			TryAt: r.At, SweepAt: r.At.Add(delivery.SweepDelay), CreatedAt: r.At,
		}, r.At))
	}
	err := s.engine.Transact(ctx, token, writes)
	if refused := AsRefused(err); refused != nil && len(refused.Reasons) == len(writes) {
		refusal, done := whyRefused(c, refused.Reasons, use, token)
		if done {
			return nil
		}
		return fmt.Errorf("commit release %d: %w", r.Number, refusal)
	}
	return contentFault("commit release "+strconv.FormatInt(r.Number, 10), err)
}

// whyRefused looks at the reasons by index, as Commit's writes stand. done: the
// release there is this very transaction's.
func whyRefused(c content.Commit, reasons []Reason, use int, token string) (refusal *content.Refusal, done bool) {
	refusal = &content.Refusal{}
	other := func(format string, args ...any) { refusal.Other = append(refusal.Other, fmt.Sprintf(format, args...)) }
	for i, reason := range reasons {
		switch reason.Code {
		case CodeNone:
			continue
		case CodeConflict:
			refusal.Busy = true
			continue
		case CodeThrottled:
			refusal.Throttled = true
			continue
		case CodeCondition:
		default:
			other("write %d: %s", i, reason.Code)
			continue
		}
		switch i {
		case 0:
			p, err := decodeProject(c.Read.ID, reason.Old)
			if err != nil {
				other("%v", err)
				continue
			}
			refusal.Project = &p
		case 1:
			if textOf(reason.Old[attrToken]) == token {
				return nil, true
			}
			other("release %d exists", c.Release.Number)
		case use:
			u, err := decodeUse(reason.Old)
			if err != nil {
				other("%v", err)
				continue
			}
			refusal.Use = &u
		default:
			other("delivery of release %d to %s exists", c.Release.Number, c.Deliveries[i-len(reasons)+len(c.Deliveries)].Destination)
		}
	}
	return refusal, false
}

// CheckUnused compares the project and the key in one transaction: reads of one
// and then of the other could meet a publish that is visible in part. The call has no
// token of ours, as a repeat under the same one would not look again.
func (s *Contents) CheckUnused(ctx context.Context, read content.Project, key string, at time.Time) error {
	writes := []Write{
		{Table: s.table, Key: metaKey(read.ID), Check: true, If: Equal(At(attrVersion), Number(read.Version))},
		{Table: s.table, Key: useKey(read.ID, key), Check: true, If: unused(at)},
	}
	err := s.engine.Transact(ctx, "", writes)
	if refused := AsRefused(err); refused != nil && len(refused.Reasons) == len(writes) {
		reasons := []Reason{refused.Reasons[0], {}, refused.Reasons[1]} // as a commit's
		refusal, _ := whyRefused(content.Commit{Read: read}, reasons, 2, "")
		return fmt.Errorf("check that a key is unused: %w", refusal)
	}
	err = contentFault("check that a key is unused", err)
	if errors.Is(err, content.ErrUnknown) { // it would have written nothing
		return fmt.Errorf("check that a key is unused: %w", content.ErrUnavailable)
	}
	return err
}

// unused holds where a key was never used, or its use has expired.
func unused(at time.Time) Condition {
	return Any(Absent(At(attrPK)), Less(At(attrExpiresAt), seconds(at)))
}

// Use reads what an idempotency key was used for.
func (s *Contents) Use(ctx context.Context, project, key string) (content.Use, error) {
	item, err := s.engine.Get(ctx, s.table, useKey(project, key))
	if err != nil {
		return content.Use{}, contentFault("read the use of a key", err)
	}
	if item == nil {
		return content.Use{}, content.ErrMissing
	}
	return decodeUse(item)
}

// Release reads a release.
func (s *Contents) Release(ctx context.Context, project string, number int64) (content.Release, error) {
	item, err := s.engine.Get(ctx, s.table, recordKey(project, number))
	if err != nil {
		return content.Release{}, contentFault("read release", err)
	}
	if item == nil {
		return content.Release{}, content.ErrMissing
	}
	return decodeRelease(project, item)
}

// ListReleases reads releases from the newest, or from below a number.
func (s *Contents) ListReleases(ctx context.Context, project string, below int64, limit int) ([]content.Release, error) {
	q := Query{
		Table: s.table, PK: Text(projectPK(project)), Descending: true,
		From: Text(prefixRecord), To: Text(beyond(prefixRecord)),
	}
	if below > 0 {
		q.After = recordKey(project, below).item()
	}
	page, err := collect(ctx, s.engine, q, limit)
	if err != nil {
		return nil, contentFault("list releases", err)
	}
	releases := make([]content.Release, len(page.Items))
	for i, item := range page.Items {
		if releases[i], err = decodeRelease(project, item); err != nil {
			return nil, err
		}
	}
	return releases, nil
}

// beyond is the first text behind all that begin with a prefix of ASCII.
func beyond(prefix string) string {
	last := len(prefix) - 1
	return prefix[:last] + string(prefix[last]+1)
}

// batch reads items by key, however many.
func batch(ctx context.Context, engine Reader, table string, keys []Key) (map[Key]Item, error) {
	found := make(map[Key]Item, len(keys))
	var asked []Key // each once: DynamoDB refuses repeats
	for _, key := range keys {
		if _, ok := found[key]; !ok {
			found[key] = nil
			asked = append(asked, key)
		}
	}
	for len(asked) > 0 {
		n := min(len(asked), largestBatch)
		items, err := engine.BatchGet(ctx, table, asked[:n])
		if err != nil {
			return nil, err
		}
		for _, item := range items {
			found[Key{PK: textOf(item[attrPK]), SK: textOf(item[attrSK])}] = item
		}
		asked = asked[n:]
	}
	return found, nil
}
