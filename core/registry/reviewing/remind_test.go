package reviewing_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/change"
	"github.com/tollgate-dev/tollgate/core/registry/quarantining"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/core/registry/reviewing"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/test/must"
)

// waiter ends a runner after its first round.
type waiter struct{ pauses []time.Duration }

func (w *waiter) Wait(_ context.Context, d time.Duration) bool {
	w.pauses = append(w.pauses, d)
	return false
}

// reporter keeps the errors of a reminder.
type reporter struct {
	failed []error
	counts []int
}

func (r *reporter) Report(event any) {
	switch e := event.(type) {
	case reviewing.Counted:
		r.counts = append(r.counts, e.Pending)
	case reviewing.ReminderFailed:
		r.failed = append(r.failed, e.Err)
	}
}

// TestReminder follows the notices of reviewers over some hours.
func TestReminder(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	reminder := reviewing.NewReminder(fx.reminderPorts())
	expect := func(label string, want map[registry.Holder]int) {
		t.Helper()
		fx.people.waiting = nil
		fx.clock.Advance(time.Second)
		must.Succeed(t, reminder.NotifyAll(t.Context()))
		got := map[registry.Holder]int{}
		for _, n := range fx.people.waiting {
			got[n.Reviewer] += n.Count
		}
		if len(got) != len(want) {
			t.Errorf("%s: notices are %v, want %v", label, got, want)
		}
		for who, n := range want {
			if got[who] != n {
				t.Errorf("%s: notices are %v, want %v", label, got, want)
			}
		}
	}
	expect("nothing waits", nil)
	fx.submit(t, "ada", document("com.example/b", "1.0.0"))
	expect("within seconds", nil)
	fx.clock.Advance(20 * time.Second)
	_, err := fx.publish(t, "eve", dangerous("1.0.0"))
	must.Succeed(t, err)
	fx.clock.Advance(25 * time.Second) // less than a minute after the first one
	expect("of what is not one's own, two in one mail", map[registry.Holder]int{"ada": 1, "bea": 2})
	fx.clock.Advance(20 * time.Second)
	expect("of the second one alone", map[registry.Holder]int{"cem": 1})
	expect("nothing new", nil)
	fx.clock.Advance(5 * time.Hour)
	expect("nothing new, later", nil)
	fx.submit(t, "eve", document(serverName, "2.0.0"))
	fx.clock.Advance(45 * time.Second)
	expect("something new, without what was in the mail before", map[registry.Holder]int{"ada": 1, "bea": 1, "cem": 1})

	choose := func(who, choice string) { must.Succeed(t, fx.service.ChooseMail(t.Context(), request(who), choice)) }
	choose("ada", "daily")
	choose("bea", "none")
	fx.submit(t, "eve", document(serverName, "3.0.0"))
	fx.submit(t, "eve", dangerous("4.0.0"))
	fx.clock.Advance(45 * time.Second)
	expect("as they have chosen", map[registry.Holder]int{"cem": 2})
	fx.clock.Advance(epoch.AddDate(0, 0, 1).Add(-5*time.Hour).Sub(fx.clock.Now()) - time.Minute)
	expect("before the hour of the digest", nil)
	fx.clock.Advance(2 * time.Minute)
	expect("the digest", map[registry.Holder]int{"ada": 2})
	for _, n := range fx.people.waiting {
		if first := n.First[0]; first.Version != "4.0.0" || first.Danger != "New host https://weather.example.com" || n.First[1].Danger != "" {
			t.Errorf("the digest begins with %+v, want what is dangerous", n.First)
		}
	}
	choose("bea", "at-once")
	expect("what came in silence, which still waits", map[registry.Holder]int{"bea": 2})
}

// TestSeveralReminders checks that several instances send one mail.
func TestSeveralReminders(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	fx.submit(t, "eve", document(serverName, "1.0.0"))
	fx.clock.Advance(time.Minute)
	for range 3 {
		must.Succeed(t, reviewing.NewReminder(fx.reminderPorts()).NotifyAll(t.Context()))
	}
	if n := len(fx.people.waiting); n != 3 {
		t.Errorf("%d notices were sent, want one to each of three reviewers", n)
	}
}

