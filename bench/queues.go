package main

import (
	"net/http"
	"net/url"

	"github.com/sivchari/kumo"
)

// queuesRole is SQS and KMS. The engine chooses its own port, so what is asked
// for on the parent's socket is the address.
func queuesRole(_ []byte, mux *http.ServeMux) error {
	server := kumo.NewServer()
	address, err := url.Parse(server.URL)
	if err != nil {
		return err
	}
	mux.HandleFunc("/address", func(w http.ResponseWriter, r *http.Request) { writeJSON(w, address.Host) })
	return nil
}
