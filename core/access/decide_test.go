package access_test

import (
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/toolserver"
	"github.com/tollgate-dev/tollgate/core/trustlevel"
	"github.com/tollgate-dev/tollgate/test/must"
)

var noon = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

// ada is a person in two groups, with a grant.
func ada(t testing.TB) access.Subject {
	t.Helper()
	pattern, err := toolserver.ParsePattern("com.example/*")
	must.Succeed(t, err)
	return access.NewSubject(access.Member{
		Kind: access.Person, ID: "ada@example.com", Trust: trustlevel.LimitedTrust,
		Groups: []access.Group{{Provider: "acme", Name: "dev"}, {Provider: "acme", Name: "ops/night"}},
		Grants: []access.Grant{{Action: toolserver.ActionPublish, Pattern: pattern}},
	})
}

func listings(t testing.TB) []access.Listing {
	return []access.Listing{
		{Name: mustName(t, "com.example/weather"), Remotes: []string{"https://t.example.com/w", "https://t.example.com/both"}},
		{Name: mustName(t, "com.example/mail"), Remotes: []string{"https://t.example.com/both"}},
		{Name: mustName(t, "org.other/x")},
		{Name: mustName(t, "com.example/bad"), Remotes: []string{"https://t.example.com/bad"}, Quarantined: true},
	}
}

// rule is a shorthand of the fields of a rule in tests.
type rule = audit.Details

