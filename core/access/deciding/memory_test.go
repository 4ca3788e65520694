package deciding_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/access/deciding"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/toolserver"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/must"
)

var errAway = fault.New(fault.Unavailable, "away")

func listing(t *testing.T, name string, urls ...string) access.Listing {
	t.Helper()
	n, err := toolserver.ParseName(name)
	must.Succeed(t, err)
	return access.Listing{Name: n, Remotes: urls}
}

// TestAfterALoss: the first question after a loss is decided by what has changed during it, however long
// nobody has asked, and so is one that joins a read that began before the loss was over.
func TestAfterALoss(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(fx *fixture){
		"a quarantine": (*fixture).quarantine,
		"a rule that denies": func(fx *fixture) {
			fx.set(audit.Details{"name": audit.Text("stop"), "effect": audit.Text("deny"), "subjects": audit.Texts([]string{"everyone"})})
			fx.hint--
		},
	} {
		for _, quiet := range []time.Duration{time.Second, time.Minute, time.Hour} {
			fx := newFixture(t, deciding.Config{})
			fx.allow("robots", robot, audit.Details{"methods": audit.Texts([]string{"tools/call"})})
			fx.want(question(tokenOf(robot)), access.Allow, access.ByRule)
			fx.failure = errAway
			fx.clock.Advance(time.Second)
			fx.want(question(authority.Caller{}), access.Challenge, access.ByDefault) // by what it has
			fx.failure = nil
			change(fx)
			fx.clock.Advance(quiet)
			if d := fx.answer(question(tokenOf(robot))); d.Effect != access.Deny {
				t.Errorf("%s, %s ago: %+v", name, quiet, d)
			}
		}
	}
}

// TestAfterALossWithAReadOfIt: a question that finds a read which fails because of a loss that is over
// begins one of its own.
func TestAfterALossWithAReadOfIt(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, deciding.Config{})
	fx.allow("robots", robot, nil)
	fx.want(question(tokenOf(robot)), access.Allow, access.ByRule)
	fx.quarantine()
	fx.clock.Advance(time.Second)
	reached, end := make(chan struct{}), make(chan struct{})
	fx.during = func() error {
		close(reached)
		<-end
		return errAway
	}
	var asking sync.WaitGroup
	asking.Go(func() {
		q := question(authority.Caller{})
		if _, err := fx.Denied(context.Background(), q, []access.Call{q.Call}); err != nil {
			t.Errorf("the question that began it: error %v", err)
		}
	})
	<-reached
	var d deciding.Answer
	var err error
	asking.Go(func() { d, err = fx.Decide(context.Background(), question(tokenOf(robot))) })
	close(end)
	asking.Wait()
	if err != nil || d.Reason != access.Quarantined {
		t.Errorf("%+v, error %v", d, err)
	}
}

// TestTooOld: what cannot be read is in force for a time, and then DECIDE_AWAY decides, for all callers.
func TestTooOld(t *testing.T) {
	t.Parallel()
	for _, allows := range []bool{false, true} {
		fx := newFixture(t, deciding.Config{AwayAllows: allows, StaleMax: time.Minute})
		fx.allow("all", "anyone", nil)
		fx.want(question(authority.Caller{}), access.Allow, access.ByRule)
		fx.failure = errAway
		fx.clock.Advance(time.Minute)
		fx.want(question(authority.Caller{}), access.Allow, access.ByRule)
		if age, usable, err := fx.Age(); age != time.Minute || !usable || !fault.Is(err, fault.Unavailable) {
			t.Errorf("the age is %s, usable %v, error %v", age, usable, err)
		}
		fx.clock.Advance(time.Second)
		d, err := fx.Decide(t.Context(), question(authority.Caller{}))
		if allows != (err == nil && d.Reason == access.Away && d.Effect == access.Allow) || !allows && !fault.Is(err, fault.Unavailable) {
			t.Errorf("after the bound: %+v, error %v", d, err)
		}
		if _, usable, _ := fx.Age(); usable {
			t.Error("what is too old is usable")
		}
		if _, err := fx.Rules(t.Context(), deciding.RuleQuery{Limit: 1}); !fault.Is(err, fault.Unavailable) {
			t.Errorf("the rules after the bound: error %v", err)
		}
		fx.failure = nil
		fx.want(question(authority.Caller{}), access.Allow, access.ByRule)
		if len(fx.reports) != 2 {
			t.Fatalf("reported %+v, want a failure and a success", fx.reports)
		}
		if failed, ok := fx.reports[0].(deciding.ReadFailed); !ok || failed.Age != time.Minute || fx.reports[1] != (deciding.ReadAgain{}) {
			t.Errorf("reported %+v", fx.reports)
		}
	}
}

