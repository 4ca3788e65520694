// Package tollgateclient calls the API of a tollgate service, for the commands of people who
// publish there or administer it. It does not store or renew tokens: packages credentialfile and account do.
package tollgateclient

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/plugins/sdk/publicdial"
)

// Bounds of a call.
const (
	callTimeout    = time.Minute // publishing waits up to ten seconds for the package checks
	maxAnswer      = 4 << 20     // bytes; a document is at most 1 MiB
	maxList        = 256 << 20   // bytes; all versions of a server with their documents
	maxRedirects   = 3
	maxHeader      = 64 << 10
	connectTimeout = 10 * time.Second
)

// Config is the address of a service and how to call it.
type Config struct {
	URL          string // of the API: scheme, host, and the path prefix of a proxy if there is one
	InsecureHTTP bool   // allow http to another machine, although others on the network path can read everything
	CACert       string // file with certificates that are trusted too; empty without one
	UserAgent    string
}

// Client calls one service. It is safe for concurrent use.
//
// A refused call returns a fault with the kind of the response's status, the code and message of
// its body, and the time after which to try again.
type Client struct {
	base      *url.URL
	userAgent string
	http      *http.Client
	local     bool // errors of calls are those of the handlers
}

// New returns a client. It returns fault.Invalid if ParseURL rejects the address.
func New(c Config) (*Client, error) {
	base, err := ParseURL(c.URL, c.InsecureHTTP)
	if err != nil {
		return nil, err
	}
	trusted, err := trustFile(c.CACert)
	if err != nil {
		return nil, err
	}
	return &Client{base: base, userAgent: c.UserAgent, http: &http.Client{
		Transport: &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			DialContext:            (&net.Dialer{Timeout: connectTimeout}).DialContext,
			TLSClientConfig:        trusted,
			TLSHandshakeTimeout:    connectTimeout,
			MaxResponseHeaderBytes: maxHeader,
			ForceAttemptHTTP2:      true,
		},
		CheckRedirect: checkRedirect,
		Timeout:       callTimeout,
	}}, nil
}

// NewLocal returns a client of parts of the API in this process, and returns their errors as they are.
func NewLocal(parts http.RoundTripper) *Client {
	base := &url.URL{Scheme: "http", Host: "localhost"}
	return &Client{base: base, http: &http.Client{Transport: parts}, local: true}
}

// ParseURL parses the address of a service. It returns fault.Invalid if the address has not the
// form of an API address, or uses http to another machine although insecureHTTP is false.
func ParseURL(text string, insecureHTTP bool) (*url.URL, error) {
	u, err := url.Parse(strings.TrimRight(text, "/"))
	if err != nil || u.Hostname() == "" || u.Opaque != "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fault.Newf(
			fault.Invalid, "the address %q is not of the form https://host or https://host/path", text)
	}
	switch {
	case u.Scheme == "https", u.Scheme == "http" && (insecureHTTP || publicdial.IsLoopback(u.Hostname())):
		return u, nil
	case u.Scheme == "http":
		return nil, fault.Newf(fault.Invalid,
			"%s is not https, so others on the network path could read the password: use https, or --insecure-http if the network is safe", text)
	}
	return nil, fault.Newf(fault.Invalid, "the address %q does not begin with https:// or http://", text)
}

// URL returns the address of the service.
func (c *Client) URL() string { return c.base.String() }

// errRedirect is wrapped by the errors of redirects that the client does not follow.
var errRedirect = errors.New("the service redirects")

// checkRedirect returns an error if a redirect leads to another host, because requests contain
// passwords and tokens.
func checkRedirect(r *http.Request, via []*http.Request) error {
	first := via[0].URL
	if r.URL.Scheme != first.Scheme || r.URL.Host != first.Host {
		return fmt.Errorf("%w to another host, %s://%s: give that address if it is right", errRedirect,
			r.URL.Scheme, r.URL.Host)
	}
	if len(via) >= maxRedirects {
		return fmt.Errorf("%w more than %d times", errRedirect, maxRedirects)
	}
	return nil
}

// call is one request.
type call struct {
	method      string
	path        string // below the base, escaped
	query       url.Values
	token       string            // access token; empty to send nothing
	header      map[string]string // additional headers
	body        any               // sent as JSON; a json.RawMessage is sent unchanged
	maxBytes    int64             // maximum size of the response; 0 for maxAnswer
	otherStatus int               // a status other than 2xx that is not an error
	member      string            // a member that every response of a tollgate service has; empty to skip the check
}

