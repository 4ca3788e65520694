package authorizing_test

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestRefresh checks that a refresh renews the tokens and the session, with the level of now.
func TestRefresh(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	first := fx.tokens()
	fx.clock.Advance(24 * time.Hour)
	fx.changeSession(func(s *auth.Session) { s.TrustLevel, s.ReauthenticatedAt = auth.FullTrust, fx.clock.Now() })
	second, err := fx.token(refreshForm(first.Refresh, "resource", wiki+"/"))
	must.Succeed(t, err)
	a, b := fx.claims(first), fx.claims(second)
	if a.ID == b.ID || a.Granted.Family != b.Granted.Family || b.Granted.Level != auth.FullTrust ||
		!b.Granted.AuthTime.Equal(fx.clock.Now()) || second.Refresh == first.Refresh || len(second.Refresh) != 43 {
		t.Errorf("got %+v and %+v", b, b.Granted)
	}
	s, err := fx.ports.Sessions.Get(context.Background(), fx.session.ID)
	must.Succeed(t, err)
	if !s.LastActivity.Equal(fx.clock.Now()) || !s.ExpiresAt.Equal(fx.clock.Now().Add(fx.config.SessionTTL)) {
		t.Errorf("the session is %+v", s)
	}
	if got := fx.events("AUTHORIZATION"); len(got) != 3 || got[2] != "refresh" {
		t.Errorf("recorded: %q", got)
	}
}

// TestRefreshTokensOfOthers checks that a refresh token is good for its client and resource only, and that a
// wrong request does not use it up.
func TestRefreshTokensOfOthers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		changes []string
		want    string
	}{
		"another client":     {[]string{"client_id", "other", "client_secret", ""}, "invalid_grant"},
		"an unproved client": {[]string{"client_secret", "x"}, "invalid_client"},
		"another resource":   {[]string{"resource", issuer}, "invalid_target"},
		"more scopes":        {[]string{"scope", "read write admin"}, "invalid_scope"},
		"a guess":            {[]string{"refresh_token", "guess"}, "invalid_grant"},
		"none":               {[]string{"refresh_token", ""}, "invalid_request"},
		"as a code":          {[]string{"grant_type", "authorization_code"}, "invalid_grant"},
	} {
		fx := newFixture(t)
		got := fx.tokens()
		form := refreshForm(got.Refresh, c.changes...)
		if name == "as a code" {
			form = codeForm(string(got.Refresh))
		}
		_, err := fx.token(form)
		fx.wantCode(name, err, fault.Code(c.want))
		if _, err := fx.token(refreshForm(got.Refresh)); err != nil {
			t.Errorf("%s: the token is used up: %v", name, err)
		}
	}
}

// TestScopesShrink checks that a refresh can be for fewer scopes, and that what the resource has lost does not
// come back.
func TestScopesShrink(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	got := fx.tokens()
	refresh := func(want []string, changes ...string) {
		t.Helper()
		var err error
		got, err = fx.token(refreshForm(got.Refresh, changes...))
		must.Succeed(t, err)
		if !reflect.DeepEqual(got.Scopes, want) || !reflect.DeepEqual(fx.claims(got).Granted.Scopes, want) {
			t.Errorf("got %q, want %q", got.Scopes, want)
		}
	}
	refresh([]string{"read"}, "scope", "read")
	refresh([]string{"read", "write"})
	wikiWith := func(scopes ...string) {
		r := fx.resources["wiki"]
		r.Scopes = scopes
		fx.resources["wiki"] = r
	}
	wikiWith("read", "admin")
	refresh([]string{"read"})
	wikiWith("read", "write", "admin")
	refresh([]string{"read"})
	_, err := fx.token(refreshForm(got.Refresh, "scope", "write"))
	fx.wantCode("a scope that is gone", err, oauth.CodeInvalidScope)
}

