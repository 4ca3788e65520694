package reviewing_test

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/core/registry/reviewing"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/test/must"
)

// dangerous returns a document with a remote.
func dangerous(version string, more ...string) string {
	return document(serverName, version, append(more, `"remotes":[{"type":"streamable-http","url":"`+remote+`"}]`)...)
}

// tryApprove approves a review and returns its state.
func (fx *fixture) tryApprove(t testing.TB, who authority.Caller, id registry.ReviewID) (review.State, error) {
	t.Helper()
	r, err := fx.service.Approve(t.Context(), who, id, "")
	return r.State, err
}

// TestTwoApprovals checks who counts as one of the two people that approve what is dangerous.
func TestTwoApprovals(t *testing.T) {
	t.Parallel()
	fx := newFixtureWith(t, reviewing.Config{TwoApprovals: true})
	harmless := fx.submit(t, "eve", document(serverName, "0.1.0")).Pending
	fx.approve(t, "bea", harmless)
	fx.requireState(t, review.Approved, harmless)

	id := fx.submit(t, "ada", dangerous("1.0.0")).Pending
	_, err := fx.tryApprove(t, request("ada"), id)
	wantFault(t, err, fault.Forbidden, "yourself", "the submitter, who may review too")
	must.Succeed(t, fx.grants.Add(t.Context(), registry.GrantRecord{Grant: registry.Grant{
		Holder: "service:bot", Action: registry.ActionReview, Pattern: newPattern(t, "*"),
	}}))
	_, err = fx.tryApprove(t, request("service:bot"), id)
	wantFault(t, err, fault.Forbidden, "service account", "a service account")
	_, err = fx.service.ApproveOfMany(t.Context(), request("bea"), id, "")
	wantFault(t, err, fault.Conflict, "together", "one of many")

	state, err := fx.tryApprove(t, request("bea"), id)
	must.Succeed(t, err)
	if _, listed := fx.served(t, serverName, "1.0.0"); state != review.Pending || listed {
		t.Errorf("after the first approval it is %s, listed %v", state, listed)
	}
	if a := fx.people.acts[len(fx.people.acts)-1]; a.Action != "approve_first" || a.Reason != "" || a.Version != "1.0.0" {
		t.Errorf("the act is %+v", a)
	}
	if n := len(fx.people.decisions); n != 1 { // of the harmless one
		t.Errorf("%d notices were sent", n)
	}
	_, err = fx.tryApprove(t, request("bea"), id) // another session of hers
	wantFault(t, err, fault.Conflict, "another reviewer", "the same person again")
	shown, err := fx.service.Get(t.Context(), request("cem"), id)
	if err != nil || !shown.Two || shown.First.By != "bea" || shown.First.At.IsZero() || shown.First.Text != shown.Text() {
		t.Errorf("the review has the first approval %+v, %v", shown.First, err)
	}
	state, err = fx.tryApprove(t, request("cem"), id)
	if _, listed := fx.served(t, serverName, "1.0.0"); err != nil || state != review.Approved || !listed {
		t.Errorf("after the second approval it is %s, listed %v, %v", state, listed, err)
	}
	if r, err := fx.store.Get(t.Context(), id); err != nil || r.First.By != "bea" || r.DecidedBy != "cem" {
		t.Errorf("it was approved by %q and %q, %v", r.First.By, r.DecidedBy, err)
	}
}

// TestFirstApprovalEnds checks what makes a first approval count no more: another document, another tool list, a right
// that is gone, and a decision against it.
func TestFirstApprovalEnds(t *testing.T) {
	t.Parallel()
	fx := newFixtureWith(t, reviewing.Config{TwoApprovals: true})
	pending := func(label string, who authority.Caller, id registry.ReviewID) {
		t.Helper()
		if state, err := fx.tryApprove(t, who, id); err != nil || state != review.Pending {
			t.Errorf("%s: it is %s, %v, want it pending", label, state, err)
		}
	}
	old := fx.submit(t, "eve", dangerous("1.0.0")).Pending
	pending("the first", request("bea"), old)
	id := fx.submit(t, "eve", dangerous("1.0.0", `"title":"Other"`)).Pending
	_, err := fx.tryApprove(t, request("cem"), old)
	wantFault(t, err, fault.Conflict, "not pending", "an approval of an older text")
	if r, _ := fx.store.Get(t.Context(), old); r.First != (review.Approval{}) {
		t.Errorf("what is superseded keeps %+v", r.First)
	}
	pending("after another document", request("cem"), id)

	_, err = fx.record(t, "eve", "1.0.0", `{"name":"wipe","inputSchema":{"type":"object"}}`)
	must.Succeed(t, err)
	pending("after another tool list", request("bea"), id)
	grant := registry.GrantRecord{Grant: registry.Grant{Holder: "bea", Action: registry.ActionReview, Pattern: newPattern(t, "com.example/*")}}
	must.Succeed(t, fx.grants.Remove(t.Context(), grant))
	pending("after the first lost the right", request("cem"), id)
	must.Succeed(t, fx.grants.Add(t.Context(), grant))
	fx.people.inactive = "cem"
	pending("after the first was disabled", request("bea"), id)
	pending("an operator command is one person", authority.Operator(), fx.submit(t, "eve", dangerous("2.0.0")).Pending)

	fx.reject(t, "bea", id)
	if r, err := fx.store.Get(t.Context(), id); err != nil || r.First != (review.Approval{}) {
		t.Errorf("a rejection keeps %+v, %v", r.First, err)
	}
}

