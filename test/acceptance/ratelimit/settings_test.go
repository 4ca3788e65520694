package ratelimit

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// newRulesEnvironment returns an embedded environment with these rules and no others.
func newRulesEnvironment(t *testing.T, rules string) *fixture.Environment {
	t.Helper()
	e := fixture.NewEnvironment(t, "embedded")
	fixture.WriteFile(t, filepath.Join(e.RulesDir, "rules.yaml"), rules)
	return e
}

// settingRules are the rules for most settings.
const settingRules = `domain: %s
descriptors:
  - {key: two, rate_limit: {unit: hour, requests_per_unit: 2}}
  - {key: ten, rate_limit: {unit: hour, requests_per_unit: 10}}
  - {key: blocked, rate_limit: {unit: hour, requests_per_unit: 0}}
  - {key: told, metadata: {team: pay}, rate_limit: {unit: hour, requests_per_unit: 2}}
`

// TestRateLimitSettings tests each setting that changes responses or statistics, over both
// transports.
func TestRateLimitSettings(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		environ []string
		steps   []callStep
		stats   map[string]int // of the domain grpc; service-level statistics have their full name
	}{
		"SHADOW_MODE": {
			[]string{"SHADOW_MODE=true"},
			[]callStep{newStep("OK: OVER 0/HOUR 0", "blocked=x")},
			map[string]int{"ratelimit.service.global_shadow_mode": 2, "blocked.over_limit": 1},
		},
		"QUOTA_MODE": {
			[]string{"QUOTA_MODE=true"},
			[]callStep{
				newStep("OK: OVER 0/HOUR 0 | OK 2/HOUR 1", "blocked=x", "two=x"),
				newStep("OVER: OVER 0/HOUR 0", "blocked=x"),
			},
			nil,
		},
		"STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT": {
			[]string{"STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT=true"},
			[]callStep{
				newStep("OVER: OK 2/HOUR 2 | OVER 0/HOUR 0", "two=x", "blocked=x"), newStep("OK: OK 2/HOUR 1", "two=x"),
			},
			map[string]int{"two.total_hits": 2},
		},
		"without it": {
			nil,
			[]callStep{
				newStep("OVER: OK 2/HOUR 1 | OVER 0/HOUR 0", "two=x", "blocked=x"), newStep("OK: OK 2/HOUR 0", "two=x"),
			},
			nil,
		},
		"NEAR_LIMIT_RATIO": {
			[]string{"NEAR_LIMIT_RATIO=0.5"},
			[]callStep{withHits(12, newStep("OVER: OVER 10/HOUR 0", "ten=x"))},
			map[string]int{"ten.near_limit": 5, "ten.over_limit": 2, "ten.total_hits": 12},
		},
		"NEAR_LIMIT_RATIO left alone": {
			nil,
			[]callStep{withHits(9, newStep("OK: OK 10/HOUR 1", "ten=x"))},
			map[string]int{"ten.near_limit": 1, "ten.within_limit": 9},
		},
		"LOCAL_CACHE_SIZE_IN_BYTES": {
			[]string{"LOCAL_CACHE_SIZE_IN_BYTES=1048576"},
			[]callStep{
				withHits(3, newStep("OVER: OVER 2/HOUR 0", "two=x")),
				newStep("OVER: OVER 2/HOUR 0 | OK 10/HOUR 9", "two=x", "ten=x"), newStep("OK: OK 2/HOUR 1", "two=y"),
			},
			map[string]int{
				"two.over_limit_with_local_cache": 1, "two.over_limit": 2, "two.total_hits": 5,
				"ten.over_limit_with_local_cache": 0,
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := fixture.NewEnvironment(t, "embedded")
			for transport := range newTransports(nil) {
				fixture.WriteFile(t, filepath.Join(e.RulesDir, transport+".yaml"), fmt.Sprintf(settingRules, transport))
			}
			s := e.Start(t, test.environ...)
			for transport, ask := range newTransports(s) {
				followSteps(t, ask, transport, test.steps)
			}
			stats := readStats(t, s)
			for stat, want := range test.stats {
				if !strings.HasPrefix(stat, "ratelimit.") {
					stat = "ratelimit.service.rate_limit.grpc." + stat
				}
				if got := stats[stat]; got != fmt.Sprint(want) {
					t.Errorf("%s is %q, want %d", stat, got, want)
				}
			}
		})
	}
}

// readStats returns the statistics of the debug listener by name.
func readStats(t *testing.T, s *fixture.Service) map[string]string {
	t.Helper()
	all := map[string]string{}
	for line := range strings.Lines(
		string(apiclient.Call(t, "GET", s.Debug+"/stats", nil).WantStatus(t, http.StatusOK).Body)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		all[name] = value
	}
	return all
}

