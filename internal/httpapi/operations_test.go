package httpapi_test

import (
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/go-faster/yaml"
)

// operation is one of the description's, with a request that succeeds.
type operation struct {
	id, method, target, role, body string
	status                         int
}

const (
	inProject     = "/projects/" + ours
	inDestination = inProject + "/destinations/" + website
	inDelivery    = inDestination + "/deliveries/6"
)

// operations are all there are, with the role that the design gives each.
var operations = []operation{
	{"getHealth", "GET", "/health", "", "", 200},
	{"listProjects", "GET", "/projects", "viewer", "", 200},
	{"createProject", "POST", "/projects", "admin", `{"name":"Handbook"}`, 201},
	{"getProject", "GET", inProject, "viewer", "", 200},
	{"listDocuments", "GET", inProject + "/documents", "viewer", "", 200},
	{"getDocument", "GET", inProject + "/document?path=guide/index.md", "viewer", "", 200},
	{"putDocument", "PUT", inProject + "/document?path=guide/index.md", "editor", "# Guide\n", 200},
	{"deleteDocument", "DELETE", inProject + "/document?path=guide/index.md", "editor", "", 204},
	{"publishRelease", "POST", inProject + "/releases", "editor", `{"message":"Hours"}`, 201},
	{"listReleases", "GET", inProject + "/releases", "viewer", "", 200},
	{"getRelease", "GET", inProject + "/releases/6", "viewer", "", 200},
	{"listReleaseDocuments", "GET", inProject + "/releases/6/documents", "viewer", "", 200},
	{"getReleaseDocument", "GET", inProject + "/releases/6/document?path=guide/index.md", "viewer", "", 200},
	{"listReleaseDeliveries", "GET", inProject + "/releases/6/deliveries", "viewer", "", 200},
	{"getFeed", "GET", inProject + "/feed?since=0", "viewer", "", 200},
	{"createDestination", "POST", inProject + "/destinations", "admin", `{"name":"Website","url":"https://www.example.com/"}`, 201},
	{"listDestinations", "GET", inProject + "/destinations", "viewer", "", 200},
	{"getDestination", "GET", inDestination, "viewer", "", 200},
	{"updateDestination", "PATCH", inDestination, "admin", `{"name":"Site"}`, 200},
	{"removeDestination", "DELETE", inDestination, "admin", "", 204},
	{"pauseDestination", "POST", inDestination + "/pause", "admin", "", 200},
	{"resumeDestination", "POST", inDestination + "/resume", "admin", "", 200},
	{"rotateDestinationSecret", "POST", inDestination + "/rotate-secret", "admin", "", 200},
	{"revokeOldDestinationSecret", "POST", inDestination + "/revoke-old-secret", "admin", "", 204},
	{"createTest", "POST", inDestination + "/tests", "admin", "", 202},
	{"getTest", "GET", inDestination + "/tests/a", "viewer", "", 200},
	{"createExamination", "POST", inDestination + "/doctor", "admin", "", 202},
	{"getExamination", "GET", inDestination + "/doctor/a", "viewer", "", 200},
	{"listDestinationDeliveries", "GET", inDestination + "/deliveries", "viewer", "", 200},
	{"getDelivery", "GET", inDelivery, "viewer", "", 200},
	{"getSigned", "GET", inDelivery + "/signed", "viewer", "", 200},
	{"redeliver", "POST", inDelivery + "/redeliver", "editor", `{"force":true,"over":6}`, 202},
	{"tryNow", "POST", inDelivery + "/try-now", "editor", "", 202},
}

