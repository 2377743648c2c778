package httpapi_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// Whatever the body is, it is done or refused: never a fault, and never done
// where it was not JSON.
func FuzzBody(f *testing.F) {
	for _, body := range []string{
		`{"message":"Hours","force":true}`, `{}`, ``, ` `, `null`, `{"message":null}`, `{"message":"a","message":"b"}`,
		`{"message":"\ud800"}`, `[[[[`, `{"force":1}`, "{\"message\":\"\xff\"}", `{"a":{"b":[{"c":1}]}}`, `{} {}`, `{"message":"a",}`, "\ufeff{}",
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		w := &world{}
		h := handlerOf(t, w)
		answer := serve(h, ask("POST", inProject+"/releases", "editor", string(body)))
		done := answer.Code == http.StatusCreated
		if !done && answer.Code != http.StatusBadRequest && answer.Code != http.StatusRequestEntityTooLarge {
			t.Errorf("got %d %s", answer.Code, answer.Body)
		}
		if done && len(body) > 0 && !json.Valid(body) {
			t.Error("it was done, and it is not JSON")
		}
		if !done {
			problemOf(t, answer)
		}
		if done != (w.calls() == 1) {
			t.Errorf("got %d, and services were asked %d times", answer.Code, w.calls())
		}
	})
}

// Whatever the address is, no answer is a fault, and nobody without a token gets
// further than the health.
func FuzzTarget(f *testing.F) {
	for _, o := range operations {
		f.Add(o.method, o.target)
	}
	f.Add("GET", "/projects/%2F%00/%ff")
	f.Add("GET", "/projects/../health?path=%zz&path=")
	f.Fuzz(func(t *testing.T, method, target string) {
		u, err := url.Parse(target)
		if err != nil || u.Host != "" || !strings.HasPrefix(u.Path, "/") {
			return // no client sends this
		}
		for _, token := range []string{"", "admin"} {
			w := &world{}
			h, log := api(t, w)
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.Method, r.URL = method, u
			if token != "" {
				r.Header.Set("Authorization", "Bearer "+token)
			}
			answer := serve(h, r)
			if answer.Code >= 500 || log.Len() > 0 {
				t.Errorf("got %d %s, logged %s", answer.Code, answer.Body, log)
			}
			if answer.Code >= 400 {
				problemOf(t, answer)
			}
			if token == "" && w.calls() > 0 {
				t.Errorf("got %d, and a service was asked", answer.Code)
			}
		}
	})
}