// TestDecisions has the sentences of contract Z-2, Z-3, Z-6 and Z-14.
func TestDecisions(t *testing.T) {
	t.Parallel()
	person, anyone, refused := ada(t), access.Subject{}, access.Refused()
	byClient := person.WithClient("vscode")
	ci := access.NewSubject(access.Member{Kind: access.Service, ID: "ci", Trust: trustlevel.FullTrust})
	jwt := access.NewSubject(access.Member{
		Kind: access.Foreign, ID: "https://login.example x", Trust: trustlevel.Unverified,
		Groups: []access.Group{{Provider: "acme", Name: "dev"}},
	})
	get, listed := access.NewCall("tools/call", "get_forecast"), access.NewCall("tools/list", "")
	cut := access.ReadCall(&access.Request{Method: "POST", Cut: true})
	deny, everyone := audit.Text("deny"), rule{"name": audit.Text("everyone")}
	subject := func(s string) []rule { return []rule{{"subjects": list(s)}} }
	type ask struct {
		rules   []rule
		options access.Options
		subject *access.Subject
		server  string
		call    access.Call
		from    string
	}
	for name, c := range map[string]struct {
		ask
		want string // effect, reason and rule, and a rule that observes with what it would have done
	}{
		"no rule":                         {ask{}, "deny default"},
		"no rule, and allowed by default": {ask{options: access.Options{Default: access.Allow}}, "allow default"},
		"no rule and no token":            {ask{subject: &anyone}, "challenge default"},
		"no token, and allowed by default": {
			ask{subject: &anyone, options: access.Options{Default: access.Allow}}, "allow default"},
		"everyone":                     {ask{rules: []rule{{}}}, "allow rule r"},
		"everyone needs a token":       {ask{rules: []rule{{}}, subject: &anyone}, "challenge default"},
		"everyone, by a foreign token": {ask{rules: []rule{{}}, subject: &jwt}, "allow rule r"},
		"anyone":                       {ask{rules: subject("anyone"), subject: &anyone}, "allow rule r"},
		"anyone with a token":          {ask{rules: subject("anyone")}, "allow rule r"},
		"the person":                   {ask{rules: subject("person:ADA@example.com")}, "allow rule r"},
		"another person":               {ask{rules: subject("person:bob@example.com")}, "deny default"},
		"the service account":          {ask{rules: subject("service:ci"), subject: &ci}, "allow rule r"},
		"a person is no service":       {ask{rules: subject("service:ci")}, "deny default"},
		"a group":                      {ask{rules: subject("group:acme/dev")}, "allow rule r"},
		"a group with a slash":         {ask{rules: subject("group:acme/ops/night")}, "allow rule r"},
		"a group of a foreign token":   {ask{rules: subject("group:acme/dev"), subject: &jwt}, "allow rule r"},
		"the group of another":         {ask{rules: subject("group:other/dev")}, "deny default"},
		"a grant that covers":          {ask{rules: []rule{{"subjects": list("grant:publish"), "servers": list("*")}}}, "allow rule r"},
		"a grant that does not cover": {
			ask{rules: []rule{{"subjects": list("grant:publish"), "servers": list("*")}}, server: "org.other/x"}, "deny default"},
		"another action":      {ask{rules: subject("grant:edit")}, "deny default"},
		"another server":      {ask{rules: []rule{{"servers": list("org.other/x")}}}, "deny default"},
		"one of two servers":  {ask{rules: []rule{{"servers": list("org.other/x", "com.example/weather")}}}, "allow rule r"},
		"a method":            {ask{rules: []rule{{"methods": list("tools/call")}}}, "allow rule r"},
		"another method":      {ask{rules: []rule{{"methods": list("tools/list")}}}, "deny default"},
		"other":               {ask{rules: []rule{{"methods": list("other")}}, call: access.NewCall("ping", "")}, "allow rule r"},
		"a tool":              {ask{rules: []rule{{"tools": list("get_forecast")}}}, "allow rule r"},
		"a prefix":            {ask{rules: []rule{{"tools": list("put", "get_*")}}}, "allow rule r"},
		"another tool":        {ask{rules: []rule{{"tools": list("get")}}}, "deny default"},
		"a list of tools":     {ask{rules: []rule{{"tools": list("*")}}, call: listed}, "deny default"},
		"a prompt is no tool": {ask{rules: []rule{{"tools": list("*")}}, call: access.NewCall("prompts/get", "get_forecast")}, "deny default"},
		"a client":            {ask{rules: []rule{{"clients": list("vscode", "c")}}, subject: &byClient}, "allow rule r"},
		"another client":      {ask{rules: []rule{{"clients": list("c")}}, subject: &byClient}, "deny default"},
		"a session is no client": {
			ask{rules: []rule{{"clients": list("vscode")}}}, "deny default"},
		"a service is no client": {ask{rules: []rule{{"clients": list("vscode")}}, subject: &ci}, "deny default"},
		"nobody is a client":     {ask{rules: []rule{{"clients": list("vscode"), "subjects": list("anyone")}}, subject: &anyone}, "challenge default"},
		"a client is denied": {
			ask{rules: []rule{{"clients": list("vscode"), "effect": deny}, {"name": audit.Text("z"), "order": audit.Number(11)}}, subject: &byClient}, "deny rule r"},
		"a client is denied, and a session is not": {
			ask{rules: []rule{{"clients": list("vscode"), "effect": deny}, {"name": audit.Text("z"), "order": audit.Number(11)}}}, "allow rule z"},
		"unreadable, and the rule is about another client": {
			ask{rules: []rule{{}, {"name": audit.Text("z"), "tools": list("x"), "clients": list("c")}}, call: cut}, "allow rule r"},
		"unreadable, and the rule is about the client": {
			ask{rules: []rule{{}, {"name": audit.Text("z"), "tools": list("x"), "clients": list("vscode")}}, subject: &byClient, call: cut}, "deny unreadable"},
		"a network":             {ask{rules: []rule{{"networks": list("192.0.2.0/24")}}, from: "192.0.2.7"}, "allow rule r"},
		"a mapped address":      {ask{rules: []rule{{"networks": list("192.0.2.0/24")}}, from: "::ffff:192.0.2.7"}, "allow rule r"},
		"another network":       {ask{rules: []rule{{"networks": list("192.0.2.0/24")}}, from: "198.51.100.1"}, "deny default"},
		"no address":            {ask{rules: []rule{{"networks": list("0.0.0.0/0")}}}, "deny default"},
		"before the end":        {ask{rules: []rule{{"expiresAt": audit.Text("2026-11-27T12:00:01Z")}}}, "allow rule r"},
		"at the end":            {ask{rules: []rule{{"expiresAt": audit.Text("2026-11-27T12:00:00Z")}}}, "deny default"},
		"enough trust":          {ask{rules: []rule{{"minTrust": audit.Text("LIMITED_TRUST")}}}, "allow rule r"},
		"too little trust":      {ask{rules: []rule{{"minTrust": audit.Text("FULL_TRUST")}}}, "challenge insufficient_trust r"},
		"trust without a token": {ask{rules: []rule{{"subjects": list("anyone"), "minTrust": audit.Text("HIGH_RISK")}}, subject: &anyone}, "challenge insufficient_trust r"},
		"too little trust, and another rule allows": {
			ask{rules: []rule{{"minTrust": audit.Text("FULL_TRUST")}, {"name": audit.Text("z"), "order": audit.Number(11)}}},
			"challenge insufficient_trust r"},
		"the lowest order": {
			ask{rules: []rule{{"effect": deny}, {"name": audit.Text("z"), "order": audit.Number(9)}}}, "allow rule z"},
		"at one order the denial": {
			ask{rules: []rule{{"name": audit.Text("a")}, {"name": audit.Text("z"), "effect": deny}}}, "deny rule z"},
		"a denial without a token": {
			ask{rules: []rule{{"subjects": list("anyone"), "effect": deny}}, subject: &anyone}, "challenge rule r"},
		"an unknown server":    {ask{rules: []rule{{"servers": list("*")}}, server: "com.example/unknown"}, "deny not_listed"},
		"no name of a server":  {ask{server: "weather"}, "deny not_listed"},
		"an unlisted server":   {ask{server: "a/b", options: access.Options{Unlisted: access.Allow}}, "allow not_listed"},
		"without any token":    {ask{server: "a/b", subject: &anyone}, "deny not_listed"},
		"in quarantine":        {ask{rules: []rule{{}}, server: "com.example/bad"}, "deny quarantined"},
		"also if unlisted may": {ask{server: "com.example/bad", options: access.Options{Unlisted: access.Allow}}, "deny quarantined"},
		"a bad token":          {ask{rules: subject("anyone"), subject: &refused}, "challenge invalid_token"},
		"a bad token, unlisted allowed": {
			ask{server: "a/b", options: access.Options{Unlisted: access.Allow}, subject: &refused}, "challenge invalid_token"},
		"headers that differ": {ask{rules: []rule{{}}, call: access.Call{Class: access.Other, Problem: access.HeaderMismatch}},
			"deny header_mismatch"},
		"unreadable, and no rule distinguishes": {ask{rules: []rule{{}}, call: cut}, "allow rule r"},
		"unreadable, and a rule names tools": {
			ask{rules: []rule{{}, {"name": audit.Text("z"), "order": audit.Number(99), "tools": list("x")}}, call: cut}, "deny unreadable"},
		"unreadable, and a rule names methods": {
			ask{rules: []rule{{}, {"name": audit.Text("z"), "methods": list("other")}}, call: cut}, "deny unreadable"},
		"unreadable, and the rule is about another": {
			ask{rules: []rule{{}, {"name": audit.Text("z"), "methods": list("other"), "subjects": list("service:ci")}}, call: cut}, "allow rule r"},
		"unreadable, and the rule has expired": {
			ask{rules: []rule{{}, {"name": audit.Text("z"), "tools": list("x"), "expiresAt": audit.Text("2026-11-27T12:00:00Z")}}, call: cut},
			"allow rule r"},
		"observe": {ask{rules: []rule{{"mode": audit.Text("observe"), "effect": deny}, everyone}}, "allow rule everyone r deny"},
		"observe after the rule": {
			ask{rules: []rule{{"mode": audit.Text("observe"), "name": audit.Text("z")}, everyone}}, "allow rule everyone"},
		"observe too little trust": {
			ask{rules: []rule{{"mode": audit.Text("observe"), "minTrust": audit.Text("FULL_TRUST")}}}, "deny default r challenge"},
		"observe what does not match": {
			ask{rules: []rule{{"mode": audit.Text("observe"), "tools": list("x")}, {"name": audit.Text("z")}}}, "allow rule z"},
		"all observe": {
			ask{rules: []rule{{"effect": deny}, everyone}, options: access.Options{Mode: access.Observe, Default: access.Allow}},
			"allow default r deny"},
		"all observe, in quarantine": {ask{server: "com.example/bad", options: access.Options{Mode: access.Observe}}, "deny quarantined"},
	} {
		q := access.Question{Subject: &person, Server: "com.example/weather", Call: get, At: noon}
		if c.subject != nil {
			q.Subject = c.subject
		}
		if c.server != "" {
			q.Server = c.server
		}
		if c.call.Class != "" {
			q.Call = c.call
		}
		if c.from != "" {
			q.From = netip.MustParseAddr(c.from)
		}
		rules := make([]access.Rule, len(c.rules))
		for i, r := range c.rules {
			rules[i] = mustRule(t, r)
		}
		s := access.Compile(c.options, rules, listings(t))
		d := s.Decide(&q)
		got := strings.Join(strings.Fields(fmt.Sprintf("%s %s %s %s %s", d.Effect, d.Reason, d.Rule, d.Observed.Rule,
			d.Observed.Effect)), " ")
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if e := s.Explain(&q); e.Decision != d {
			t.Errorf("%s is explained as %+v", name, e.Decision)
		}
	}
}

