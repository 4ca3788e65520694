package clientdocs

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/internal/signed"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/recent"
	"github.com/tollgate-dev/tollgate/plugins/sdk/publicdial"
	"github.com/tollgate-dev/tollgate/ports/clock"
)

const (
	deadline  = 5 * time.Second // of everything from the DNS lookup to the end of the text
	maxHeader = 16 << 10        // bytes of the header of a response
	atOnce    = 32              // fetches that run at the same time
	leastLife = time.Minute     // that of a copy whose headers say nothing, or less
	mostLife  = 24 * time.Hour
	perMinute = 10     // fetches of a minute from one host
	maxHosts  = 20_000 // fetches of a minute whose hosts are remembered
)

// fetcher reads texts of others. It is safe for concurrent use.
type fetcher struct {
	client   *http.Client
	clock    clock.Clock
	deadline time.Duration
	slots    chan struct{}

	mu    sync.Mutex
	hosts recent.Memory[string, *window]
}

// window has the times of the last fetches from a host, as a ring: the next one takes the place of the
// oldest.
type window struct {
	times [perMinute]time.Time
	next  int
}

// newFetcher returns a fetcher that connects to public addresses and to those of the networks, without a
// proxy, which would resolve names itself.
func newFetcher(c Config, clk clock.Clock) *fetcher {
	return fetcherBy(publicdial.Config{Allowed: c.Networks, Timeout: deadline}, &tls.Config{MinVersion: tls.VersionTLS12}, clk)
}

func fetcherBy(dial publicdial.Config, security *tls.Config, clk clock.Clock) *fetcher {
	return &fetcher{clock: clk, deadline: deadline, slots: make(chan struct{}, atOnce), client: &http.Client{
		Transport: &http.Transport{
			DialContext: publicdial.New(dial), TLSClientConfig: security,
			DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: maxHeader,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// fetch returns the text at an https address, and how long it may be kept. It returns fault.Invalid, with
// the reason, for anything but a JSON text of at most so many bytes within the deadline, and
// fault.Exhausted if the host was asked too often.
func (f *fetcher) fetch(ctx context.Context, address string, most int) ([]byte, time.Duration, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
		return nil, 0, refuse("the address is not an https URL")
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if wait := f.admit(host, f.clock.Now()); wait > 0 {
		return nil, 0, fault.Newf(fault.Exhausted, "%.253s was asked too often; try again later", host).After(wait)
	}
	select {
	case f.slots <- struct{}{}:
		defer func() { <-f.slots }()
	case <-ctx.Done():
		return nil, 0, failed(ctx.Err())
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, 0, refuse("the address is not an https URL")
	}
	for name, value := range map[string]string{
		"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "tollgate",
	} {
		request.Header.Set(name, value)
	}
	response, err := f.client.Do(request)
	if err != nil {
		return nil, 0, failed(err)
	}
	defer func() { _ = response.Body.Close() }() // it was only read
	text, err := readJSON(response, most)
	return text, signed.Life(response.Header, leastLife, leastLife, mostLife), err
}

// admit counts a fetch from a host. It returns how long to wait if there were too many within a minute.
func (f *fetcher) admit(host string, now time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	w, ok := f.hosts.Get(host)
	if !ok {
		w = new(window)
	}
	if oldest := w.times[w.next]; isWithin(time.Minute, oldest, now) {
		return time.Minute - now.Sub(oldest)
	}
	w.times[w.next] = now
	w.next = (w.next + 1) % perMinute
	f.hosts.Put(host, w, 1, now, recent.Bounds{Size: maxHosts, Age: time.Minute})
	return 0
}

// readJSON returns the text of a response.
func readJSON(response *http.Response, most int) ([]byte, error) {
	media, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	encoding := response.Header.Get("Content-Encoding")
	switch {
	case response.StatusCode >= http.StatusInternalServerError:
		return nil, refuse("the server responds with an error of its own").WithCode(oauth.CodeDocumentAway)
	case response.StatusCode != http.StatusOK:
		return nil, fault.Newf(fault.Invalid, "the server responds with status %d", response.StatusCode)
	case err != nil || media != "application/json" && (!strings.HasPrefix(media, "application/") || !strings.HasSuffix(media, "+json")):
		return nil, refuse("the content type of the response is not that of JSON")
	case encoding != "" && !strings.EqualFold(encoding, "identity"):
		return nil, refuse("the response is compressed, which was not asked for")
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, int64(most)+1))
	switch {
	case err != nil:
		return nil, failed(err)
	case len(text) > most:
		return nil, fault.Newf(fault.Invalid, "the response is longer than %d bytes", most)
	}
	return text, nil
}

func refuse(reason string) *fault.Error { return fault.New(fault.Invalid, reason) }

// failed returns the error for a failure to read, which may be over soon. It does not contain addresses,
// which may be internal.
func failed(err error) error {
	var private *publicdial.RefusedError
	var certificate *tls.CertificateVerificationError
	var late net.Error
	switch {
	case errors.As(err, &private):
		return refuse("the host has no public address")
	case errors.As(err, &certificate):
		return refuse("the server has no valid certificate")
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &late) && late.Timeout():
		return refuse("there was no answer in time").WithCode(oauth.CodeDocumentAway)
	}
	return refuse("the connection failed").WithCode(oauth.CodeDocumentAway)
}
