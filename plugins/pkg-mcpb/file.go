package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/plugins/sdk/registryclient"
)

// maxRedirects bounds how often a download is redirected.
const maxRedirects = 3

// file is one that may be downloaded.
type file struct {
	base    *registryclient.Base
	address string
	most    int64    // bytes
	stores  []string // hosts that a redirect may lead to besides its own
}

// download hands the contents to read. Errors are of type [registryclient.Error].
func (f file) download(ctx context.Context, read func(io.Reader) error) error {
	if len(f.stores) == 0 {
		return f.base.Fetch(ctx, f.address, registryclient.Options{MaxBytes: f.most}, read)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, f.address, nil)
	if err != nil {
		return f.failed(registryclient.ForbiddenURL, err)
	}
	return f.follow(request, f.base.Transport(f.most, f.stores...), read)
}

// follow is a download that may be redirected to the stores.
func (f file) follow(request *http.Request, transport http.RoundTripper, read func(io.Reader) error) error {
	client := http.Client{Transport: transport, CheckRedirect: func(next *http.Request, before []*http.Request) error {
		return f.redirect(request, next, len(before))
	}}
	response, err := client.Do(request)
	if err != nil {
		return f.broken(err)
	}
	defer func() { _ = response.Body.Close() }() // what was read is whole by now, or its error is reported
	if reason, ok := accepted(response.StatusCode); !ok {
		return &registryclient.Error{
			Reason: reason, Host: request.URL.Host, Status: response.StatusCode, RetryAfter: registryclient.RetryAfter(response.Header),
		}
	}
	if response.ContentLength > f.most {
		return f.failed(registryclient.TooLarge, errors.New("the file is larger than is accepted"))
	}
	if err := read(response.Body); err != nil {
		return f.broken(err)
	}
	return nil
}

// redirect allows a few redirects, to the file's own host and the stores.
func (f file) redirect(first, next *http.Request, hops int) error {
	next.Header.Del("Referer")
	if hops > maxRedirects {
		return f.failed(registryclient.ForbiddenRedirect, errors.New("too often"))
	}
	sameHost := next.URL.Host == first.URL.Host || slices.Contains(f.stores, next.URL.Host)
	if next.URL.Scheme != "https" || next.URL.User != nil || !sameHost {
		return f.failed(registryclient.ForbiddenRedirect, errors.New("to another host"))
	}
	return nil
}

// accepted reports whether a status is the one of a download, and if not, what it means.
func accepted(status int) (reason registryclient.Reason, ok bool) {
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

// broken keeps an error that is classed already, and takes others for a download that broke off.
func (f file) broken(err error) error {
	var known *registryclient.Error
	if errors.As(err, &known) {
		return known
	}
	return f.failed(registryclient.Unreachable, err)
}

func (f file) failed(reason registryclient.Reason, cause error) error {
	return &registryclient.Error{Reason: reason, Host: strings.TrimPrefix(f.base.URL(), "https://"), Err: cause}
}
