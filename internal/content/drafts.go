package content

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"golang.org/x/text/unicode/norm"

	"colophon/internal/failure"
	"colophon/internal/retry"
)

// PutDocument saves a document. Saving what is already there changes nothing,
// so a save whose answer was lost can be asked for again as it was.
func (s *Service) PutDocument(ctx context.Context, project string, save Save) (Saved, error) {
	kind, err := save.check()
	if err != nil {
		return Saved{}, err
	}
	forms, err := formsOf(save.Path)
	if err != nil {
		return Saved{}, err
	}
	if !IsProjectID(project) {
		return Saved{}, NoSuchProject()
	}
	kept := false
	t := s.newTrial()
	for {
		drafts, used, err := s.drafts(ctx, project, forms)
		if err != nil {
			return Saved{}, err
		}
		p := plan(drafts, save)
		there, missing := p.there, p.missing
		want := Document{Path: p.path, Hash: HashOf(save.Content), Size: int64(len(save.Content)), Type: kind}
		switch {
		case save.IfAbsent && !missing:
			return Saved{}, refuse(CodePrecondition, "There is a document at this path already, at version %d. Read it, and save over that version.", there.Version)
		case !missing && there.Document == want:
			return Saved{Draft: there}, nil
		case save.IfVersion > 0 && missing:
			return Saved{}, refuse(CodePrecondition, "This document was deleted meanwhile. Save it as a new one if it should be there.")
		case save.IfVersion > 0 && save.IfVersion != there.Version:
			return Saved{}, refuse(CodePrecondition, "Somebody saved this document meanwhile: it is at version %d. Read it, put your changes into it, and save over that version.", there.Version)
		}
		last := there.Version
		if missing || p.from != "" {
			// Versions go on after a deletion, in whichever form the document was then.
			for _, form := range forms {
				was, err := s.c.Store.LastVersion(ctx, project, form)
				if err != nil {
					return Saved{}, Explain("save a document", err)
				}
				last = max(last, was)
			}
		}
		// Content first: no draft names content that is not there.
		if !kept {
			if err := s.keep(ctx, project, want.Hash, save.Content, used); err != nil {
				return Saved{}, err
			}
			kept = true
		}
		draft := Draft{Document: want, Version: last + 1, Who: save.Who, WhoID: save.WhoID, At: s.now()}
		change := DraftChange{Project: project, Draft: draft, Over: there.Version, From: p.from}
		again, err := s.changeDraft(ctx, t, change)
		if err == nil {
			return Saved{Draft: draft, Created: missing, Changed: true}, nil
		}
		if !again {
			return Saved{}, Explain("save a document", err)
		}
	}
}

// saving is what a save does, given what is there.
type saving struct {
	path    string // that it is saved at
	there   Draft  // that is saved over
	missing bool   // there is none
	from    string // the draft moves from here to path; empty: it stays
}

// plan decides it. What is new has its path in the normal form; what is there in
// another form moves to that, unless another document is there already: then both
// stay what they are.
func plan(drafts []Draft, save Save) saving {
	normal := norm.NFC.String(save.Path)
	if len(drafts) == 0 {
		return saving{path: normal, missing: true}
	}
	there := drafts[0]
	taken := slices.ContainsFunc(drafts, func(d Draft) bool { return d.Path == normal })
	if taken {
		return saving{path: there.Path, there: there}
	}
	return saving{path: normal, there: there, from: there.Path}
}

// formsOf are the spellings under which a document may be: the path as it is
// given, and the two normal forms of Unicode, composed and decomposed. They look
// alike, and which of them is typed or made is left to keyboards and file systems.
func formsOf(path string) ([]string, error) {
	normal := norm.NFC.String(path)
	if err := CheckPath(normal); err != nil && CheckPath(path) != nil {
		return nil, err
	}
	var forms []string
	for _, form := range []string{path, normal, norm.NFD.String(path)} {
		if len(form) <= LongestPath && !slices.Contains(forms, form) { // no longer one was ever saved
			forms = append(forms, form)
		}
	}
	return forms, nil
}

// drafts reads the drafts of a path's forms.
func (s *Service) drafts(ctx context.Context, project string, forms []string) (found []Draft, used int64, err error) {
	found, used, err = s.c.Store.Drafts(ctx, project, forms)
	if err == nil && len(found) == 0 && len(forms) > 1 {
		// Between reading the one and the other it may have moved.
		found, used, err = s.c.Store.Drafts(ctx, project, forms)
	}
	if errors.Is(err, ErrNoProject) {
		return nil, 0, NoSuchProject()
	}
	return found, used, Explain("read a document", err)
}

