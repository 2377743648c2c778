package lambdahttp

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/aws/aws-lambda-go/events"
)

// Gateway is what the gateway says of a request beside the request itself.
type Gateway struct {
	RequestID string // a caller may choose it
	Extended  string // the gateway's own id of the request, the one in its access log
	Stage     string
	APIID     string // the API's at API Gateway
	Domain    string // host name that the request came to
	// Address is where the API's paths begin for whoever asked: the domain that
	// the gateway knows itself by, never the Host header, and the stage or the
	// custom domain's base path. Without a slash at its end.
	Address string
}

type gatewayKey struct{}

// GatewayOf returns what the gateway said of the request that a context belongs
// to; false outside of one.
func GatewayOf(ctx context.Context) (Gateway, bool) {
	g, ok := ctx.Value(gatewayKey{}).(Gateway)
	return g, ok
}

func request(ctx context.Context, event events.APIGatewayProxyRequest) (*http.Request, error) {
	body := []byte(event.Body)
	if event.IsBase64Encoded {
		var err error
		if body, err = base64.StdEncoding.DecodeString(event.Body); err != nil {
			return nil, fmt.Errorf("read event: body: %w", err)
		}
	}
	header := make(http.Header)
	for name, values := range event.MultiValueHeaders {
		for _, value := range values {
			header.Add(name, value)
		}
	}
	if len(event.MultiValueHeaders) == 0 { // the console's test button sends these alone
		for name, value := range event.Headers {
			header.Set(name, value)
		}
	}
	host := header.Get("Host")
	if event.RequestContext.DomainName != "" {
		host = event.RequestContext.DomainName
	}
	// As net/http does: these are the connection's, not the request's.
	header.Del("Host")
	header.Del("Transfer-Encoding")

	path := pathOf(event)
	target := url.URL{Path: path, RawQuery: query(event).Encode()}
	r := &http.Request{
		Method: event.HTTPMethod, URL: &target, RequestURI: target.RequestURI(),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Host: host, RemoteAddr: net.JoinHostPort(event.RequestContext.Identity.SourceIP, "0"),
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}
	if len(body) == 0 {
		r.Body = http.NoBody
	}
	return r.WithContext(context.WithValue(ctx, gatewayKey{}, Gateway{
		RequestID: event.RequestContext.RequestID,
		Extended:  event.RequestContext.ExtendedRequestID,
		Stage:     event.RequestContext.Stage,
		APIID:     event.RequestContext.APIID,
		Domain:    event.RequestContext.DomainName,
		Address:   "https://" + host + base(event, path),
	})), nil
}

// pathOf is the path below the API. Behind a custom domain's base path the
// event's own path begins with that; what {proxy+} stood for does not.
func pathOf(event events.APIGatewayProxyRequest) string {
	if event.Resource == "/" {
		return "/"
	}
	if proxy := "/" + event.PathParameters["proxy"]; proxy != "/" && strings.HasSuffix(event.Path, proxy) {
		return proxy
	}
	if event.Path == "" {
		return "/"
	}
	return event.Path
}

// base is what stands between the domain and the API's paths. The context's
// path is the one that was asked for, stage or base path included.
func base(event events.APIGatewayProxyRequest, path string) string {
	if whole := event.RequestContext.Path; strings.HasSuffix(whole, path) {
		return strings.TrimSuffix(strings.TrimSuffix(whole, path), "/")
	}
	if event.RequestContext.Stage == "" {
		return ""
	}
	return "/" + event.RequestContext.Stage
}

func query(event events.APIGatewayProxyRequest) url.Values {
	values := url.Values(event.MultiValueQueryStringParameters)
	if len(values) == 0 {
		values = make(url.Values)
		for name, value := range event.QueryStringParameters {
			values.Set(name, value)
		}
	}
	return values
}
