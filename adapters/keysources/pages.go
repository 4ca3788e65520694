package keysources

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/plugins/sdk/publicdial"
)

// The bounds of a page (contract P-7).
const (
	pageDeadline  = 10 * time.Second // of everything from the DNS lookup to the end of the page
	maxPage       = 4096             // bytes
	maxPageHeader = 16 << 10         // bytes of the header of the response
)

const (
	pagePath  = "/.well-known/mcp-registry-auth"
	pagePort  = "443"
	userAgent = "tollgate"
)

// Pages reads a page of each domain over https. It implements
// [github.com/tollgate-dev/tollgate/ports/domainkeys.Source].
type Pages struct {
	resolver  *net.Resolver
	connect   func(ctx context.Context, network, address string) (net.Conn, error)
	transport *http.Transport
	port      string
	shared    sharedRead
}

// NewPages returns a source that connects to public addresses and to those of the settings. It
// returns an error that names the setting if the file of certificates cannot be read.
func NewPages(c Config) (*Pages, error) { return pagesWithin(c, pageDeadline, pagePort) }

func pagesWithin(c Config, deadline time.Duration, port string) (*Pages, error) {
	security, err := c.tlsFiles().Config()
	if err != nil {
		return nil, err
	}
	p := &Pages{resolver: newResolver(c.Resolver, attemptTimeout), port: port}
	p.connect = publicdial.New(publicdial.Config{Allowed: c.Networks, Resolver: p.resolver, Timeout: deadline})
	// The transport has no proxy, because a proxy would resolve the name itself.
	p.transport = &http.Transport{
		DialContext: p.dial, TLSClientConfig: security, TLSHandshakeTimeout: deadline,
		DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: maxPageHeader,
	}
	p.shared.flight.Deadline, p.shared.read = deadline, p.fetch
	return p, nil
}

// Texts returns the lines of the domain's page. It returns fault.Unauthenticated if the domain is
// at fault: it has no address, none that the service connects to, or no page in the required form.
// It returns fault.Unavailable after any other failure.
func (p *Pages) Texts(ctx context.Context, d publisher.Domain) ([]string, error) {
	texts, err := p.shared.join(ctx, d)
	if err == nil {
		return texts, nil
	}
	if refused := (*refusal)(nil); errors.As(err, &refused) {
		return nil, fault.Wrap(fault.Unauthenticated, refused.reason, refused.err)
	}
	return nil, fault.Wrap(fault.Unavailable,
		fmt.Sprintf("%s cannot be read now: %s; try again later", pageURL(d), failureReason(err)), err)
}

// refusal is the error of a page that does not count for a reason that lies in the domain.
type refusal struct {
	reason string
	err    error // the cause, if there is one
}

func (r *refusal) Error() string { return r.reason }

func refuse(d publisher.Domain, format string, args ...any) error {
	return &refusal{reason: pageURL(d) + " " + fmt.Sprintf(format, args...)}
}

// statusError is the error of a response that says that the server does not work now.
type statusError struct{ status int }

// Error returns a sentence with the status.
func (e *statusError) Error() string { return fmt.Sprintf("the server responds with %d", e.status) }

// failureReason returns a clause for a failure that may pass. It does not contain addresses, which
// may be internal.
func failureReason(err error) string {
	var status *statusError
	var certificate *tls.CertificateVerificationError
	var lookup *net.DNSError
	switch {
	case errors.As(err, &status):
		return status.Error()
	case errors.As(err, &certificate):
		return "the server has no valid certificate"
	case isTimeout(err):
		return "there was no answer in time"
	case errors.As(err, &lookup):
		return "the DNS lookup failed"
	}
	return "the connection failed"
}

func pageURL(d publisher.Domain) string { return "https://" + d.String() + pagePath }

// dial connects to the domain of the page, which is resolved as an absolute name.
func (p *Pages) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("split the address of the page: %w", err)
	}
	return p.connect(ctx, network, net.JoinHostPort(absoluteName(host), p.port))
}

// fetch reads the page once.
func (p *Pages) fetch(ctx context.Context, d publisher.Domain) ([]string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, pageURL(d), http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("make the request: %w", err)
	}
	request.Header.Set("User-Agent", userAgent)
	response, err := p.transport.RoundTrip(request) // unlike a client, it does not follow redirects
	if err != nil {
		return nil, p.requestError(ctx, d, err)
	}
	defer response.Body.Close()
	if err := checkResponse(d, response); err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxPage+1))
	if err == nil {
		err = ctx.Err() // a server that notices the deadline first may end a page that is not complete
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the page: %w", err)
	case len(body) > maxPage:
		return nil, refuse(d, "has more than %d bytes", maxPage)
	}
	return splitLines(string(body)), nil
}

// requestError returns the error of a request without a response.
func (p *Pages) requestError(ctx context.Context, d publisher.Domain, err error) error {
	if refused := (*publicdial.RefusedError)(nil); errors.As(err, &refused) {
		return &refusal{
			fmt.Sprintf("%s has an address that is not public, to which the service does not connect", d), err,
		}
	}
	if isNotFound(err) && p.hasNoAddress(ctx, d) {
		return &refusal{fmt.Sprintf("%s has no address, so that its page cannot be read", d), err}
	}
	return fmt.Errorf("get the page: %w", err)
}

// hasNoAddress reports whether the domain has neither A nor AAAA records. The error of a connection
// does not say that: it is that of one of the two lookups, of which the other may have failed.
func (p *Pages) hasNoAddress(ctx context.Context, d publisher.Domain) bool {
	for _, family := range []string{"ip4", "ip6"} {
		if _, err := p.resolver.LookupNetIP(ctx, family, absoluteName(d.String())); !isNotFound(err) {
			return false
		}
	}
	return true
}

// checkResponse returns an error if the body of the response is not the page.
func checkResponse(d publisher.Domain, r *http.Response) error {
	switch s := r.StatusCode; {
	case s == http.StatusTooManyRequests, s >= http.StatusInternalServerError:
		return &statusError{s}
	case s >= http.StatusMultipleChoices && s < http.StatusBadRequest:
		return refuse(d, "redirects; publish the page at this address without a redirect")
	case s != http.StatusOK:
		return refuse(d, "responds with %d; publish the page at this address", s)
	}
	if coding := r.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return refuse(d, "is compressed; publish the page without a content coding")
	}
	return nil
}

// splitLines returns the lines that are not empty.
func splitLines(page string) []string {
	var lines []string
	for line := range strings.Lines(page) {
		if line = strings.TrimRight(line, "\r\n"); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}