// TestRulesApproveNothingDangerous checks that no rule counts as one of two people.
func TestRulesApproveNothingDangerous(t *testing.T) {
	t.Parallel()
	fx := newFixtureWith(t, reviewing.Config{TwoApprovals: true})
	fx.addRule(t, reviewing.RuleDraft{Pattern: "*", When: "any"})
	fx.requireState(t, review.Pending, fx.submit(t, "eve", dangerous("1.0.0")).Pending)
	if o := fx.submit(t, "eve", document("com.example/text", "1.0.0")); o.Pending != "" {
		t.Errorf("what is harmless waits: %+v", o)
	}
}

// TestTwoApprovalsAtOnce checks that one person who approves several times at once counts once, and two people publish.
func TestTwoApprovalsAtOnce(t *testing.T) {
	t.Parallel()
	fx := newFixtureWith(t, reviewing.Config{TwoApprovals: true})
	for _, c := range []struct {
		people []string
		want   review.State
	}{{[]string{"bea", "bea", "bea", "bea"}, review.Pending}, {[]string{"bea", "cem"}, review.Approved}} {
		id := fx.submit(t, "eve", dangerous("1.0.0")).Pending
		var group sync.WaitGroup
		var counted atomic.Int64
		for _, token := range c.people {
			group.Go(func() {
				if _, err := fx.service.Approve(t.Context(), request(token), id, ""); err == nil {
					counted.Add(1)
				} else if !fault.Is(err, fault.Conflict) {
					t.Errorf("%s: %v", token, err)
				}
			})
		}
		group.Wait()
		fx.requireState(t, c.want, id)
		if want := int64(len(c.people)); c.want == review.Approved && counted.Load() != want || c.want == review.Pending && counted.Load() != 1 {
			t.Errorf("%d approvals of %v count", counted.Load(), c.people)
		}
	}
}

// TestCountPending checks that the number of what waits for a person is that of the list: without what the person has
// submitted, or has approved first.
func TestCountPending(t *testing.T) {
	t.Parallel()
	fx := newFixtureWith(t, reviewing.Config{TwoApprovals: true})
	want := func(label string, want map[string]int) {
		t.Helper()
		for who, n := range want {
			count, err := fx.service.CountPending(t.Context(), request(who))
			must.Succeed(t, err)
			waiting, err := fx.service.Waiting(t.Context(), request(who))
			if err != nil || count != n || waiting.Count != n || len(waiting.Reviews) != n {
				t.Errorf("%s, for %s: %d count, %d and %d are listed, %v, want %d", label, who, count, waiting.Count, len(waiting.Reviews), err, n)
			}
		}
	}
	id := fx.submit(t, "ada", dangerous("1.0.0")).Pending
	want("what ada has submitted", map[string]int{"ada": 0, "bea": 1, "cem": 1, "eve": 0})
	_, err := fx.tryApprove(t, request("bea"), id)
	must.Succeed(t, err)
	want("what bea has approved first", map[string]int{"ada": 0, "bea": 0, "cem": 1, "eve": 0})
	fx.submit(t, "ci", document("com.example/ci", "1.0.0"))
	want("what came through a policy of bea", map[string]int{"ada": 1, "bea": 0, "cem": 1})
}

// TestDeciders checks who a review page says can decide: by the pattern of their grants, and not the submitter.
func TestDeciders(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	id := fx.submit(t, "ada", document(serverName, "1.0.0")).Pending
	r, err := fx.service.Find(t.Context(), request("bea"), id)
	must.Succeed(t, err)
	names := func() string {
		got, err := fx.service.Deciders(t.Context(), r)
		must.Succeed(t, err)
		return fmt.Sprint(got)
	}
	if got, want := names(), "[{com.example/* [bea] 0} {"+serverName+" [cem] 0}]"; got != want {
		t.Errorf("deciders are %s, want %s", got, want)
	}
	for n := range 7 {
		must.Succeed(t, fx.grants.Add(t.Context(), registry.GrantRecord{Grant: registry.Grant{
			Holder: registry.Holder(fmt.Sprint("dan", n)), Action: registry.ActionReview, Pattern: newPattern(t, serverName),
		}}))
	}
	if got, want := names(), "[{com.example/* [bea] 0} {"+serverName+" [cem dan0 dan1 dan2 dan3] 3}]"; got != want {
		t.Errorf("deciders are %s, want %s", got, want)
	}
}

// TestSecondReviewersAreTold checks that after the first of two approvals the other reviewers get a mail, as they have
// chosen, and that it says so.
func TestSecondReviewersAreTold(t *testing.T) {
	t.Parallel()
	fx := newFixtureWith(t, reviewing.Config{TwoApprovals: true})
	reminder := reviewing.NewReminder(fx.reminderPorts())
	told := func() (all []string) {
		fx.people.waiting = nil
		must.Succeed(t, reminder.NotifyAll(t.Context()))
		for _, n := range fx.people.waiting {
			all = append(all, fmt.Sprint(n.Reviewer, " ", n.First[0].Version, " ", n.First[0].Second))
		}
		slices.Sort(all)
		return all
	}
	must.Succeed(t, fx.service.ChooseMail(t.Context(), request("cem"), "none"))
	id := fx.submit(t, "eve", dangerous("1.0.0")).Pending
	fx.clock.Advance(time.Minute)
	if got, want := told(), []string{"ada 1.0.0 false", "bea 1.0.0 false"}; !slices.Equal(got, want) {
		t.Errorf("of the submission %q are told, want %q", got, want)
	}
	if _, err := fx.tryApprove(t, request("bea"), id); err != nil {
		t.Fatal(err)
	}
	if got := told(); got != nil {
		t.Errorf("within seconds %q are told", got)
	}
	fx.clock.Advance(time.Minute)
	if got, want := told(), []string{"ada 1.0.0 true"}; !slices.Equal(got, want) {
		t.Errorf("of the first approval %q are told, want %q", got, want)
	}
	if got := told(); got != nil {
		t.Errorf("again %q are told", got)
	}
}