// keep keeps content, and counts what is new. Who dies between the two has kept
// something that is not counted: a limit is none the less for it, and a document
// that was saved is worth more than the count.
func (s *Service) keep(ctx context.Context, project string, hash Hash, data []byte, used int64) error {
	const doing = "save a document"
	if used+int64(len(data)) > s.c.MostContent {
		there, err := s.c.Store.HasBlob(ctx, project, hash)
		if err != nil {
			return Explain(doing, err)
		}
		if !there {
			return refuse(CodeProjectFull, "This project keeps %d MiB of documents' content, old versions among it, and may have %d MiB. "+
				"Ask the operator of this stack for more (ProjectContentLimit). What was saved before can be saved again, published and deleted.",
				used>>20, s.c.MostContent>>20)
		}
		return nil
	}
	made, err := s.c.Store.PutBlob(ctx, project, hash, data)
	if err == nil && made && len(data) > 0 {
		err = s.c.Store.AddUsage(ctx, project, int64(len(data)))
	}
	return Explain(doing, err)
}

func (save Save) check() (kind string, err error) {
	if err := checkNewPath(norm.NFC.String(save.Path)); err != nil {
		return "", err
	}
	if len(save.Content) > LargestDocument {
		e := refuse(CodeTooLarge, "A document holds at most %d bytes; this one has %d. Make it smaller, or two of it.", LargestDocument, len(save.Content))
		e.Field = "content"
		return "", e
	}
	if save.IfVersion < 0 || save.IfVersion > 0 && save.IfAbsent {
		return "", invalid("If-Match", "Save over one version, or only where there is no document: not both.")
	}
	return checkType(cmp.Or(save.Type, TypeOfPath(save.Path)))
}

// changeDraft writes a change; again: nothing was written, because the draft has
// moved, others are at work on it or the table is short of units, and there is
// time to look again.
func (s *Service) changeDraft(ctx context.Context, t *retry.Loop, c DraftChange) (again bool, err error) {
	err = s.settled(ctx, t, func(token string) error { return s.c.Store.ChangeDraft(ctx, token, c) })
	if failure.NotDone(err) {
		return t.Again(ctx), err
	}
	return false, err
}

// GetDocument reads a draft and its content.
func (s *Service) GetDocument(ctx context.Context, project, path string) (Draft, []byte, error) {
	draft, err := s.draft(ctx, project, path)
	if err != nil {
		return Draft{}, nil, err
	}
	blobs, err := s.c.Store.Blobs(ctx, project, []Hash{draft.Hash})
	if err != nil {
		return Draft{}, nil, Explain("read a document's content", err)
	}
	return draft, blobs[0], nil
}

func (s *Service) draft(ctx context.Context, project, path string) (Draft, error) {
	forms, err := formsOf(path)
	if err != nil {
		return Draft{}, err
	}
	if !IsProjectID(project) {
		return Draft{}, NoSuchProject()
	}
	found, _, err := s.drafts(ctx, project, forms)
	if err != nil {
		return Draft{}, err
	}
	if len(found) == 0 {
		return Draft{}, refuse(CodeNotFound, "There is no document at this path. The list of documents shows which there are.")
	}
	return found[0], nil
}

// DeleteDocument deletes a draft; releases keep what they hold.
func (s *Service) DeleteDocument(ctx context.Context, project string, d Deletion) error {
	t := s.newTrial()
	for {
		there, err := s.draft(ctx, project, d.Path)
		if err != nil {
			return err
		}
		if d.IfVersion > 0 && d.IfVersion != there.Version {
			return refuse(CodePrecondition, "Somebody saved this document meanwhile: it is at version %d. Read it, and delete that version if it should still go.", there.Version)
		}
		last := Draft{Document: there.Document, Version: there.Version + 1, Who: d.Who, WhoID: d.WhoID, At: s.now()}
		change := DraftChange{Project: project, Draft: last, Deleted: true, Over: there.Version}
		again, err := s.changeDraft(ctx, t, change)
		if !again {
			return Explain("delete a document", err)
		}
	}
}

// ListDocuments lists a project's drafts by path.
func (s *Service) ListDocuments(ctx context.Context, project, cursor string, limit int) (DraftPage, error) {
	after, err := decodeCursor(draftCursor, cursor, isPath)
	if err != nil {
		return DraftPage{}, err
	}
	if limit, err = checkLimit(limit); err != nil {
		return DraftPage{}, err
	}
	if !IsProjectID(project) {
		return DraftPage{}, NoSuchProject()
	}
	drafts, err := s.c.Store.ListDrafts(ctx, project, after, limit+1)
	if err != nil {
		return DraftPage{}, Explain("list documents", err)
	}
	if len(drafts) == 0 {
		if _, err := s.Project(ctx, project); err != nil {
			return DraftPage{}, err
		}
	}
	page := DraftPage{Drafts: drafts}
	if len(drafts) > limit {
		page.Drafts, page.Next = drafts[:limit], encodeCursor(draftCursor, drafts[limit-1].Path)
	}
	return page, nil
}
