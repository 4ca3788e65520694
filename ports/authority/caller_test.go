package authority_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/scope"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/authority/authoritytest"
)

func newToken(owner registry.Holder, scopes ...scope.Scope) authority.Caller {
	return authority.NewToken(authority.Token{Owner: owner, Prefix: "tgp_01234567", Scopes: scopes}, netip.Addr{})
}

// TestTokenIsItsOwner checks who a token is, that it needs no step-up, and what its events say.
func TestTokenIsItsOwner(t *testing.T) {
	t.Parallel()
	for owner, want := range map[registry.Holder]struct{ detail, actor string }{
		"anna": {"userId", "person:anna"}, registry.ServiceHolder("ci"): {"service", "service:ci"},
	} {
		c := newToken(owner, scope.Publish)
		for name, check := range map[string]func() (registry.Holder, error){
			"Person": c.Person, "RequireWriter": c.RequireWriter,
			"RequireFullTrust": func() (registry.Holder, error) { return c.RequireFullTrust(scope.Publish) },
		} {
			if got, err := check(); got != owner || err != nil {
				t.Errorf("%s of %s: %s, %v", name, owner, got, err)
			}
		}
		act := authority.Act{Caller: c, Action: "publish", ServerName: "com.example/a"}
		change := act.Change()
		if change.Details.Text("trustLevel") != "TOKEN" || change.Details.Text("tokenPrefix") != "tgp_01234567" ||
			change.Details.Text(want.detail) == "" || change.Details["sessionId"] != nil {
			t.Errorf("the event of %s is %v", owner, change.Details)
		}
		if got := c.Actor(); got != (audit.Actor{Who: want.actor, TokenPrefix: "tgp_01234567"}) {
			t.Errorf("the actor of %s is %+v", owner, got)
		}
		if !c.IsRemote() || c.IsOperator() {
			t.Errorf("%s does not count as the sender of a request", owner)
		}
	}
}

// TestScopesOfCallers checks that only tokens have scopes.
func TestScopesOfCallers(t *testing.T) {
	t.Parallel()
	reader, operator := newToken("anna", scope.Read), newToken("anna", scope.Admin)
	for name, test := range map[string]struct {
		err     error
		allowed bool
	}{
		"a session":                        {authoritytest.Person("anna").RequireScope(scope.Audit), true},
		"an operator command":              {authority.Operator().RequireScope(scope.Audit), true},
		"a scope that the token has":       {reader.RequireScope(scope.Review, scope.Read), true},
		"a scope that the token lacks":     {reader.RequireScope(scope.Review), false},
		"an action that it lacks":          {reader.RequireAction(registry.ActionPublish, registry.ActionEdit), false},
		"the action operate":               {operator.RequireAction(registry.ActionOperate), true},
		"all of some scopes":               {operator.RequireAll(scope.Set{scope.Admin, scope.AdminRead}), true},
		"all of more scopes":               {operator.RequireAll(scope.Set{scope.Admin, scope.Read}), false},
		"a session that gives every scope": {authoritytest.Person("anna").RequireAll(scope.All()), true},
	} {
		if f, _ := fault.As(test.err); (test.err == nil) != test.allowed || !test.allowed && f.Code != scope.CodeInsufficient {
			t.Errorf("%s: %v", name, test.err)
		}
	}
	if reader.Allows(registry.ActionReview) || !authoritytest.Person("anna").Allows(registry.ActionReview) {
		t.Error("an action is allowed beyond the scopes of a token, or refused to a session")
	}
	if _, err := reader.RequireReader(); err != nil {
		t.Error(err)
	}
	if _, err := operator.RequireReader(); err == nil {
		t.Error("a token without registry:read may read")
	}
}

// TestRequireNetworks checks that a token that is good from some networks gives no others.
func TestRequireNetworks(t *testing.T) {
	networks := func(texts string) (list []netip.Prefix) {
		for _, text := range strings.Fields(texts) {
			list = append(list, netip.MustParsePrefix(text))
		}
		return list
	}
	for _, c := range []struct {
		held, wanted string
		ok           bool
	}{
		{"", "", true}, {"", "10.0.0.0/8", true},
		{"10.0.0.0/8", "", false}, {"10.0.0.0/8", "10.0.0.0/8", true}, {"10.0.0.0/8", "10.1.0.0/16", true},
		{"10.0.0.0/8", "10.0.0.0/7", false}, {"10.0.0.0/8", "11.0.0.0/8", false},
		{"10.0.0.0/8", "10.1.0.0/16 11.0.0.0/16", false}, {"10.0.0.0/8 11.0.0.0/8", "10.1.0.0/16 11.0.0.0/16", true},
		{"10.0.0.0/8", "2001:db8::/32", false}, {"2001:db8::/32 ::/0", "2001:db8::/16", true},
		{"0.0.0.0/0", "::/0", false},
	} {
		token := authority.NewToken(authority.Token{Owner: "anna", Networks: networks(c.held)}, netip.Addr{})
		if err := token.RequireNetworks(networks(c.wanted)); (err == nil) != c.ok || err != nil && !fault.Is(err, fault.Forbidden) {
			t.Errorf("a token for %q gives one for %q: %v", c.held, c.wanted, err)
		}
	}
	if err := authority.Operator().RequireNetworks(nil); err != nil {
		t.Errorf("an operator: %v", err)
	}
}

// TestForeignCaller checks that the owner of a foreign token may read the registry by its scope, and
// nothing else, and what its events say.
func TestForeignCaller(t *testing.T) {
	t.Parallel()
	for _, holder := range []string{"", "anna"} {
		f := &authority.Foreign{Issuer: "https://login.acme.example", Subject: "u1", Holder: holder, Reads: true}
		c := authority.NewForeign(f, netip.Addr{})
		if err := c.MayRead(); err != nil || c.Foreign() != f || !c.IsRemote() || c.IsOperator() {
			t.Errorf("it may not read: %v", err)
		}
		f = &authority.Foreign{Issuer: f.Issuer, Subject: f.Subject, Holder: holder}
		poor := authority.NewForeign(f, netip.Addr{})
		if e, _ := fault.As(poor.MayRead()); e == nil || e.Code != scope.CodeInsufficient ||
			!strings.Contains(e.Details.Text("challenge"), `scope="mcp-registry:read"`) {
			t.Errorf("without the scope: %v", e)
		}
		for name, err := range map[string]error{
			"Person": second(c.Person()), "RequireReader": second(c.RequireReader()), "RequireWriter": second(c.RequireWriter()),
			"RequireFullTrust": second(c.RequireFullTrust()), "RequireScope": c.RequireScope(scope.Read),
			"RequireAction": c.RequireAction(registry.ActionPublish, registry.ActionOperate), "RequireAll": c.RequireAll(scope.All()),
		} {
			if !fault.Is(err, fault.Forbidden) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if c.Allows(registry.ActionPublish) || c.Allows(registry.ActionOperate) {
			t.Error("it may act")
		}
		act := authority.Act{Caller: c, Action: "publish", ServerName: "com.example/a"}
		if change := act.Change(); change.Details.Text("subject") != "u1" || change.Details.Text("userId") != "" ||
			string(change.Subject) != holder {
			t.Errorf("the event is %v of %q", change.Details, change.Subject)
		}
		if got := c.Actor().Who; got != "jwt:https://login.acme.example u1" {
			t.Errorf("the actor is %s", got)
		}
	}
}

func second(_ registry.Holder, err error) error { return err }
