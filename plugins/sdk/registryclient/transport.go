package registryclient

import (
	"cmp"
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

	"golang.org/x/net/http/httpproxy"

	"github.com/tollgate-dev/tollgate/plugins/sdk/publicdial"
)

// userAgent is sent with each request because some registries refuse requests without one.
const userAgent = "tollgate"

// maxHeader is the size limit of the header of a response, in bytes.
const maxHeader = 64 << 10

// newTransport returns a transport that verifies certificates, uses no proxy and does not
// decompress.
func newTransport(dial func(context.Context, string, string) (net.Conn, error)) *http.Transport {
	return &http.Transport{
		DialContext: dial, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true,
		DisableCompression: true, MaxResponseHeaderBytes: maxHeader, MaxConnsPerHost: 32, MaxIdleConnsPerHost: 4,
		TLSHandshakeTimeout: dialTimeout, IdleConnTimeout: time.Minute,
	}
}

// roundTripFunc is a function that implements [http.RoundTripper].
type roundTripFunc func(*http.Request) (*http.Response, error)

// RoundTrip implements [http.RoundTripper].
func (f roundTripFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// credentialTransport returns the transport of the requests of Base. It adds the credentials to a
// request, also after a redirect, only if its URL is below the base URL.
func (b *Base) credentialTransport() http.RoundTripper {
	return roundTripFunc(func(r *http.Request) (*http.Response, error) {
		r = r.Clone(r.Context())
		r.Header.Set("User-Agent", userAgent)
		r.Header.Del("Authorization")
		r.Header.Del("Referer")
		if b.isBelow(r.URL) {
			b.registry.credentials.setHeader(r.Header, b.client.rawToken)
		}
		if !b.isSameHost(r.URL) { // one of Options.RedirectHosts
			return b.client.guarded.RoundTrip(r)
		}
		return b.networkTransport().RoundTrip(r)
	})
}

func (b *Base) networkTransport() http.RoundTripper {
	if b.registry.configured {
		return b.client.unguarded
	}
	return b.client.guarded
}

// isTokenHost reports whether at is on a configured token host, over https, or over http on this
// machine.
func (b *Base) isTokenHost(at *url.URL) bool {
	return slices.Contains(b.registry.tokenHosts, canonicalHost(at)) &&
		(at.Scheme == "https" || publicdial.IsLoopback(at.Hostname()))
}

// Transport returns a transport for a library that makes its own requests. It connects to the
// registry, its token hosts and, over https at public addresses only, the hosts in also; other
// requests fail with [ForbiddenURL]. It limits each body to maxBytes and adds no credentials.
func (b *Base) Transport(maxBytes int64, also ...string) http.RoundTripper {
	return roundTripFunc(func(r *http.Request) (*http.Response, error) {
		inner := b.networkTransport()
		switch {
		case b.isSameHost(r.URL):
		case b.isTokenHost(r.URL):
			inner = b.client.unguarded
		case r.URL.Scheme == "https" && slices.Contains(also, canonicalHost(r.URL)):
			inner = b.client.guarded
		default:
			return nil, &Error{Reason: ForbiddenURL, Host: r.URL.Host}
		}
		r = r.Clone(r.Context())
		r.Header.Set("User-Agent", userAgent)
		response, err := inner.RoundTrip(r)
		if err != nil {
			return nil, b.requestError(r.Context(), err)
		}
		response.Body = readCloser{
			&boundedReader{from: response.Body, left: maxBytes, most: maxBytes, host: r.URL.Host}, response.Body,
		}
		return response, nil
	})
}

type readCloser struct {
	io.Reader
	io.Closer
}

// boundedReader returns an error with the reason TooLarge after more than most bytes.
type boundedReader struct {
	from       io.Reader
	left, most int64
	host       string
}

// Read implements [io.Reader].
func (r *boundedReader) Read(p []byte) (int, error) {
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

// readBody calls read with the decompressed body and limits its size before and after
// decompression.
func (b *Base) readBody(ctx context.Context, response *http.Response, most int64, read func(io.Reader) error) error {
	host := b.registry.url.Host
	if response.ContentLength > most {
		return &Error{Reason: TooLarge, Host: host, Err: fmt.Errorf("more than %d bytes", most)}
	}
	var body io.Reader = &boundedReader{from: response.Body, left: most, most: most, host: host}
	if coding := response.Header.Get("Content-Encoding"); strings.EqualFold(coding, "gzip") {
		unzipped, err := gzip.NewReader(body)
		if err != nil {
			return b.bodyError(ctx, err)
		}
		body = &boundedReader{from: unzipped, left: most, most: most, host: host}
	} else if coding != "" && !strings.EqualFold(coding, "identity") {
		return &Error{
			Reason: Malformed, Host: host, Err: fmt.Errorf("content coding %q was not requested", shortenText(coding)),
		}
	}
	kept := &errorRecorder{from: body}
	err := read(kept)
	if kept.err != nil {
		return b.bodyError(ctx, kept.err)
	}
	return err
}

// errorRecorder records the error of a body, to distinguish it from other errors of the function
// that reads it.
type errorRecorder struct {
	from io.Reader
	err  error
}

// Read implements [io.Reader].
func (r *errorRecorder) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}

// bodyError returns the error for a body that could not be read completely.
func (b *Base) bodyError(ctx context.Context, err error) error {
	var corrupt flate.CorruptInputError
	if errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) || errors.As(err, &corrupt) {
		return &Error{Reason: Malformed, Host: b.registry.url.Host, Err: err}
	}
	return b.requestError(ctx, err)
}

