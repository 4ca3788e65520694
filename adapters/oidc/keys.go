package oidc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/time/rate"

	"github.com/tollgate-dev/tollgate/adapters/internal/signed"
	"github.com/tollgate-dev/tollgate/ports/clock"
)

// keySet is what an issuer has published at one time. It does not change.
type keySet struct {
	discovery

	keys   signed.Keys
	life   time.Duration // after which the keys are read again
	readAt time.Time
}

// discovery is what the discovery document of an issuer says.
type discovery struct {
	Algorithms []string `json:"id_token_signing_alg_values_supported"` // a subset of signed.Asymmetric
	KeysURL    string   `json:"jwks_uri"`

	// For company sign-in only.
	AuthURL         string   `json:"authorization_endpoint"`
	TokenURL        string   `json:"token_endpoint"`
	UserinfoURL     string   `json:"userinfo_endpoint"`
	TokenAuth       []string `json:"token_endpoint_auth_methods_supported"`
	AnnouncesIssuer bool     `json:"authorization_response_iss_parameter_supported"`
}

// readKeys reads the discovery document of an issuer, and the keys at the address that it names.
func readKeys(ctx context.Context, client *http.Client, issuer string) (*keySet, error) {
	defer client.CloseIdleConnections() // the next call is in an hour
	document, err := discover(ctx, client, issuer)
	if err != nil {
		return nil, err
	}
	return fetchKeys(ctx, client, document)
}

func discover(ctx context.Context, client *http.Client, issuer string) (*discovery, error) {
	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, client), issuer)
	if err != nil {
		return nil, fmt.Errorf("read the discovery document: %w", err)
	}
	document := &discovery{Algorithms: []string{oidc.RS256}} // the algorithm that every issuer must support
	if err := provider.Claims(document); err != nil {
		return nil, fmt.Errorf("read the discovery document: %w", err)
	}
	if err := checkEndpoint("jwks_uri", document.KeysURL, issuer); err != nil {
		return nil, err
	}
	document.Algorithms = slices.DeleteFunc(signed.Asymmetric(), func(a string) bool {
		return !slices.Contains(document.Algorithms, a)
	})
	if len(document.Algorithms) == 0 {
		return nil, errors.New("the discovery document names no asymmetric signature algorithm")
	}
	return document, nil
}

// fetchKeys reads the keys at the address that a discovery document names.
func fetchKeys(ctx context.Context, client *http.Client, document *discovery) (*keySet, error) {
	found := &keySet{discovery: *document}
	text, header, err := fetchDocument(ctx, client, document.KeysURL)
	if err != nil {
		return nil, fmt.Errorf("read the keys: %w", err)
	}
	found.life = signed.Life(header, keyLife, minKeyLife, maxKeyLife)
	if found.keys, err = signed.ParseKeys(text); err != nil {
		return nil, fmt.Errorf("read the keys: %w", err)
	}
	return found, nil
}

// checkEndpoint returns an error if an issuer has an endpoint that is less safe than its discovery
// document.
func checkEndpoint(name, endpoint, issuer string) error {
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" {
		return fmt.Errorf("the discovery document has no %s that is a URL", name)
	}
	base, err := url.Parse(issuer)
	if err != nil || u.Scheme != "https" && u.Scheme != base.Scheme {
		return fmt.Errorf("%s of the discovery document does not begin with https://", name)
	}
	return nil
}

func fetchDocument(ctx context.Context, client *http.Client, address string) ([]byte, http.Header, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, nil, fmt.Errorf("make a request: %w", err)
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, nil, fmt.Errorf("send a request: %w", err)
	}
	defer func() { _ = response.Body.Close() }() // it was only read
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("the response has status %d", response.StatusCode)
	}
	return text, response.Header, err
}

// isTransport reports whether there was no answer, or, of a token endpoint, not all of it.
func isTransport(err error) bool {
	var failed *url.Error
	return errors.As(err, &failed)
}

