// Package clientdocs implements the port for what clients of the authorization server publish: their
// documents, and their keys. Anybody may publish a document, so that every reading is guarded: it leads to
// public addresses only, and is bounded in time, size and number. What a document must say, the core knows.
package clientdocs

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/internal/signed"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authorization"
	"github.com/tollgate-dev/tollgate/ports/clock"
)

// Config contains the settings of documents of clients (contract T-7).
type Config struct {
	Networks []netip.Prefix `env:"OAUTH_CLIENT_NETWORKS" desc:"networks in which documents and keys of clients may be, although their addresses are not public"`
}

// Validate returns an error that names the variable whose value is malformed.
func (c Config) Validate() error {
	for _, network := range c.Networks {
		if !network.IsValid() {
			return fmt.Errorf("OAUTH_CLIENT_NETWORKS: %v is not a network", network)
		}
	}
	return nil
}

// Reader reads what clients publish. It implements [authorization.Documents], and is safe for concurrent
// use.
type Reader struct {
	documents source[oauth.Client]
	keys      source[signed.Keys]
}

var _ authorization.Documents = (*Reader)(nil)

// New returns a reader, which reads nothing yet.
func New(c Config, clk clock.Clock) authorization.Documents { return newReader(newFetcher(c, clk)) }

func newReader(f *fetcher) *Reader {
	r := new(Reader)
	r.documents.setUp(f, oauth.MaxDocument, func(address string, text []byte) (oauth.Client, error) {
		return oauth.ParseDocument(oauth.ClientID(address), text)
	})
	r.keys.setUp(f, oauth.MaxDocumentKeys, func(_ string, text []byte) (signed.Keys, error) {
		keys, err := signed.ParseKeys(text)
		if err != nil {
			err = fault.New(fault.Invalid, err.Error())
		}
		return keys, err
	})
	return r
}

// Client implements [authorization.Documents].
func (r *Reader) Client(ctx context.Context, id oauth.ClientID) (oauth.Client, error) {
	if !id.IsDocumentURL() {
		return oauth.Client{}, fault.New(fault.Invalid, "the id of the client is not the URL of a document")
	}
	got, err := r.documents.get(ctx, string(id), false)
	if err != nil {
		return oauth.Client{}, err
	}
	c := got.value
	c.RedirectURIs = slices.Clone(c.RedirectURIs)
	return c, nil
}

// Verify implements [authorization.Documents].
func (r *Reader) Verify(ctx context.Context, c *oauth.Client, token string) ([]byte, error) {
	t, err := signed.Parse(token)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(signed.Asymmetric(), t.Algorithm) {
		return nil, fault.New(fault.Unauthenticated, "the token is not signed by an asymmetric algorithm")
	}
	keys, err := r.keysOf(ctx, c, false)
	good := err == nil && keys.HaveSigned(ctx, t)
	if err == nil && !good && !keys.Have(t) { // the client may have a new key
		keys, err = r.keysOf(ctx, c, true)
		good = err == nil && keys.HaveSigned(ctx, t)
	}
	switch {
	case err != nil:
		return nil, err
	case !good:
		return nil, fault.New(fault.Unauthenticated, "the token is not signed by a key of the client")
	}
	return t.Payload, nil
}

// keysOf returns the keys of a client. If renew is set, they are read again, unless that was just done.
func (r *Reader) keysOf(ctx context.Context, c *oauth.Client, renew bool) (signed.Keys, error) {
	if c.JWKSURI == "" {
		keys, err := signed.ParseKeys([]byte(c.JWKS))
		if err != nil {
			return nil, fault.New(fault.Unauthenticated, "the client has no keys")
		}
		return keys, nil
	}
	got, err := r.keys.get(ctx, c.JWKSURI, renew)
	if err != nil {
		var after time.Duration
		if f, ok := fault.As(err); ok {
			after = f.RetryAfter
		}
		return nil, fault.Wrap(fault.Unavailable, "the keys of the client cannot be read now: "+fault.PublicMessage(err), err).After(after)
	}
	return got.value, nil
}
