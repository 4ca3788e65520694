package decisionlog_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/decisionlog"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/decide"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
	"github.com/tollgate-dev/tollgate/core/requestid"
)

// fields are the fields of a log line.
type fields map[string]any

// logLines logs a request and returns the fields of each line.
func logLines(t *testing.T, r *ratelimit.Request, code ratelimit.Code, findings ...decide.Finding) []fields {
	t.Helper()
	var out bytes.Buffer
	log := logrus.New()
	log.SetOutput(&out)
	log.SetLevel(logrus.DebugLevel)
	log.SetFormatter(&logrus.JSONFormatter{DisableTimestamp: true})
	decisionlog.New(logrus.NewEntry(log)).Decided(requestid.NewContext(t.Context(), "id-1"), r, code, findings)
	var list []fields
	for line := range strings.Lines(out.String()) {
		var f fields
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		list = append(list, f)
	}
	return list
}

func newRequest(entries ...ratelimit.Entry) *ratelimit.Request {
	return &ratelimit.Request{Domain: "shop", Descriptors: []ratelimit.Descriptor{{Entries: entries}}}
}

// common are the fields of every line about a newRequest.
var common = fields{
	"level": "debug", "msg": "a rate limit descriptor was decided", "domain": "shop", "request_id": "id-1",
	"overall_code": "OK", "code": "OK", "hits": 1.0,
}

func TestLogLine(t *testing.T) {
	limit := ratelimit.Limit{RequestsPerUnit: 10, Unit: ratelimit.Hour}
	limited := ratelimit.Status{Code: ratelimit.OK, Limit: limit, Remaining: 7, UntilReset: time.Minute}
	rule := &ratelimit.Rule{Limit: limit, Path: "customer", Shadow: true, Quota: true}
	free := ratelimit.Status{Code: ratelimit.OK}
	tests := map[string]struct {
		finding decide.Finding
		want    fields
	}{
		"counted": {
			decide.Finding{
				Status: limited, Rule: rule, Source: decide.FromStore, Key: "shop_customer_ada_3600", Count: 3,
			},
			fields{
				"rule": "customer", "limit": "10 per hour", "remaining": 7.0, "count": 3.0,
				"key":           "shop_customer_ada_3600",
				"answered_from": "counter", "shadow_mode": true, "quota_mode": true,
			},
		},
		"override": {
			decide.Finding{Status: limited, Source: decide.FromMemory},
			fields{
				"no_rule": "the request contains its own limit", "limit": "10 per hour", "remaining": 7.0,
				"answered_from": "local cache",
			},
		},
		"failure mode": {
			decide.Finding{Status: free, Rule: &ratelimit.Rule{Path: "p"}, Source: decide.FromFailureMode},
			fields{"rule": "p", "answered_from": "KVSTORE_FAILURE_MODE"},
		},
		"unlimited": {
			decide.Finding{Status: free, Rule: &ratelimit.Rule{Path: "p", Unlimited: true}},
			fields{"rule": "p", "limit": "unlimited"},
		},
		"replaced": {
			decide.Finding{Status: free, Rule: &ratelimit.Rule{Path: "p"}, Replaced: true},
			fields{"rule": "p", "limit": "replaced by the limit of another descriptor"},
		},
		"unknown domain": {
			decide.Finding{Status: free, Miss: ruleset.Miss{Reason: ruleset.UnknownDomain}},
			fields{"no_rule": "the domain is not configured"},
		},
		"unknown key": {
			decide.Finding{Status: free, Miss: ruleset.Miss{Reason: ruleset.UnknownKey, Level: 1}},
			fields{"no_rule": `no rule has the key "action" at level 2`},
		},
		"unknown value": {
			decide.Finding{Status: free, Miss: ruleset.Miss{Reason: ruleset.UnknownValue}},
			fields{"no_rule": `no rule of the key "customer" at level 1 has the value "ada"`},
		},
		"too deep": {
			decide.Finding{Status: free, Miss: ruleset.Miss{Reason: ruleset.TooDeep, Level: 1}},
			fields{"no_rule": "the rules end at level 1, but the descriptor has more entries"},
		},
		"no limit": {
			decide.Finding{Status: free, Miss: ruleset.Miss{Reason: ruleset.NoLimit, Level: 2}},
			fields{"no_rule": "the rules have no rate_limit at level 2"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.finding.Hits = 1
			got := logLines(t,
				newRequest(ratelimit.Entry{Key: "customer", Value: "ada"}, ratelimit.Entry{
					Key: "action", Value: "pay",
				}), ratelimit.OK, test.finding)
			want := maps.Clone(common)
			want["descriptor"] = "customer=ada,action=pay"
			maps.Copy(want, test.want)
			if len(got) != 1 || !maps.Equal(got[0], want) {
				t.Errorf("got %v,\nwant %v", got, want)
			}
		})
	}
}

func TestGivingBackIsNegative(t *testing.T) {
	r := newRequest(ratelimit.Entry{Key: "k", Value: "v"})
	r.Descriptors[0].GiveBack = true
	if got := logLines(t, r, ratelimit.OK, decide.Finding{Hits: 3}); len(got) != 1 || got[0]["hits"] != -3.0 {
		t.Errorf("got %v", got)
	}
}

// TestLimits checks that texts of callers cannot fill the log or create lines.
func TestLimits(t *testing.T) {
	long := strings.Repeat("ä\n", 1<<20)
	r := &ratelimit.Request{Domain: ratelimit.Domain(long)}
	var findings []decide.Finding
	for i := range 1000 {
		r.Descriptors = append(r.Descriptors, ratelimit.Descriptor{Entries: []ratelimit.Entry{
			{Key: strconv.Itoa(i), Value: long}, {Key: long, Value: long},
		}})
		findings = append(findings, decide.Finding{
			Key: long, Source: decide.FromStore, Status: ratelimit.Status{Code: ratelimit.OverLimit},
			Miss: ruleset.Miss{Reason: ruleset.UnknownValue, Level: 1},
		})
	}
	got := logLines(t, r, ratelimit.OverLimit, findings...)
	if len(got) != 101 {
		t.Fatalf("%d lines, want 101", len(got))
	}
	for _, line := range got[:100] {
		for name, value := range line {
			if text, ok := value.(string); ok && (len(text) > 700 || !utf8.ValidString(text)) {
				t.Errorf("%s has %d bytes", name, len(text))
			}
		}
		if line["code"] != "OVER_LIMIT" || line["overall_code"] != "OVER_LIMIT" {
			t.Errorf("got %v", line)
		}
	}
	if last := got[100]; last["descriptors"] != 1000.0 || last["descriptor"] != nil {
		t.Errorf("the last line is %v", last)
	}
}
