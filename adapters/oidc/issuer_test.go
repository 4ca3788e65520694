package oidc

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/must"
	"github.com/tollgate-dev/tollgate/test/oidcissuer"
)

// newTimedSubject returns a subject with its clock and a short timeout.
func newTimedSubject(t *testing.T, timeout time.Duration) (subject, *clocktest.Manual) {
	t.Helper()
	i, clk := oidcissuer.Start(t), newClock()
	v, err := newVerifier(newConfig(i), clk, timeout)
	must.Succeed(t, err)
	return subject{v, i}, clk
}

func (s subject) checkFetches(t *testing.T, want int) {
	t.Helper()
	if got := s.issuer.Fetches(oidcissuer.DiscoveryPath); got != want {
		t.Errorf("the discovery document was fetched %d times, want %d", got, want)
	}
}

// isReading reports whether a reading of the keys runs.
func (s subject) isReading() bool {
	c := s.issuers[s.issuer.URL]
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running != nil
}

func TestKeysAreReadOnce(t *testing.T) {
	s, clk := newTimedSubject(t, maxWait)
	s.checkFetches(t, 0)
	for range 3 {
		s.checkAccepted(t, "a good token", s.newToken(t))
		clk.Advance(keyLife/3 - time.Second)
	}
	s.checkFetches(t, 1)
}

// TestNewKeyIsSeen checks that a token of a new key is accepted at once, and that one of a
// withdrawn key is refused then.
func TestNewKeyIsSeen(t *testing.T) {
	s, _ := newTimedSubject(t, maxWait)
	s.checkAccepted(t, "the first key", s.newToken(t))
	previous := s.issuer.RotateKeys(t)
	s.checkAccepted(t, "the previous key before the new one is seen", previous[0].Sign(t, s.newClaims()))
	s.checkAccepted(t, "the new key", s.newToken(t))
	s.checkFetches(t, 2)
	s.checkKind(t, "the previous key", previous[0].Sign(t, s.newClaims()), fault.Unauthenticated, "known key")
}

// TestWithdrawnKeyIsForgotten checks that a key that the issuer has withdrawn is refused after an
// hour, even if no token of another key arrives.
func TestWithdrawnKeyIsForgotten(t *testing.T) {
	s, clk := newTimedSubject(t, maxWait)
	s.checkAccepted(t, "the first key", s.newToken(t))
	previous := s.issuer.RotateKeys(t)
	clk.Advance(keyLife)
	s.verify(t, previous[0].Sign(t, s.newClaims())) // starts the reading
	await.Until(t, "the keys are read", func() bool { return !s.isReading() })
	s.checkKind(t, "the previous key", previous[0].Sign(t, s.newClaims()), fault.Unauthenticated, "known key")
}

// TestUnknownKeysAreBounded sends many tokens of invented keys.
func TestUnknownKeysAreBounded(t *testing.T) {
	s, clk := newTimedSubject(t, maxWait)
	s.checkAccepted(t, "a good token", s.newToken(t))
	invented := oidcissuer.NewKey(t, jose.ES256)
	flood := func() {
		for range 20 {
			s.checkKind(t, "an invented key", invented.Sign(t, s.newClaims()), fault.Unauthenticated, "known key")
		}
	}
	flood()
	s.checkFetches(t, 1+rereadsBurst)
	s.checkAccepted(t, "a known key after the flood", s.newToken(t))
	clk.Advance(rereadEvery)
	flood()
	s.checkFetches(t, 2+rereadsBurst)
	s.issuer.RotateKeys(t)
	clk.Advance(rereadEvery)
	s.checkAccepted(t, "a new key after the flood", s.newToken(t))
}

