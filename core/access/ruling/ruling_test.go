package ruling_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/access/ruling"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/management"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

type recorder struct{ changes []audit.Change }

func (r *recorder) RecordChanges(_ context.Context, changes ...audit.Change) error {
	r.changes = append(r.changes, changes...)
	return nil
}

func (r *recorder) actions() string {
	var all []audit.Action
	for _, c := range r.changes {
		all = append(all, c.Action)
	}
	return fmt.Sprint(all)
}

func newRule(t *testing.T, name string, order int) access.Rule {
	t.Helper()
	r, err := access.ParseRule(audit.Details{
		"name": audit.Text(name), "order": audit.Number(order), "effect": audit.Text("allow"),
		"subjects": audit.Texts([]string{"everyone"}), "servers": audit.Texts([]string{"com.example/*"}),
	})
	must.Succeed(t, err)
	return r
}

// TestOperator stores, replaces and removes a rule, each with its event and its check.
func TestOperator(t *testing.T) {
	db, log := fakedb.New(), &recorder{}
	o := ruling.New(ruling.Ports{Transactions: db, Rules: fakedb.NewAccessRules(db), Recorder: log})
	rule := newRule(t, "readers", 1)
	rule.ManagedBy = "platform"
	if _, created, err := o.Put(t.Context(), rule, nil); err != nil || !created {
		t.Fatalf("created %t, error %v", created, err)
	}
	if stored, created, err := o.Put(t.Context(), newRule(t, "readers", 1), nil); err != nil || created || stored.ManagedBy != "platform" {
		t.Errorf("the same rule: %+v, created %t, error %v", stored, created, err)
	}
	refuse := func(current *access.Rule) error { return fault.Newf(fault.Conflict, "there is %v", current) }
	if _, _, err := o.Put(t.Context(), newRule(t, "readers", 2), refuse); !fault.Is(err, fault.Conflict) {
		t.Errorf("a change that the check refuses: %v", err)
	}
	if err := o.Remove(t.Context(), "readers", refuse); !fault.Is(err, fault.Conflict) {
		t.Errorf("a removal that the check refuses: %v", err)
	}
	if _, _, err := o.Put(t.Context(), newRule(t, "readers", 2), nil); err != nil {
		t.Error(err)
	}
	if r, err := o.Get(t.Context(), "readers"); err != nil || r.Order != 2 {
		t.Errorf("the stored rule is %+v, error %v", r, err)
	}
	if err := o.Remove(t.Context(), "readers", nil); err != nil {
		t.Error(err)
	}
	if err := o.Remove(t.Context(), "readers", nil); !fault.Is(err, fault.NotFound) {
		t.Errorf("a removal of nothing: %v", err)
	}
	if got := log.actions(); got != "[access_rule_add access_rule_change access_rule_remove]" {
		t.Errorf("the events are %s", got)
	}
	if fields := log.changes[1].Details.Inner(audit.DetailChanges); len(fields) != 1 || fields["order"] == nil {
		t.Errorf("the change shows %v", fields)
	}
}

// full are rules of which there are as many as may be.
type full struct {
	management.Store[access.RuleName, access.Rule]
}

func (full) Count(context.Context) (int, error) { return access.MaxRules, nil }

// TestTooMany checks that a rule that would be too many is refused, and a replaced one is not.
func TestTooMany(t *testing.T) {
	db := fakedb.New()
	rules := fakedb.NewAccessRules(db)
	must.Succeed(t, rules.Save(t.Context(), newRule(t, "old", 1)))
	o := ruling.New(ruling.Ports{Transactions: db, Rules: full{rules}, Recorder: &recorder{}})
	_, _, err := o.Put(t.Context(), newRule(t, "new", 1), nil)
	if f, ok := fault.As(err); !ok || f.Code != fault.RuleViolated {
		t.Errorf("a rule too many: %v", err)
	}
	if _, _, err := o.Put(t.Context(), newRule(t, "old", 2), nil); err != nil {
		t.Errorf("a rule that replaces another one: %v", err)
	}
}