// TestSharedAddress: of several servers with one URL, or with URLs that the address begins with, each must
// allow the call, and what the proxy states comes before the address.
func TestSharedAddress(t *testing.T) {
	t.Parallel()
	person, anyone := ada(t), access.Subject{}
	both := access.Address{Scheme: "https", Host: "t.example.com", Path: "/both/x"}
	deep := access.Address{Scheme: "https", Host: "t.example.com", Path: "/w/deep/x"}
	tenant := access.Address{Scheme: "https", Host: "t.example.com", Path: "/both/acme/mcp"}
	otherCase := access.Address{Scheme: "https", Host: "t.example.com", Path: "/w/Deep/x"}
	servers := append(listings(t), access.Listing{Name: mustName(t, "rogue/deep"), Remotes: []string{"https://t.example.com/w/deep"}},
		access.Listing{Name: mustName(t, "com.tenants/t"), Remotes: []string{"https://t.example.com/both/acme/{tenant}"}})
	for _, c := range []struct {
		servers, stated string
		address         access.Address
		subject         *access.Subject
		want            access.Effect
		of              string
	}{
		{"com.example/mail", "", both, &person, access.Deny, "com.example/weather"},
		{"com.example/weather", "", both, &person, access.Deny, "com.example/mail"},
		{"com.example/*", "", both, &person, access.Allow, "com.example/mail"},
		{"org.other/x", "", both, &person, access.Deny, "com.example/mail"},
		{"org.other/x", "", both, &anyone, access.Challenge, "com.example/mail"},
		{"com.example/mail", "com.example/weather", both, &person, access.Deny, "com.example/weather"},
		{"com.example/mail", "com.example/unknown", both, &person, access.Deny, "com.example/unknown"},
		{"rogue/*", "", deep, &person, access.Deny, "com.example/weather"},
		{"com.example/weather", "", deep, &person, access.Deny, "rogue/deep"},
		{"*", "", deep, &person, access.Allow, "rogue/deep"},
		{"*", "", tenant, &person, access.Allow, "com.tenants/t"}, {"com.example/*", "", tenant, &person, access.Deny, "com.tenants/t"},
		{"*", "", otherCase, &person, access.Deny, "rogue/deep"},
	} {
		s := access.Compile(access.Options{}, []access.Rule{mustRule(t, rule{"servers": list(c.servers)})}, servers)
		d := s.Decide(&access.Question{Subject: c.subject, Server: c.stated, Address: c.address, At: noon})
		if d.Effect != c.want || d.Server != c.of {
			t.Errorf("%+v: %+v", c, d)
		}
	}
}