const (
	keyLife      = time.Hour // after that time keys are read again, unless their headers say another
	minKeyLife   = 5 * time.Minute
	maxKeyLife   = 24 * time.Hour   // also that of a discovery document
	retryPause   = time.Second      // minimum time after a reading that failed
	rereadEvery  = 10 * time.Second // time between two readings because of unknown keys
	rereadsBurst = 5                // readings that may follow each other without that time
)

// keyCache keeps the keys of one issuer. At most one reading runs at a time; it does not end with
// the context of a caller. It is safe for concurrent use.
type keyCache struct {
	read    func(context.Context) (*keySet, error)
	clock   clock.Clock
	timeout time.Duration // of a reading
	rereads *rate.Limiter // readings because of unknown keys, which anybody can invent

	mu       sync.Mutex
	keys     *keySet   // of the last reading that succeeded; nil before it
	failure  error     // of the last reading; nil if it succeeded
	failedAt time.Time // the time of that failure
	running  *reading  // nil if no reading runs
}

func newKeyCache(
	clk clock.Clock, timeout time.Duration, rereads *rate.Limiter, read func(context.Context) (*keySet, error),
) *keyCache {
	return &keyCache{read: read, clock: clk, timeout: timeout, rereads: rereads}
}

// reading is a reading that may have several waiting callers.
type reading struct {
	done chan struct{} // closed when keys and err are set
	keys *keySet
	err  error
}

// currentKeys returns the keys. Old ones are returned while a reading replaces them, so that a slow
// issuer delays no token whose key is known. The first call waits for the reading, and returns its
// error.
func (c *keyCache) currentKeys(ctx context.Context) (*keySet, error) {
	c.mu.Lock()
	if c.running == nil && c.isDue(c.clock.Now()) {
		c.startReading()
	}
	keys, running, failure := c.keys, c.running, c.failure
	c.mu.Unlock()
	switch {
	case keys != nil:
		return keys, nil
	case running != nil:
		return running.wait(ctx)
	}
	return nil, failure
}

// newerKeys returns the keys after another reading. It returns old itself if keys were read too
// often, and the error of the reading if it failed.
func (c *keyCache) newerKeys(ctx context.Context, old *keySet) (*keySet, error) {
	c.mu.Lock()
	if c.keys != old {
		defer c.mu.Unlock()
		return c.keys, nil
	}
	if c.running == nil {
		now := c.clock.Now()
		if c.hasJustFailed(now) || !c.rereads.AllowN(now, 1) {
			defer c.mu.Unlock()
			return old, c.failure
		}
		c.startReading()
	}
	running := c.running
	c.mu.Unlock()
	return running.wait(ctx)
}

func (c *keyCache) isDue(now time.Time) bool {
	return !c.hasJustFailed(now) && (c.keys == nil || !isWithin(c.keys.life, c.keys.readAt, now))
}

func (c *keyCache) hasJustFailed(now time.Time) bool {
	return c.failure != nil && isWithin(retryPause, c.failedAt, now)
}

// isWithin reports whether less than d has passed since at. It is false if the clock was set back
// before at, so that nothing waits until the clock is there again.
func isWithin(d time.Duration, at, now time.Time) bool {
	passed := now.Sub(at)
	return passed >= 0 && passed < d
}

// startReading starts a reading. The caller holds the lock.
func (c *keyCache) startReading() {
	started := &reading{done: make(chan struct{})}
	c.running = started
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
		defer cancel()
		started.keys, started.err = c.read(ctx)
		c.finishReading(started)
		close(started.done)
	}()
}

func (c *keyCache) finishReading(ended *reading) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock.Now()
	c.running, c.failure = nil, ended.err
	if ended.err != nil {
		c.failedAt = now
		return
	}
	ended.keys.readAt = now
	c.keys = ended.keys
}

// wait returns the result of a reading, or the error of the context if it ends before.
func (r *reading) wait(ctx context.Context) (*keySet, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-r.done:
		return r.keys, r.err
	}
}
