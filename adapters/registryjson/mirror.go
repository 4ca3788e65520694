package registryjson

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/plugins/publicdial"
	"github.com/tollgate-dev/tollgate/ports/mirrorsource"
)

// mirrorLimits are the limits of one read of another registry for a mirror.
type mirrorLimits struct {
	records    int           // of the whole list
	bytes      int64         // of all records
	pageBytes  int64         // of one page, not compressed
	pageTime   time.Duration // of one page
	listTime   time.Duration // of the whole list
	emptyPages int           // one after the other
	cursor     int           // bytes of a cursor
}

func newMirrorLimits() mirrorLimits {
	return mirrorLimits{
		records: 1_000_000, bytes: 4 << 30, pageBytes: 128 << 20, pageTime: 2 * time.Minute, listTime: 2 * time.Hour,
		emptyPages: 1000, cursor: 4 << 10,
	}
}

// mirrorTries is the number of attempts to get one page. The next read of the mirror tries again.
const mirrorTries = 3

// dialTimeout bounds connecting to the target of a redirect.
const dialTimeout = 10 * time.Second

// MirrorSource reads other registries for mirrors. It implements mirrorsource.Source.
type MirrorSource struct {
	client *client
	limits mirrorLimits
}

var _ mirrorsource.Source = (*MirrorSource)(nil)

// NewMirrorSource returns a source. It connects to any address for the URL of a mirror, which an
// operator has chosen, and to public addresses only for redirects, which the other registry chooses.
func NewMirrorSource() *MirrorSource { return newMirrorSource(newMirrorLimits()) }

func newMirrorSource(l mirrorLimits) *MirrorSource {
	redirected := &http.Transport{
		DialContext:         publicdial.New(publicdial.Config{Timeout: dialTimeout}),
		ForceAttemptHTTP2:   true,
		TLSHandshakeTimeout: dialTimeout,
		IdleConnTimeout:     dialTimeout,
	}
	c := newClient(guardedTransport{http.DefaultTransport, redirected})
	c.tries, c.pageTime = mirrorTries, l.pageTime
	return &MirrorSource{c, l}
}

// guardedTransport sends redirected requests by another transport, which has connections of its own.
type guardedTransport struct{ first, redirected http.RoundTripper }

// RoundTrip implements http.RoundTripper. Only a redirected request has a response.
func (t guardedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Response != nil {
		return t.redirected.RoundTrip(req)
	}
	return t.first.RoundTrip(req)
}

// Read implements mirrorsource.Source.
func (s *MirrorSource) Read(ctx context.Context, r mirrorsource.Request) (mirrorsource.List, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.limits.listTime, errSlowList)
	defer cancel()
	l, err := newSpool(r.URL.Public())
	if err != nil {
		return nil, describeMirrorError(ctx, r, err)
	}
	f := &mirrorFetch{source: s, request: r, spool: l, seed: maphash.MakeSeed(), cursors: make(map[uint64]bool)}
	if err := f.readPages(ctx); err != nil {
		_ = l.Close() // the reading has failed already
		return nil, describeMirrorError(ctx, r, err)
	}
	if err := l.finish(); err != nil {
		_ = l.Close() // likewise
		return nil, describeMirrorError(ctx, r, err)
	}
	return l, nil
}

var (
	errSlowList    = errors.New("the whole list took too long")
	errNoList      = errors.New("the answer is JSON, but not a list of servers")
	errCircle      = errors.New("the pages of the list go in a circle")
	errEmptyPages  = errors.New("the list has too many empty pages")
	errLongCursor  = errors.New("a nextCursor is too long")
	errManyRecords = errors.New("the list has too many versions")
	errLargePage   = errors.New("a page of the list is too large")
	errLargeList   = errors.New("the list is too large")
)

