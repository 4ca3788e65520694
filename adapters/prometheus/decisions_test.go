package prometheus

import (
	"strconv"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tollgate-dev/tollgate/core/access"
)

// TestDecisions counts decisions by server, and what rules would have done.
func TestDecisions(t *testing.T) {
	r := prometheus.NewRegistry()
	d := NewDecisions(r)
	allowed := access.Decision{Effect: access.Allow, Reason: access.ByRule, Server: "com.example/a"}
	d.Count(allowed)
	allowed.Observed = access.Observed{Rule: "r", Effect: access.Challenge, Reason: access.InsufficientTrust}
	d.Count(allowed)
	d.Count(access.Decision{Effect: access.Deny, Reason: access.NotListed, Server: "com.example/unknown"})
	d.Count(access.Decision{Effect: access.Deny, Reason: access.NotListed})
	d.Count(access.Decision{Effect: access.Deny, Reason: access.ByDefault, Server: "com.example/b", Observed: access.Observed{
		Effect: access.Deny, Reason: access.ToolChanged,
	}})
	see := NewSeenTools(r)
	for _, s := range []access.Seen{access.Approved, access.Unapproved, access.Unapproved, access.Unreviewed} {
		see(s)
	}
	const name = "tollgate_decide_total " // the labels are in the order of their names
	checkMetrics(t, r, map[string]float64{
		name + "allow enforce rule com.example/a":                   2,
		name + "challenge observe insufficient_trust com.example/a": 1,
		name + "deny enforce not_listed other":                      2,
		name + "deny enforce default com.example/b":                 1,
		name + "deny observe tool_changed com.example/b":            1,
		"tollgate_tools_seen_total approved":                        1,
		"tollgate_tools_seen_total unapproved":                      2,
		"tollgate_tools_seen_total unknown":                         1,
	})
}

// TestDecisionsOfManyServers: the number of series has a limit.
func TestDecisionsOfManyServers(t *testing.T) {
	r := prometheus.NewRegistry()
	d := NewDecisions(r)
	for range 2 {
		for i := range maxServers + 10 {
			d.Count(access.Decision{Effect: access.Allow, Reason: access.ByRule, Server: "com.example/" + strconv.Itoa(i)})
		}
	}
	samples := nonzeroSamples(t, r)
	if len(samples) != maxServers+1 || samples["tollgate_decide_total allow enforce rule other"] != 20 {
		t.Errorf("%d series, %v of other servers", len(samples), samples["tollgate_decide_total allow enforce rule other"])
	}
}
