package access_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/toolserver"
	"github.com/tollgate-dev/tollgate/core/trustlevel"
)

// TestSentencesOfRules has each field of a rule in words.
func TestSentencesOfRules(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		changes rule
		want    string
	}{
		{rule{}, "Allows everybody with a valid token to use com.example/*."},
		{rule{"effect": audit.Text("deny")}, "Forbids everybody with a valid token to use com.example/*."},
		{rule{"mode": audit.Text("observe")}, "Would allow everybody with a valid token to use com.example/*."},
		{rule{"mode": audit.Text("observe"), "effect": audit.Text("deny"), "subjects": list("anyone"), "servers": list("*")},
			"Would forbid anybody, also without a token, to use every server."},
		{rule{
			"subjects": list("group:acme/platform"), "tools": list("search", "read_*"), "networks": list("10.0.0.0/8"),
			"expiresAt": audit.Text("2027-03-01T00:00:00Z"),
		}, "Allows people of acme/platform to call the tools search and read_* of com.example/*, from 10.0.0.0/8, until 1 March 2027."},
		{rule{
			"subjects": list("person:ADA@example.com", "service:ci", "grant:publish"), "servers": list("com.example/a", "org.example/*"),
		}, "Allows ada@example.com, the service account ci and people with the grant publish to use com.example/a and org.example/*."},
		{rule{"tools": list("search")}, "Allows everybody with a valid token to call the tool search of com.example/*."},
		{rule{"tools": list("search", "*")}, "Allows everybody with a valid token to call tools of com.example/*."},
		{rule{"tools": list("search"), "methods": list("tools/list")},
			"Allows everybody with a valid token to call no tool, because its methods lack tools/call, of com.example/*."},
		{rule{"tools": list("search"), "methods": list("tools/call", "tools/list")},
			"Allows everybody with a valid token to call the tool search of com.example/*."},
		{rule{"methods": list("tools/call", "tools/list", "prompts/*", "resources/*", "other")},
			"Allows everybody with a valid token to call tools, list tools, use prompts, read resources and use other methods of com.example/*."},
		{rule{"tools": texts(5, "t%d")}, "Allows everybody with a valid token to call the tools t0, t1, t2, t3 and t4 of com.example/*."},
		{rule{"tools": texts(500, "t%d")}, "Allows everybody with a valid token to call the tools t0, t1, t2, t3 and 496 more of com.example/*."},
		{rule{"hints": list("readOnly")}, "Allows everybody with a valid token to call read-only tools of com.example/*."},
		{rule{"hints": list("not:destructive", "not:openWorld"), "tools": list("*")},
			"Allows everybody with a valid token to call tools that are not destructive and not open-world of com.example/*."},
		{rule{"hints": list("destructive"), "tools": list("a*", "b")},
			"Allows everybody with a valid token to call those of the tools a* and b that are destructive of com.example/*."},
		{rule{"clients": list("vscode", "https://claude.example/client.json")},
			"Allows everybody with a valid token to use com.example/*, with a token of vscode or https://claude.example/client.json."},
		{rule{"minTrust": audit.Text("FULL_TRUST"), "networks": list("10.0.0.0/8", "192.0.2.0/24"), "expiresAt": audit.Text("2027-03-01T18:30:05Z")},
			"Allows everybody with a valid token to use com.example/*, at full trust or above, from 10.0.0.0/8 or 192.0.2.0/24, until 1 March 2027, 18:30:05 UTC."},
	} {
		r := mustRule(t, c.changes)
		if got := r.Sentence(); got != c.want {
			t.Errorf("the sentence of %v is\n%s\nwant\n%s", c.changes, got, c.want)
		}
	}
}