// TestStrictestOfSeveral: of several servers at an address, a denial is stricter than the demand for more trust, in any
// order of the servers.
func TestStrictestOfSeveral(t *testing.T) {
	t.Parallel()
	person := ada(t)
	both := access.Address{Scheme: "https", Host: "t.example.com", Path: "/both"}
	for _, denied := range []string{"com.example/mail", "com.example/weather"} {
		s := access.Compile(access.Options{}, []access.Rule{
			mustRule(t, rule{"name": audit.Text("deny"), "order": audit.Number(1), "effect": audit.Text("deny"), "servers": list(denied)}),
			mustRule(t, rule{"name": audit.Text("full"), "order": audit.Number(2), "servers": list("*"), "minTrust": audit.Text("FULL_TRUST")}),
		}, listings(t))
		if d := s.Decide(&access.Question{Subject: &person, Address: both, At: noon}); d.Effect != access.Deny || d.Server != denied {
			t.Errorf("%s is denied: %+v", denied, d)
		}
	}
}

// TestDisputedAddress: what is not listed may be called if the settings say so, but not by a spelling
// of an address that another program takes for the one of a listed server.
func TestDisputedAddress(t *testing.T) {
	t.Parallel()
	person := ada(t)
	s := access.Compile(access.Options{Unlisted: access.Allow}, nil, append(listings(t),
		access.Listing{Name: mustName(t, "a/odd"), Remotes: []string{"https://odd.example/a%2fb", "https://odd.example:8443/"}}))
	for address, want := range map[access.Address]access.Effect{
		{Scheme: "https", Host: "t.example.com", Path: "/none"}:           access.Allow,
		{Scheme: "https", Host: "other.example", Path: "/a%2fb"}:          access.Allow,
		{Scheme: "https", Host: "t.example.com:8443", Path: "/none"}:      access.Deny,
		{Scheme: "http", Host: "t.example.com", Path: "/none"}:            access.Deny,
		{Scheme: "https", Host: "t.example.com.", Path: "/none"}:          access.Deny,
		{Scheme: "https", Host: "t.example.com:0443", Path: "/none"}:      access.Deny,
		{Scheme: "https", Host: "odd.example", Path: "/any"}:              access.Deny,
		{Scheme: "https", Host: "t.example.com", Path: "/x%2f..%2fboth"}:  access.Deny,
		{Scheme: "https", Host: "t.example.com", Path: `/x\..\both`}:      access.Deny,
		{Scheme: "https", Host: "t.example.com@other.example", Path: "/"}: access.Deny,
		{}: access.Deny,
	} {
		q := access.Question{Subject: &person, Address: address, At: noon}
		d := s.Decide(&q)
		if d.Effect != want || want == access.Deny && d.Reason != access.Disputed || s.Explain(&q).Decision != d {
			t.Errorf("%+v: %+v", address, d)
		}
	}
}