// pauses lets time pass, one pause after the other.
type pauses struct {
	*fixture
	most  int
	asked []time.Duration
	each  func(n int)
}

func (p *pauses) Wait(_ context.Context, d time.Duration) bool {
	p.asked = append(p.asked, d)
	p.clock.Advance(d)
	p.each(len(p.asked))
	return len(p.asked) < p.most
}

// TestFollow reads without any question: each second, and after failures with growing pauses until one
// succeeds.
func TestFollow(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, deciding.Config{StaleMax: time.Hour})
	p := &pauses{fixture: fx, most: 20}
	service := fx.newWaiting(deciding.Config{StaleMax: time.Hour}, p)
	back := 0
	p.each = func(n int) {
		age, usable, err := service.Age()
		switch last := p.asked[n-1]; {
		case n == 1:
			await.Until(t, "the first read", func() bool { _, usable, err = service.Age(); return usable && err == nil })
			fx.failure = errAway
		case fx.failure != nil && n > 7 && last == p.asked[n-2]: // the pause has become as long as it can
			if age < 30*time.Second || !usable || err == nil {
				t.Errorf("the age is %s, usable %v, error %v", age, usable, err)
			}
			fx.quarantine()
			fx.failure, back = nil, n
		case back > 0 && (age != last || err != nil):
			t.Errorf("the age after a read is %s, error %v", age, err)
		}
	}
	service.Follow(t.Context())
	var want []time.Duration
	for _, n := range []int{1, 2, 4, 8, 16, 1} {
		want = append(want, time.Duration(n)*time.Second)
	}
	if got := slices.Compact(slices.Clone(p.asked)); !slices.Equal(got, want) {
		t.Errorf("the pauses are %v, want %v", got, want)
	}
	fx.failure = errAway // what the last read has found stays
	if d, err := service.Decide(t.Context(), question(authority.Caller{})); err != nil || d.Reason != access.Quarantined {
		t.Errorf("%+v, error %v", d, err)
	}
}

// TestAChangeCostsWhatHasChanged counts what is read after changes.
func TestAChangeCostsWhatHasChanged(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, deciding.Config{})
	for i := range 1200 {
		fx.change(listing(t, fmt.Sprintf("com.example/s%04d", i), fmt.Sprintf("https://s%d.example/", i)))
	}
	at := func(host string) deciding.Question {
		q := question(tokenOf(robot))
		q.Server, q.Address = "", access.Address{Scheme: "https", Host: host, Path: "/mcp"}
		return q
	}
	fx.allow("robots", robot, nil)
	fx.want(at("s7.example"), access.Allow, access.ByRule)
	if fx.pages != 1202 || len(fx.named) != 0 {
		t.Errorf("at first: %d pages, and the servers %v", fx.pages, fx.named)
	}
	for _, step := range []struct {
		what   string
		change func()
		names  []string
		effect access.Effect // of s7.example
	}{
		{"nothing", func() {}, nil, access.Allow},
		{"a rule", func() { fx.allow("more", robot, nil) }, nil, access.Allow},
		{"another server", func() { fx.change(listing(t, "com.example/new", "https://new.example/")) }, []string{"com.example/new"}, access.Allow},
		{
			"another address", func() { fx.change(listing(t, "com.example/s0007", "https://moved.example/")) }, []string{"com.example/s0007"},
			access.Deny,
		},
		{
			"an address of two", func() { fx.change(listing(t, "com.example/s0008", "https://s7.example/")) }, []string{"com.example/s0008"},
			access.Allow,
		},
		{
			"a deletion, first", func() {
				gone := listing(t, "com.example/s0008")
				gone.Withdrawn, gone.Deleted = []string{"https://s7.example/"}, true
				fx.change(listing(t, "com.example/a", "https://s7.example/"), gone)
			}, []string{"com.example/s0008", "com.example/a"}, access.Deny,
		},
	} {
		step.change()
		fx.named, fx.pages = nil, 0
		fx.clock.Advance(time.Second)
		if d := fx.answer(at("s7.example")); d.Effect != step.effect {
			t.Errorf("%s: %+v", step.what, d)
		}
		if fx.pages > 0 || !slices.Equal(fx.named, step.names) {
			t.Errorf("%s: %d pages and the servers %v are read", step.what, fx.pages, fx.named)
		}
	}
	fx.restart++ // it may have lost changes: all is read
	fx.listings = fx.listings[:3]
	fx.change()
	fx.clock.Advance(time.Second)
	fx.want(at("s999.example"), access.Deny, access.NotListed)
	if fx.pages != 4 {
		t.Errorf("after a restart of the database, %d pages are read", fx.pages)
	}
}

