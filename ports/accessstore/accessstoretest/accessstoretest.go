// Package accessstoretest is the contract of ports/accessstore: every adapter of that port passes
// Run.
package accessstoretest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/management"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// Opened is a new store of an adapter, as it comes.
type Opened struct {
	Rules  management.Store[access.RuleName, access.Rule]
	Runner transaction.Runner
	// Revision returns registrystore.Revision.Access; nil for an adapter that counts no changes.
	Revision func(t *testing.T) int64
}

// Run checks an adapter. open is called for every part of the contract.
func Run(t *testing.T, open func(t *testing.T) Opened) {
	t.Helper()
	parts := map[string]func(t *testing.T, s Opened){
		"a saved rule is found with all fields, and another one with its name replaces it": savesRules,
		"a list continues after a name, in the order of the bytes":                         listsRules,
		"a removed rule is not found, and cannot be removed again":                         removesRules,
		"a transaction that fails changes nothing":                                         joinsTransactions,
		"a change changes the revision of rules":                                           countsChanges,
		"a call with a cancelled context fails":                                            refusesEndedContext,
	}
	for name, part := range parts {
		t.Run(name, func(t *testing.T) { part(t, open(t)) })
	}
}

// newRule returns a rule with all fields.
func newRule(t *testing.T, name string, order int) access.Rule {
	t.Helper()
	texts := func(all ...string) audit.List { return audit.Texts(all) }
	r, err := access.ParseRule(audit.Details{
		"name": audit.Text(name), "order": audit.Number(order), "effect": audit.Text("allow"),
		"subjects": texts("person:ä@example.com", "group:acme/\"a\" b", "anyone"), "servers": texts("com.example/*", "a/b"),
		"methods": texts("tools/call"), "tools": texts("get_*", "ä"), "minTrust": audit.Text("FULL_TRUST"),
		"networks": texts("10.0.0.0/8", "2001:db8::/32"), "expiresAt": audit.Text("2027-01-01T00:00:00.123456Z"),
		"mode": audit.Text("observe"),
	})
	if err != nil {
		t.Fatal(err)
	}
	r.ManagedBy = "platform"
	return r
}

func save(t *testing.T, s management.Store[access.RuleName, access.Rule], rules ...access.Rule) {
	t.Helper()
	for _, r := range rules {
		if err := s.Save(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
}

func wantCount(t *testing.T, s management.Store[access.RuleName, access.Rule], want int) {
	t.Helper()
	if n, err := s.Count(t.Context()); n != want || err != nil {
		t.Errorf("there are %d rules, %v, want %d", n, err, want)
	}
}

func savesRules(t *testing.T, s Opened) {
	t.Helper()
	if _, err := s.Rules.Get(t.Context(), "a"); !fault.Is(err, fault.NotFound) {
		t.Errorf("a rule that was never saved is %v", err)
	}
	for _, want := range []access.Rule{newRule(t, "a", 1), newRule(t, "a", 10_000)} {
		save(t, s.Rules, want)
		if got, err := s.Rules.Get(t.Context(), "a"); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
	}
	wantCount(t, s.Rules, 1)
}

func listsRules(t *testing.T, s Opened) {
	t.Helper()
	save(t, s.Rules, newRule(t, "b", 1), newRule(t, "a-2", 2), newRule(t, "a", 3), newRule(t, "a2", 4), newRule(t, "9", 5))
	wantCount(t, s.Rules, 5)
	for _, c := range []struct {
		after access.RuleName
		limit int
		want  string
	}{{"", 10, "[9 a a-2 a2 b]"}, {"", 2, "[9 a]"}, {"a", 2, "[a-2 a2]"}, {"a2", 2, "[b]"}, {"b", 2, "[]"}, {"a1", 1, "[a2]"}} {
		list, err := s.Rules.List(t.Context(), c.after, c.limit)
		names := make([]access.RuleName, len(list))
		for i, r := range list {
			names[i] = r.Name
		}
		if got := fmt.Sprint(names); got != c.want || err != nil {
			t.Errorf("%d after %q: %s, %v, want %s", c.limit, c.after, got, err, c.want)
		}
	}
}

func removesRules(t *testing.T, s Opened) {
	t.Helper()
	save(t, s.Rules, newRule(t, "a", 1), newRule(t, "b", 1))
	if err := s.Rules.Remove(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if err := s.Rules.Remove(t.Context(), "a"); !fault.Is(err, fault.NotFound) {
		t.Errorf("a removed rule is removed again: %v", err)
	}
	wantCount(t, s.Rules, 1)
}

func joinsTransactions(t *testing.T, s Opened) {
	t.Helper()
	save(t, s.Rules, newRule(t, "kept", 1))
	failure := errors.New("undone")
	err := s.Runner.Atomically(t.Context(), func(ctx context.Context) error {
		return errors.Join(s.Rules.Save(ctx, newRule(t, "new", 1)), s.Rules.Remove(ctx, "kept"), failure)
	})
	if !errors.Is(err, failure) {
		t.Fatal(err)
	}
	if list, err := s.Rules.List(t.Context(), "", 10); err != nil || len(list) != 1 || list[0].Name != "kept" {
		t.Errorf("after a transaction that failed: %+v, %v", list, err)
	}
}

func countsChanges(t *testing.T, s Opened) {
	t.Helper()
	if s.Revision == nil {
		t.Skip("the adapter counts no changes")
	}
	before := s.Revision(t)
	for name, change := range map[string]func() error{
		"one rule": func() error { return s.Rules.Save(t.Context(), newRule(t, "a", 1)) },
		"two rules": func() error {
			return s.Runner.Atomically(t.Context(), func(ctx context.Context) error {
				return errors.Join(s.Rules.Save(ctx, newRule(t, "b", 1)), s.Rules.Save(ctx, newRule(t, "c", 2)))
			})
		},
		"a rule again": func() error {
			return errors.Join(s.Rules.Save(t.Context(), newRule(t, "d", 1)), s.Rules.Save(t.Context(), newRule(t, "d", 2)))
		},
		"a removal": func() error {
			return errors.Join(s.Rules.Save(t.Context(), newRule(t, "e", 1)), s.Rules.Remove(t.Context(), "e"))
		},
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		after := s.Revision(t)
		if after == before {
			t.Errorf("%s: the revision is %d before and after", name, after)
		}
		before = after
	}
}

func refusesEndedContext(t *testing.T, s Opened) {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	end()
	_, listed := s.Rules.List(ctx, "", 1)
	_, got := s.Rules.Get(ctx, "a")
	_, counted := s.Rules.Count(ctx)
	for name, err := range map[string]error{
		"List": listed, "Get": got, "Count": counted, "Save": s.Rules.Save(ctx, newRule(t, "a", 1)), "Remove": s.Rules.Remove(ctx, "a"),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s with an ended context: %v", name, err)
		}
	}
}