// TestWrongSignatureFetchesNothing checks that a token of a known key with a wrong signature, or of
// wrong claims, causes no request.
func TestWrongSignatureFetchesNothing(t *testing.T) {
	s, _ := newTimedSubject(t, maxWait)
	expired := s.newClaims()
	expired["exp"] = s.clock.Now().Add(-time.Hour).Unix()
	s.checkKind(t, "an expired token", s.issuer.Sign(t, expired), fault.Unauthenticated, "expired")
	s.checkFetches(t, 0)
	s.checkAccepted(t, "a good token", s.newToken(t))
	forged := oidcissuer.NewKey(t, jose.ES256)
	forged.ID = s.issuer.Key().ID
	s.checkKind(t, "a forged token", forged.Sign(t, s.newClaims()), fault.Unauthenticated, "signature")
	s.checkFetches(t, 1)
}

// TestUnreadableIssuers checks that everything that is wrong with an issuer is an outage, and that
// the issuer is used again when it works.
func TestUnreadableIssuers(t *testing.T) {
	long := oidcissuer.Document(map[string]any{"keys": []string{strings.Repeat("x", maxDocument)}})
	elsewhere := httptest.NewServer(http.NotFoundHandler())
	defer elsewhere.Close()
	change := func(i *oidcissuer.Issuer, name string, value any) http.Handler {
		document := i.Discovery()
		document[name] = value
		return oidcissuer.Document(document)
	}
	for name, begin := range map[string]func(i *oidcissuer.Issuer){
		"no connection":        func(i *oidcissuer.Issuer) { i.Disconnect() },
		"status 500":           func(i *oidcissuer.Issuer) { i.Fail(http.StatusInternalServerError) },
		"status 404":           func(i *oidcissuer.Issuer) { i.Fail(http.StatusNotFound) },
		"status 204":           func(i *oidcissuer.Issuer) { i.Fail(http.StatusNoContent) },
		"keys with status 500": func(i *oidcissuer.Issuer) { i.Respond(oidcissuer.KeysPath, http.NotFoundHandler()) },
		"text": func(i *oidcissuer.Issuer) {
			i.Respond(oidcissuer.DiscoveryPath, oidcissuer.Document("text"))
		},
		"another issuer": func(i *oidcissuer.Issuer) {
			i.Respond(oidcissuer.DiscoveryPath, change(i, "issuer", i.URL+"/"))
		},
		"no address of keys": func(i *oidcissuer.Issuer) {
			i.Respond(oidcissuer.DiscoveryPath, change(i, "jwks_uri", ""))
		},
		"wrong address of keys": func(i *oidcissuer.Issuer) {
			i.Respond(oidcissuer.DiscoveryPath, change(i, "jwks_uri", "file:///keys"))
		},
		"keys that are text": func(i *oidcissuer.Issuer) {
			i.Respond(oidcissuer.KeysPath, oidcissuer.Document("text"))
		},
		"no list of keys": func(i *oidcissuer.Issuer) {
			i.Respond(oidcissuer.KeysPath, oidcissuer.Document(map[string]any{}))
		},
		"long discovery": func(i *oidcissuer.Issuer) { i.Respond(oidcissuer.DiscoveryPath, long) },
		"long keys":      func(i *oidcissuer.Issuer) { i.Respond(oidcissuer.KeysPath, long) },
		"redirect to other host": func(i *oidcissuer.Issuer) {
			i.Respond(oidcissuer.KeysPath, http.RedirectHandler(elsewhere.URL, http.StatusFound))
		},
		"endless redirect": func(i *oidcissuer.Issuer) {
			i.Respond(oidcissuer.KeysPath, http.RedirectHandler("/keys", http.StatusFound))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, clk := newTimedSubject(t, maxWait)
			begin(s.issuer)
			err := s.verify(t, s.newToken(t))
			if f, ok := fault.As(
				err); !ok || f.Kind != fault.Unavailable || !strings.Contains(f.Message, s.issuer.URL) ||
				len(err.Error()) > 500 || strings.Contains(err.Error(), "out of order") {
				t.Errorf("verify: %v, want fault.Unavailable with the issuer and without a body", err)
			}
			s.checkFetches(t, 1)
			s.issuer.Recover()
			s.checkKind(t, "less than a second later", s.newToken(t), fault.Unavailable, "try again later")
			s.checkFetches(t, 1)
			clk.Advance(retryPause)
			s.checkAccepted(t, "a second later", s.newToken(t))
		})
	}
}

