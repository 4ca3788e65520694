// Package tollgateclient calls the API of a tollgate service, for the commands of people who publish there. It knows
// requests and answers; where tokens are kept and when they are renewed, its folders know.
package tollgateclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
)

// Bounds of a call.
const (
	callTimeout    = time.Minute // a publication waits for the package checks, which have ten seconds
	maxAnswer      = 4 << 20     // bytes; a document is at most 1 MiB
	maxList        = 256 << 20   // bytes; all versions of a server, whole
	maxRedirects   = 3
	maxHeader      = 64 << 10
	connectTimeout = 10 * time.Second
)

// Config says where a service is and how to call it.
type Config struct {
	URL          string // of the API, with scheme and host, and a path where a proxy puts it below one
	InsecureHTTP bool   // http to a host that is not this machine, where anybody on the way reads along
	UserAgent    string
}

// Client calls one service. It is safe for concurrent use.
//
// Failures are faults with the kind of the answer's status, the code and the sentence of its body, and the time after
// which to try again.
type Client struct {
	base      *url.URL
	userAgent string
	http      *http.Client
}

// New returns a client, or fault.Invalid for an address that no password may be sent to.
func New(c Config) (*Client, error) {
	base, err := ParseURL(c.URL, c.InsecureHTTP)
	if err != nil {
		return nil, err
	}
	return &Client{base: base, userAgent: c.UserAgent, http: &http.Client{
		Transport: &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			DialContext:            (&net.Dialer{Timeout: connectTimeout}).DialContext,
			TLSHandshakeTimeout:    connectTimeout,
			MaxResponseHeaderBytes: maxHeader,
			ForceAttemptHTTP2:      true,
		},
		CheckRedirect: checkRedirect,
		Timeout:       callTimeout,
	}}, nil
}

// ParseURL returns the address of a service: https, or http to this machine, or any http where that is allowed.
func ParseURL(text string, insecureHTTP bool) (*url.URL, error) {
	u, err := url.Parse(strings.TrimRight(text, "/"))
	if err != nil || u.Hostname() == "" || u.Opaque != "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fault.Newf(fault.Invalid, "", "the address %q is not of the form https://host or https://host/path", text)
	}
	switch {
	case u.Scheme == "https", u.Scheme == "http" && (insecureHTTP || isLoopback(u.Hostname())):
		return u, nil
	case u.Scheme == "http":
		return nil, fault.Newf(fault.Invalid, "",
			"%s is not https, so anybody on the network path could read the password: use https, or --insecure-http if that is safe", text)
	}
	return nil, fault.Newf(fault.Invalid, "", "the address %q begins with neither https:// nor http://", text)
}

func isLoopback(host string) bool {
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

// URL returns the address of the service.
func (c *Client) URL() string { return c.base.String() }

// errRedirect is in the chain of the failure that a redirect leads to.
var errRedirect = errors.New("the service sends elsewhere")

// sameHost lets a redirect pass that stays where it was: what is sent holds a password or a token.
func checkRedirect(r *http.Request, via []*http.Request) error {
	first := via[0].URL
	if r.URL.Scheme != first.Scheme || r.URL.Host != first.Host {
		return fmt.Errorf("%w: to %s://%s, which is not followed", errRedirect, r.URL.Scheme, r.URL.Host)
	}
	if len(via) >= maxRedirects {
		return fmt.Errorf("%w: more than %d times", errRedirect, maxRedirects)
	}
	return nil
}

// call is one request.
type call struct {
	method      string
	path        string // below the base, escaped
	query       url.Values
	token       string            // access token; empty for none
	header      map[string]string // besides
	body        any               // sent as JSON; json.RawMessage as it is
	maxBytes    int64             // bytes of the answer; 0 for maxAnswer
	otherStatus int               // a status besides 200 whose body is an answer
	member      string            // a member that every answer of a tollgate service has; empty for none
}

// do sends a request and reads the answer's body into into, unless that is nil. It returns the answer's header.
func (c *Client) send(ctx context.Context, in call, into any) (http.Header, error) {
	r, err := c.newRequest(ctx, in)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return nil, c.connectionError(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }() // it was only read
	most := in.maxBytes
	if most == 0 {
		most = maxAnswer
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, most+1))
	switch {
	case err != nil:
		return nil, c.connectionError(ctx, err)
	case int64(len(text)) > most:
		return nil, fault.Newf(fault.Internal, "", "the answer of %s is larger than %d bytes", c.base, most)
	case resp.StatusCode != http.StatusOK && resp.StatusCode != in.otherStatus:
		return resp.Header, c.responseError(resp, text)
	}
	if into == nil {
		return resp.Header, nil
	}
	if json.Unmarshal(text, into) != nil || !hasMember(text, in.member) {
		return nil, fault.Newf(fault.Internal, "", "%s answered what no tollgate service does: is the address right?", c.base)
	}
	return resp.Header, nil
}

// holds reports whether a JSON object has a member, so that another service's object is not taken for an empty answer.
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
		return nil, fmt.Errorf("make request: %w", err)
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

// content writes a body. A document is sent as it is, also one that is no JSON: the service says what is wrong with it.
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
