package access_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/trustlevel"
)

// TestPermitsAgreeWithDecisions compares what could be allowed with the decisions about calls of every class
// and tool that rules distinguish: at the least level one is allowed, and below it, or without one, none.
func TestPermitsAgreeWithDecisions(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	c := chance{rand.New(rand.NewPCG(seed, 7))}
	var servers []access.Listing
	for _, a := range []string{"a", "ab", "b"} {
		for _, b := range []string{"x", "xy", "z"} {
			servers = append(servers, access.Listing{Name: mustName(t, a+"/"+b), Quarantined: a == "b" && b == "z"})
		}
	}
	var calls []access.Call
	for _, method := range []string{"tools/list", "prompts/get", "resources/read", "ping"} {
		calls = append(calls, access.NewCall(method, "t"))
	}
	for _, tool := range []string{"t", "tu", "tz", "u", "v"} {
		calls = append(calls, access.NewCall("tools/call", tool))
	}
	for i := range 160 {
		calls = append(calls, access.NewCall("tools/call", fmt.Sprintf("other%d", i)))
	}
	counts := map[string]int{}
	for range 4000 {
		var rules []access.Rule
		for i := range c.IntN(12) {
			rules = append(rules, mustRule(t, c.rule(i)))
		}
		for i := range servers {
			servers[i].Tools = c.lists()
		}
		o := access.Options{Default: access.Effect(c.one("allow", "deny", "deny")), OnChange: c.onChange()}
		s := access.Compile(o, rules, servers)
		m := c.member(t)
		if m.Kind != access.Person {
			continue
		}
		subject := access.NewSubject(m).WithClient(c.one("c0", "c1", "c2"))
		q := access.Question{Server: c.server(), At: noon, From: netip.MustParseAddr(c.one("10.1.2.3", "10.2.0.1", "192.0.2.1"))}
		least, ok := s.Permits(&subject, mustName(t, q.Server), q.From, noon)
		counts[fmt.Sprint(ok)]++
		counts[least.String()]++
		for _, level := range trustlevel.All()[1:] {
			at := subject.WithTrust(level)
			some := false
			for _, q.Call = range calls {
				q.Subject = &at
				some = some || s.Decide(&q).Effect == access.Allow
			}
			if want := ok && level >= least; some != want {
				t.Fatalf("seed %d: at %s some call is allowed: %v; it is permitted: %v from %s; %+v, %+v", seed, level, some, ok, least, q, rules)
			}
		}
	}
	for _, one := range []string{"true", "false", "", "UNVERIFIED", "LIMITED_TRUST", "FULL_TRUST"} {
		if counts[one] == 0 { // the rarest is there some 17 times
			t.Errorf("seed %d: %q is not there", seed, one)
		}
	}
}

// TestNothingPermitted has the subjects and servers of which no call is allowed, whatever the rules are.
func TestNothingPermitted(t *testing.T) {
	t.Parallel()
	s := access.Compile(access.Options{Default: access.Allow, Unlisted: access.Allow}, nil, listings(t))
	person, refused := ada(t), access.Refused()
	for name, q := range map[string]struct {
		subject *access.Subject
		server  string
		want    bool
	}{
		"by the default": {&person, "com.example/weather", true}, "in quarantine": {&person, "com.example/bad", false},
		"not listed": {&person, "com.example/unknown", false}, "not active": {&refused, "com.example/weather", false},
	} {
		if _, ok := s.Permits(q.subject, mustName(t, q.server), netip.Addr{}, noon); ok != q.want {
			t.Errorf("%s: %v", name, ok)
		}
	}
}

// TestPermitsWhatIsLeft has rules that deny a part of what a later one allows.
func TestPermitsWhatIsLeft(t *testing.T) {
	t.Parallel()
	person := ada(t)
	for name, c := range map[string]struct {
		denied, allowed rule
		want            bool
	}{
		"another tool with the prefix":  {rule{"tools": list("t")}, rule{"tools": list("t*")}, true},
		"a longer prefix":               {rule{"tools": list("ta*", "tb*")}, rule{"tools": list("t*")}, true},
		"no tool with the prefix":       {rule{"tools": list("t*")}, rule{"tools": list("ta", "tb*")}, false},
		"no tool":                       {rule{"methods": list("tools/call")}, rule{"tools": list("*")}, false},
		"other methods":                 {rule{"tools": list("*")}, rule{}, true},
		"no method":                     {rule{"methods": list("prompts/*", "other")}, rule{"methods": list("other")}, false},
		"everything, for other clients": {rule{"clients": list("x")}, rule{}, true},
		"nothing":                       {rule{}, rule{}, false},
	} {
		c.denied["effect"], c.denied["order"], c.denied["name"] = audit.Text("deny"), audit.Number(1), audit.Text("deny")
		s := access.Compile(access.Options{}, []access.Rule{mustRule(t, c.denied), mustRule(t, c.allowed)}, listings(t))
		if _, ok := s.Permits(&person, mustName(t, "com.example/weather"), netip.Addr{}, noon); ok != c.want {
			t.Errorf("%s: %v", name, ok)
		}
	}
}