// TestChooseMail checks who may choose, and that the choice is an act: a stolen password silences no reviewer.
func TestChooseMail(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	wantFault(t, fx.service.ChooseMail(t.Context(), request("bea low"), "none"), fault.Forbidden, "", "no trust")
	wantFault(t, fx.service.ChooseMail(t.Context(), request("ci"), "none"), fault.Forbidden, "", "a publisher")
	wantFault(t, fx.service.ChooseMail(t.Context(), request("bea"), "weekly"), fault.Invalid, "mail", "another choice")
	wantFault(t, fx.service.ChooseMail(t.Context(), request("eve"), "none"), fault.Forbidden, "no grant", "a person who reviews nothing")
	if m, err := fx.service.Mail(t.Context(), request("bea")); err != nil || m != review.AtOnce {
		t.Errorf("Mail is %s, %v", m, err)
	}
	must.Succeed(t, fx.service.ChooseMail(t.Context(), request("bea"), "none"))
	if m, err := fx.service.Mail(t.Context(), request("bea")); err != nil || m != review.NoMail {
		t.Errorf("Mail is %s, %v", m, err)
	}
	if a := fx.people.acts; len(a) != 1 || a[0].Action != "review_mail" || a[0].Note != "none" {
		t.Errorf("the acts are %+v", a)
	}
}

func (fx *fixture) reminderPorts() reviewing.ReminderPorts {
	return reviewing.ReminderPorts{
		Config: fx.config, Reviews: fx.store, Backlog: fx.store, Notices: fx.notices, Grants: fx.grants, Notifier: fx.people,
		Hidden: fx.quarantine().ByOperators, Show: fx.service.Show, Clock: fx.clock, Waiter: &waiter{}, Reporter: &reporter{},
	}
}

// quarantine returns the use cases of quarantine.
func (fx *fixture) quarantine() *quarantining.Service {
	return quarantining.New(quarantining.Ports{
		Ports:  change.Ports{Transactions: fx.db, Writer: fx.servers, Quarantine: fx.held, Acts: fx.people},
		Reader: fx.servers, Grants: fx.grants, Events: fx.events, Notifier: fx.people, Clock: fx.clock,
	})
}

// brokenReviews is a store that fails.
type brokenReviews struct{ registrystore.Reviews }

var errBroken = errors.New("broken")

func (brokenReviews) List(context.Context, registrystore.ReviewQuery) (registrystore.ReviewPage, error) {
	return registrystore.ReviewPage{}, errBroken
}

func TestReminderReportsErrors(t *testing.T) {
	t.Parallel()
	ports, w, r := newFixture(t).reminderPorts(), &waiter{}, &reporter{}
	ports.Reviews, ports.Waiter, ports.Reporter = brokenReviews{ports.Reviews}, w, r
	reviewing.NewReminder(ports).Run(t.Context())
	if len(r.failed) != 1 || !errors.Is(r.failed[0], errBroken) || len(w.pauses) != 1 || w.pauses[0] != 10*time.Second {
		t.Errorf("reported %v, waited %v, want the error and ten seconds", r.failed, w.pauses)
	}
	ports.Reviews = newFixture(t).store
	reviewing.NewReminder(ports).Run(t.Context())
	if len(r.failed) != 1 {
		t.Errorf("reported %v without an error", r.failed)
	}
}

