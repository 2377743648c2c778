package runtime_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/kms"

	"colophon/internal/runtime"
)

func lambda(changes map[string]string) func(string) string {
	environment := map[string]string{
		"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "AKIA", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "session",
	}
	for name, value := range changes {
		environment[name] = value
	}
	return func(name string) string { return environment[name] }
}

func TestConfigurationIsTheOneThatLambdaSets(t *testing.T) {
	t.Parallel()
	c, err := runtime.AWS(lambda(nil), "kms")
	if err != nil {
		t.Fatal(err)
	}
	keys, err := c.Credentials.Retrieve(t.Context())
	if err != nil || c.Region != "eu-west-1" || c.BaseEndpoint != nil ||
		keys.AccessKeyID != "AKIA" || keys.SecretAccessKey != "secret" || keys.SessionToken != "session" {
		t.Errorf("got %+v, %+v, %v", c, keys, err)
	}
}

func TestEndpointsCanBeMovedTogetherAndOneByOne(t *testing.T) {
	t.Parallel()
	moved := lambda(map[string]string{"AWS_ENDPOINT_URL": "http://127.0.0.1:4566", "AWS_ENDPOINT_URL_SQS": "http://127.0.0.1:9324"})
	for service, want := range map[string]string{"sqs": "http://127.0.0.1:9324", "dynamodb": "http://127.0.0.1:4566"} {
		c, err := runtime.AWS(moved, service)
		if err != nil || c.BaseEndpoint == nil || *c.BaseEndpoint != want {
			t.Errorf("%s: got %v, %v", service, c.BaseEndpoint, err)
		}
	}
}

func TestWithoutARegionThereIsNoConfiguration(t *testing.T) {
	t.Parallel()
	if _, err := runtime.AWS(lambda(map[string]string{"AWS_REGION": ""}), "kms"); err == nil || !strings.Contains(err.Error(), "AWS_REGION") {
		t.Errorf("got %v", err)
	}
}

func TestWithoutKeysACallSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	c, err := runtime.AWS(lambda(map[string]string{"AWS_ACCESS_KEY_ID": ""}), "kms")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Credentials.Retrieve(t.Context()); err == nil || !strings.Contains(err.Error(), "AWS_ACCESS_KEY_ID") {
		t.Errorf("got %v", err)
	}
}

func TestACallIsTriedThreeTimesAndFollowsNoRedirect(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		status int
		asked  int64
	}{
		"the service fails":     {http.StatusInternalServerError, 3},
		"the service throttles": {http.StatusTooManyRequests, 3},
		"the service redirects": {http.StatusTemporaryRedirect, 1},
		"the service refuses":   {http.StatusBadRequest, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked.Add(1)
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(test.status)
			}))
			defer server.Close()
			c, err := runtime.AWS(lambda(map[string]string{"AWS_ENDPOINT_URL": server.URL}), "kms")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := kms.NewFromConfig(c).ListKeys(t.Context(), nil); err == nil {
				t.Error("the call succeeded")
			}
			if asked.Load() != test.asked {
				t.Errorf("asked %d times, want %d", asked.Load(), test.asked)
			}
		})
	}
}