// requestError returns the error for a request without a response.
func (b *Base) requestError(ctx context.Context, err error) error {
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	if refused := (*publicdial.RefusedError)(nil); errors.As(err, &refused) {
		return &Error{Reason: ForbiddenAddress, Host: b.registry.url.Host, Err: err}
	}
	if cause := ctx.Err(); cause != nil && !errors.Is(err, cause) {
		err = errors.Join(cause, err)
	}
	return &Error{Reason: Unreachable, Host: b.registry.url.Host, Err: err}
}

// statusError returns the error for a response whose status is not 200, and nil for 200.
func (b *Base) statusError(response *http.Response) error {
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

// RetryAfter returns the delay that a registry requests in the header of its response, at most a
// day, or 0 if it requests no delay. Use it in plugins that make their own requests; the errors of
// [Base] already contain the delay.
func RetryAfter(header http.Header) time.Duration {
	return parseRetryAfter(header.Get("Retry-After"), time.Now())
}

// parseRetryAfter returns the delay of a Retry-After header, in either form of RFC 9110. It returns
// 0 for a malformed value or a time in the past.
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

// proxyFinder returns the proxy for a URL, or nil for a direct connection.
type proxyFinder func(*url.URL) (*url.URL, error)

// parseProxies returns the proxies of HTTPS_PROXY, HTTP_PROXY and NO_PROXY in upper or lower case,
// or nil if no proxy is set. It returns an error that names a malformed variable. The error does
// not show the value, which may contain a password.
func parseProxies(environment func(string) string) (proxyFinder, error) {
	either := func(name string) string { return cmp.Or(environment(name), environment(strings.ToLower(name))) }
	settings := httpproxy.Config{
		HTTPSProxy: either("HTTPS_PROXY"), HTTPProxy: either("HTTP_PROXY"), NoProxy: either("NO_PROXY"),
	}
	for _, proxy := range []struct{ name, value string }{
		{"HTTPS_PROXY", settings.HTTPSProxy}, {"HTTP_PROXY", settings.HTTPProxy},
	} {
		if !isProxyURL(proxy.value) {
			return nil, fmt.Errorf("%s must be the http or https URL of a proxy", proxy.name)
		}
	}
	if settings.HTTPSProxy == "" && settings.HTTPProxy == "" {
		return nil, nil
	}
	return settings.ProxyFunc(), nil
}

// isProxyURL reports whether value is empty or the URL of a proxy, with or without its scheme.
func isProxyURL(value string) bool {
	if value == "" {
		return true
	}
	if !strings.Contains(value, "://") {
		value = "http://" + value
	}
	at, err := url.Parse(value)
	return err == nil && (at.Scheme == "http" || at.Scheme == "https") && at.Hostname() != ""
}

// proxyTransport sends each request through its proxy, or directly if it has no proxy. A proxy may
// have any address because the operator configured it. The proxy resolves the name of the host, so
// the addresses cannot be checked here; proxyTransport therefore refuses hosts for which reachable
// returns false.
type proxyTransport struct {
	direct, through *http.Transport
	find            proxyFinder
	reachable       func(host string) bool
}

// withProxies returns a transport that uses dial for direct connections; find may be nil.
func withProxies(
	dial func(context.Context, string, string) (net.Conn, error), find proxyFinder, reachable func(host string) bool,
) http.RoundTripper {
	direct := newTransport(dial)
	if find == nil {
		return direct
	}
	through := newTransport((&net.Dialer{Timeout: dialTimeout}).DialContext)
	through.Proxy = func(r *http.Request) (*url.URL, error) { return find(r.URL) }
	return &proxyTransport{direct: direct, through: through, find: find, reachable: reachable}
}

// RoundTrip implements [http.RoundTripper].
func (p *proxyTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	proxy, err := p.find(r.URL)
	switch {
	case err != nil:
		return nil, errors.New("choosing a proxy failed") // the cause may show the proxy's password
	case proxy == nil:
		return p.direct.RoundTrip(r) //nolint:wrapcheck // a RoundTripper returns the error of its transport
	case !p.reachable(r.URL.Hostname()):
		return nil, &publicdial.RefusedError{Address: r.URL.Host}
	}
	return p.through.RoundTrip(r) //nolint:wrapcheck // a RoundTripper returns the error of its transport
}

// allowAnyHost returns true: the operator configured the host.
func allowAnyHost(string) bool { return true }
