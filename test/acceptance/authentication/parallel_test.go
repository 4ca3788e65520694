package authentication

import (
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// countOutcomes returns the number of responses by status and code.
func countOutcomes(t *testing.T, answers []apiclient.Response) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for _, a := range answers {
		var body struct{ Error string }
		a.Decode(t, &body)
		counts[strings.TrimSpace(fmt.Sprint(a.Status, " ", body.Error))]++
	}
	return counts
}

// TestGuessesInParallel checks that no more guesses are checked than there are attempts, however
// many arrive at once and on any instance. A guess that is checked returns 401; a guess that is not
// checked returns 403 or 429.
func TestGuessesInParallel(t *testing.T) {
	fixture.InBothEnvironments(t, func(t *testing.T, e *fixture.Environment) {
		on := startPair(t, e)
		p := e.NewPerson(t, "ada@example.com")
		p.Login(t, on[0])
		for _, email := range []string{p.Email, "nobody@example.com"} {
			got := countOutcomes(t, fixture.CallInParallel(t, 50, func(i int) (apiclient.Response, error) {
				return apiclient.TryCall("POST", on[i%len(on)].API+"/auth/login", map[string]any{
					"email": email, "password": fmt.Sprint("wrong", i), "deviceInfo": p.Device,
				})
			}))
			if got["401 invalid_credentials"] != 5 || got["403 account_locked"] != 45 {
				t.Errorf("50 wrong passwords of %s: %v, want five looked at", email, got)
			}
		}
		told := map[string]int{}
		for _, entry := range p.ReadAuditLog(t, on[0], "eventType=LOGIN_ATTEMPT").Logs {
			told[fmt.Sprint(entry.Details["reason"])]++
		}
		if told["invalid_credentials"] != 5 || told["account_locked"] != 45 {
			t.Errorf("the audit log has %v", told)
		}

		id := startChallenge(t, p, on[0])
		right := e.LastCode(t, p.Email)
		got := countOutcomes(t, fixture.CallInParallel(t, 50, func(i int) (apiclient.Response, error) {
			return apiclient.TryCall("POST", on[i%len(on)].API+"/auth/step-up/verify", map[string]string{
				"challengeId": id, "otp": fmt.Sprint("none", i),
			})
		}))
		if got["401 invalid_otp"] != 3 || got["429 rate_limit_exceeded"] != 47 {
			t.Errorf("50 wrong codes: %v, want three looked at", got)
		}
		a := apiclient.Call(t, "POST", on[0].API+"/auth/step-up/verify", map[string]string{
			"challengeId": id, "otp": right,
		})
		if d := apiclient.WantAuthError(t, a.WantStatus(t, http.StatusTooManyRequests),
			"rate_limit_exceeded"); d["retryAfter"].(float64) < 1 {
			t.Errorf("retryAfter is %v", d["retryAfter"])
		}

		id = startChallenge(t, p, on[0])
		right = e.LastCode(t, p.Email)
		got = countOutcomes(t, fixture.CallInParallel(t, 10, func(i int) (apiclient.Response, error) {
			return apiclient.TryCall("POST", on[i%len(on)].API+"/auth/step-up/verify", map[string]string{
				"challengeId": id, "otp": right,
			})
		}))
		if got["200"] != 1 || got["400 invalid_input"] != 9 {
			t.Errorf("the right code ten times: %v, want one success", got)
		}
	})
}

// TestRefreshInParallel checks that one of many refreshes of a token succeeds, and that the others
// count as replays, which end all sessions of the person.
func TestRefreshInParallel(t *testing.T) {
	fixture.InBothEnvironments(t, func(t *testing.T, e *fixture.Environment) {
		on := startPair(t, e)
		p := e.NewPerson(t, "ada@example.com")
		p.Login(t, on[0])
		elsewhere := &fixture.Person{Email: p.Email, Device: map[string]string{"userAgent": "another"}}
		elsewhere.Login(t, on[0])
		answers := fixture.CallInParallel(t, 20, func(i int) (apiclient.Response, error) {
			return apiclient.TryCall("POST", on[i%len(on)].API+"/auth/refresh", map[string]string{
				"refreshToken": p.RefreshToken,
			})
		})
		got := countOutcomes(t, answers)
		if got["200"] != 1 || got["403 access_denied"] != 1 || got["401 invalid_token"] != 18 {
			t.Errorf("20 refreshes of one token: %v, want one success and one replay", got)
		}
		winner := answers[slices.IndexFunc(answers, func(a apiclient.Response) bool {
			return a.Status == http.StatusOK
		})]
		renewed := &fixture.Person{}
		winner.Decode(t, &struct{ AccessToken, RefreshToken *string }{&renewed.AccessToken, &renewed.RefreshToken})
		for _, ended := range []*fixture.Person{p, elsewhere, renewed} {
			for _, s := range on {
				awaitEnded(t, s, ended)
			}
			a := apiclient.Call(t, "POST", on[0].API+"/auth/refresh", map[string]string{
				"refreshToken": ended.RefreshToken,
			})
			apiclient.WantAuthError(t, a.WantStatus(t, http.StatusUnauthorized), "invalid_token")
		}
		p.Login(t, on[0])
		if n := len(p.ReadAuditLog(t, on[0], "eventType=SUSPICIOUS_ACTIVITY").Logs); n != 1 {
			t.Errorf("%d replays in the audit log, want one", n)
		}
	})
}