// TestWithdrawnAddresses: the address of versions that are in quarantine or deleted stays known, and is
// denied whatever rules and settings say, also where another server has a shorter path.
func TestWithdrawnAddresses(t *testing.T) {
	t.Parallel()
	person := ada(t)
	servers := []access.Listing{
		{Name: mustName(t, "a/root"), Remotes: []string{"https://h.example/"}},
		{Name: mustName(t, "a/hidden"), Withdrawn: []string{"https://h.example/hidden", "https://alone.example/"}, Quarantined: true},
		{Name: mustName(t, "a/gone"), Withdrawn: []string{"https://h.example/gone"}, Deleted: true},
		{Name: mustName(t, "a/part"), Remotes: []string{"https://h.example/part"}, Withdrawn: []string{"https://h.example/part/old"}},
	}
	for _, o := range []access.Options{{Default: access.Allow}, {Default: access.Allow, Unlisted: access.Allow}} {
		s := access.Compile(o, []access.Rule{mustRule(t, rule{"servers": list("*")})}, servers)
		for _, c := range []struct {
			host, path string
			reason     access.Reason
			server     string
		}{
			{"h.example", "/", access.ByRule, "a/root"}, {"h.example", "/hidden/x", access.Quarantined, "a/hidden"},
			{"alone.example", "/x", access.Quarantined, "a/hidden"}, {"h.example", "/gone", access.NotListed, "a/gone"},
			{"h.example", "/part", access.ByRule, "a/part"}, {"h.example", "/part/old", access.NotListed, "a/part"},
		} {
			q := access.Question{Subject: &person, Address: access.Address{Scheme: "https", Host: c.host, Path: c.path}, At: noon}
			if d := s.Decide(&q); d.Reason != c.reason || d.Server != c.server || (d.Effect == access.Allow) != (c.reason == access.ByRule) {
				t.Errorf("%s%s: %+v, want %s of %s", c.host, c.path, d, c.reason, c.server)
			}
		}
		if e := s.Explain(&access.Question{Subject: &person, Server: "a/gone", At: noon}); e.Listing != access.Unlisted {
			t.Errorf("a deleted server is %s", e.Listing)
		}
	}
}