// TestRefreshDecidesAgain checks that a refresh is refused after whatever ends a grant, with the reason in the
// audit log, once in a minute, and that it is good again if that was only for a time.
func TestRefreshDecidesAgain(t *testing.T) {
	t.Parallel()
	for name, c := range changesThatEnd() {
		fx := newFixture(t)
		got := fx.tokens()
		fx.clock.Advance(time.Second)
		c.change(fx)
		for range 3 {
			_, err := fx.token(refreshForm(got.Refresh))
			fx.wantCode(name, err, c.code)
		}
		if c.code == oauth.CodeInvalidClient {
			continue
		}
		if got := fx.events("AUTHORIZATION"); len(got) != 3 || got[2] != "refuse "+c.why {
			t.Errorf("%s: %q", name, got)
		}
		fx.clock.Advance(time.Minute)
		_, _ = fx.token(refreshForm(got.Refresh))
		if got := fx.events("AUTHORIZATION"); len(got) != 4 {
			t.Errorf("%s: a minute later: %q", name, got)
		}
		if f := fx.family(got); !f.EndedAt.IsZero() {
			t.Errorf("%s ends the family", name)
		}
	}
	fx := newFixture(t)
	got := fx.tokens()
	fx.gate.servers[0].Quarantined = true
	_, err := fx.token(refreshForm(got.Refresh))
	fx.wantCode("in quarantine", err, oauth.CodeInvalidGrant)
	fx.gate.servers[0].Quarantined = false
	_, err = fx.token(refreshForm(got.Refresh))
	must.Succeed(t, err)
}

// TestReplay checks that a refresh token that is used again ends its family, whichever generation it is of,
// and also while the server is in quarantine, but no other family and no session.
func TestReplay(t *testing.T) {
	t.Parallel()
	for name, quarantined := range map[string]bool{"open": false, "in quarantine": true} {
		fx := newFixture(t)
		other, first := fx.tokens(), fx.tokens()
		second, err := fx.token(refreshForm(first.Refresh))
		must.Succeed(t, err)
		third, err := fx.token(refreshForm(second.Refresh))
		must.Succeed(t, err)
		fx.gate.servers[0].Quarantined = quarantined
		_, err = fx.token(refreshForm(first.Refresh))
		fx.wantCode(name, err, oauth.CodeInvalidGrant)
		fx.gate.servers[0].Quarantined = false
		_, err = fx.token(refreshForm(third.Refresh))
		fx.wantCode(name+": the last one", err, oauth.CodeInvalidGrant)
		if f := fx.family(third); f.EndReason != oauth.EndReplay {
			t.Errorf("%s: the family is %+v", name, f)
		}
		if got := fx.events("SUSPICIOUS_ACTIVITY"); !reflect.DeepEqual(got, []string{"oauth_refresh_token_replay"}) {
			t.Errorf("%s: recorded: %q", name, got)
		}
		if _, err := fx.token(refreshForm(other.Refresh)); err != nil {
			t.Errorf("%s: another family ends: %v", name, err)
		}
	}
}

// TestReplayAfterTheSession: a token that is used again after its session has ended was worth nothing, and is no alarm.
func TestReplayAfterTheSession(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	first := fx.tokens()
	_, err := fx.token(refreshForm(first.Refresh))
	must.Succeed(t, err)
	fx.changeSession(func(s *auth.Session) { s.EndedAt = fx.clock.Now() })
	_, err = fx.token(refreshForm(first.Refresh))
	fx.wantCode("after the session", err, oauth.CodeInvalidGrant)
	if got := fx.events("SUSPICIOUS_ACTIVITY"); len(got) > 0 {
		t.Errorf("recorded: %q", got)
	}
}

