// Package api holds the API's description, openapi.yaml, from which the server's
// half (internal/httpapi/openapi) and the client package are generated.
//
// It promises that what is generated is what the description says: its test
// generates both again and compares. The generator has a module of its own, so
// that its dependencies are not the project's. It leaves all behaviour to
// internal/httpapi.
package api

//go:generate go -C generator tool ogen --target ../../internal/httpapi/openapi --package openapi --clean --config ../server.ogen.yml ../openapi.yaml
//go:generate go -C generator tool ogen --target ../../client --package client --clean --config ../client.ogen.yml ../openapi.yaml
