package acceptance

import (
	"net/http"
	"strconv"
	"testing"
	"time"
)

// TestStepUpCodes wants a resent code in the place of the one before, each
// challenge to succeed once, and the limit of challenges to count resends, on
// all instances together.
func TestStepUpCodes(t *testing.T) {
	each(t, func(t *testing.T, e *environment) {
		on := e.instances(t)
		s, last := on[0], on[len(on)-1]
		p := e.newPerson(t, "ada@example.com")
		p.login(t, s)
		for range 2 { // refused ones are not counted
			wantCode(t, p.post(t, s, "/auth/step-up/initiate", map[string]string{"method": "SMS_OTP"}).want(t, bad), "validation_error")
		}
		id := p.challenge(t, s)
		verify := func(code string) answer {
			return call(t, "POST", s.api+"/auth/step-up/verify", map[string]string{"challengeId": id, "otp": code})
		}
		resend := func(on *service) answer {
			return call(t, "POST", on.api+"/auth/step-up/resend", map[string]string{"challengeId": id})
		}
		first := e.code(t, p.email)
		var sent struct{ Message, ExpiresAt string }
		resend(last).want(t, http.StatusOK).decode(t, &sent)
		wantInstants(t, sent.ExpiresAt)
		if second := e.code(t, p.email); second != first {
			wantCode(t, verify(first).want(t, http.StatusUnauthorized), "invalid_otp")
		}
		verify(e.code(t, p.email)).want(t, http.StatusOK)
		wantCode(t, verify(e.code(t, p.email)).want(t, bad), "invalid_input")
		wantCode(t, resend(s).want(t, http.StatusNotFound), "resource_not_found")
		call(t, "GET", s.api+"/sessions", nil, p.bearer()...).want(t, http.StatusOK)
		if level := p.sessions(t, s)[0].TrustLevel; level != "FULL_TRUST" {
			t.Errorf("the session is at %s", level)
		}

		id = p.challenge(t, last)
		resend(s).want(t, http.StatusOK)
		p.challenge(t, s) // the fifth
		for _, a := range []answer{p.post(t, last, "/auth/step-up/initiate", map[string]string{"method": "EMAIL_OTP"}), resend(last)} {
			details := wantCode(t, a.want(t, http.StatusTooManyRequests), "rate_limit_exceeded")
			if seconds, err := strconv.ParseFloat(a.header.Get("Retry-After"), 64); err != nil || details["retryAfter"] != seconds || seconds > 3600 {
				t.Errorf("Retry-After is %q, retryAfter %v", a.header.Get("Retry-After"), details["retryAfter"])
			}
		}
	})
}

// TestStepUpMethods wants codes by SMS for who has a number, and no method
// without the plugin that delivers its codes.
func TestStepUpMethods(t *testing.T) {
	each(t, func(t *testing.T, e *environment) {
		const number = "+4930123456"
		s := e.start(t, "OTP_SMS_PLUGIN=otp-log")
		p := e.newPerson(t, "ada@example.com")
		e.tollgate(t, "", "user", "set-phone", "--email", p.email, "--phone", number)
		p.login(t, s)
		var challenge struct{ ChallengeID, Method string }
		p.post(t, s, "/auth/step-up/initiate", map[string]string{"method": "SMS_OTP"}).want(t, http.StatusOK).decode(t, &challenge)
		call(t, "POST", s.api+"/auth/step-up/verify", map[string]string{"challengeId": challenge.ChallengeID, "otp": e.code(t, number)}).want(t, http.StatusOK)
		if !e.shared {
			return
		}
		bare := e.start(t, "OTP_EMAIL_PLUGIN=")
		for _, method := range []string{"EMAIL_OTP", "SMS_OTP"} {
			wantCode(t, p.post(t, bare, "/auth/step-up/initiate", map[string]string{"method": method}).want(t, bad), "validation_error")
		}
	})
}

// TestExpiry wants tokens, challenges, locks and logins that wait to end in
// their time.
func TestExpiry(t *testing.T) {
	each(t, func(t *testing.T, e *environment) {
		s := e.start(t, append([]string{
			"ACCESS_TOKEN_TTL=2s", "REFRESH_TOKEN_TTL=4s", "OTP_TTL=1s", "LOCKOUT_DURATION=1s", "LOCKOUT_THRESHOLD=1", "MFA_PENDING_TTL=1s",
		}, unhurried...)...)
		p := e.newPerson(t, "ada@example.com")
		login := func(word string) answer {
			return call(t, "POST", s.api+"/auth/login", map[string]any{"email": p.email, "password": word, "deviceInfo": p.device})
		}
		wantCode(t, login("wrong").want(t, http.StatusUnauthorized), "invalid_credentials")
		await(t, "the end of a lock", func() bool { return login(password).status == http.StatusOK })
		var got struct {
			AccessToken, RefreshToken string
			ExpiresIn                 int
		}
		var challenge struct{ ChallengeID string }
		await(t, "a challenge before the token's end", func() bool {
			login(password).want(t, http.StatusOK).decode(t, &got)
			p.accessToken, p.refreshToken = got.AccessToken, got.RefreshToken
			a := p.post(t, s, "/auth/step-up/initiate", map[string]string{"method": "EMAIL_OTP"})
			a.decode(t, &challenge)
			return a.status == http.StatusOK
		})
		if got.ExpiresIn != 2 {
			t.Errorf("expiresIn is %d", got.ExpiresIn)
		}
		await(t, "the end of an access token", func() bool {
			a := call(t, "GET", s.api+"/devices", nil, p.bearer()...)
			if a.status == http.StatusOK {
				return false
			}
			wantCode(t, a.want(t, http.StatusUnauthorized), "token_expired")
			return true
		})
		await(t, "the end of a challenge", func() bool {
			return call(t, "POST", s.api+"/auth/step-up/resend", map[string]string{"challengeId": challenge.ChallengeID}).status == http.StatusNotFound
		})
		wantCode(t, call(t, "POST", s.api+"/auth/step-up/verify", map[string]string{"challengeId": challenge.ChallengeID, "otp": "none"}).want(t, bad), "invalid_input")
		refresh := func() answer {
			return call(t, "POST", s.api+"/auth/refresh", map[string]string{"refreshToken": p.refreshToken})
		}
		call(t, "POST", s.api+"/auth/refresh", `{"refreshToken":"nonsense"}`).want(t, http.StatusUnauthorized)
		expires := time.Now().Add(4 * time.Second) // at the latest: the session began before
		await(t, "the end of a session", func() bool { return time.Now().After(expires) })
		wantCode(t, refresh().want(t, http.StatusUnauthorized), "token_expired")
	})
}