// TestUnlistedServers: if the settings allow what is not listed, the rules for the stated name and for all
// servers hold before that.
func TestUnlistedServers(t *testing.T) {
	t.Parallel()
	person := ada(t)
	for _, c := range []struct {
		servers, effect, level, stated string
		want                           access.Decision
	}{
		{"org.other/y", "deny", "", "org.other/y", access.Decision{Effect: access.Deny, Reason: access.ByRule, Server: "org.other/y", Rule: "r"}},
		{"org.other/y", "deny", "", "org.other/z", access.Decision{Effect: access.Allow, Reason: access.NotListed, Server: "org.other/z"}},
		{"org.other/*", "deny", "", "org.other/y", access.Decision{Effect: access.Deny, Reason: access.ByRule, Server: "org.other/y", Rule: "r"}},
		{"*", "deny", "", "", access.Decision{Effect: access.Deny, Reason: access.ByRule, Rule: "r"}},
		{"*", "deny", "", "no name", access.Decision{Effect: access.Deny, Reason: access.ByRule, Server: "no name", Rule: "r"}},
		{"com.example/*", "deny", "", "", access.Decision{Effect: access.Allow, Reason: access.NotListed}},
		{"*", "allow", "FULL_TRUST", "", access.Decision{
			Effect: access.Challenge, Reason: access.InsufficientTrust, Rule: "r", Required: trustlevel.FullTrust,
		}},
	} {
		r := rule{"name": audit.Text("r"), "servers": list(c.servers), "effect": audit.Text(c.effect)}
		if c.level != "" {
			r["minTrust"] = audit.Text(c.level)
		}
		s := access.Compile(access.Options{Unlisted: access.Allow}, []access.Rule{mustRule(t, r)}, listings(t))
		q := access.Question{
			Subject: &person, Server: c.stated, At: noon, Address: access.Address{Scheme: "https", Host: "unknown.example", Path: "/"},
		}
		if d := s.Decide(&q); d != c.want || s.Explain(&q).Decision != d {
			t.Errorf("%+v: %+v", c, d)
		}
	}
}

// TestHighRisk: no rule and no default opens anything to a session at high risk.
func TestHighRisk(t *testing.T) {
	t.Parallel()
	stolen := ada(t).WithTrust(trustlevel.HighRisk)
	for _, o := range []access.Options{{}, {Default: access.Allow}, {Default: access.Allow, Unlisted: access.Allow, Mode: access.Observe}} {
		s := access.Compile(o, []access.Rule{mustRule(t, rule{"servers": list("*"), "minTrust": audit.Text("HIGH_RISK")})}, listings(t))
		for _, server := range []string{"com.example/mail", "unknown/server"} {
			d := s.Decide(&access.Question{Subject: &stolen, Server: server, At: noon})
			if o.Unlisted != access.Allow && server == "unknown/server" {
				continue
			}
			if d.Effect != access.Challenge || d.Reason != access.InsufficientTrust || d.Required != trustlevel.Unverified {
				t.Errorf("%s with %+v: %+v", server, o, d)
			}
		}
	}
}

