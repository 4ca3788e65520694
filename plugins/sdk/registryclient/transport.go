package registryclient

import (
	"compress/flate"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// userAgent is how registries know who asks; some refuse requests without one.
const userAgent = "tollgate"

// maxHeader bounds the header of an answer, in bytes.
const maxHeader = 64 << 10

// transport returns a transport that verifies certificates, uses no proxy and decompresses nothing on its own.
func transport(dial func(context.Context, string, string) (net.Conn, error)) *http.Transport {
	return &http.Transport{
		DialContext: dial, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true,
		DisableCompression: true, MaxResponseHeaderBytes: maxHeader, MaxConnsPerHost: 32, MaxIdleConnsPerHost: 4,
		TLSHandshakeTimeout: dialTimeout, IdleConnTimeout: time.Minute,
	}
}

// roundTripper is a function as a transport.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements [http.RoundTripper].
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// requests is the transport of the requests that Base makes: each one, redirected ones too, gets credentials if, and only if, it
// is for what is below the base URL.
func (b *Base) requests() http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		r = r.Clone(r.Context())
		r.Header.Set("User-Agent", userAgent)
		r.Header.Del("Authorization")
		r.Header.Del("Referer")
		if b.below(r.URL) {
			b.registry.credentials.set(r.Header, b.client.rawToken)
		}
		return b.inner().RoundTrip(r)
	})
}

func (b *Base) inner() http.RoundTripper {
	if b.registry.configured {
		return b.client.open
	}
	return b.client.guarded
}

// givesTokens reports whether at is on a host that the operator named for tokens: over https, or http on the machine itself.
func (b *Base) givesTokens(at *url.URL) bool {
	return slices.Contains(b.registry.tokenHosts, canonicalHost(at)) && (at.Scheme == "https" || loopback(at.Hostname()))
}

// Transport returns a transport for a library that makes its own requests: it reaches the registry, its token hosts and, at
// public addresses only, the hosts also named; all else fails with [ForbiddenURL]. It bounds each body by maxBytes and sends no credentials of
// its own.
func (b *Base) Transport(maxBytes int64, also ...string) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		inner := b.inner()
		switch {
		case b.same(r.URL):
		case b.givesTokens(r.URL):
			inner = b.client.open
		case r.URL.Scheme == "https" && slices.Contains(also, canonicalHost(r.URL)):
			inner = b.client.guarded
		default:
			return nil, &Error{Reason: ForbiddenURL, Host: r.URL.Host}
		}
		r = r.Clone(r.Context())
		r.Header.Set("User-Agent", userAgent)
		response, err := inner.RoundTrip(r)
		if err != nil {
			return nil, b.failed(r.Context(), err)
		}
		response.Body = readCloser{&bounded{from: response.Body, left: maxBytes, most: maxBytes, host: r.URL.Host}, response.Body}
		return response, nil
	})
}

type readCloser struct {
	io.Reader
	io.Closer
}

// bounded fails with TooLarge once more bytes than the bound have come.
type bounded struct {
	from       io.Reader
	left, most int64
	host       string
}

// Read implements [io.Reader].
func (r *bounded) Read(p []byte) (int, error) {
	if int64(len(p)) > r.left+1 {
		p = p[:r.left+1]
	}
	n, err := r.from.Read(p)
	r.left -= int64(n)
	if r.left < 0 {
		r.left = 0
		return 0, &Error{Reason: TooLarge, Host: r.host, Err: fmt.Errorf("more than %d bytes", r.most)}
	}
	return n, err
}

// readWith hands the body to read, decompressed, and both sides of the compression bounded.
func (b *Base) readWith(ctx context.Context, response *http.Response, most int64, read func(io.Reader) error) error {
	host := b.registry.url.Host
	if response.ContentLength > most {
		return &Error{Reason: TooLarge, Host: host, Err: fmt.Errorf("more than %d bytes", most)}
	}
	var body io.Reader = &bounded{from: response.Body, left: most, most: most, host: host}
	if coding := response.Header.Get("Content-Encoding"); strings.EqualFold(coding, "gzip") {
		unzipped, err := gzip.NewReader(body)
		if err != nil {
			return b.broken(ctx, err)
		}
		body = &bounded{from: unzipped, left: most, most: most, host: host}
	} else if coding != "" && !strings.EqualFold(coding, "identity") {
		return &Error{Reason: Malformed, Host: host, Err: fmt.Errorf("content coding %q was not requested", shortened(coding))}
	}
	kept := &remembering{from: body}
	err := read(kept)
	if kept.err != nil {
		return b.broken(ctx, kept.err)
	}
	return err
}

// remembering tells the errors of a body from those of its reader.
type remembering struct {
	from io.Reader
	err  error
}

// Read implements [io.Reader].
func (r *remembering) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}

// broken returns the error for a body that ended badly.
func (b *Base) broken(ctx context.Context, err error) error {
	var corrupt flate.CorruptInputError
	if errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) || errors.As(err, &corrupt) {
		return &Error{Reason: Malformed, Host: b.registry.url.Host, Err: err}
	}
	return b.failed(ctx, err)
}

// failed returns the error for a request that got no answer.
func (b *Base) failed(ctx context.Context, err error) error {
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	if refused := (*errPrivate)(nil); errors.As(err, &refused) {
		return &Error{Reason: ForbiddenAddress, Host: b.registry.url.Host, Err: err}
	}
	if cause := ctx.Err(); cause != nil && !errors.Is(err, cause) {
		err = errors.Join(cause, err)
	}
	return &Error{Reason: Unreachable, Host: b.registry.url.Host, Err: err}
}

// refusedBy returns the error for an answer that is not 200.
func (b *Base) refusedBy(response *http.Response) error {
	e := &Error{Host: b.registry.url.Host, Status: response.StatusCode, Reason: Unexpected}
	switch s := response.StatusCode; {
	case s == http.StatusOK:
		return nil
	case s == http.StatusNotFound, s == http.StatusGone, s == http.StatusUnavailableForLegalReasons:
		e.Reason = NotFound
	case s >= http.StatusUnauthorized && s <= http.StatusForbidden, s == http.StatusProxyAuthRequired:
		e.Reason = Denied
	case s == http.StatusTooManyRequests, s == http.StatusTooEarly, s == http.StatusRequestTimeout:
		e.Reason = Throttled
	case s >= http.StatusInternalServerError:
		e.Reason = ServerError
	}
	e.RetryAfter = RetryAfter(response.Header)
	return e
}

// RetryAfter returns how long a registry asks to wait in the header of its answer, at most a day; 0 where it does not say. It is
// for plugins that make requests of their own; the errors of [Base] have it already.
func RetryAfter(header http.Header) time.Duration {
	return parseRetryAfter(header.Get("Retry-After"), time.Now())
}

// parseRetryAfter reads the header of that name, in both forms of RFC 9110; 0 for what is neither, or past.
func parseRetryAfter(value string, now time.Time) time.Duration {
	const most = 24 * time.Hour
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return min(time.Duration(seconds)*time.Second, most)
	}
	if at, err := http.ParseTime(value); err == nil {
		return min(max(at.Sub(now), 0), most)
	}
	return 0
}
