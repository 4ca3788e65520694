package tollgateclient

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"maps"
	"net/url"
	"os"

	"github.com/tollgate-dev/tollgate/core/fault"
)

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