// description is api/openapi.yaml.
func description(t *testing.T) map[string]any {
	t.Helper()
	text, err := os.ReadFile("../../api/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var d map[string]any
	if err := yaml.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestEachOperationOfTheDescriptionIsTestedHere(t *testing.T) {
	t.Parallel()
	described := make(map[string]string) // id: METHOD
	for _, methods := range description(t)["paths"].(map[string]any) {
		for method, o := range methods.(map[string]any) {
			if method != "parameters" {
				described[o.(map[string]any)["operationId"].(string)] = strings.ToUpper(method)
			}
		}
	}
	tested := make(map[string]string)
	for _, o := range operations {
		tested[o.id] = o.method
	}
	if !maps.Equal(described, tested) {
		t.Errorf("described are\n%v\nand tested\n%v", slices.Sorted(maps.Keys(described)), slices.Sorted(maps.Keys(tested)))
	}
}

func TestEachOperationNeedsItsRoleAndReachAndIsNotDoneWithoutThem(t *testing.T) {
	t.Parallel()
	rank := map[string]int{"": 0, "viewer": 1, "editor": 2, "admin": 3}
	for _, o := range operations {
		t.Run(o.id, func(t *testing.T) {
			t.Parallel()
			check := func(token, target string, status int, code string) {
				t.Helper()
				w := &world{}
				h, _ := api(t, w)
				answer := serve(h, ask(o.method, target, token, o.body))
				if answer.Code != status {
					t.Errorf("%s: got %d %s, want %d", token, answer.Code, answer.Body, status)
				}
				if done := w.calls() > 0; done != (code == "" && o.role != "") {
					t.Errorf("%s: a service was asked: %v", token, done)
				}
				if code == "" {
					return
				}
				if p := problemOf(t, answer); p.Code != code {
					t.Errorf("%s: got %+v", token, p)
				}
				if challenged := answer.Header().Get("WWW-Authenticate") != ""; challenged != (status == http.StatusUnauthorized) {
					t.Errorf("%s: WWW-Authenticate stands there: %v", token, challenged)
				}
			}
			if o.role == "" {
				check("", o.target, o.status, "")
				return
			}
			check("", o.target, 401, "unauthenticated")
			check("unknown", o.target, 401, "unauthenticated")
			named := strings.Contains(o.target, ours)
			elsewhere := strings.ReplaceAll(o.target, ours, foreign)
			misshapen := strings.ReplaceAll(o.target, ours, "prj_%23D%23")
			for _, role := range []string{"viewer", "editor", "admin"} {
				bound := role + "-of-ours"
				switch enough := rank[role] >= rank[o.role]; {
				case !enough:
					check(role, o.target, 403, "forbidden")
					check(bound, o.target, 403, "forbidden")
				case named:
					check(role, o.target, o.status, "")
					check(bound, o.target, o.status, "")
					check(bound, elsewhere, 404, "not-found") // foreign
					check(role, misshapen, 404, "not-found")
				default:
					check(role, o.target, o.status, "")
					check(bound, o.target, 403, "forbidden")
				}
			}
		})
	}
}

func TestForeignAndMissingProjectsLookTheSame(t *testing.T) {
	t.Parallel()
	missing := &world{fail: noProject()}
	h, _ := api(t, missing)
	toMissing := serve(h, ask("GET", inProject, "viewer-of-ours", ""))
	toForeign := serve(h, ask("GET", "/projects/"+foreign, "viewer-of-ours", ""))
	misnamed := serve(h, ask("GET", "/projects/nothing", "viewer-of-ours", ""))
	for _, w := range []int{toForeign.Code, misnamed.Code} {
		if w != toMissing.Code {
			t.Errorf("got %d and %d", w, toMissing.Code)
		}
	}
	if toMissing.Body.String() != toForeign.Body.String() || toMissing.Body.String() != misnamed.Body.String() {
		t.Errorf("got %s, %s and %s", toMissing.Body, toForeign.Body, misnamed.Body)
	}
}

func TestHeadIsGetWithoutABody(t *testing.T) {
	t.Parallel()
	for _, o := range operations {
		if o.method != http.MethodGet {
			continue
		}
		t.Run(o.id, func(t *testing.T) {
			t.Parallel()
			h, _ := api(t, &world{})
			server := serveOver(t, h)
			get, body := fetch(t, server, "GET", o.target)
			head, none := fetch(t, server, "HEAD", o.target)
			if get.StatusCode != o.status || head.StatusCode != o.status || len(body) == 0 || len(none) != 0 {
				t.Errorf("got %d with %d bytes and %d with %d", get.StatusCode, len(body), head.StatusCode, len(none))
			}
			for _, name := range []string{"Content-Type", "ETag", "X-Content-Type-Options"} {
				if get.Header.Get(name) != head.Header.Get(name) {
					t.Errorf("%s is %q and %q", name, get.Header.Get(name), head.Header.Get(name))
				}
			}
		})
	}
}
