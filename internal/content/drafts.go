package content

import (
	"cmp"
	"context"
	"errors"

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
	if !IsProjectID(project) {
		return Saved{}, NoSuchProject()
	}
	want := Document{Path: save.Path, Hash: HashOf(save.Content), Size: int64(len(save.Content)), Type: kind}
	kept := false
	t := s.newTrial()
	for {
		there, err := s.c.Store.Draft(ctx, project, save.Path)
		missing := errors.Is(err, ErrMissing)
		switch {
		case errors.Is(err, ErrNoProject):
			return Saved{}, NoSuchProject()
		case err != nil && !missing:
			return Saved{}, Explain("save a document", err)
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
		if missing {
			if last, err = s.c.Store.LastVersion(ctx, project, save.Path); err != nil {
				return Saved{}, Explain("save a document", err)
			}
		}
		// Content first: no draft names content that is not there.
		if !kept {
			if err := s.c.Store.PutBlob(ctx, project, want.Hash, save.Content); err != nil {
				return Saved{}, Explain("save a document", err)
			}
			kept = true
		}
		draft := Draft{Document: want, Version: last + 1, Who: save.Who, At: s.now()}
		change := DraftChange{Project: project, Draft: draft, Over: there.Version}
		again, err := s.changeDraft(ctx, t, change)
		if err == nil {
			return Saved{Draft: draft, Created: missing, Changed: true}, nil
		}
		if !again {
			return Saved{}, Explain("save a document", err)
		}
	}
}

func (save Save) check() (kind string, err error) {
	if err := checkNewPath(save.Path); err != nil {
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
	if err := CheckPath(path); err != nil {
		return Draft{}, err
	}
	if !IsProjectID(project) {
		return Draft{}, NoSuchProject()
	}
	draft, err := s.c.Store.Draft(ctx, project, path)
	switch {
	case errors.Is(err, ErrNoProject):
		return Draft{}, NoSuchProject()
	case errors.Is(err, ErrMissing):
		return Draft{}, refuse(CodeNotFound, "There is no document at this path. The list of documents shows which there are.")
	}
	return draft, Explain("read a document", err)
}

// DeleteDocument deletes a draft; releases keep what they hold. ifVersion
// deletes that version only; 0 deletes any.
func (s *Service) DeleteDocument(ctx context.Context, project, path string, ifVersion int64, who string) error {
	t := s.newTrial()
	for {
		there, err := s.draft(ctx, project, path)
		if err != nil {
			return err
		}
		if ifVersion > 0 && ifVersion != there.Version {
			return refuse(CodePrecondition, "Somebody saved this document meanwhile: it is at version %d. Read it, and delete that version if it should still go.", there.Version)
		}
		last := Draft{Document: there.Document, Version: there.Version + 1, Who: who, At: s.now()}
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