// TestRedirectWithinHost checks that an issuer may move its documents on its host.
func TestRedirectWithinHost(t *testing.T) {
	s := newSubject(t)
	s.issuer.Respond("/moved", oidcissuer.Document(oidcissuer.PublicKeys(s.issuer.Key())))
	s.issuer.Respond(oidcissuer.KeysPath, http.RedirectHandler("/moved", http.StatusFound))
	s.checkAccepted(t, "a good token", s.newToken(t))
}

// TestKnownKeysOutliveIssuer checks that tokens of known keys are accepted without the issuer, even
// after the time at which keys are read again.
func TestKnownKeysOutliveIssuer(t *testing.T) {
	for name, stop := range map[string]func(*oidcissuer.Issuer){
		"fails": func(i *oidcissuer.Issuer) { i.Fail(http.StatusBadGateway) },
		"hangs": func(i *oidcissuer.Issuer) { i.Hang() },
	} {
		t.Run(name, func(t *testing.T) {
			s, clk := newTimedSubject(t, 200*time.Millisecond)
			s.checkAccepted(t, "before", s.newToken(t))
			stop(s.issuer)
			for range 3 {
				clk.Advance(keyLife)
				s.checkAccepted(t, "without the issuer", s.newToken(t))
				await.Until(t, "the reading ends", func() bool { return !s.isReading() })
			}
			unknown := oidcissuer.NewKey(t, jose.ES256).Sign(t, s.newClaims())
			clk.Advance(retryPause)
			s.checkKind(t, "an unknown key", unknown, fault.Unavailable, "try again later")
			s.checkKind(t, "an unknown key at once", unknown, fault.Unavailable, "try again later")
			s.checkAccepted(t, "after unknown keys", s.newToken(t))
		})
	}
}

func TestHungIssuerEnds(t *testing.T) {
	s, clk := newTimedSubject(t, 50*time.Millisecond)
	s.issuer.Hang()
	err := s.verify(t, s.newToken(t))
	if !fault.Is(err, fault.Unavailable) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("verify: %v, want fault.Unavailable because of the timeout", err)
	}
	await.Until(t, "the reading ends", func() bool { return !s.isReading() })
	s.issuer.Recover()
	s.timeout = maxWait
	s.issuers[s.issuer.URL].timeout = maxWait
	clk.Advance(retryPause)
	s.checkAccepted(t, "after the issuer hung", s.newToken(t))
}

// TestFirstTokensShareReading checks that tokens that arrive together cause one reading, which does
// not end with the context of the first caller.
func TestFirstTokensShareReading(t *testing.T) {
	s, _ := newTimedSubject(t, maxWait)
	release := make(chan struct{})
	s.issuer.Respond(oidcissuer.DiscoveryPath, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-release
		oidcissuer.Document(s.issuer.Discovery()).ServeHTTP(w, r)
	}))
	ctx, cancel := context.WithCancel(t.Context())
	token, ended := s.newToken(t), make(chan error, 1)
	go func() {
		_, err := s.Verify(ctx, publisher.OIDC, token)
		ended <- err
	}()
	await.Until(t, "the reading begins", func() bool { return s.issuer.Fetches(oidcissuer.DiscoveryPath) == 1 })
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) || !fault.Is(err, fault.Unavailable) {
		t.Errorf("the first caller got %v, want fault.Unavailable because of context.Canceled", err)
	}
	var others sync.WaitGroup
	for range 4 {
		others.Go(func() { s.checkAccepted(t, "another caller", token) })
	}
	close(release)
	others.Wait()
	s.checkFetches(t, 1)
}

// TestClockSetBack checks that a clock that is set back does not make the verifier wait.
func TestClockSetBack(t *testing.T) {
	s, clk := newTimedSubject(t, maxWait)
	s.issuer.Fail(http.StatusInternalServerError)
	s.checkKind(t, "a failing issuer", s.newToken(t), fault.Unavailable, "")
	s.issuer.Recover()
	clk.Advance(-24 * time.Hour)
	s.checkAccepted(t, "a day earlier", s.newToken(t))
}
