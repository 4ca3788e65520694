package authentication

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// TestStepUpCodes checks that a resent code replaces the code before it, that each challenge
// succeeds once, and that the limit of challenges counts resends, on all instances together.
func TestStepUpCodes(t *testing.T) {
	fixture.InBothEnvironments(t, func(t *testing.T, e *fixture.Environment) {
		e.WantAuditEvents(t)
		on := startPair(t, e)
		s, last := on[0], on[len(on)-1]
		p := e.NewPerson(t, "ada@example.com")
		p.Login(t, s)
		for range 2 { // refused requests are not counted
			apiclient.WantAuthError(t,
				p.PostJSON(t, s, "/auth/step-up/initiate", map[string]string{"method": "SMS_OTP"}).WantStatus(t,
					badRequest), "validation_error")
		}
		id := startChallenge(t, p, s)
		verify := func(code string) apiclient.Response {
			return apiclient.Call(t, "POST", s.API+"/auth/step-up/verify", map[string]string{
				"challengeId": id, "otp": code,
			})
		}
		resend := func(on *fixture.Service) apiclient.Response {
			return apiclient.Call(t, "POST", on.API+"/auth/step-up/resend", map[string]string{"challengeId": id})
		}
		first := e.LastCode(t, p.Email)
		var sent struct{ Message, ExpiresAt string }
		resend(last).WantStatus(t, http.StatusOK).Decode(t, &sent)
		wantTimes(t, sent.ExpiresAt)
		if second := e.LastCode(t, p.Email); second != first {
			apiclient.WantAuthError(t, verify(first).WantStatus(t, http.StatusUnauthorized), "invalid_otp")
		}
		verify(e.LastCode(t, p.Email)).WantStatus(t, http.StatusOK)
		apiclient.WantAuthError(t, verify(e.LastCode(t, p.Email)).WantStatus(t, badRequest), "invalid_input")
		apiclient.WantAuthError(t, resend(s).WantStatus(t, http.StatusNotFound), "resource_not_found")
		apiclient.Call(t, "GET", s.API+"/sessions", nil, p.Bearer()...).WantStatus(t, http.StatusOK)
		if level := listSessions(t, p, s)[0].TrustLevel; level != "FULL_TRUST" {
			t.Errorf("the session is at %s", level)
		}

		id = startChallenge(t, p, last)
		resend(s).WantStatus(t, http.StatusOK)
		startChallenge(t, p, s) // the fifth
		for _, a := range []apiclient.Response{
			p.PostJSON(t, last, "/auth/step-up/initiate", map[string]string{"method": "EMAIL_OTP"}), resend(last),
		} {
			details := apiclient.WantAuthError(t, a.WantStatus(t, http.StatusTooManyRequests), "rate_limit_exceeded")
			if seconds, err := strconv.ParseFloat(a.Header.Get("Retry-After"),
				64); err != nil || details["retryAfter"] != seconds || seconds > fixture.LimitWindow.Seconds() {
				t.Errorf("Retry-After is %q, retryAfter %v", a.Header.Get("Retry-After"), details["retryAfter"])
			}
		}
	})
}

// TestStepUpMethods checks that codes by SMS need a phone number, and that a method without its
// plugin is refused.
func TestStepUpMethods(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		e.WantAuditEvents(t)
		const number = "+4930123456"
		s := e.Start(t, "OTP_SMS_PLUGIN=otp-log")
		p := e.NewPerson(t, "ada@example.com")
		e.RunCommand(t, "", "user", "set-phone", "--email", p.Email, "--phone", number)
		p.Login(t, s)
		var challenge struct{ ChallengeID, Method string }
		p.PostJSON(t, s, "/auth/step-up/initiate", map[string]string{"method": "SMS_OTP"}).WantStatus(t, http.StatusOK).
			Decode(t, &challenge)
		apiclient.Call(t, "POST", s.API+"/auth/step-up/verify", map[string]string{
			"challengeId": challenge.ChallengeID, "otp": e.LastCode(t, number),
		}).WantStatus(t, http.StatusOK)
		if !e.Shared {
			return
		}
		bare := e.Start(t, "OTP_EMAIL_PLUGIN=")
		for _, method := range []string{"EMAIL_OTP", "SMS_OTP"} {
			apiclient.WantAuthError(t,
				p.PostJSON(t, bare, "/auth/step-up/initiate", map[string]string{"method": method}).WantStatus(t,
					badRequest), "validation_error")
		}
	})
}