// TestSentencesOfDecisions has each reason and each condition in words.
func TestSentencesOfDecisions(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]access.Decision{
		"The rule r allows the call.": {Effect: access.Allow, Reason: access.ByRule, Rule: "r"},
		"The rule r denies the call.": {Effect: access.Deny, Reason: access.ByRule, Rule: "r"},
		"The rule r denies the call, and there is no token: the caller is asked to sign in.": {
			Effect: access.Challenge, Reason: access.ByRule, Rule: "r"},
		"The rule r allows the call at full trust or above: the caller is asked for more trust.": {
			Effect: access.Challenge, Reason: access.InsufficientTrust, Rule: "r", Required: trustlevel.FullTrust},
		"The session is at high risk, and no rule opens anything to it: the caller is asked to sign in again.": {
			Effect: access.Challenge, Reason: access.InsufficientTrust, Required: trustlevel.Unverified},
		"No rule decides the call, and the default allows it.": {Effect: access.Allow, Reason: access.ByDefault},
		"No rule decides the call, and the default denies it.": {Effect: access.Deny, Reason: access.ByDefault},
		"No rule decides the call, and the default denies it. There is no token: the caller is asked to sign in.": {
			Effect: access.Challenge, Reason: access.ByDefault},
		"The server is not listed, and such servers are denied.":  {Effect: access.Deny, Reason: access.NotListed},
		"The server is not listed, and such servers are allowed.": {Effect: access.Allow, Reason: access.NotListed},
	} {
		if got := d.Sentence(); got != want {
			t.Errorf("%+v is %q, want %q", d, got, want)
		}
	}
	for _, reason := range []access.Reason{
		access.Quarantined, access.Disputed, access.InvalidToken, access.Unreadable, access.HeaderMismatch, access.ToolChanged, access.Away,
	} {
		if d := (access.Decision{Reason: reason}); !strings.HasSuffix(d.Sentence(), ".") {
			t.Errorf("%s is %q", reason, d.Sentence())
		}
	}
	for _, c := range []access.Condition{
		access.OnSubject, access.OnClient, access.OnServer, access.OnMethod, access.OnTool, access.OnHint, access.OnNetwork, access.OnTime, access.OnMode,
	} {
		if !strings.HasSuffix(c.Sentence(), ".") {
			t.Errorf("%s is %q", c, c.Sentence())
		}
	}
}

// TestSentencesAreBounded: a sentence has a verb, and is short whatever a rule has.
func TestSentencesAreBounded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		count := func(name string, most int) int { return rapid.IntRange(1, most).Draw(rt, name) }
		r := mustRule(t, rule{
			"subjects": texts(count("subjects", 100), "person:p%d@example.com"), "servers": texts(count("servers", 100), "com.example/s%d"),
			"tools": texts(count("tools", 500), "tool%d"), "networks": texts(count("networks", 100), "10.0.%d.0/24"),
			"clients": texts(count("clients", 50), "https://c%d.example/"+strings.Repeat("x", 2000)),
		})
		if s := r.Sentence(); len(s) > 1000 || !strings.HasPrefix(s, "Allows ") || !strings.HasSuffix(s, ".") {
			rt.Fatalf("%d bytes: %s", len(s), s)
		}
	})
}

// TestUnfinishedSentence says what a rule without subjects and servers does.
func TestUnfinishedSentence(t *testing.T) {
	t.Parallel()
	r := access.Rule{Effect: access.Allow}
	if got := r.Sentence(); got != "Allows … to use …" {
		t.Error(got)
	}
}

// TestManyUnknown doubts each of many names, and looks for what is like the first ones alone: each of these searches reads
// the names of all servers.
func TestManyUnknown(t *testing.T) {
	t.Parallel()
	s := access.Compile(access.Options{}, nil, listings(t))
	wrong := make([]string, 30)
	for i := range wrong {
		wrong[i] = fmt.Sprintf("com.example/mail%d", i)
	}
	r := mustRule(t, rule{"servers": list(wrong...)})
	doubts := s.Unknown(&r)
	if near := strings.Count(strings.Join(doubts, " "), "Nearest"); len(doubts) != 30 || near == 0 || near > 5 {
		t.Errorf("%d doubts, %d of them with a name", len(doubts), near)
	}
}

// TestUnknownTools doubts tools that no approved list of the servers has.
func TestUnknownTools(t *testing.T) {
	t.Parallel()
	one := listings(t)[0]
	one.Tools = []access.ToolList{{Approved: true, Tools: []toolserver.Tool{{Name: "read_mail"}, {Name: "send"}}}}
	s := access.Compile(access.Options{}, nil, []access.Listing{one})
	for tool, want := range map[string]string{
		"send": "", "read_*": "", "*": "", "read_mial": "No tool read_mial was seen yet. Nearest: read_mail", "rm*": "No tool rm* was seen yet.",
	} {
		r := mustRule(t, rule{"servers": list("*"), "tools": list(tool)})
		if got := strings.Join(s.Unknown(&r), " "); got != want {
			t.Errorf("%s: %q, want %q", tool, got, want)
		}
	}
	servers, tools := s.Names()
	if len(servers) != 2 || strings.Join(tools, " ") != "read_mail send" {
		t.Errorf("the names are %v and %v", servers, tools)
	}
}