// TestGrace checks that a repeated request gets the same successor for a while, as long as that is not used,
// and only if a token could be issued now.
func TestGrace(t *testing.T) {
	t.Parallel()
	grace := func(fx *fixture) { fx.config.ReuseGrace = 10 * time.Second }
	fx := newFixture(t, grace)
	first := fx.tokens()
	second, err := fx.token(refreshForm(first.Refresh))
	must.Succeed(t, err)
	fx.clock.Advance(10 * time.Second)
	again, err := fx.token(refreshForm(first.Refresh))
	must.Succeed(t, err)
	if again.Refresh != second.Refresh || again.Access == second.Access {
		t.Errorf("got %+v after %+v", again, second)
	}
	if got := fx.events("AUTHORIZATION"); len(got) != 4 {
		t.Errorf("recorded: %q", got)
	}
	fx.gate.servers[0].Quarantined = true
	_, err = fx.token(refreshForm(first.Refresh))
	fx.wantCode("in quarantine", err, oauth.CodeInvalidGrant)
	fx.gate.servers[0].Quarantined = false
	if f := fx.family(first); !f.EndedAt.IsZero() {
		t.Fatalf("a repeated request in quarantine ends the family")
	}
	fx.clock.Advance(time.Second)
	_, err = fx.token(refreshForm(first.Refresh))
	fx.wantCode("later", err, oauth.CodeInvalidGrant)
	if f := fx.family(first); f.EndReason != oauth.EndReplay {
		t.Errorf("later, the family is %+v", f)
	}

	fx = newFixture(t, grace)
	first = fx.tokens()
	second, err = fx.token(refreshForm(first.Refresh))
	must.Succeed(t, err)
	_, err = fx.token(refreshForm(second.Refresh))
	must.Succeed(t, err)
	_, err = fx.token(refreshForm(first.Refresh))
	fx.wantCode("after its successor", err, oauth.CodeInvalidGrant)
	if f := fx.family(first); f.EndReason != oauth.EndReplay {
		t.Errorf("after its successor, the family is %+v", f)
	}

	// What has ended is not good again.
	fx = newFixture(t, grace)
	first = fx.tokens()
	second, err = fx.token(refreshForm(first.Refresh))
	must.Succeed(t, err)
	must.Succeed(t, fx.revoke(nil, "client_id", "app", "client_secret", secret, "token", string(second.Refresh)))
	_, err = fx.token(refreshForm(first.Refresh))
	fx.wantCode("after a revocation", err, oauth.CodeInvalidGrant)

	// A code has no grace.
	fx = newFixture(t, grace)
	code := fx.agree(fx.visit())
	got, err := fx.token(codeForm(code))
	must.Succeed(t, err)
	_, err = fx.token(codeForm(code))
	fx.wantCode("a code again", err, oauth.CodeInvalidGrant)
	if f := fx.family(got); f.EndReason != oauth.EndReplay {
		t.Errorf("a code again: the family is %+v", f)
	}
}

// TestFamiliesEnd checks that a family lives for 30 days, however it is refreshed, and that the oldest of many
// ends.
func TestFamiliesEnd(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	fx.changeSession(func(s *auth.Session) { s.MaxExpiresAt = s.CreatedAt.AddDate(1, 0, 0) })
	got := fx.tokens()
	for day := range 29 {
		fx.clock.Advance(24 * time.Hour)
		fx.changeSession(func(s *auth.Session) { s.ExpiresAt = fx.clock.Now().AddDate(0, 0, 7) })
		next, err := fx.token(refreshForm(got.Refresh))
		if err != nil {
			t.Fatalf("day %d: %v", day, err)
		}
		got = next
	}
	fx.clock.Advance(24*time.Hour - time.Minute)
	fx.changeSession(func(s *auth.Session) { s.ExpiresAt = fx.clock.Now().AddDate(0, 0, 7) })
	got, err := fx.token(refreshForm(got.Refresh))
	must.Succeed(t, err)
	if got.ExpiresIn != time.Minute {
		t.Errorf("the last token expires in %v", got.ExpiresIn)
	}
	fx.clock.Advance(time.Minute)
	_, err = fx.token(refreshForm(got.Refresh))
	fx.wantCode("after 30 days", err, oauth.CodeInvalidGrant)

	fx = newFixture(t)
	oldest := fx.tokens()
	for range oauth.MaxFamilies {
		fx.clock.Advance(time.Second)
		got = fx.tokens()
	}
	_, err = fx.token(refreshForm(oldest.Refresh))
	fx.wantCode("the oldest", err, oauth.CodeInvalidGrant)
	_, err = fx.token(refreshForm(got.Refresh))
	must.Succeed(t, err)
}

// TestResourcesWithoutRefresh checks that refresh tokens end when the resource has them no more.
func TestResourcesWithoutRefresh(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	got := fx.tokens()
	r := fx.resources["wiki"]
	r.Refresh = false
	fx.resources["wiki"] = r
	_, err := fx.token(refreshForm(got.Refresh))
	fx.wantCode("without refresh tokens", err, oauth.CodeInvalidGrant)
}