// TestADenialComesFirst: what is taken from a server is in force although the rest cannot be read, and the
// rest is read again.
func TestADenialComesFirst(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, deciding.Config{})
	fx.allow("robots", robot, nil)
	fx.want(question(tokenOf(robot)), access.Allow, access.ByRule)
	for i := range 1200 {
		fx.change(listing(t, fmt.Sprintf("com.example/s%04d", i)))
	}
	fx.quarantine()
	fx.broken = "com.example/s1199"
	fx.clock.Advance(time.Second)
	fx.want(question(tokenOf(robot)), access.Deny, access.Quarantined)
	late := question(tokenOf(robot))
	late.Server = fx.broken
	fx.want(late, access.Deny, access.NotListed)
	if age, usable, err := fx.Age(); age != time.Second || !usable || err == nil {
		t.Errorf("the age is %s, usable %v, error %v", age, usable, err)
	}
	fx.broken = ""
	fx.want(late, access.Allow, access.ByRule)
}

// TestADenialComesFirstAfterARestart: after the database was started anew all servers are read, and what it
// knows to have changed holds before that.
func TestADenialComesFirstAfterARestart(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, deciding.Config{})
	fx.allow("robots", robot, nil)
	fx.want(question(tokenOf(robot)), access.Allow, access.ByRule)
	fx.quarantine()
	fx.restart, fx.torn = 1, true
	fx.clock.Advance(time.Second)
	fx.want(question(tokenOf(robot)), access.Deny, access.Quarantined)
	fx.torn, fx.listings = false, nil // the restart has lost the server
	fx.want(question(tokenOf(robot)), access.Deny, access.NotListed)
}

// TestAChangeDuringARead is found by the next read, whether the read has seen it or not.
func TestAChangeDuringARead(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, deciding.Config{})
	fx.allow("robots", robot, nil)
	quarantine := func() error {
		fx.quarantine()
		return nil
	}
	fx.during = quarantine // after the revision and the position of the first read
	fx.want(question(tokenOf(robot)), access.Deny, access.Quarantined)
	fx.change(listing(t, "com.example/weather"))
	fx.clock.Advance(time.Second)
	fx.want(question(tokenOf(robot)), access.Allow, access.ByRule)
	fx.change(listing(t, "com.example/other"))
	fx.during = quarantine // is not among the names of this read
	fx.clock.Advance(time.Second)
	fx.want(question(tokenOf(robot)), access.Allow, access.ByRule)
	fx.clock.Advance(time.Second)
	fx.want(question(tokenOf(robot)), access.Deny, access.Quarantined)
}

// TestReadsAreLong: neither the time of a call of the database nor the deadline of a question bounds the read
// of all servers.
func TestReadsAreLong(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, deciding.Config{})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if _, err := fx.Decide(ctx, question(authority.Caller{})); err != nil || fx.bounded || fx.pages == 0 {
		t.Errorf("bounded %v, %d pages, error %v", fx.bounded, fx.pages, err)
	}
}