// TestExpiry checks that access tokens and refresh tokens expire when the settings say it.
func TestExpiry(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		t.Parallel()
		s := e.Start(t, "ACCESS_TOKEN_TTL=1s", "REFRESH_TOKEN_TTL=2s")
		p := e.NewPerson(t, "ada@example.com")
		var got struct {
			AccessToken, RefreshToken string
			ExpiresIn                 int
		}
		apiclient.Call(t, "POST", s.API+"/auth/login", newLoginBody(p, fixture.Password)).WantStatus(t, http.StatusOK).
			Decode(t, &got)
		if p.AccessToken = got.AccessToken; got.ExpiresIn != 1 {
			t.Errorf("expiresIn is %d", got.ExpiresIn)
		}
		expires := time.Now().Add(2 * time.Second) // at the latest: the session began earlier
		await.Until(t, "the end of an access token", func() bool {
			return apiclient.Call(t, "GET", s.API+"/devices", nil, p.Bearer()...).Status != http.StatusOK
		})
		apiclient.WantAuthError(t, apiclient.Call(t, "GET", s.API+"/devices", nil, p.Bearer()...).WantStatus(t,
			http.StatusUnauthorized), "token_expired")
		await.Until(t, "the end of a session", func() bool { return time.Now().After(expires) })
		apiclient.WantAuthError(t, apiclient.Call(t, "POST", s.API+"/auth/refresh", map[string]string{
			"refreshToken": got.RefreshToken,
		}).WantStatus(t, http.StatusUnauthorized), "token_expired")
	})
}

// TestLimitsByAddress checks that the two limits of contract A-52 are counted apart, on all
// instances together, whatever is requested, and each address by itself.
func TestLimitsByAddress(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		limits := []string{"AUTH_RATE_LIMIT=6", "API_RATE_LIMIT=5", "TRUSTED_PROXIES=127.0.0.0/8"}
		on := []*fixture.Service{e.Start(t, limits...)}
		if e.Shared {
			on = append(on, e.Start(t, limits...))
		}
		p := e.NewPerson(t, "ada@example.com")
		p.Login(t, on[0])
		for limit, asks := range map[int][]struct {
			method, path string
			status       int
		}{
			6: {
				{"GET", "/auth/none", 404}, {"POST", "/auth/session", 405}, {"DELETE", "/auth/login", 405}, {
					"POST", "/auth/refresh", 400,
				}, {"POST", "/auth", 404}, {"POST", "/auth/login", 429}, {"GET", "/auth/none", 429},
			},
			5: {
				{"GET", "/auth/session", 200}, {"GET", "/sessions", 200}, {"GET", "/audit-logs", 200}, {
					"GET", "/audit-logs?limit=0", 400,
				}, {"DELETE", "/sessions/7", 400}, {"GET", "/devices", 429}, {"GET", "/auth/session", 429},
			},
		} {
			for i, ask := range asks {
				a := apiclient.Call(t, ask.method, on[i%len(on)].API+ask.path, nil, p.Bearer()...).
					WantStatus(t, ask.status)
				apiclient.WantOwnLimit(t, a, strconv.Itoa(limit), strconv.Itoa(max(4-i, 0)))
				wantWindow(t, a)
			}
			for _, other := range []struct {
				address string
				used    int
				// an IPv6 network is one client
			}{{"198.51.100.7", 1}, {"2001:db8:7::1", 1}, {"2001:db8:7::a:b:c:d", 2}, {"2001:db8:7:1::1", 1}} {
				a := apiclient.Call(t, asks[0].method, on[0].API+asks[0].path, nil,
					append(p.Bearer(), "X-Forwarded-For", other.address)...)
				apiclient.WantOwnLimit(t, a.WantStatus(t, asks[0].status), strconv.Itoa(limit),
					strconv.Itoa(limit-other.used))
			}
		}
	})
}

// wantWindow checks that X-RateLimit-Reset, and Retry-After of a refusal, are within the window.
func wantWindow(t *testing.T, a apiclient.Response) {
	t.Helper()
	reset, err := strconv.ParseInt(a.Header.Get("X-RateLimit-Reset"), 10, 64)
	if left := time.Until(time.Unix(reset, 0)); err != nil || left > fixture.LimitWindow || left < -time.Minute {
		t.Errorf("X-RateLimit-Reset is %q, %v from now", a.Header.Get("X-RateLimit-Reset"), left)
	}
	if a.Status != http.StatusTooManyRequests {
		return
	}
	details := apiclient.WantAuthError(t, a, "rate_limit_exceeded")
	seconds, err := strconv.ParseFloat(a.Header.Get("Retry-After"), 64)
	if err != nil || details["retryAfter"] != seconds || seconds < 1 || seconds > fixture.LimitWindow.Seconds() {
		t.Errorf("Retry-After is %q, retryAfter %v", a.Header.Get("Retry-After"), details["retryAfter"])
	}
}
