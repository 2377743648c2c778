package main

import (
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// largestBody is what is read of a request: an announcement has a few kilobytes.
const largestBody = 64 << 10

// receiver takes announcements in. It answers at once and leaves acting to the
// inbox's worker: a sender waits 10 seconds at the most, and then comes again.
type receiver struct {
	signatures *webhooks.Webhook
	inbox      *inbox
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	status, what := r.receive(w, request)
	log.Printf("%d: %s", status, what)
	w.WriteHeader(status)
}

// receive says what to answer, and why.
func (r *receiver) receive(w http.ResponseWriter, request *http.Request) (status int, what string) {
	if request.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return http.StatusMethodNotAllowed, "not a POST"
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, request.Body, largestBody))
	if over := new(http.MaxBytesError); errors.As(err, &over) {
		return http.StatusRequestEntityTooLarge, "too large"
	}
	if err != nil {
		return http.StatusBadRequest, "the body broke off"
	}
	// Over the bytes as they came, and before anything reads them. It refuses
	// timestamps that are 5 minutes off, so a recorded request is of no use later.
	if err := r.signatures.Verify(body, request.Header); err != nil {
		return http.StatusUnauthorized, "not signed with this secret, or too old"
	}

	var event struct {
		Type string `json:"type"`
		Data struct {
			Project struct {
				ID string `json:"id"`
			} `json:"project"`
			Release int64  `json:"release"`
			Message string `json:"message"`
			URL     string `json:"url"`
		} `json:"data"`
	}
	if json.Unmarshal(body, &event) != nil {
		return http.StatusBadRequest, "not JSON"
	}
	if event.Type != "release.published" { // a test, or something newer than this receiver
		return http.StatusNoContent, "nothing to do about this type"
	}
	a := announcement{
		ID: request.Header.Get("webhook-id"), Project: event.Data.Project.ID, Release: event.Data.Release,
		Message: event.Data.Message, URL: event.Data.URL,
	}
	if a.Project == "" || a.Release < 1 {
		return http.StatusBadRequest, "no release of a project"
	}
	what, err = r.inbox.accept(a)
	if err != nil {
		return http.StatusServiceUnavailable, "not taken in: " + err.Error()
	}
	return http.StatusNoContent, what
}