// TestEndedEverywhere checks that a session that ends on one instance is refused by the other
// within a second, and by a new one after both have stopped, or were killed.
func TestEndedEverywhere(t *testing.T) {
	t.Parallel()
	whole := fixture.NewProduction(t)
	withoutStore := *whole // two instances on one PostgreSQL, each with its own cache
	withoutStore.Environ = slices.DeleteFunc(slices.Clone(whole.Environ), func(v string) bool {
		return strings.HasPrefix(v, "KVSTORE_URL=")
	})
	alone := fixture.NewEnvironment(t, "embedded")
	for name, e := range map[string]*fixture.Environment{
		"PostgreSQL and Valkey": whole, "PostgreSQL": &withoutStore, "embedded": alone,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := e.Start
			if e == whole {
				start = e.StartProcess
			}
			on := []*fixture.Service{start(t, fixture.RelaxedRiskSettings...)}
			if e.Shared {
				on = append(on, start(t, append([]string{"DATA_DIR=" + filepath.Join(e.Dir, "elsewhere")},
					fixture.RelaxedRiskSettings...)...))
			}
			email := strings.ToLower(strings.ReplaceAll(name, " ", "-")) + "@example.com"
			owner := e.NewPerson(t, email)
			owner.Device = map[string]string{"userAgent": "the owner's"}
			owner.Login(t, on[0])
			owner.StepUp(t, e, on[0])
			ended := []*fixture.Person{owner}
			for how, end := range sessionEndings(e, on[0], owner) {
				victim := &fixture.Person{Email: email, Device: map[string]string{"userAgent": how}}
				victim.Login(t, on[0])
				id, _ := fixture.ReadSession(t, on[len(on)-1], victim) // a copy of the session is in the cache now
				end(t, victim, id)
				wantRefusedSoon(t, on[len(on)-1], victim, how)
				ended = append(ended, victim)
			}
			id, _ := fixture.ReadSession(t, on[0], owner)
			owner.PostJSON(t, on[0], "/auth/logout", map[string]string{"sessionId": id}).WantStatus(t, http.StatusOK)
			for _, s := range on {
				if e == whole {
					s.Process.Kill()
				} else {
					s.Stop()
				}
			}
			again := e.Start(t)
			for _, p := range ended {
				apiclient.WantAuthError(t,
					apiclient.Call(t, "GET", again.API+"/auth/session", nil, p.Bearer()...).WantStatus(t,
						http.StatusUnauthorized), "invalid_token")
				apiclient.WantAuthError(t,
					apiclient.Call(t, "POST", again.API+"/auth/refresh", map[string]string{
						"refreshToken": p.RefreshToken,
					}).WantStatus(t, http.StatusUnauthorized), "invalid_token")
			}
		})
	}
}

// sessionEndings returns the ways in which a session of the owner ends.
func sessionEndings(
	e *fixture.Environment, on *fixture.Service, owner *fixture.Person,
) map[string]func(t *testing.T, victim *fixture.Person, id string) {
	return map[string]func(*testing.T, *fixture.Person, string){
		"sign-out": func(t *testing.T, victim *fixture.Person, id string) {
			victim.PostJSON(t, on, "/auth/logout", map[string]string{"sessionId": id}).WantStatus(t, http.StatusOK)
		},
		"terminated": func(t *testing.T, _ *fixture.Person, id string) {
			apiclient.Call(t, "DELETE", on.API+"/sessions/"+id, nil, owner.Bearer()...).WantStatus(t, http.StatusOK)
		},
		"device revoked": func(t *testing.T, victim *fixture.Person, _ string) {
			apiclient.Call(t, "DELETE", on.API+"/devices/"+listDevices(t, victim, on)[0].ID, nil, owner.Bearer()...).
				WantStatus(t, http.StatusOK)
		},
		"password changed": func(t *testing.T, _ *fixture.Person, _ string) {
			owner.PostJSON(t, on, "/auth/password", map[string]string{
				"currentPassword": fixture.Password, "newPassword": fixture.Password + "!",
			}).WantStatus(t, http.StatusOK)
			owner.PostJSON(t, on, "/auth/password", map[string]string{
				"currentPassword": fixture.Password + "!", "newPassword": fixture.Password,
			}).WantStatus(t, http.StatusOK)
		},
		"by an operator": func(t *testing.T, victim *fixture.Person, _ string) {
			e.RunCommand(t, "", "user", "disable", "--email", victim.Email)
			e.RunCommand(t, "", "user", "enable", "--email", victim.Email)
			owner.Login(t, on)
			owner.StepUp(t, e, on)
		},
	}
}

// wantRefusedSoon sends requests with an ended session until one is refused. No request that begins
// more than a second after the end may pass (contract A-26).
func wantRefusedSoon(t *testing.T, s *fixture.Service, p *fixture.Person, how string) {
	t.Helper()
	latest := time.Now().Add(time.Second)
	await.Until(t, "the end of a session: "+how, func() bool {
		began := time.Now()
		a := apiclient.Call(t, "GET", s.API+"/auth/session", nil, p.Bearer()...)
		if a.Status == http.StatusOK && began.After(latest) {
			t.Errorf("%s: a request of %v after the end passes", how, began.Sub(latest)+time.Second)
		}
		return a.Status == http.StatusUnauthorized
	})
}
