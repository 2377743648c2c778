package httpapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sort"
	"unicode/utf8"

	"colophon/internal/content"
	"colophon/internal/httpapi/openapi"
)

// CreateProject makes a project.
func (a *API) CreateProject(ctx context.Context, req *openapi.NewProject) (*openapi.Project, error) {
	p, err := a.c.Content.CreateProject(ctx, req.Name)
	if err != nil {
		return nil, err
	}
	shown := showProject(p)
	return &shown, nil
}

// GetProject reads a project.
func (a *API) GetProject(ctx context.Context, params openapi.GetProjectParams) (*openapi.Project, error) {
	p, err := a.c.Content.Project(ctx, params.Project)
	if err != nil {
		return nil, err
	}
	shown := showProject(p)
	return &shown, nil
}

// ListProjects lists all projects.
func (a *API) ListProjects(ctx context.Context, params openapi.ListProjectsParams) (*openapi.ProjectPage, error) {
	page, err := a.c.Content.ListProjects(ctx, params.Cursor.Value, params.Limit.Value)
	if err != nil {
		return nil, err
	}
	return &openapi.ProjectPage{Projects: each(page.Projects, showProject), Next: optional(page.Next)}, nil
}

func showProject(p content.Project) openapi.Project {
	return openapi.Project{ID: p.ID, Name: p.Name, NewestRelease: optionalNumber(p.Seq), CreatedAt: p.CreatedAt.UTC()}
}

// notText refuses what is not UTF-8, and U+FFFD too: a gateway that takes bodies
// for text puts it where bytes were none, and what was meant is lost by then.
const notText = "A document is text in UTF-8. This one holds bytes that are not, or the sign U+FFFD, which stands for such bytes."

// noBytes refuses a document of which nothing arrived, which is what a document
// looks like that was lost on its way.
const noBytes = "No byte of the document arrived. If it is to be empty, say so with the digest of nothing: " +
	"Content-Digest: sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:"

// PutDocument saves a draft.
func (a *API) PutDocument(ctx context.Context, req *openapi.PutDocumentReqWithContentType, params openapi.PutDocumentParams) (openapi.PutDocumentRes, error) {
	over, err := ifMatch(params.IfMatch)
	if err != nil {
		return nil, err
	}
	absent, err := onlyNew(params.IfNoneMatch)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(req.Content)
	if err != nil {
		return nil, readFault(err)
	}
	if len(data) == 0 && !inquiryOf(ctx).body.digested {
		return nil, &content.Error{Code: content.CodeInvalid, Field: "content", Message: noBytes}
	}
	if bytes.ContainsRune(data, utf8.RuneError) {
		return nil, &content.Error{Code: content.CodeInvalid, Field: "content", Message: notText}
	}
	by := caller(ctx)
	saved, err := a.c.Content.PutDocument(ctx, params.Project, content.Save{
		Path: params.Path, Content: data, Type: inquiryOf(ctx).contentType, Who: by.Who(), WhoID: by.ID(),
		IfVersion: over, IfAbsent: absent,
	})
	if err != nil {
		return nil, err
	}
	shown := openapi.DocumentHeaders{ETag: etag(saved.Version), Response: showDraft(saved.Draft)}
	if saved.Created {
		return (*openapi.PutDocumentCreated)(&shown), nil
	}
	return (*openapi.PutDocumentOK)(&shown), nil
}

// readFault is what a body that could not be read means.
func readFault(err error) error {
	var refused *content.Error
	if errors.As(err, &refused) {
		return err
	}
	if tooLarge, ok := tooLarge(err); ok {
		return &content.Error{Code: content.CodeTooLarge, Message: tooLarge}
	}
	return &content.Error{Code: content.CodeInvalid, Message: "The body broke off. Nothing was saved; send it again."}
}

// GetDocument reads a draft's content.
func (a *API) GetDocument(ctx context.Context, params openapi.GetDocumentParams) (openapi.GetDocumentRes, error) {
	draft, data, err := a.c.Content.GetDocument(ctx, params.Project, params.Path)
	if err != nil {
		return nil, err
	}
	tag := etag(draft.Version)
	if atHand(params.IfNoneMatch, tag) {
		return &openapi.GetDocumentNotModified{ETag: tag}, nil
	}
	return &openapi.GetDocumentOKHeaders{
		ContentType: draft.Type, ETag: tag, LastModified: draft.At.UTC().Format(http.TimeFormat), ReprDigest: reprDigest(draft.Hash),
		Response: openapi.GetDocumentOK{Data: bytes.NewReader(data)},
	}, nil
}

// DeleteDocument deletes a draft.
func (a *API) DeleteDocument(ctx context.Context, params openapi.DeleteDocumentParams) error {
	version, err := ifMatch(params.IfMatch)
	if err != nil {
		return err
	}
	by := caller(ctx)
	return a.c.Content.DeleteDocument(ctx, params.Project, content.Deletion{
		Path: params.Path, IfVersion: version, Who: by.Who(), WhoID: by.ID(),
	})
}

// ListDocuments lists drafts.
func (a *API) ListDocuments(ctx context.Context, params openapi.ListDocumentsParams) (*openapi.DocumentPage, error) {
	page, err := a.c.Content.ListDocuments(ctx, params.Project, params.Cursor.Value, params.Limit.Value)
	if err != nil {
		return nil, err
	}
	return &openapi.DocumentPage{Documents: each(page.Drafts, showDraft), Next: optional(page.Next)}, nil
}

func showDraft(d content.Draft) openapi.Document {
	return openapi.Document{
		Path: d.Path, ContentType: d.Type, Size: d.Size, Digest: d.Hash.String(),
		Etag: etag(d.Version), SavedAt: d.At.UTC(), SavedBy: optional(d.Who), SavedByTokenId: optional(d.WhoID),
	}
}

// ListReleaseDocuments lists what a release holds.
func (a *API) ListReleaseDocuments(ctx context.Context, params openapi.ListReleaseDocumentsParams) (*openapi.ReleasedDocumentPage, error) {
	after, err := cursorText(documentCursor, params.Cursor.Value)
	if err != nil {
		return nil, err
	}
	documents, err := a.c.Content.ReleaseDocuments(ctx, params.Project, params.Release)
	if err != nil {
		return nil, err
	}
	// By path, as they stand in the release: the page begins behind the cursor's.
	documents = documents[sort.Search(len(documents), func(i int) bool { return documents[i].Path > after }):]
	page := &openapi.ReleasedDocumentPage{}
	if limit := params.Limit.Value; len(documents) > limit {
		documents = documents[:limit]
		page.Next = optional(cursorOf(documentCursor, documents[limit-1].Path))
	}
	page.Documents = each(documents, func(d content.Document) openapi.ReleasedDocument {
		return openapi.ReleasedDocument{Path: d.Path, ContentType: d.Type, Size: d.Size, Digest: d.Hash.String()}
	})
	return page, nil
}

// GetReleaseDocument reads a document as it was published.
func (a *API) GetReleaseDocument(ctx context.Context, params openapi.GetReleaseDocumentParams) (*openapi.GetReleaseDocumentOKHeaders, error) {
	d, data, err := a.c.Content.ReleaseDocument(ctx, params.Project, params.Release, params.Path)
	if err != nil {
		return nil, err
	}
	return &openapi.GetReleaseDocumentOKHeaders{
		ContentType: d.Type, ETag: fmt.Sprintf("%q", d.Hash.String()), ReprDigest: reprDigest(d.Hash),
		Response: openapi.GetReleaseDocumentOK{Data: bytes.NewReader(data)},
	}, nil
}