// TestExplain has the sentences of contract Z-15 about rules: those before the one that decided, each
// with the first condition that failed.
func TestExplain(t *testing.T) {
	t.Parallel()
	person := ada(t)
	at := func(order int, name string, r rule) access.Rule {
		r["order"], r["name"] = audit.Number(order), audit.Text(name)
		return mustRule(t, r)
	}
	rules := []access.Rule{
		at(1, "subject", rule{"subjects": list("person:bob@example.com"), "servers": list("org.other/x")}),
		at(2, "server", rule{"servers": list("org.other/x"), "methods": list("other")}),
		at(3, "method", rule{"methods": list("other"), "tools": list("x")}),
		at(4, "tool", rule{"tools": list("x"), "networks": list("192.0.2.0/24")}),
		at(5, "network", rule{"networks": list("192.0.2.0/24"), "expiresAt": audit.Text("2020-01-01T00:00:00Z")}),
		at(6, "time", rule{"expiresAt": audit.Text("2020-01-01T00:00:00Z"), "mode": audit.Text("observe")}),
		at(7, "mode", rule{"mode": audit.Text("observe")}),
		at(8, "decides", rule{"subjects": list("group:acme/none", "grant:publish")}),
		at(9, "after", rule{}),
	}
	s := access.Compile(access.Options{}, rules, listings(t))
	q := access.Question{Subject: &person, Server: "com.example/weather", Call: access.NewCall("tools/call", "get"), At: noon}
	e := s.Explain(&q)
	want := []access.Step{
		{Rule: "subject", Failed: access.OnSubject}, {Rule: "server", Failed: access.OnServer},
		{Rule: "method", Failed: access.OnMethod}, {Rule: "tool", Failed: access.OnTool},
		{Rule: "network", Failed: access.OnNetwork}, {Rule: "time", Failed: access.OnTime}, {Rule: "mode", Failed: access.OnMode},
	}
	if e.Rule != "decides" || !reflect.DeepEqual(e.Steps, want) || e.Selector.String() != "grant:publish" ||
		e.Grant.Pattern.String() != "com.example/*" {
		t.Errorf("%+v", e)
	}
	q.Server = "com.example/unknown"
	if e := s.Explain(&q); e.Reason != access.NotListed || e.Steps != nil {
		t.Errorf("an unknown server is explained by %+v", e)
	}
}

// TestSubjects: how headers write subjects.
func TestSubjects(t *testing.T) {
	t.Parallel()
	for want, m := range map[string]access.Member{
		"": {}, "person:a@b.example": {Kind: access.Person, ID: "a@b.example"}, "service:ci": {Kind: access.Service, ID: "ci"},
		"jwt:https://i x": {Kind: access.Foreign, ID: "https://i x"},
	} {
		if s := access.NewSubject(m); s.String() != want {
			t.Errorf("%+v is written %q", m, s.String())
		}
	}
}

// TestPage checks the parts of the steps of an explanation.
func TestPage(t *testing.T) {
	t.Parallel()
	e := access.Explanation{Steps: []access.Step{{Rule: "a"}, {Rule: "b"}, {Rule: "c"}}}
	for bounds, want := range map[[2]int]string{{0, 2}: "ab", {2, 2}: "c", {3, 1}: "", {9, 9}: "", {0, 9}: "abc"} {
		got := ""
		for _, step := range e.Page(bounds[0], bounds[1]) {
			got += string(step.Rule)
		}
		if got != want {
			t.Errorf("the page %v is %q, want %q", bounds, got, want)
		}
	}
}