// send sends a request and decodes the response's body into into, unless that is nil. It returns
// the response's header.
func (c *Client) send(ctx context.Context, in call, into any) (http.Header, error) {
	var connected atomic.Bool // also after the handshake of TLS
	r, err := c.newRequest(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	}), in)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(r)
	if err != nil {
		if err = c.connectionError(ctx, err); !c.local && !connected.Load() {
			err = notConnected{err}
		}
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }() // the body was read
	limit := cmp.Or(in.maxBytes, maxAnswer)
	text, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	switch {
	case err != nil:
		return nil, c.connectionError(ctx, err)
	case int64(len(text)) > limit:
		return nil, fault.Newf(fault.Internal, "the response of %s is larger than %d bytes", c.base, limit)
	case resp.StatusCode/100 != 2 && resp.StatusCode != in.otherStatus:
		return resp.Header, c.responseError(resp, text)
	}
	if into == nil {
		return resp.Header, nil
	}
	if json.Unmarshal(text, into) != nil || !hasMember(text, in.member) {
		return nil, fault.Newf(fault.Internal, "%s does not answer like a tollgate service: check the address", c.base)
	}
	return resp.Header, nil
}

// hasMember reports whether a JSON object has a member. Without this check the object of another
// service would look like an empty response.
func hasMember(object []byte, name string) bool {
	if name == "" {
		return true
	}
	var members map[string]json.RawMessage
	err := json.Unmarshal(object, &members)
	return err == nil && members[name] != nil
}

func (c *Client) newRequest(ctx context.Context, in call) (*http.Request, error) {
	body, err := encodeBody(in.body)
	if err != nil {
		return nil, err
	}
	address := c.base.String() + in.path
	if len(in.query) > 0 {
		address += "?" + in.query.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, in.method, address, body)
	if err != nil {
		return nil, fmt.Errorf("create request: %w", err)
	}
	r.Header.Set("User-Agent", c.userAgent)
	r.Header.Set("Accept", "application/json")
	if in.body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if in.token != "" {
		r.Header.Set("Authorization", "Bearer "+in.token)
	}
	for name, value := range in.header {
		r.Header.Set(name, value)
	}
	return r, nil
}

// encodeBody encodes a request body. A document is sent unchanged, even if it is not JSON: the
// service reports its errors.
func encodeBody(body any) (io.Reader, error) {
	switch b := body.(type) {
	case nil:
		return http.NoBody, nil
	case json.RawMessage:
		return bytes.NewReader(b), nil
	}
	text, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	return bytes.NewReader(text), nil
}

// Request is a call of any route of the API.
type Request struct {
	Method string
	Path   string // below the address of the service, escaped
	Query  url.Values
	Header map[string]string
	Body   any     // sent as JSON; optional
	Tag    *string // receives the ETag of the answer; optional
}

// Call makes a call with a token and decodes the answer into into, unless that is nil.
func (c *Client) Call(ctx context.Context, token string, r Request, into any) error {
	header, err := c.send(ctx, call{
		method: r.Method, path: r.Path, query: r.Query, token: token, header: r.Header, body: r.Body, maxBytes: maxList,
	}, into)
	if r.Tag != nil {
		*r.Tag = header.Get("ETag")
	}
	return err
}

// pageLimit is how many items of a list a call requests: as many as the service sends at most.
const pageLimit = "100"

// ReadPages makes the call of a list for page after page, and gives the items of each, the member of
// the answer with a name, to add.
func ReadPages(r Request, member string, send func(Request, any) error, add func(items json.RawMessage) error) error {
	r.Query = maps.Clone(r.Query)
	if r.Query == nil {
		r.Query = url.Values{}
	}
	for r.Query.Set("limit", pageLimit); ; {
		var page map[string]json.RawMessage
		if err := send(r, &page); err != nil {
			return err
		}
		var metadata struct {
			NextCursor string `json:"nextCursor"`
		}
		if page[member] == nil || json.Unmarshal(page["metadata"], &metadata) != nil {
			return fault.New(fault.Internal, "the answer is not a list, unlike that of a tollgate service: check the address")
		}
		if err := add(page[member]); err != nil || metadata.NextCursor == "" {
			return err
		}
		r.Query.Set("cursor", metadata.NextCursor)
	}
}

// trustFile returns the TLS settings that also trust the certificates in a PEM file; nil without one.
func trustFile(path string) (*tls.Config, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path) // #nosec G304 -- the person names the file
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, "--ca-cert: the file cannot be read", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(text) {
		return nil, fault.Newf(fault.Invalid, "--ca-cert: %s has no certificate in PEM form", path)
	}
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, nil
}
