package registryjson

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/internal/pause"
)

// Limits for reading from another registry.
const (
	maxPages     = 1_000_000        // pages of a list
	maxTries     = 5                // attempts to get one page
	firstPause   = time.Second      // before the second attempt; doubles for each attempt after it
	maxPause     = time.Minute      // even if Retry-After is longer
	maxIdle      = 30 * time.Second // without a response, or without data of it
	maxRedirects = 5
	pageLimit    = "100"
)

// isURL reports whether a source's name is an http or https URL.
func isURL(name string) bool {
	lower := strings.ToLower(name)
	return strings.HasPrefix(lower, "http://") || strings.HasPrefix(lower, "https://")
}

// client sends requests to other registries.
type client struct {
	http    *http.Client
	pause   func(ctx context.Context, d time.Duration) bool
	tries   int           // attempts to get one page
	maxIdle time.Duration // without a response, or without data of it
	maxPage time.Duration // for one response, from the request to the end of the body; 0 for no limit
}

// newClient returns a client that follows at most maxRedirects redirects, but not from https to
// http.
func newClient(t http.RoundTripper) *client {
	return &client{
		http:  &http.Client{Transport: t, CheckRedirect: checkRedirect},
		pause: pause.For, tries: maxTries, maxIdle: maxIdle,
	}
}

// checkRedirect returns an error for a redirect that must not be followed. It removes the address
// of the redirecting page from the request, because the address may contain a secret.
func checkRedirect(req *http.Request, via []*http.Request) error {
	req.Header.Del("Referer")
	wasEncrypted := slices.ContainsFunc(via, func(r *http.Request) bool { return r.URL.Scheme == "https" })
	switch {
	case len(via) > maxRedirects:
		return redirectError(fmt.Sprintf("redirects more than %d times", maxRedirects))
	case wasEncrypted && req.URL.Scheme != "https":
		return redirectError("redirects from https to " + req.URL.Scheme)
	}
	return nil
}

// remotePart is the JSON text at a URL: a file, or one page of a list.
type remotePart struct {
	client *client
	url    *url.URL
	page   int
}

// newRemotePart returns the part at a URL. A URL whose path ends in /servers is a list;
// newRemotePart requests large pages and deleted versions, unless the URL has these parameters
// already.
func newRemotePart(address string, c *client) (remotePart, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return remotePart{}, errors.New("the URL is not valid")
	}
	u.Fragment = ""
	if strings.HasSuffix(u.Path, "/servers") {
		q := u.Query()
		for name, value := range map[string]string{"limit": pageLimit, "include_deleted": "true"} {
			if !q.Has(name) {
				q.Set(name, value)
			}
		}
		u.RawQuery = q.Encode()
	}
	return remotePart{client: c, url: u, page: 1}, nil
}

func (r remotePart) displayName() string { return r.url.Redacted() }

// nextPage returns the page of the list that starts at cursor.
func (r remotePart) nextPage(cursor string) (part, error) {
	q := r.url.Query()
	switch {
	case cursor == "":
		return nil, nil
	case q.Get("cursor") == cursor:
		return nil, fmt.Errorf("%s: the nextCursor of this page leads to the same page again", r.displayName())
	case r.page >= maxPages:
		return nil, fmt.Errorf("%s: the list has more than %d pages", r.displayName(), maxPages)
	}
	return r.at(cursor), nil
}

// at returns the page of the list that starts at cursor.
func (r remotePart) at(cursor string) remotePart {
	q := r.url.Query()
	q.Set("cursor", cursor)
	next := *r.url
	next.RawQuery = q.Encode()
	return remotePart{r.client, &next, r.page + 1}
}

// openBody requests the part. It retries while the registry is unavailable or limits the rate.
func (r remotePart) openBody(ctx context.Context) (io.ReadCloser, error) {
	delay := firstPause
	for try := 1; ; try++ {
		body, after, err := r.requestOnce(ctx)
		if err == nil || after < 0 || try == r.client.tries {
			return body, err
		}
		if !r.client.pause(ctx, min(max(delay, after), maxPause)) {
			return nil, ctx.Err()
		}
		delay *= 2
	}
}

// requestOnce sends one request. On an error, after is the minimum wait before the next attempt; it
// is negative if another attempt would fail too.
func (r remotePart) requestOnce(ctx context.Context) (body io.ReadCloser, after time.Duration, err error) {
	ctx, cancel := r.client.limitTime(ctx)
	watch := time.AfterFunc(r.client.maxIdle, func() { cancel(idleError(r.client.maxIdle)) })
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url.String(), nil)
	if err != nil {
		cancel(nil)
		return nil, -1, fmt.Errorf("request: %w", err)
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "tollgate")
	resp, err := r.client.http.Do(req) //nolint:bodyclose // watchedBody closes it
	watch.Stop()
	if err != nil {
		err = &networkError{withoutURL(err)}
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		cancel(nil)
		if isRefusedRedirect(err) {
			return nil, -1, err
		}
		return nil, 0, err
	}
	watched := &watchedBody{body: resp.Body, ctx: ctx, watch: watch, maxIdle: r.client.maxIdle, cancel: cancel}
	if resp.StatusCode == http.StatusOK {
		return watched, 0, nil
	}
	_ = watched.Close() // the status is enough for a message
	after = -1
	if resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= http.StatusInternalServerError {
		after = pause.RetryAfter(resp.Header)
	}
	return nil, after, statusError(resp.StatusCode)
}

// limitTime returns a context for one response, which ends after maxPage.
func (c *client) limitTime(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	if c.maxPage == 0 {
		return ctx, cancel
	}
	limit := time.AfterFunc(c.maxPage, func() {
		cancel(limitError(fmt.Sprintf("the response takes longer than %s", c.maxPage)))
	})
	return ctx, func(cause error) {
		limit.Stop()
		cancel(cause)
	}
}

// withoutURL removes the URL from an error, because the caller adds the part's name.
func withoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// watchedBody is a response body whose reads fail if no data arrives for maxIdle.
type watchedBody struct {
	body    io.ReadCloser
	ctx     context.Context
	watch   *time.Timer
	maxIdle time.Duration
	cancel  context.CancelCauseFunc
}

// Read waits at most maxIdle. The time between two calls of Read does not count.
func (w *watchedBody) Read(p []byte) (int, error) {
	w.watch.Reset(w.maxIdle)
	n, err := w.body.Read(p)
	w.watch.Stop()
	if err == nil || errors.Is(err, io.EOF) {
		return n, err
	}
	if cause := context.Cause(w.ctx); cause != nil {
		return n, cause
	}
	return n, &networkError{err}
}

func (w *watchedBody) Close() error {
	w.watch.Stop()
	err := w.body.Close()
	w.cancel(nil)
	return err
}
