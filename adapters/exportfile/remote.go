package exportfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/pause"
)

// Bounds of reading from another registry.
const (
	maxPages   = 1_000_000        // of a list
	maxTries   = 5                // of one page
	firstPause = time.Second      // before the second try; doubled for each next one
	maxPause   = time.Minute      // also where the registry asks for more
	idle       = 30 * time.Second // without an answer or a byte of it
	redirects  = 5
	pageLimit  = "100"
)

func isURL(name string) bool {
	lower := strings.ToLower(name)
	return strings.HasPrefix(lower, "http://") || strings.HasPrefix(lower, "https://")
}

// client asks other registries.
type client struct {
	http  *http.Client
	pause func(ctx context.Context, d time.Duration) bool
}

func newClient(t http.RoundTripper) *client {
	return &client{
		http: &http.Client{Transport: t, CheckRedirect: func(req *http.Request, via []*http.Request) error {
			switch {
			case len(via) > redirects:
				return errors.New("redirects too often")
			case via[0].URL.Scheme == "https" && req.URL.Scheme != "https":
				return errors.New("redirects from https to " + req.URL.Scheme)
			}
			return nil
		}},
		pause: pause.For,
	}
}

// remote is a part behind a URL: one file, or a page of a list.
type remote struct {
	client *client
	url    *url.URL
	page   int
}

// newRemote returns the part of a URL. A list, whose path ends in /servers, is
// asked for large pages and for deleted versions, unless the URL says
// otherwise.
func newRemote(address string, c *client) (remote, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return remote{}, errors.New("the URL cannot be read as one")
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
	return remote{client: c, url: u, page: 1}, nil
}

func (r remote) name() string { return r.url.Redacted() }

// following returns the page that a list's cursor leads to.
func (r remote) following(cursor string) (part, error) {
	q := r.url.Query()
	switch {
	case cursor == "":
		return nil, nil
	case q.Get("cursor") == cursor:
		return nil, fmt.Errorf("%s: the list leads from this page to itself", r.name())
	case r.page >= maxPages:
		return nil, fmt.Errorf("%s: the list has more than %d pages", r.name(), maxPages)
	}
	q.Set("cursor", cursor)
	next := *r.url
	next.RawQuery = q.Encode()
	return remote{r.client, &next, r.page + 1}, nil
}

// open asks for the part, again where the registry is busy or away.
func (r remote) open(ctx context.Context) (io.ReadCloser, error) {
	wait := firstPause
	for try := 1; ; try++ {
		body, after, err := r.ask(ctx)
		if err == nil || after < 0 || try == maxTries {
			return body, err
		}
		if !r.client.pause(ctx, min(max(wait, after), maxPause)) {
			return nil, ctx.Err()
		}
		wait *= 2
	}
}

// ask asks once. after is how long to wait before the next try at least;
// negative when there is no use in one.
func (r remote) ask(ctx context.Context) (body io.ReadCloser, after time.Duration, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	watch := time.AfterFunc(idle, func() { cancel(errIdle) })
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url.String(), nil)
	if err != nil {
		cancel(nil)
		return nil, -1, fmt.Errorf("request: %w", err)
	}
	req.Header.Set("Accept", "application/json")
	resp, err := r.client.http.Do(req) //nolint:bodyclose // watchedBody closes it
	watch.Stop()
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		cancel(nil)
		return nil, 0, plain(err)
	}
	watched := &watchedBody{body: resp.Body, ctx: ctx, watch: watch, cancel: cancel}
	if resp.StatusCode == http.StatusOK {
		return watched, 0, nil
	}
	_ = watched.Close() // what it says is for programs
	after = -1
	if resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= http.StatusInternalServerError {
		after = retryAfter(resp.Header.Get("Retry-After"))
	}
	return nil, after, fmt.Errorf("answers %s", resp.Status)
}

// retryAfter reads the header, which counts seconds; a date is passed over.
func retryAfter(header string) time.Duration {
	seconds, err := strconv.ParseUint(header, 10, 16)
	if err != nil {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// plain leaves the URL out of an error, which names it anyway.
func plain(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

var errIdle = fmt.Errorf("nothing comes for %s", idle)

// watchedBody is the body of an answer that must keep coming.
type watchedBody struct {
	body   io.ReadCloser
	ctx    context.Context
	watch  *time.Timer
	cancel context.CancelCauseFunc
}

// Read waits for idle at most. Time in which nobody reads does not count.
func (w *watchedBody) Read(p []byte) (int, error) {
	w.watch.Reset(idle)
	n, err := w.body.Read(p)
	w.watch.Stop()
	if cause := context.Cause(w.ctx); err != nil && cause != nil {
		err = cause
	}
	return n, err
}

func (w *watchedBody) Close() error {
	w.watch.Stop()
	err := w.body.Close()
	w.cancel(nil)
	return err
}