// TestDraftHeaders tests the headers of the IETF draft over both transports (contract L-65).
func TestDraftHeaders(t *testing.T) {
	t.Parallel()
	e := newRulesEnvironment(t, `domain: d
descriptors:
  - {key: named, rate_limit: {unit: year, requests_per_unit: 100, name: plan}}
  - {key: tried, shadow_mode: true, rate_limit: {unit: year, requests_per_unit: 1}}
  - {key: free, rate_limit: {unlimited: true}}
  - key: tool
    value: read*
    descriptors:
      - {key: user, rate_limit: {unit: minute, requests_per_unit: 60, algorithm: token_bucket, burst: 20}}
`)
	wanted := map[string]string{
		"RateLimit-Policy": `^"plan";q=100;w=31536000, "tool=read\*,user";q=60;w=60$`,
		"RateLimit":        `^"plan";r=99;t=[1-9][0-9]*, "tool=read\*,user";r=19;t=1$`,
	}
	for form, legacy := range map[string]int{"draft": 0, "both": 3} {
		s := e.Start(t, "LIMIT_RESPONSE_HEADERS_ENABLED=true", "LIMIT_RESPONSE_HEADERS="+form)
		for transport, ask := range newTransports(s) {
			user := form + transport
			r := ask(t, &ratelimit.RateLimitRequest{
				Domain: "d",
				Descriptors: newStep("", "tried=x", "named="+user, "free=x", "other=x",
					"tool=read_file,user="+user).ask,
			})
			if len(r.ResponseHeadersToAdd) != legacy+2 {
				t.Errorf("%s, %s: headers %v", form, transport, r.ResponseHeadersToAdd)
			}
			for _, h := range r.ResponseHeadersToAdd[legacy:] {
				if want, known := wanted[h.Key]; !known || !regexp.MustCompile(want).MatchString(h.Value) {
					t.Errorf("%s, %s: %s is %s, want %s", form, transport, h.Key, h.Value, wanted[h.Key])
				}
			}
		}
		const body = `{"domain": "d", "descriptors": [{"entries": [{"key": "named", "value": "x"}]}]}`
		h := apiclient.Call(t, "POST", s.RateLimitAPI+"/json", body).WantStatus(t, http.StatusOK).Header
		if h.Get("RateLimit-Policy") != `"plan";q=100;w=31536000` || (h.Get("RateLimit-Limit") != "") != (legacy > 0) {
			t.Errorf("%s: headers of /json: %v", form, h)
		}
	}
}

// TestRateLimitPrefix checks that instances with different prefixes share a store but no counters.
func TestRateLimitPrefix(t *testing.T) {
	t.Parallel()
	e := fixture.NewProduction(t)
	fixture.WriteFile(t, filepath.Join(e.RulesDir, "rules.yaml"), fmt.Sprintf(settingRules, "d"))
	own := fmt.Sprintf("CACHE_KEY_PREFIX=other%d_%d_", os.Getpid(), time.Now().UnixNano())
	one, same, other := e.Start(t), e.Start(t), e.Start(t, own)
	for i, test := range []struct {
		s    *fixture.Service
		want string
	}{{one, "OK: OK 2/HOUR 1"}, {same, "OK: OK 2/HOUR 0"}, {other, "OK: OK 2/HOUR 1"}, {one, "OVER: OVER 2/HOUR 0"}} {
		t.Log("call", i)
		followSteps(t, newTransports(test.s)["grpc"], "d", []callStep{newStep(test.want, "two=x")})
	}
}

func TestRateLimitMergedDomains(t *testing.T) {
	t.Parallel()
	e := newRulesEnvironment(t, fmt.Sprintf(settingRules, "d"))
	fixture.WriteFile(t, filepath.Join(e.RulesDir, "more.yaml"),
		"domain: d\ndescriptors:\n  - {key: more, rate_limit: {unit: hour, requests_per_unit: 0}}\n")
	for _, ask := range newTransports(e.Start(t, "MERGE_DOMAIN_CONFIG=true")) {
		followSteps(t, ask, "d", []callStep{newStep("OVER: OVER 0/HOUR 0 | OVER 0/HOUR 0", "blocked=x", "more=x")})
	}
	unmerged := e.Start(t, "FORCE_START_WITHOUT_INITIAL_CONFIG=true")
	_, err := unmerged.NewRateLimitClient(t).ShouldRateLimit(t.Context(), fixture.NewRateLimitRequest("d", "more", "x"))
	if status.Code(err) != codes.FailedPrecondition {
		t.Errorf("two files of one domain: %v", err)
	}
}

