package client_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/go-faster/yaml"

	"colophon/client"
)

func TestAClientNeedsAnAddressAndAToken(t *testing.T) {
	t.Parallel()
	for _, c := range []client.Config{
		{}, {Address: "https://api.example.com/v1"}, {Token: "clp_a"}, {Address: "api.example.com", Token: "clp_a"},
		{Address: "http://api.example.com/v1", Token: "clp_a"}, {Address: "http://127.0.0.1.example.com", Token: "clp_a"},
		{Address: "http://192.0.2.1/v1", Token: "clp_a"}, {Address: "http://notlocalhost/v1", Token: "clp_a"}, {Address: "http://colophon.localhost/v1", Token: "clp_a"}, {Address: "http://[::2]/v1", Token: "clp_a"},
		{Address: "ftp://api.example.com", Token: "clp_a"}, {Address: "https:///v1", Token: "clp_a"}, {Address: "http://[", Token: "clp_a"},
	} {
		if _, err := client.New(c); err == nil {
			t.Errorf("%+v makes a client", c)
		}
	}
	for _, address := range []string{"https://api.example.com/v1", "https://api.example.com/v1/", "http://127.0.0.1:4566/_aws/execute-api/colophon/v1",
		"http://localhost:4566/v1", "http://LOCALHOST./v1", "http://[::1]:80/v1", "http://[::ffff:127.0.0.1]/v1", "http://127.1.2.3/v1",
	} {
		if _, err := client.New(client.Config{Address: address, Token: "clp_a"}); err != nil {
			t.Errorf("%s makes no client: %v", address, err)
		}
	}
}

func TestAClientSendsItsTokenBelowTheAddressPath(t *testing.T) {
	t.Parallel()
	var asked *http.Request
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"id":"prj_a","name":"Handbook","createdAt":"2026-11-29T23:30:00.123Z"}`)
	}))
	defer server.Close()
	c, err := client.New(client.Config{Address: server.URL + "/base/v1/", Token: "clp_a", HTTP: server.Client()})
	if err != nil {
		t.Fatal(err)
	}
	p, err := c.GetProject(t.Context(), client.GetProjectParams{Project: "prj_a"})
	if err != nil || p.Name != "Handbook" || p.CreatedAt.UnixMilli()%1000 != 123 {
		t.Errorf("got %+v, %v", p, err)
	}
	if asked.URL.Path != "/base/v1/projects/prj_a" || asked.Header.Get("Authorization") != "Bearer clp_a" {
		t.Errorf("asked %s with %q", asked.URL, asked.Header.Get("Authorization"))
	}
}

func TestNoRedirectIsFollowed(t *testing.T) {
	t.Parallel()
	followed := false
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { followed = true }))
	defer other.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		server := httptest.NewServer(http.RedirectHandler(other.URL, status))
		for _, given := range []*http.Client{nil, {}, {CheckRedirect: func(*http.Request, []*http.Request) error { return nil }}} {
			c, err := client.New(client.Config{Address: server.URL, Token: "clp_a", HTTP: given})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.GetProject(t.Context(), client.GetProjectParams{Project: "prj_a"}); !errors.Is(err, client.ErrRedirected) {
				t.Errorf("%d: %v", status, err)
			}
			if _, err := c.CreateProject(t.Context(), &client.NewProject{Name: "a"}); !errors.Is(err, client.ErrRedirected) {
				t.Errorf("%d to a POST: %v", status, err)
			}
		}
		server.Close()
	}
	if followed {
		t.Error("it was followed")
	}
}

func TestAnErrorThatIsNoProblemIsNone(t *testing.T) {
	t.Parallel()
	for _, err := range []error{nil, errors.New("broken")} {
		if p := client.AsProblem(err); p != nil {
			t.Errorf("%v is %+v", err, p)
		}
	}
	wrapped := fmt.Errorf("publish: %w", &client.ProblemStatusCodeWithHeaders{StatusCode: 409})
	if p := client.AsProblem(wrapped); p == nil || p.StatusCode != 409 {
		t.Errorf("%v is %+v", wrapped, p)
	}
}

// The gateway answers some requests by itself, with the texts that the template
// gives it.
func TestWhatTheGatewayAnswersByItselfIsAProblemToo(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../template.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var template struct {
		Resources struct {
			API struct {
				Properties struct {
					GatewayResponses map[string]struct {
						StatusCode        int               `yaml:"StatusCode"`
						ResponseTemplates map[string]string `yaml:"ResponseTemplates"`
					} `yaml:"GatewayResponses"`
				} `yaml:"Properties"`
			} `yaml:"Api"`
		} `yaml:"Resources"`
	}
	if err := yaml.Unmarshal(text, &template); err != nil {
		t.Fatal(err)
	}
	answers := template.Resources.API.Properties.GatewayResponses
	if len(answers) < 4 {
		t.Fatalf("the template has %d answers of the gateway", len(answers))
	}
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status := answer.StatusCode
			if status == 0 {
				status = map[bool]int{true: 504, false: 403}[name == "DEFAULT_5XX"]
			}
			body := strings.ReplaceAll(answer.ResponseTemplates["application/json"], "$context.extendedRequestId", "request-1")
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/problem+json")
				w.Header().Set("Retry-After", "1")
				w.WriteHeader(status)
				fmt.Fprint(w, body)
			}))
			defer server.Close()
			c, err := client.New(client.Config{Address: server.URL, Token: "clp_a"})
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.GetHealth(t.Context())
			p := client.AsProblem(err)
			if p == nil || p.StatusCode != status || p.Response.Title == "" || p.Response.RequestId != "request-1" || p.RetryAfter.Value != 1 {
				t.Errorf("%s is %v", body, err)
			}
		})
	}
}
