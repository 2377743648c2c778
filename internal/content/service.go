package content

// The methods of Service, all of them given the request's context first:
//
//	CreateProject(ctx, name string) (Project, error)
//	Project(ctx, id string) (Project, error)
//	ListProjects(ctx, cursor string, limit int) (ProjectPage, error)
//	PutDocument(ctx, project string, s Save) (Saved, error)
//	GetDocument(ctx, project, path string) (Draft, []byte, error)
//	DeleteDocument(ctx, project, path string, ifVersion int64, who string) error
//	ListDocuments(ctx, project, cursor string, limit int) (DraftPage, error)
//	Publish(ctx, project string, r PublishRequest) (Published, error)
//	Release(ctx, project string, number int64) (Release, error)
//	ListReleases(ctx, project, cursor string, limit int) (ReleasePage, error)
//	ReleaseDocuments(ctx, project string, number int64) ([]Document, error)
//	ReleaseDocument(ctx, project string, number int64, path string) (Document, []byte, error)
