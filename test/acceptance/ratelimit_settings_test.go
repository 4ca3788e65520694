package acceptance

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// only returns an embedded environment with these rules and no others.
func only(t *testing.T, rules string) *environment {
	t.Helper()
	e := newEnvironment(t, "embedded")
	write(t, filepath.Join(e.rules, "rules.yaml"), rules)
	return e
}

// settingRules are what most settings are tried on.
const settingRules = `domain: %s
descriptors:
  - {key: two, rate_limit: {unit: hour, requests_per_unit: 2}}
  - {key: ten, rate_limit: {unit: hour, requests_per_unit: 10}}
  - {key: blocked, rate_limit: {unit: hour, requests_per_unit: 0}}
  - {key: told, metadata: {team: pay}, rate_limit: {unit: hour, requests_per_unit: 2}}
`

// TestRateLimitSettings tries each setting that changes answers or statistics,
// over both transports.
func TestRateLimitSettings(t *testing.T) {
	tests := map[string]struct {
		environ []string
		steps   []step
		stats   map[string]int // of the domain grpc; service-level ones by their whole name
	}{
		"SHADOW_MODE": {
			[]string{"SHADOW_MODE=true"},
			[]step{asks("OK: OVER 0/HOUR 0", "blocked=x")},
			map[string]int{"ratelimit.service.global_shadow_mode": 2, "blocked.over_limit": 1},
		},
		"QUOTA_MODE": {
			[]string{"QUOTA_MODE=true"},
			[]step{asks("OK: OVER 0/HOUR 0 | OK 2/HOUR 1", "blocked=x", "two=x"), asks("OVER: OVER 0/HOUR 0", "blocked=x")},
			nil,
		},
		"STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT": {
			[]string{"STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT=true"},
			[]step{asks("OVER: OK 2/HOUR 2 | OVER 0/HOUR 0", "two=x", "blocked=x"), asks("OK: OK 2/HOUR 1", "two=x")},
			map[string]int{"two.total_hits": 2},
		},
		"without it": {
			nil,
			[]step{asks("OVER: OK 2/HOUR 1 | OVER 0/HOUR 0", "two=x", "blocked=x"), asks("OK: OK 2/HOUR 0", "two=x")},
			nil,
		},
		"NEAR_LIMIT_RATIO": {
			[]string{"NEAR_LIMIT_RATIO=0.5"},
			[]step{withHits(12, asks("OVER: OVER 10/HOUR 0", "ten=x"))},
			map[string]int{"ten.near_limit": 5, "ten.over_limit": 2, "ten.total_hits": 12},
		},
		"NEAR_LIMIT_RATIO left alone": {
			nil,
			[]step{withHits(9, asks("OK: OK 10/HOUR 1", "ten=x"))},
			map[string]int{"ten.near_limit": 1, "ten.within_limit": 9},
		},
		"LOCAL_CACHE_SIZE_IN_BYTES": {
			[]string{"LOCAL_CACHE_SIZE_IN_BYTES=1048576"},
			[]step{withHits(3, asks("OVER: OVER 2/HOUR 0", "two=x")), asks("OVER: OVER 2/HOUR 0 | OK 10/HOUR 9", "two=x", "ten=x"), asks("OK: OK 2/HOUR 1", "two=y")},
			map[string]int{"two.over_limit_with_local_cache": 1, "two.over_limit": 2, "two.total_hits": 5, "ten.over_limit_with_local_cache": 0},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnvironment(t, "embedded")
			for transport := range transports(nil) {
				write(t, filepath.Join(e.rules, transport+".yaml"), fmt.Sprintf(settingRules, transport))
			}
			s := e.start(t, test.environ...)
			for transport, ask := range transports(s) {
				follow(t, ask, transport, test.steps)
			}
			stats := s.stats(t)
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

// stats returns the statistics of the debug listener by their names.
func (s *service) stats(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for line := range strings.Lines(string(call(t, "GET", s.debug+"/stats", nil).want(t, http.StatusOK).body)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		all[name] = value
	}
	return all
}

func TestRateLimitHeaders(t *testing.T) {
	e := only(t, fmt.Sprintf(settingRules, "d"))
	s := e.start(t, "LIMIT_RESPONSE_HEADERS_ENABLED=true", "LIMIT_LIMIT_HEADER=X-Most", "LIMIT_REMAINING_HEADER=X-Left", "LIMIT_RESET_HEADER=X-Again")
	for transport, ask := range transports(s) {
		r := ask(t, &ratelimit.RateLimitRequest{Domain: "d", Descriptors: asks("", "ten="+transport, "two="+transport, "none=x").ask})
		got := map[string]string{}
		for _, h := range r.ResponseHeadersToAdd {
			got[h.Key] = h.Value
		}
		if len(got) != 3 || got["X-Most"] != "2" || got["X-Left"] != "1" || got["X-Again"] == "" {
			t.Errorf("%s: headers %v", transport, got)
		}
	}
	const body = `{"domain": "d", "descriptors": [{"entries": [{"key": "blocked", "value": "x"}]}]}`
	h := call(t, "POST", s.limitAPI+"/json", body).want(t, http.StatusTooManyRequests).header
	if h.Get("X-Most") != "0" || h.Get("X-Left") != "0" || h.Get("X-Again") == "" {
		t.Errorf("headers %v", h)
	}
}

func TestRateLimitDynamicMetadata(t *testing.T) {
	e := only(t, fmt.Sprintf(settingRules, "d"))
	s := e.start(t, "RESPONSE_DYNAMIC_METADATA=true")
	var answers []proto.Message
	for _, ask := range transports(s) {
		m := ask(t, &ratelimit.RateLimitRequest{Domain: "d", Descriptors: asks("", "told=x").ask, HitsAddend: 1}).DynamicMetadata
		answers = append(answers, m)
		if m.GetFields()["domain"].GetStringValue() != "d" || m.GetFields()["metadata"].GetStructValue().GetFields()["team"].GetStringValue() != "pay" {
			t.Errorf("metadata %v", m)
		}
	}
	if !proto.Equal(answers[0], answers[1]) {
		t.Errorf("%v over one transport, %v over the other", answers[0], answers[1])
	}
}

// TestRateLimitPrefix: instances with different prefixes share a store and no
// counter.
func TestRateLimitPrefix(t *testing.T) {
	e := production(t)
	write(t, filepath.Join(e.rules, "rules.yaml"), fmt.Sprintf(settingRules, "d"))
	own := fmt.Sprintf("CACHE_KEY_PREFIX=other%d_%d_", os.Getpid(), time.Now().UnixNano())
	one, same, other := e.start(t), e.start(t), e.start(t, own)
	for i, test := range []struct {
		s    *service
		want string
	}{{one, "OK: OK 2/HOUR 1"}, {same, "OK: OK 2/HOUR 0"}, {other, "OK: OK 2/HOUR 1"}, {one, "OVER: OVER 2/HOUR 0"}} {
		t.Log("call", i)
		follow(t, transports(test.s)["grpc"], "d", []step{asks(test.want, "two=x")})
	}
}

func TestRateLimitDetailedStatistics(t *testing.T) {
	e := only(t, `domain: d
descriptors:
  - {key: rolled, rate_limit: {unit: hour, requests_per_unit: 5}}
  - {key: detailed, detailed_metric: true, rate_limit: {unit: hour, requests_per_unit: 5}}
  - key: tenant
    value_to_metric: true
    descriptors: [{key: op, rate_limit: {unit: hour, requests_per_unit: 5}}]
  - {key: path, value: "/a/*", share_threshold: true, rate_limit: {unit: hour, requests_per_unit: 5}}
  - {key: dark, shadow_mode: true, rate_limit: {unit: hour, requests_per_unit: 0}}
  - {key: free, rate_limit: {unlimited: true}}
`)
	s := e.start(t)
	for _, ask := range transports(s) {
		ask(t, &ratelimit.RateLimitRequest{Domain: "d", Descriptors: asks("", "rolled=v", "detailed=v", "tenant=v,op=w", "path=/a/1", "dark=v", "free=v").ask})
	}
	stats := s.stats(t)
	for _, name := range []string{"rolled.total_hits", "detailed_v.total_hits", "tenant_v.op.total_hits", "path_/a/.total_hits", "dark.shadow_mode", "dark.over_limit", "free.total_hits"} {
		if got := stats["ratelimit.service.rate_limit.d."+name]; got != "2" {
			t.Errorf("%s is %q, want 2", name, got)
		}
	}
}

func TestRateLimitMergedDomains(t *testing.T) {
	e := only(t, fmt.Sprintf(settingRules, "d"))
	write(t, filepath.Join(e.rules, "more.yaml"), "domain: d\ndescriptors:\n  - {key: more, rate_limit: {unit: hour, requests_per_unit: 0}}\n")
	for _, ask := range transports(e.start(t, "MERGE_DOMAIN_CONFIG=true")) {
		follow(t, ask, "d", []step{asks("OVER: OVER 0/HOUR 0 | OVER 0/HOUR 0", "blocked=x", "more=x")})
	}
	unmerged := e.start(t, "FORCE_START_WITHOUT_INITIAL_CONFIG=true")
	_, err := unmerged.rateLimiter(t).ShouldRateLimit(t.Context(), request("d", "more", "x"))
	if status.Code(err) != codes.FailedPrecondition {
		t.Errorf("two files of one domain: %v", err)
	}
}

// TestRateLimitBeforeConfiguration: a wrong first configuration, with and without
// the setting that starts all the same.
func TestRateLimitBeforeConfiguration(t *testing.T) {
	e := only(t, "domain: d\nunknown: key\n")
	for force, health := range map[string]int{"true": http.StatusOK, "false": http.StatusServiceUnavailable} {
		s := e.startWithoutRules(t, "FORCE_START_WITHOUT_INITIAL_CONFIG="+force)
		call(t, "GET", s.limitAPI+"/healthcheck", nil).want(t, health)
		const body = `{"domain": "d", "descriptors": [{"entries": [{"key": "k"}]}]}`
		call(t, "POST", s.limitAPI+"/json", body).want(t, http.StatusServiceUnavailable)
		if _, err := s.rateLimiter(t).ShouldRateLimit(t.Context(), request("d", "k", "x")); status.Code(err) != codes.FailedPrecondition {
			t.Errorf("FORCE_START_WITHOUT_INITIAL_CONFIG=%s: %v", force, err)
		}
	}
}

// TestRateLimitHealthNeedsADomain: an empty directory is a configuration, but not
// with HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED.
func TestRateLimitHealthNeedsADomain(t *testing.T) {
	e := newEnvironment(t, "embedded")
	file := filepath.Join(e.rules, "rules.yaml")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	e.start(t) // healthy without
	s := e.startWithoutRules(t, "HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED=true")
	call(t, "GET", s.limitAPI+"/healthcheck", nil).want(t, http.StatusServiceUnavailable)
	write(t, file, fmt.Sprintf(settingRules, "d"))
	s.awaitRules()
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	eventually(t, "unhealthy once the rules are gone", func() bool {
		return call(t, "GET", s.limitAPI+"/healthcheck", nil).status == http.StatusServiceUnavailable
	})
}

// TestRateLimitFollowsTheRoot swaps the link that RUNTIME_ROOT is, and changes a
// file behind it: RUNTIME_WATCH_ROOT, on by default, follows both.
func TestRateLimitFollowsTheRoot(t *testing.T) {
	e := newEnvironment(t, "embedded")
	link := filepath.Join(e.dir, "current")
	for name, limit := range map[string]int{"one": 1, "two": 2} {
		folder := filepath.Join(e.dir, name, "config")
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(folder, "r.yaml"), limitOf(limit))
	}
	swap := func(to string) {
		if err := os.Symlink(to, link+".new"); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(link+".new", link); err != nil {
			t.Fatal(err)
		}
	}
	swap("one")
	s := e.start(t, "RUNTIME_ROOT="+link, "RUNTIME_WATCH_ROOT=true")
	s.awaitLimit(t, 1)
	swap("two")
	s.awaitLimit(t, 2)
	write(t, filepath.Join(e.dir, "two", "config", "r.yaml"), limitOf(3))
	s.awaitLimit(t, 3)
}

func limitOf(n int) string {
	return fmt.Sprintf("domain: d\ndescriptors:\n  - {key: k, rate_limit: {unit: hour, requests_per_unit: %d}}\n", n)
}

// awaitLimit waits until the rule of limitOf has the limit.
func (s *service) awaitLimit(t *testing.T, want uint32) {
	t.Helper()
	c := s.rateLimiter(t)
	eventually(t, fmt.Sprint("a limit of ", want), func() bool {
		r, err := c.ShouldRateLimit(t.Context(), request("d", "k", "x"))
		return err == nil && r.Statuses[0].GetCurrentLimit().GetRequestsPerUnit() == want
	})
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if holds() {
			return
		}
	}
	t.Fatalf("waited in vain: %s", what)
}

// TestRateLimitRefuses: what is malformed, over both transports.
func TestRateLimitRefuses(t *testing.T) {
	s := only(t, fmt.Sprintf(settingRules, "d")).start(t)
	override := request("d", "two", "x")
	overriding(1, 0, step{ask: override.Descriptors})
	hits := request("d", "two", "x")
	adding(1<<32, step{ask: hits.Descriptors})
	for sentence, r := range map[string]*ratelimit.RateLimitRequest{
		"rate limit domain must not be empty":                    request("", "two", "x"),
		"rate limit descriptor list must not be empty":           {Domain: "d"},
		"the unit of a limit override must be known":             override,
		"hits_addend of a descriptor must be at most 4294967295": hits,
	} {
		_, err := s.rateLimiter(t).ShouldRateLimit(t.Context(), r)
		if status.Code(err) != codes.InvalidArgument || status.Convert(err).Message() != sentence {
			t.Errorf("gRPC: %v, want %s", err, sentence)
		}
		if code, body := s.postJSON(t, r); code != http.StatusBadRequest || string(body) != `{"error":"`+sentence+`"}` {
			t.Errorf("/json: %d %s, want %s", code, body, sentence)
		}
	}
	for name, body := range map[string]string{
		"unknown field": `{"domain": "d", "descriptor": []}`, "not JSON": `{`, "wrong type": `{"domain": 1}`, "empty": ``,
	} {
		a := call(t, "POST", s.limitAPI+"/json", body)
		if a.status != http.StatusBadRequest || !strings.Contains(string(a.body), `"error"`) {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	for _, method := range []string{"GET", "PUT", "DELETE"} {
		if a := call(t, method, s.limitAPI+"/json", nil); a.status != http.StatusMethodNotAllowed || a.header.Get("Allow") != "POST" {
			t.Errorf("%s: %d, Allow %q", method, a.status, a.header.Get("Allow"))
		}
	}
	for style, field := range map[string]string{"snake": "hits_addend", "camel": "hitsAddend"} {
		body := `{"domain": "d", "` + field + `": 2, "descriptors": [{"entries": [{"key": "ten", "value": "` + style + `"}]}]}`
		if a := call(t, "POST", s.limitAPI+"/json", body).want(t, http.StatusOK); !strings.Contains(string(a.body), `"limitRemaining":8`) {
			t.Errorf("%s: %s", field, a.body)
		}
	}
}