// TestReuseGrace wants a repeated refresh to get the same successor within the
// grace, and a replay of what came before to end all.
func TestReuseGrace(t *testing.T) {
	each(t, func(t *testing.T, e *environment) {
		s := e.start(t, "REFRESH_REUSE_GRACE=1m")
		p := e.newPerson(t, "ada@example.com")
		p.login(t, s)
		refresh := func(token string) (answer, string) {
			a := call(t, "POST", s.api+"/auth/refresh", map[string]string{"refreshToken": token})
			var got struct{ RefreshToken string }
			a.decode(t, &got)
			return a, got.RefreshToken
		}
		_, second := refresh(p.refreshToken)
		if a, again := refresh(p.refreshToken); a.status != http.StatusOK || again != second {
			t.Errorf("a repeat within the grace answers %d %s", a.status, a.body)
		}
		a, third := refresh(second)
		a.want(t, http.StatusOK)
		a, _ = refresh(p.refreshToken) // its successor is spent
		wantCode(t, a.want(t, http.StatusForbidden), "access_denied")
		a, _ = refresh(third)
		wantCode(t, a.want(t, http.StatusUnauthorized), "invalid_token")
		awaitEnded(t, s, p)
	})
}

// TestLimitsByAddress checks that the two limits of contract A-52 are counted apart, on all
// instances together, whatever is requested, and each address by itself.
func TestLimitsByAddress(t *testing.T) {
	each(t, func(t *testing.T, e *environment) {
		limits := []string{"AUTH_RATE_LIMIT=6", "API_RATE_LIMIT=5", "TRUSTED_PROXIES=127.0.0.0/8"}
		on := []*service{e.start(t, limits...)}
		if e.shared {
			on = append(on, e.start(t, limits...))
		}
		p := e.newPerson(t, "ada@example.com")
		p.login(t, on[0])
		for limit, asks := range map[int][]struct {
			method, path string
			status       int
		}{
			6: {{"GET", "/auth/none", 404}, {"POST", "/auth/session", 405}, {"DELETE", "/auth/login", 405}, {"POST", "/auth/refresh", 400}, {"POST", "/auth", 404}, {"POST", "/auth/login", 429}, {"GET", "/auth/none", 429}},
			5: {{"GET", "/auth/session", 200}, {"GET", "/sessions", 200}, {"GET", "/audit-logs", 200}, {"GET", "/audit-logs?limit=0", 400}, {"DELETE", "/sessions/7", 400}, {"GET", "/devices", 429}, {"GET", "/auth/session", 429}},
		} {
			for i, ask := range asks {
				a := call(t, ask.method, on[i%len(on)].api+ask.path, nil, p.bearer()...).want(t, ask.status)
				wantLimit(t, a, strconv.Itoa(limit), strconv.Itoa(max(4-i, 0)))
				wantWindow(t, a, 15*time.Minute)
			}
			for _, other := range []struct {
				address string
				used    int
			}{{"198.51.100.7", 1}, {"2001:db8:7::1", 1}, {"2001:db8:7::a:b:c:d", 2}, {"2001:db8:7:1::1", 1}} { // a network of version 6 is one client
				a := call(t, asks[0].method, on[0].api+asks[0].path, nil, append(p.bearer(), "X-Forwarded-For", other.address)...)
				wantLimit(t, a.want(t, asks[0].status), strconv.Itoa(limit), strconv.Itoa(limit-other.used))
			}
		}
	})
}

// wantWindow wants X-RateLimit-Reset, and Retry-After of a refusal, within the
// window.
func wantWindow(t *testing.T, a answer, window time.Duration) {
	t.Helper()
	reset, err := strconv.ParseInt(a.header.Get("X-RateLimit-Reset"), 10, 64)
	if left := time.Until(time.Unix(reset, 0)); err != nil || left > window || left < -time.Minute {
		t.Errorf("X-RateLimit-Reset is %q, %v from now", a.header.Get("X-RateLimit-Reset"), left)
	}
	if a.status != http.StatusTooManyRequests {
		return
	}
	details := wantCode(t, a, "rate_limit_exceeded")
	seconds, err := strconv.ParseFloat(a.header.Get("Retry-After"), 64)
	if err != nil || details["retryAfter"] != seconds || seconds < 1 || seconds > window.Seconds() {
		t.Errorf("Retry-After is %q, retryAfter %v", a.header.Get("Retry-After"), details["retryAfter"])
	}
}