// TestSubmittersOfOperatorDecisions follows the notices of what operators decide. Several reminders
// run, as on several instances: one of them sends a notice.
func TestSubmittersOfOperatorDecisions(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	all := []*reviewing.Reminder{reviewing.NewReminder(fx.reminderPorts()), reviewing.NewReminder(fx.reminderPorts())}
	expect := func(label string, want ...string) {
		t.Helper()
		fx.people.decisions, fx.people.hidden = nil, nil
		for _, reminder := range all {
			must.Succeed(t, reminder.NotifySubmitters(t.Context()))
		}
		var got []string
		for _, n := range fx.people.decisions {
			got = append(got, fmt.Sprintf("%v %v %s %s", n.People, n.Approved, n.ServerName, n.Version))
		}
		for _, n := range fx.people.hidden {
			got = append(got, fmt.Sprintf("%v hidden %s %s", n.People, n.ServerName, n.Version))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: notices are %q, want %q", label, got, want)
		}
	}
	decide := func(token, version string, approve bool) {
		t.Helper()
		id := fx.submit(t, token, document(serverName, version)).Pending
		verdict := fx.service.Reject
		if approve {
			verdict = fx.service.Approve
		}
		if _, err := verdict(t.Context(), authority.Operator(), id, "so it is"); err != nil {
			t.Fatal(err)
		}
	}
	decide("ada", "1.0.0", true)
	fx.clock.Advance(time.Minute)
	expect("a decision before the first call")
	decide("ada", "2.0.0", true)
	fx.clock.Advance(9 * time.Second)
	expect("too early")
	fx.clock.Advance(time.Second)
	expect("an approval", "[ada] true "+serverName+" 2.0.0")
	decide("ci", "3.0.0", false)
	decide("eve", "4.0.0", true)
	id := fx.submit(t, "eve", document(serverName, "5.0.0")).Pending
	fx.approve(t, "bea", id)
	fx.clock.Advance(time.Hour)
	expect("a rejection and an approval", "[bea] false "+serverName+" 3.0.0", "[eve] true "+serverName+" 4.0.0")
	fx.clock.Advance(time.Hour)
	expect("nothing new")
	if _, err := fx.quarantine().Add(t.Context(), authority.Operator(), quarantining.Draft{
		Target: quarantining.Target{ServerName: serverName, Version: "4.0.0"}, Reason: "it sends mail",
	}); err != nil {
		t.Fatal(err)
	}
	fx.clock.Advance(time.Hour)
	expect("quarantine", "[eve] hidden "+serverName+" 4.0.0")
	expect("quarantine, once more")
}

// TestReminderCountsPending checks that each round reports how many reviews are pending.
func TestReminderCountsPending(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	ports, r := fx.reminderPorts(), &reporter{}
	ports.Reporter = r
	for _, version := range []string{"1.0.0", "2.0.0"} {
		reviewing.NewReminder(ports).Run(t.Context())
		fx.submit(t, "ada", document(serverName, version))
	}
	reviewing.NewReminder(ports).Run(t.Context())
	if !slices.Equal(r.counts, []int{0, 1, 2}) || len(r.failed) > 0 {
		t.Errorf("counted %v, failed %v, want 0, 1 and 2", r.counts, r.failed)
	}
}

// countedReviews counts the lists that are read.
type countedReviews struct {
	registrystore.Reviews

	lists int
}

func (c *countedReviews) List(ctx context.Context, q registrystore.ReviewQuery) (registrystore.ReviewPage, error) {
	c.lists++
	return c.Reviews.List(ctx, q)
}

// TestReminderReadsFirstApprovals checks that first approvals are read only where two people must approve something.
func TestReminderReadsFirstApprovals(t *testing.T) {
	t.Parallel()
	for two, want := range map[bool]int{false: 4, true: 7} { // one to see whether something waits, and for each of three
		fx := newFixtureWith(t, reviewing.Config{TwoApprovals: two})
		ports, counted := fx.reminderPorts(), &countedReviews{Reviews: fx.store}
		ports.Reviews = counted
		fx.submit(t, "eve", document(serverName, "1.0.0"))
		fx.clock.Advance(time.Minute)
		must.Succeed(t, reviewing.NewReminder(ports).NotifyAll(t.Context()))
		if counted.lists != want {
			t.Errorf("with two approvals %t, %d lists are read, want %d", two, counted.lists, want)
		}
	}
}

// TestManyOfOneTime checks that more submissions of one time than a notice counts, such as the changed tools of all
// versions of a server, are in one notice, and not in one every few seconds.
func TestManyOfOneTime(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	reminder := reviewing.NewReminder(fx.reminderPorts())
	_, err := fx.publish(t, "eve", document(serverName, "1.0.0"))
	must.Succeed(t, err)
	waiting, err := fx.store.List(t.Context(), registrystore.ReviewQuery{Limit: 1})
	must.Succeed(t, err)
	for i := range 100 {
		same := waiting.Reviews[0]
		same.ID = registry.ReviewID(fmt.Sprint("same", i))
		same.Version, err = registry.ParseVersion(fmt.Sprintf("2.%d.0", i))
		must.Succeed(t, err)
		must.Succeed(t, fx.store.Add(t.Context(), same, 1000))
	}
	sent := 0
	for range 5 {
		fx.clock.Advance(time.Minute)
		fx.people.waiting = nil
		must.Succeed(t, reminder.NotifyAll(t.Context()))
		for _, n := range fx.people.waiting {
			if n.Reviewer == "bea" {
				sent++
			}
		}
	}
	if sent != 1 {
		t.Errorf("bea gets %d notices of the same submissions", sent)
	}
}
