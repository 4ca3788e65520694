package registryclient

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// DefaultMaxBytes is the size limit of a response if the request sets no limit.
const DefaultMaxBytes = 4 << 20

// Base is one registry that the plugin may connect to.
type Base struct {
	client   *Client
	registry registry
}

// Options are the options of a request.
type Options struct {
	// MaxBytes is the size limit of the body, before and after decompression; 0 means
	// [DefaultMaxBytes].
	MaxBytes int64
	// Accept is the requested media type; if it is empty, the registry chooses.
	Accept string
	// RedirectHosts are other hosts that redirects may lead to, over https at public addresses only.
	// They get no credentials.
	RedirectHosts []string
}

// URL returns the base URL without a trailing slash.
func (b *Base) URL() string { return b.registry.url.String() }

// Credentials returns the credentials of the registry, empty for a public one. Pass them to
// libraries that make their own requests; Base adds them to its own requests.
func (b *Base) Credentials() Credentials { return b.registry.credentials }

// TokenHosts returns the hosts that the operator configured for the token service of the registry,
// in lower case and without the default port of https. [Base.Transport] connects to them.
func (b *Base) TokenHosts() []string { return slices.Clone(b.registry.tokenHosts) }

// Get requests path and returns the body of a response with status 200. path is escaped, is
// relative to the base URL and may have a query. It may also be an absolute URL with the same
// scheme and host, for example from a service index. Credentials are sent only below the base URL.
// Errors are of type *[Error]; after ctx has ended they match ctx.Err() by errors.Is.
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

// JSON is like Get, and unmarshals the body as JSON into target.
func (b *Base) JSON(ctx context.Context, path string, o Options, target any) error {
	o.Accept = cmp.Or(o.Accept, "application/json")
	body, err := b.Get(ctx, path, o)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, target); err != nil {
		return &Error{Reason: Malformed, Host: b.registry.url.Host, Status: http.StatusOK, Err: err}
	}
	return nil
}

// Exists requests path and does not read the body. It returns true for 200, false for [NotFound],
// and otherwise the error of Get.
func (b *Base) Exists(ctx context.Context, path string, o Options) (bool, error) {
	err := b.Fetch(ctx, path, o, func(io.Reader) error { return nil })
	if Is(err, NotFound) {
		return false, nil
	}
	return err == nil, err
}

// Fetch is like Get, but calls read with the body instead of holding it in memory. read need not
// read the whole body. It must return errors of its reader unchanged; Fetch returns all errors of
// read unchanged.
func (b *Base) Fetch(ctx context.Context, path string, o Options, read func(io.Reader) error) error {
	if o.MaxBytes <= 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	ctx, cancel := Within(ctx)
	defer cancel()
	request, err := b.newRequest(ctx, path, o)
	if err != nil {
		return err
	}
	client := http.Client{
		Transport: b.credentialTransport(), CheckRedirect: func(next *http.Request, before []*http.Request) error {
			return b.checkRedirect(next.URL, len(before), o.RedirectHosts)
		},
	}
	response, err := client.Do(request)
	if err != nil {
		return b.requestError(ctx, err)
	}
	defer func() { _ = response.Body.Close() }() // the body is read completely, or an error is returned
	if err := b.statusError(response); err != nil {
		return err
	}
	return b.readBody(ctx, response, o.MaxBytes, read)
}

func (b *Base) newRequest(ctx context.Context, path string, o Options) (*http.Request, error) {
	address := path
	if !strings.HasPrefix(path, "https://") && !strings.HasPrefix(path, "http://") {
		address = b.URL() + "/" + strings.TrimPrefix(path, "/")
	}
	at, err := url.Parse(address)
	if err != nil || at.User != nil || !b.isSameHost(at) || hasDotSegment(at) {
		return nil, &Error{Reason: ForbiddenURL, Host: b.registry.url.Host, Err: err}
	}
	at.Fragment, at.RawFragment = "", ""
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, &Error{Reason: ForbiddenURL, Host: b.registry.url.Host, Err: err}
	}
	request.Header.Set("Accept-Encoding", "gzip") // readBody decompresses it, and limits the size before and after
	if o.Accept != "" {
		request.Header.Set("Accept", o.Accept)
	}
	return request, nil
}

// isSameHost reports whether at has the scheme and the host of the registry.
func (b *Base) isSameHost(at *url.URL) bool {
	return at.Scheme == b.registry.url.Scheme && canonicalHost(at) == b.registry.url.Host
}

// isBelow reports whether at is the base URL or a path below it. If the base URL is a document, for
// example index.json, isBelow uses the folder that contains the document.
func (b *Base) isBelow(at *url.URL) bool {
	folder := b.registry.url.Path
	if strings.HasSuffix(folder, ".json") {
		folder = folder[:strings.LastIndexByte(folder, '/')]
	}
	return b.isSameHost(at) && !hasDotSegment(at) && (at.Path == folder || strings.HasPrefix(at.Path, folder+"/"))
}

// checkRedirect allows at most three redirects, all on the same host or to the given ones.
func (b *Base) checkRedirect(next *url.URL, before int, hosts []string) error {
	const most = 3
	isOther := next.Scheme == "https" && slices.Contains(hosts, canonicalHost(next))
	switch {
	case next.User != nil || !isOther && (!b.isSameHost(next) || hasDotSegment(next)):
		return &Error{Reason: ForbiddenRedirect, Host: b.registry.url.Host,
			Err: fmt.Errorf("it leads to another host, %q", shortenText(next.Host))}
	case before > most:
		return &Error{
			Reason: ForbiddenRedirect, Host: b.registry.url.Host, Err: fmt.Errorf("more than %d redirects", most),
		}
	}
	return nil
}