// describeMirrorError returns the error for operators. It contains neither the token in the URL of
// a view nor anything that the other registry sent, but its status.
func describeMirrorError(ctx context.Context, r mirrorsource.Request, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		if !errors.Is(cause, errSlowList) {
			return cause
		}
		err = cause
	}
	var status *statusError
	if errors.As(err, &status) && !r.Since.IsZero() && (status.code == http.StatusBadRequest || status.code == http.StatusUnprocessableEntity) {
		return fault.Wrap(fault.Unsupported, "the registry does not accept updated_since", err)
	}
	message := fmt.Sprintf("%s could not be read: %s", r.URL.Public(), err)
	if refused := (*publicdial.RefusedError)(nil); errors.As(err, &refused) {
		message = fmt.Sprintf("%s could not be read: it redirects to an address that is not public", r.URL.Public())
	}
	return fault.Wrap(fault.Unavailable, message, err)
}

// mirrorFetch is one read of a list.
type mirrorFetch struct {
	source  *MirrorSource
	request mirrorsource.Request
	spool   *spool
	seed    maphash.Seed
	cursors map[uint64]bool // hashes of those that were followed
	empty   int             // pages one after the other
}

// readPages reads all pages into the spool.
func (f *mirrorFetch) readPages(ctx context.Context) error {
	for cursor := ""; ; {
		before := f.spool.Records()
		next, err := f.readPage(ctx, cursor)
		if err != nil || next == "" {
			return err
		}
		if f.empty++; f.spool.Records() > before {
			f.empty = 0
		}
		hash := maphash.String(f.seed, next)
		switch {
		case len(next) > f.source.limits.cursor:
			return errLongCursor
		case f.cursors[hash]:
			return errCircle
		case f.empty >= f.source.limits.emptyPages:
			return errEmptyPages
		}
		f.cursors[hash] = true
		cursor = next
		if f.request.Observe != nil {
			f.request.Observe(f.spool.Records())
		}
	}
}

// pageURL returns the URL of the page that a cursor leads to.
func (f *mirrorFetch) pageURL(cursor string) (*url.URL, error) {
	u, err := url.Parse(f.request.URL.Address() + "/v0.1/servers")
	if err != nil {
		return nil, errors.New("the URL is not valid")
	}
	q := url.Values{"limit": {pageLimit}, "include_deleted": {"true"}}
	if !f.request.Since.IsZero() {
		q.Set("updated_since", f.request.Since.UTC().Format(time.RFC3339))
	}
	if cursor != "" {
		q.Set("cursor", cursor)
	}
	u.RawQuery = q.Encode()
	return u, nil
}

// readPage reads one page into the spool and returns the cursor of the next one.
func (f *mirrorFetch) readPage(ctx context.Context, cursor string) (next string, err error) {
	u, err := f.pageURL(cursor)
	if err != nil {
		return "", err
	}
	body, err := remotePart{client: f.source.client, url: u}.openBody(ctx)
	if err != nil {
		return "", err
	}
	defer func() { _ = body.Close() }() // it is read to its end, or an error says why not
	records := newRecordReader(&limitedReader{in: body, left: f.source.limits.pageBytes})
	for {
		raw, err := records.nextRecord()
		switch {
		case errors.Is(err, io.EOF):
			if !records.list {
				return "", errNoList
			}
			return records.nextCursor, nil
		case errors.Is(err, errTooLarge):
			raw = nil
		case err != nil:
			return "", err
		}
		if err := f.keep(raw, records.list); err != nil {
			return "", err
		}
	}
}

// keep adds a record to the spool; nil for one that is too large.
func (f *mirrorFetch) keep(raw []byte, list bool) error {
	switch {
	case !list:
		return errNoList
	case f.spool.Records() >= f.source.limits.records:
		return errManyRecords
	case f.spool.size+int64(len(raw)) > f.source.limits.bytes:
		return errLargeList
	}
	return f.spool.add(raw)
}

// limitedReader returns errLargePage after a number of bytes.
type limitedReader struct {
	in   io.Reader
	left int64
}

func (r *limitedReader) Read(p []byte) (int, error) {
	if r.left <= 0 {
		return 0, errLargePage
	}
	n, err := r.in.Read(p[:min(int64(len(p)), r.left)])
	r.left -= int64(n)
	return n, err
}
