package acceptance

import (
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// outcomes counts answers by status and code.
func outcomes(t *testing.T, answers []answer) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for _, a := range answers {
		var body struct{ Error string }
		a.decode(t, &body)
		counts[strings.TrimSpace(fmt.Sprint(a.status, " ", body.Error))]++
	}
	return counts
}

// TestGuessesInParallel wants no more guesses looked at than there are tries,
// however many come at once and to whichever instance. What is looked at is
// 401, what is not is 403 or 429.
func TestGuessesInParallel(t *testing.T) {
	each(t, func(t *testing.T, e *environment) {
		on := e.instances(t)
		p := e.newPerson(t, "ada@example.com")
		p.login(t, on[0])
		for _, email := range []string{p.email, "nobody@example.com"} {
			got := outcomes(t, together(t, 50, func(i int) (answer, error) {
				return try("POST", on[i%len(on)].api+"/auth/login", map[string]any{"email": email, "password": fmt.Sprint("wrong", i), "deviceInfo": p.device})
			}))
			if got["401 invalid_credentials"] != 5 || got["403 account_locked"] != 45 {
				t.Errorf("50 wrong passwords of %s: %v, want five looked at", email, got)
			}
		}
		told := map[string]int{}
		for _, entry := range p.log(t, on[0], "eventType=LOGIN_ATTEMPT").Logs {
			told[fmt.Sprint(entry.Details["reason"])]++
		}
		if told["invalid_credentials"] != 5 || told["account_locked"] != 45 {
			t.Errorf("the audit log tells %v", told)
		}

		id := p.challenge(t, on[0])
		right := e.code(t, p.email)
		got := outcomes(t, together(t, 50, func(i int) (answer, error) {
			return try("POST", on[i%len(on)].api+"/auth/step-up/verify", map[string]string{"challengeId": id, "otp": fmt.Sprint("none", i)})
		}))
		if got["401 invalid_otp"] != 3 || got["429 rate_limit_exceeded"] != 47 {
			t.Errorf("50 wrong codes: %v, want three looked at", got)
		}
		a := call(t, "POST", on[0].api+"/auth/step-up/verify", map[string]string{"challengeId": id, "otp": right})
		wantCode(t, a.want(t, http.StatusTooManyRequests), "rate_limit_exceeded")

		id = p.challenge(t, on[0])
		right = e.code(t, p.email)
		got = outcomes(t, together(t, 10, func(i int) (answer, error) {
			return try("POST", on[i%len(on)].api+"/auth/step-up/verify", map[string]string{"challengeId": id, "otp": right})
		}))
		if got["200"] != 1 || got["400 invalid_input"] != 9 {
			t.Errorf("the right code ten times: %v, want one success", got)
		}
	})
}

// TestRefreshInParallel wants one of many refreshes of a token to succeed, and
// the others to count as replays, which end all of the person's sessions.
func TestRefreshInParallel(t *testing.T) {
	each(t, func(t *testing.T, e *environment) {
		on := e.instances(t)
		p := e.newPerson(t, "ada@example.com")
		p.login(t, on[0])
		elsewhere := &person{email: p.email, device: map[string]string{"userAgent": "another"}}
		elsewhere.login(t, on[0])
		answers := together(t, 20, func(i int) (answer, error) {
			return try("POST", on[i%len(on)].api+"/auth/refresh", map[string]string{"refreshToken": p.refreshToken})
		})
		got := outcomes(t, answers)
		if got["200"] != 1 || got["403 access_denied"] != 1 || got["401 invalid_token"] != 18 {
			t.Errorf("20 refreshes of one token: %v, want one success and one replay", got)
		}
		winner := answers[slices.IndexFunc(answers, func(a answer) bool { return a.status == http.StatusOK })]
		renewed := &person{}
		winner.decode(t, &struct{ AccessToken, RefreshToken *string }{&renewed.accessToken, &renewed.refreshToken})
		for _, ended := range []*person{p, elsewhere, renewed} {
			for _, s := range on {
				awaitEnded(t, s, ended)
			}
			a := call(t, "POST", on[0].api+"/auth/refresh", map[string]string{"refreshToken": ended.refreshToken})
			wantCode(t, a.want(t, http.StatusUnauthorized), "invalid_token")
		}
		p.login(t, on[0])
		if n := len(p.log(t, on[0], "eventType=SUSPICIOUS_ACTIVITY").Logs); n != 1 {
			t.Errorf("%d replays in the audit log, want one", n)
		}
	})
}

