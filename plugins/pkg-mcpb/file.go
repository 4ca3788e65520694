package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/plugins/sdk/registryclient"
)

// maxRedirects is the largest number of redirects of one download.
const maxRedirects = 3

// file is a file that may be downloaded.
type file struct {
	base     *registryclient.Base
	address  string
	maxBytes int64    // bytes
	stores   []string // other hosts that a redirect may lead to
}

// download calls read with the contents of the file. It returns errors of type
// *[registryclient.Error].
func (f file) download(ctx context.Context, read func(io.Reader) error) error {
	if len(f.stores) == 0 {
		return f.base.Fetch(ctx, f.address, registryclient.Options{MaxBytes: f.maxBytes}, read)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, f.address, nil)
	if err != nil {
		return f.newError(registryclient.ForbiddenURL, err)
	}
	return f.followRedirects(request, f.base.Transport(f.maxBytes, f.stores...), read)
}

// followRedirects downloads the file and follows redirects to the stores.
func (f file) followRedirects(request *http.Request, transport http.RoundTripper, read func(io.Reader) error) error {
	client := http.Client{Transport: transport, CheckRedirect: func(next *http.Request, before []*http.Request) error {
		return f.checkRedirect(request, next, len(before))
	}}
	response, err := client.Do(request)
	if err != nil {
		return f.classifyError(err)
	}
	defer func() { _ = response.Body.Close() }() // the body is read completely, or an error is returned
	if reason, ok := statusReason(response.StatusCode); !ok {
		return &registryclient.Error{
			Reason: reason, Host: request.URL.Host, Status: response.StatusCode,
			RetryAfter: registryclient.RetryAfter(response.Header),
		}
	}
	if response.ContentLength > f.maxBytes {
		return f.newError(registryclient.TooLarge, fmt.Errorf("the file is larger than %d bytes", f.maxBytes))
	}
	if err := read(response.Body); err != nil {
		return f.classifyError(err)
	}
	return nil
}

// checkRedirect allows redirects, at most maxRedirects, to the file's own host and the stores.
func (f file) checkRedirect(first, next *http.Request, hops int) error {
	next.Header.Del("Referer")
	if hops > maxRedirects {
		return f.newError(registryclient.ForbiddenRedirect, errors.New("too many redirects"))
	}
	sameHost := next.URL.Host == first.URL.Host || slices.Contains(f.stores, next.URL.Host)
	if next.URL.Scheme != "https" || next.URL.User != nil || !sameHost {
		return f.newError(registryclient.ForbiddenRedirect, errors.New("it leads to another host"))
	}
	return nil
}

// statusReason returns the reason of a status that is not a successful download; ok reports whether
// the download succeeded.
func statusReason(status int) (reason registryclient.Reason, ok bool) {
	switch {
	case status == http.StatusOK:
		return 0, true
	case status == http.StatusNotFound, status == http.StatusGone, status == http.StatusUnavailableForLegalReasons:
		return registryclient.NotFound, false
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return registryclient.Denied, false
	case status == http.StatusTooManyRequests, status == http.StatusRequestTimeout, status == http.StatusTooEarly:
		return registryclient.Throttled, false
	case status >= http.StatusInternalServerError:
		return registryclient.ServerError, false
	}
	return registryclient.Unexpected, false
}

// classifyError returns err if it is already a *[registryclient.Error], and otherwise reports it as
// an interrupted download.
func (f file) classifyError(err error) error {
	var known *registryclient.Error
	if errors.As(err, &known) {
		return known
	}
	return f.newError(registryclient.Unreachable, err)
}

func (f file) newError(reason registryclient.Reason, cause error) error {
	return &registryclient.Error{Reason: reason, Host: strings.TrimPrefix(f.base.URL(), "https://"), Err: cause}
}
