package registryclient

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// DefaultMaxBytes bounds an answer for which a request names no bound.
const DefaultMaxBytes = 4 << 20

// Base is one registry that may be asked.
type Base struct {
	client   *Client
	registry registry
}

// Options of a request.
type Options struct {
	// MaxBytes bounds the body, before and after decompression; 0 means [DefaultMaxBytes].
	MaxBytes int64
	// Accept is the media type asked for; empty leaves it to the registry.
	Accept string
}

// URL returns the base URL, without a slash at its end.
func (b *Base) URL() string { return b.registry.url.String() }

// Credentials returns those of the registry, empty for a public one; for libraries that send them on their own. Requests made by
// Base carry them already.
func (b *Base) Credentials() Credentials { return b.registry.credentials }

// TokenHosts returns the hosts that the operator named for the token service of the registry, in lower case and without the port
// of https. [Base.Transport] reaches them.
func (b *Base) TokenHosts() []string { return slices.Clone(b.registry.tokenHosts) }

// Get returns the body of a 200 answer to a request for path, which is below the base URL, escaped, and may have a query. It may
// also be an absolute URL of the same scheme and host, as service indexes give them; credentials go with it only when it is
// below the base URL. Errors are of type *[Error], and match ctx.Err() by errors.Is when ctx ended.
func (b *Base) Get(ctx context.Context, path string, o Options) ([]byte, error) {
	var body bytes.Buffer
	err := b.Fetch(ctx, path, o, func(r io.Reader) error {
		if _, err := body.ReadFrom(r); err != nil {
			return fmt.Errorf("reading the body: %w", err)
		}
		return nil
	})
	return body.Bytes(), err
}

// JSON is Get, with the body read as JSON into target.
func (b *Base) JSON(ctx context.Context, path string, o Options, target any) error {
	if o.Accept == "" {
		o.Accept = "application/json"
	}
	body, err := b.Get(ctx, path, o)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, target); err != nil {
		return &Error{Reason: Malformed, Host: b.registry.url.Host, Status: http.StatusOK, Err: err}
	}
	return nil
}

// Exists asks for path and reads no body: true for 200, false for [NotFound], else the error of Get.
func (b *Base) Exists(ctx context.Context, path string, o Options) (bool, error) {
	err := b.Fetch(ctx, path, o, func(io.Reader) error { return nil })
	if Is(err, NotFound) {
		return false, nil
	}
	return err == nil, err
}

// Fetch is Get for bodies that are better not held in memory: read gets the body of a 200 answer and need not read it whole. The
// errors of its reader must be returned as they are; other errors of read are returned as they are, too.
func (b *Base) Fetch(ctx context.Context, path string, o Options, read func(io.Reader) error) error {
	if o.MaxBytes <= 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	ctx, cancel := Within(ctx)
	defer cancel()
	request, err := b.request(ctx, path, o)
	if err != nil {
		return err
	}
	client := http.Client{Transport: b.requests(), CheckRedirect: b.redirect}
	response, err := client.Do(request)
	if err != nil {
		return b.failed(ctx, err)
	}
	defer func() { _ = response.Body.Close() }() // what was read is whole by now, or its error is reported
	if err := b.refusedBy(response); err != nil {
		return err
	}
	return b.readWith(ctx, response, o.MaxBytes, read)
}

func (b *Base) request(ctx context.Context, path string, o Options) (*http.Request, error) {
	address := path
	if !strings.HasPrefix(path, "https://") && !strings.HasPrefix(path, "http://") {
		address = b.URL() + "/" + strings.TrimPrefix(path, "/")
	}
	at, err := url.Parse(address)
	if err != nil || at.User != nil || !b.same(at) || leaves(at) {
		return nil, &Error{Reason: ForbiddenURL, Host: b.registry.url.Host, Err: err}
	}
	at.Fragment, at.RawFragment = "", ""
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, &Error{Reason: ForbiddenURL, Host: b.registry.url.Host, Err: err}
	}
	request.Header.Set("Accept-Encoding", "gzip") // undone in readWith, which bounds both sides of it
	if o.Accept != "" {
		request.Header.Set("Accept", o.Accept)
	}
	return request, nil
}

// same reports whether at is of the registry's scheme and host.
func (b *Base) same(at *url.URL) bool {
	return at.Scheme == b.registry.url.Scheme && canonicalHost(at) == b.registry.url.Host
}

// below reports whether at is the base URL or a path below it. A base URL that is a document, such as an index.json, stands for
// the folder that it is in.
func (b *Base) below(at *url.URL) bool {
	folder := b.registry.url.Path
	if strings.HasSuffix(folder, ".json") {
		folder = folder[:strings.LastIndexByte(folder, '/')]
	}
	return b.same(at) && !leaves(at) && (at.Path == folder || strings.HasPrefix(at.Path, folder+"/"))
}

// redirect allows a few redirects on the same host.
func (b *Base) redirect(next *http.Request, before []*http.Request) error {
	const most = 3
	switch {
	case next.URL.User != nil || !b.same(next.URL) || leaves(next.URL):
		return &Error{Reason: ForbiddenRedirect, Host: b.registry.url.Host,
			Err: fmt.Errorf("to another host, %q", shortened(next.URL.Host))}
	case len(before) > most:
		return &Error{Reason: ForbiddenRedirect, Host: b.registry.url.Host, Err: fmt.Errorf("more than %d times", most)}
	}
	return nil
}