// TestRateLimitBeforeConfiguration starts with an invalid configuration, with and without the
// setting that allows this.
func TestRateLimitBeforeConfiguration(t *testing.T) {
	t.Parallel()
	e := newRulesEnvironment(t, "domain: d\nunknown: key\n")
	for force, health := range map[string]int{"true": http.StatusOK, "false": http.StatusServiceUnavailable} {
		s := e.StartWithoutRules(t, "FORCE_START_WITHOUT_INITIAL_CONFIG="+force)
		apiclient.Call(t, "GET", s.RateLimitAPI+"/healthcheck", nil).WantStatus(t, health)
		const body = `{"domain": "d", "descriptors": [{"entries": [{"key": "k"}]}]}`
		apiclient.Call(t, "POST", s.RateLimitAPI+"/json", body).WantStatus(t, http.StatusServiceUnavailable)
		if _, err := s.NewRateLimitClient(t).ShouldRateLimit(t.Context(),
			fixture.NewRateLimitRequest("d", "k", "x")); status.Code(err) != codes.FailedPrecondition {
			t.Errorf("FORCE_START_WITHOUT_INITIAL_CONFIG=%s: %v", force, err)
		}
	}
}

// TestRateLimitHealthNeedsADomain checks that an empty directory is a valid configuration, but not
// with HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED.
func TestRateLimitHealthNeedsADomain(t *testing.T) {
	t.Parallel()
	e := fixture.NewEnvironment(t, "embedded")
	file := filepath.Join(e.RulesDir, "rules.yaml")
	must.Succeed(t, os.Remove(file))
	e.Start(t) // healthy without
	s := e.StartWithoutRules(t, "HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED=true")
	apiclient.Call(t, "GET", s.RateLimitAPI+"/healthcheck", nil).WantStatus(t, http.StatusServiceUnavailable)
	fixture.WriteFile(t, file, fmt.Sprintf(settingRules, "d"))
	s.AwaitRules()
	must.Succeed(t, os.Remove(file))
	await.Until(t, "unhealthy once the rules are gone", func() bool {
		return apiclient.Call(t, "GET", s.RateLimitAPI+"/healthcheck", nil).Status == http.StatusServiceUnavailable
	})
}

func newLimitRules(n int) string {
	return fmt.Sprintf("domain: d\ndescriptors:\n  - {key: k, rate_limit: {unit: hour, requests_per_unit: %d}}\n", n)
}

// awaitLimit waits until the rule of limitOf has the limit.
func awaitLimit(t *testing.T, s *fixture.Service, want uint32) {
	t.Helper()
	c := s.NewRateLimitClient(t)
	await.Until(t, fmt.Sprint("a limit of ", want), func() bool {
		r, err := c.ShouldRateLimit(t.Context(), fixture.NewRateLimitRequest("d", "k", "x"))
		return err == nil && r.Statuses[0].GetCurrentLimit().GetRequestsPerUnit() == want
	})
}

// TestRateLimitRefuses sends malformed requests over both transports.
func TestRateLimitRefuses(t *testing.T) {
	t.Parallel()
	s := newRulesEnvironment(t, fmt.Sprintf(settingRules, "d")).Start(t)
	override := fixture.NewRateLimitRequest("d", "two", "x")
	withOwnLimit(1, 0, callStep{ask: override.Descriptors})
	for sentence, r := range map[string]*ratelimit.RateLimitRequest{
		"rate limit domain must not be empty":          fixture.NewRateLimitRequest("", "two", "x"),
		"rate limit descriptor list must not be empty": {Domain: "d"},
		"the unit of a limit override must be known":   override,
	} {
		_, err := s.NewRateLimitClient(t).ShouldRateLimit(t.Context(), r)
		if status.Code(err) != codes.InvalidArgument || status.Convert(err).Message() != sentence {
			t.Errorf("gRPC: %v, want %s", err, sentence)
		}
		if code, body := postRateLimitJSON(t, s, r); code != http.StatusBadRequest ||
			string(body) != `{"error":"`+sentence+`"}` {
			t.Errorf("/json: %d %s, want %s", code, body, sentence)
		}
	}
	for _, body := range []string{`{"domain": "d", "descriptor": []}`, `{`, ``} {
		a := apiclient.Call(t, "POST", s.RateLimitAPI+"/json", body)
		if a.Status != http.StatusBadRequest || !strings.Contains(string(a.Body), `"error"`) {
			t.Errorf("%q: %d %s", body, a.Status, a.Body)
		}
	}
	if a := apiclient.Call(t, "GET", s.RateLimitAPI+"/json", nil); a.Status != http.StatusMethodNotAllowed ||
		a.Header.Get("Allow") != "POST" {
		t.Errorf("GET: %d, Allow %q", a.Status, a.Header.Get("Allow"))
	}
}