// TestEndedEverywhere wants a session that was ended on one instance refused
// on the other within a second, and by both after they were killed.
func TestEndedEverywhere(t *testing.T) {
	whole := production(t)
	withoutStore := *whole // two instances on one PostgreSQL, each with copies of its own
	withoutStore.environ = slices.DeleteFunc(slices.Clone(whole.environ), func(v string) bool { return strings.HasPrefix(v, "KVSTORE_URL=") })
	alone := newEnvironment(t, "embedded")
	for name, e := range map[string]*environment{"PostgreSQL and Valkey": whole, "PostgreSQL": &withoutStore, "embedded": alone} {
		t.Run(name, func(t *testing.T) {
			on := []*service{e.start(t, unhurried...)}
			if e.shared {
				on = append(on, e.start(t, append([]string{"DATA_DIR=" + filepath.Join(e.dir, "elsewhere")}, unhurried...)...))
			}
			email := strings.ToLower(strings.ReplaceAll(name, " ", "-")) + "@example.com"
			owner := e.newPerson(t, email)
			owner.device = map[string]string{"userAgent": "the owner's"}
			owner.login(t, on[0])
			owner.stepUp(t, e, on[0])
			ended := []*person{owner}
			for how, end := range endings(e, on[0], owner) {
				victim := &person{email: email, device: map[string]string{"userAgent": how}}
				victim.login(t, on[0])
				id, _ := sessionOf(t, on[len(on)-1], victim) // a copy of the session is there now
				end(t, victim, id)
				refusedWithin(t, on[len(on)-1], victim, how)
				ended = append(ended, victim)
			}
			id, _ := sessionOf(t, on[0], owner)
			owner.post(t, on[0], "/auth/logout", map[string]string{"sessionId": id}).want(t, http.StatusOK)
			for _, s := range on {
				s.process.Kill()
			}
			again := e.start(t)
			for _, p := range ended {
				wantCode(t, call(t, "GET", again.api+"/auth/session", nil, p.bearer()...).want(t, http.StatusUnauthorized), "invalid_token")
				wantCode(t, call(t, "POST", again.api+"/auth/refresh", map[string]string{"refreshToken": p.refreshToken}).want(t, http.StatusUnauthorized), "invalid_token")
			}
		})
	}
}

// endings are the ways in which a session of the owner's ends.
func endings(e *environment, on *service, owner *person) map[string]func(t *testing.T, victim *person, id string) {
	return map[string]func(*testing.T, *person, string){
		"sign-out": func(t *testing.T, victim *person, id string) {
			victim.post(t, on, "/auth/logout", map[string]string{"sessionId": id}).want(t, http.StatusOK)
		},
		"terminated": func(t *testing.T, _ *person, id string) {
			call(t, "DELETE", on.api+"/sessions/"+id, nil, owner.bearer()...).want(t, http.StatusOK)
		},
		"device revoked": func(t *testing.T, victim *person, _ string) {
			call(t, "DELETE", on.api+"/devices/"+victim.devices(t, on)[0].ID, nil, owner.bearer()...).want(t, http.StatusOK)
		},
		"password changed": func(t *testing.T, _ *person, _ string) {
			owner.post(t, on, "/auth/password", map[string]string{"currentPassword": password, "newPassword": password + "!"}).want(t, http.StatusOK)
			owner.post(t, on, "/auth/password", map[string]string{"currentPassword": password + "!", "newPassword": password}).want(t, http.StatusOK)
		},
		"by an operator": func(t *testing.T, victim *person, _ string) {
			e.tollgate(t, "", "user", "disable", "--email", victim.email)
			e.tollgate(t, "", "user", "enable", "--email", victim.email)
			owner.login(t, on)
			owner.stepUp(t, e, on)
		},
	}
}

// refusedWithin sends requests with an ended session until one is refused. No request that begins
// more than a second after the end may pass (contract A-26).
func refusedWithin(t *testing.T, s *service, p *person, how string) {
	t.Helper()
	latest := time.Now().Add(time.Second)
	await(t, "the end of a session: "+how, func() bool {
		began := time.Now()
		a := call(t, "GET", s.api+"/auth/session", nil, p.bearer()...)
		if a.status == http.StatusOK && began.After(latest) {
			t.Errorf("%s: a request of %v after the end passes", how, began.Sub(latest)+time.Second)
		}
		return a.status == http.StatusUnauthorized
	})
}
