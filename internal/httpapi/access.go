package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"regexp"
	"time"

	"github.com/ogen-go/ogen/middleware"

	"colophon/internal/access"
	"colophon/internal/content"
	"colophon/internal/httpapi/openapi"
)

// grant is what a token was found good for: an operation that needs a role.
type grant struct {
	principal access.Principal
	needed    access.Role
}

type grantKey struct{}

// caller is who asks; drafts and releases record its name and id.
func caller(ctx context.Context) access.Principal {
	g, _ := ctx.Value(grantKey{}).(grant)
	return g.principal
}

// mayAdminister says whether the caller's token has the role admin in a project.
func mayAdminister(ctx context.Context, project string) bool {
	g, ok := ctx.Value(grantKey{}).(grant)
	return ok && g.principal.May(access.Admin, project) == nil
}

// HandleBearer judges a token and its role, before anything else of the request
// is looked at. The role that an operation needs stands in the description.
func (a *API) HandleBearer(ctx context.Context, operation openapi.OperationName, t openapi.Bearer) (context.Context, error) {
	if len(t.Roles) != 1 || !access.Role(t.Roles[0]).Valid() {
		return nil, errors.New("the description names no role for " + operation)
	}
	principal, err := a.c.Tokens.Authenticate(ctx, t.Token)
	if err != nil {
		return nil, err
	}
	if err := a.c.Tokens.TakeRequest(ctx, principal); err != nil {
		return nil, err
	}
	a.recordUse(ctx, principal)
	g := grant{principal, access.Role(t.Roles[0])}
	if err := principal.May(g.needed, principal.Token.Project); err != nil {
		return nil, err
	}
	return context.WithValue(ctx, grantKey{}, g), nil
}

// recordTime bounds how long a request waits for the record of its token's use.
const recordTime = time.Second

// recordUse records that the token was used, in parallel with what was asked for:
// the guard waits for it, because a function that has answered is frozen. It
// happens once an hour, and a request does not fail by it.
func (a *API) recordUse(ctx context.Context, p access.Principal) {
	asked := inquiryOf(ctx)
	if asked.parallel == nil || !a.c.Tokens.UseIsDue(p) {
		return
	}
	asked.parallel.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, recordTime)
		defer cancel()
		if err := a.c.Tokens.RecordUse(ctx, p); err != nil {
			a.c.Log.WarnContext(ctx, "the use of a token was not recorded", slog.String("request", asked.id), slog.Any("error", err))
		}
	})
}

// authorize is the last thing before an operation: it judges whether the token reaches the project that the request names,
// or, where it names none, whether it reaches all of them, and that the body is
// the one that was sent.
func (a *API) authorize(r middleware.Request, next middleware.Next) (middleware.Response, error) {
	if len(openapi.GetRolesForBearer(r.OperationName)) == 0 {
		return next(r) // open to all
	}
	g, ok := r.Context.Value(grantKey{}).(grant)
	if !ok {
		return middleware.Response{}, errors.New("no token was judged for " + r.OperationName)
	}
	project := ""
	if named, ok := r.Params.Path("project"); ok {
		if project, ok = named.(string); !ok || !content.IsProjectID(project) {
			return middleware.Response{}, content.NoSuchProject()
		}
	}
	if err := g.principal.May(g.needed, project); err != nil {
		return middleware.Response{}, err
	}
	for _, name := range []string{"destination", "test", "examination"} {
		if id, ok := r.Params.Path(name); ok && !isID(id) {
			return middleware.Response{}, &content.Error{Code: content.CodeNotFound, Message: "There is no such " + name + "."}
		}
	}
	if err := inquiryOf(r.Context).body.checkDigest(); err != nil {
		return middleware.Response{}, err
	}
	return next(r)
}

// idShape is the shape of all ids: what has not it names nothing, and does not
// get as far as a key.
var idShape = regexp.MustCompile(`^[a-z0-9_]{1,64}$`)

func isID(value any) bool {
	id, ok := value.(string)
	return ok && idShape.MatchString(id)
}
