package reviewing_test

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/publishing"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/core/registry/reviewing"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestApprove follows a server from its submission to its replacement.
func TestApprove(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	first := fx.submit(t, "ada", document(serverName, "1.0.0"))
	if first.Pending == "" || first.Latest {
		t.Fatalf("the outcome is %+v, want a pending one that is not the latest", first)
	}
	if _, ok := fx.served(t, serverName, "1.0.0"); ok {
		t.Fatal("a pending version is served")
	}
	shown, err := fx.service.Get(t.Context(), request("bea"), first.Pending)
	if err != nil || shown.Kind != review.NewServer || shown.Replaces != nil || len(shown.Diff) != 0 ||
		shown.Submitter.Key != "ada" {
		t.Fatalf("Get = %+v, %v", shown, err)
	}
	fx.clock.Advance(time.Hour)
	approved, err := fx.service.Approve(t.Context(), request("bea"), first.Pending, "fine")
	if err != nil || approved.State != review.Approved || approved.DecidedBy != "bea" || approved.Comment != "fine" {
		t.Fatalf("Approve = %+v, %v", approved, err)
	}
	latest, err := fx.servers.Latest(t.Context(), first.Name, false)
	if err != nil || latest.Version != first.Version || !latest.PublishedAt.Equal(fx.clock.Now()) {
		t.Fatalf("latest is %+v, %v, want the version, published when it was approved", latest.Release, err)
	}
	second := fx.submit(t, "ada", document(serverName, "2.0.0", `"title":"New"`))
	shown, err = fx.service.Get(t.Context(), request("cem"), second.Pending)
	if err != nil || shown.Kind != review.NewVersion || string(shown.Replaces) != document(serverName, "1.0.0") ||
		len(shown.Diff) != 2 || shown.Diff[0].Path != "/title" {
		t.Fatalf("Get of a new version = %+v, %v", shown, err)
	}
	replaced, err := fx.replace(t, "ada", document(serverName, "1.0.0", `"title":"Old"`), "1.0.0")
	if err != nil || replaced.Pending == "" || !strings.Contains(string(replaced.Document), "Old") || !replaced.Latest {
		t.Fatalf("Replace = %+v, %v, want the new document with the release that is served", replaced, err)
	}
	if got, _ := fx.served(t, serverName, "1.0.0"); got != document(serverName, "1.0.0") {
		t.Fatalf("served is %s, want the approved document", got)
	}
	fx.clock.Advance(time.Hour)
	approved, err = fx.service.Approve(t.Context(), request("bea"), replaced.Pending, "")
	if err != nil || approved.Kind != review.Replacement ||
		string(approved.Replaces) != document(serverName, "1.0.0") || len(approved.Diff) != 1 {
		t.Fatalf("Approve of a replacement = %+v, %v", approved, err)
	}
	now, err := fx.servers.Version(t.Context(), first.Name, first.Version, false)
	if err != nil || !strings.Contains(string(now.Document), "Old") || !now.PublishedAt.Equal(latest.PublishedAt) ||
		!now.UpdatedAt.Equal(fx.clock.Now()) {
		t.Fatalf("after the replacement: %+v, %v, want a later update time alone", now, err)
	}
	want := []authority.DecisionNotice{
		{
			People: []registry.Holder{"ada"}, Approved: true, ServerName: serverName, Version: "1.0.0",
			At: latest.PublishedAt,
		},
		{People: []registry.Holder{"ada"}, Approved: true, ServerName: serverName, Version: "1.0.0", At: now.UpdatedAt},
	}
	if len(fx.people.decisions) != 2 || !fx.people.decisions[0].At.Equal(want[0].At) ||
		!slices.Equal(fx.people.decisions[0].People, want[0].People) ||
		fx.people.decisions[1].Review != replaced.Pending {
		t.Errorf("notices are %+v, want %+v", fx.people.decisions, want)
	}
}

// TestRefusedDecisions checks the errors of decisions in their order, and their acts.
func TestRefusedDecisions(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	o := fx.submit(t, "ada", document(serverName, "1.0.0"))
	ofPolicy := fx.submit(t, "ci", document(serverName, "2.0.0"))
	elsewhere := fx.submit(t, "eve", document("com.other/x", "1.0.0"))
	decided := fx.submit(t, "eve", document(serverName, "3.0.0"))
	fx.reject(t, "bea", decided.Pending)
	fx.people.acts = nil
	const long = review.MaxComment + 1
	for _, c := range []struct {
		label, token string
		id           registry.ReviewID
		reject       bool
		comment      string
		kind         fault.Kind
		acts         int
	}{
		{"no token", "", "none", true, "", fault.Unauthenticated, 0},
		{"the token of a publisher", "ci", "none", true, "", fault.Forbidden, 0},
		{"no such review", "eve low", "none", true, "", fault.NotFound, 1},
		{"no grant", "eve low", o.Pending, true, "", fault.Forbidden, 1},
		{"a grant for another server", "bea", elsewhere.Pending, true, "", fault.Forbidden, 1},
		{"no trust", "bea low", o.Pending, true, "", fault.Forbidden, 1},
		{"no reason", "bea", decided.Pending, true, "", fault.Invalid, 1},
		{"a long comment", "bea", decided.Pending, false, strings.Repeat("x", long), fault.Invalid, 1},
		{"decided already", "bea", decided.Pending, false, "", fault.Conflict, 1},
		{"an own one", "ada", o.Pending, false, "", fault.Forbidden, 1},
		{"an own one through a policy", "bea", ofPolicy.Pending, false, "", fault.Forbidden, 1},
		{"an own one, rejected", "ada", o.Pending, true, "no", fault.Forbidden, 1},
	} {
		fx.people.acts = nil
		decide := fx.service.Approve
		if c.reject {
			decide = fx.service.Reject
		}
		_, err := decide(t.Context(), request(c.token), c.id, c.comment)
		if !fault.Is(err, c.kind) || len(fx.people.acts) != c.acts {
			t.Errorf("%s: %v with the acts %+v, want %v and %d", c.label, err, fx.people.acts, c.kind, c.acts)
		}
		for _, a := range fx.people.acts {
			if a.Reason == "" || a.Review != c.id || (a.Action == "reject") != c.reject {
				t.Errorf("%s: the act is %+v", c.label, a)
			}
		}
	}
	for _, id := range []registry.ReviewID{o.Pending, ofPolicy.Pending} {
		if r, err := fx.store.Get(t.Context(), id); err != nil || r.State != review.Pending {
			t.Errorf("after refusals: %+v, %v, want it pending", r, err)
		}
	}
	if _, err := fx.service.Approve(t.Context(), request("cem"), ofPolicy.Pending, ""); err != nil {
		t.Errorf("another reviewer: %v", err)
	}
	if last := fx.people.decisions[len(fx.people.decisions)-1]; !slices.Equal(last.People, []registry.Holder{"bea"}) {
		t.Errorf("notified are %v, want the maker of the policy", last.People)
	}
}

// TestRequestChanges checks that a version whose changes are requested is not listed, and waits again with its past
// when it is submitted again; and that only what can be submitted again gets a request.
func TestRequestChanges(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	o := fx.submit(t, "ada", document(serverName, "1.0.0"))
	changes := func(token string, id registry.ReviewID, comment string) error {
		_, err := fx.service.RequestChanges(t.Context(), request(token), id, comment)
		return err
	}
	wantFault(t, changes("bea", o.Pending, " "), fault.Invalid, "comment", "no comment")
	wantFault(t, changes("ada", o.Pending, "more"), fault.Forbidden, "yourself", "an own one")
	wantFault(t, changes("bea low", o.Pending, "more"), fault.Forbidden, "", "no trust")
	fx.requireState(t, review.Pending, o.Pending)
	must.Succeed(t, changes("bea", o.Pending, "more"))
	fx.requireState(t, review.ChangesRequested, o.Pending)
	if _, ok := fx.served(t, serverName, "1.0.0"); ok {
		t.Error("the version is served")
	}
	if n := fx.people.decisions; len(n) != 1 || !n[0].Changes || n[0].Approved || n[0].Comment != "more" {
		t.Errorf("notices are %+v", n)
	}
	if a := fx.people.acts[len(fx.people.acts)-1]; a.Action != "request_changes" || a.Reason != "" {
		t.Errorf("the act is %+v", a)
	}
	for _, err := range []error{changes("cem", o.Pending, "x"), func() error {
		_, err := fx.service.Approve(t.Context(), request("cem"), o.Pending, "")
		return err
	}()} {
		wantFault(t, err, fault.Conflict, "not pending", "a decision after it")
	}
	again := fx.submit(t, "ada", document(serverName, "1.0.0", `"title":"More"`))
	r, err := fx.service.Find(t.Context(), request("bea"), again.Pending)
	must.Succeed(t, err)
	before, err := fx.service.Before(t.Context(), r)
	if err != nil || before.ID != o.Pending || before.State != review.ChangesRequested || before.Comment != "more" {
		t.Errorf("before is %+v, %v", before, err)
	}
	mirrored := r
	mirrored.ID, mirrored.Version, mirrored.Submitter = "3f30e8b6-7d1c-4c0e-9c53-0d9f4a1f2b3d", o.Version, review.Submitter{Key: "mirror:acme"}
	mirrored.Name, err = registry.ParseName("com.example/mirrored")
	must.Succeed(t, err)
	must.Succeed(t, fx.store.Add(t.Context(), mirrored, 10))
	wantFault(t, changes("bea", mirrored.ID, "more"), fault.Conflict, "reject it", "what a mirror brings")
}

// TestCannotBeServed checks approvals of documents that cannot be listed any more. Their reviews
// stay pending.
func TestCannotBeServed(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	const remote = `"remotes":[{"type":"sse","url":"https://one.example/mcp"}]`
	a, b := fx.submit(t, "ada", document(serverName, "1.0.0", remote)),
		fx.submit(t, "ada", document("com.example/b", "1.0.0", remote))
	fx.approve(t, "bea", a.Pending)
	_, err := fx.service.Approve(t.Context(), request("bea"), b.Pending, "")
	wantFault(t, err, fault.Conflict, "https://one.example/mcp", "a remote URL that was taken")
	fx.requireState(t, review.Pending, b.Pending)
	_, err = fx.publish(t, "ada", document("com.example/c", "1.0.0", remote))
	wantFault(t, err, fault.Conflict, "", "a submission with a remote URL that was taken")
	replacement, err := fx.replace(t, "ada", document(serverName, "1.0.0"), "1.0.0")
	must.Succeed(t, err)
	fx.remove(t, "1.0.0")
	_, err = fx.service.Approve(t.Context(), request("bea"), replacement.Pending, "")
	wantFault(t, err, fault.Conflict, "", "a replacement of a deleted version")
}

// TestSuperseded checks that what is pending is replaced by another submission, anyone who makes
// it.
func TestSuperseded(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	first := fx.submit(t, "ada", document(serverName, "1.0.0"))
	second := fx.submit(t, "eve", document(serverName, "1.0.0", `"title":"B"`))
	third, err := fx.replace(t, "ada", document(serverName, "1.0.0", `"title":"C"`), "1.0.0")
	must.Succeed(t, err)
	fx.requireState(t, review.Superseded, first.Pending, second.Pending)
	if r, err := fx.store.Get(t.Context(), third.Pending); err != nil || r.Kind != review.NewServer ||
		r.Submitter.Key != "ada" {
		t.Errorf("the last review is %+v, %v", r, err)
	}
	fx.reject(t, "bea", third.Pending)
	_, err = fx.replace(t, "ada", document(serverName, "1.0.0"), "1.0.0")
	wantFault(t, err, fault.NotFound, "", "Replace after a rejection")
	fx.approve(t, "bea", fx.submit(t, "ada", document(serverName, "1.0.0")).Pending)
	_, err = fx.publish(t, "ada", document(serverName, "1.0.0"))
	wantFault(t, err, fault.Conflict, "", "publishing an approved version")
}

// TestPendingLimit checks that a submitter cannot fill the queue, and that replacing needs no room.
func TestPendingLimit(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	for _, v := range []string{"1.0.0", "2.0.0", "3.0.0", "4.0.0", "5.0.0"} {
		fx.submit(t, "ada", document(serverName, v))
	}
	_, err := fx.publish(t, "ada", document(serverName, "6.0.0"))
	wantFault(t, err, fault.Exhausted, "", "a sixth document")
	fx.submit(t, "ada", document(serverName, "5.0.0", `"title":"B"`))
	fx.submit(t, "eve", document(serverName, "6.0.0"))
}

// TestManyReviewers decides one review by many people at once, while it is replaced. Each decision
// counts once, and nothing unapproved is served.
func TestManyReviewers(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	o := fx.submit(t, "ada", document(serverName, "1.0.0"))
	var done, replaced atomic.Int64
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			decide := fx.service.Approve
			if i%2 == 0 {
				decide = fx.service.Reject
			}
			_, err := decide(t.Context(), request([]string{"bea", "cem"}[i%2]), o.Pending, "x")
			switch {
			case err == nil:
				done.Add(1)
			case !fault.Is(err, fault.Conflict):
				t.Errorf("a decision: %v, want fault.Conflict", err)
			}
		})
	}
	all.Go(func() {
		o, err := fx.publish(t, "eve", document(serverName, "1.0.0", `"title":"B"`))
		if err == nil && o.Pending != "" {
			replaced.Add(1)
		}
	})
	all.Wait()
	r, err := fx.store.Get(t.Context(), o.Pending)
	if err != nil || r.State == review.Pending || done.Load() != 1 && r.State != review.Superseded || done.Load() > 1 {
		t.Fatalf("%d decisions count and the review is %s, %v", done.Load(), r.State, err)
	}
	served, ok := fx.served(t, serverName, "1.0.0")
	if ok != (r.State == review.Approved) || strings.Contains(served, "title") {
		t.Errorf("served is %q after the review is %s", served, r.State)
	}
}

func TestVisible(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	a, b := fx.submit(t, "ada", document(serverName, "1.0.0")), fx.submit(t, "eve", document("com.other/x", "1.0.0"))
	byPolicy := fx.submit(t, "ci", document("com.example/by-policy", "1.0.0"))
	wide := registry.Grant{Holder: "bea", Action: registry.ActionReview, Pattern: newPattern(t, "com.example/*")}
	must.Succeed(t, fx.grants.Remove(t.Context(), registry.GrantRecord{Grant: wide}))
	narrow := registry.Grant{Holder: "bea", Action: registry.ActionReview, Pattern: newPattern(t, serverName)}
	must.Succeed(t, fx.grants.Add(t.Context(), registry.GrantRecord{Grant: narrow}))
	for token, want := range map[string][]registry.ReviewID{
		"bea": {a.Pending, byPolicy.Pending}, "eve": {b.Pending}, "ada": {a.Pending, byPolicy.Pending},
		"cem": {a.Pending}, "zoe": nil,
	} {
		p, err := fx.service.List(t.Context(), request(token), reviewing.Query{})
		var got []registry.ReviewID
		for _, r := range p.Reviews {
			got = append(got, r.ID)
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s sees %v, %v, want %v", token, got, err, want)
		}
	}
	for _, c := range []struct {
		token string
		id    registry.ReviewID
		shown bool
	}{
		{"bea", b.Pending, false}, {"zoe", b.Pending, false},
		{"eve", b.Pending, true}, {"bea", byPolicy.Pending, true}, // their own
		{"eve risky", byPolicy.Pending, false}, {"bea risky", byPolicy.Pending, false},
	} {
		_, err := fx.service.Get(t.Context(), request(c.token), c.id)
		if c.shown && err != nil || !c.shown && !fault.Is(err, fault.Forbidden) {
			t.Errorf("%s gets a review: %v, want it shown: %v", c.token, err, c.shown)
		}
	}
	for _, token := range []string{"eve risky", "bea risky", "ci"} {
		p, err := fx.service.List(t.Context(), request(token), reviewing.Query{})
		if !fault.Is(err, fault.Forbidden) || len(p.Reviews) > 0 {
			t.Errorf("%s lists: %v, %v, want fault.Forbidden", token, p.Reviews, err)
		}
	}
}

// TestSubmitters checks that the account of each submitter of a list is read once.
func TestSubmitters(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	for i := range 4 {
		fx.submit(t, []string{"ada", "eve"}[i%2], document("com.example/s"+strconv.Itoa(i), "1.0.0"))
	}
	found, err := fx.service.List(t.Context(), request("bea"), reviewing.Query{})
	must.Succeed(t, err)
	emails, err := fx.service.Submitters(t.Context(), found.Reviews...)
	if err != nil || len(emails) != 2 || emails["ada"] == "" || emails["ada"] == emails["eve"] || fx.people.emails != 2 {
		t.Errorf("of %d reviews the submitters are %v after %d reads, %v", len(found.Reviews), emails, fx.people.emails, err)
	}
}

func TestPages(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	var want []registry.ReviewID
	for _, v := range []string{"1.0.0", "2.0.0", "3.0.0", "4.0.0", "5.0.0"} {
		want = append(want, fx.submit(t, "ada", document(serverName, v)).Pending)
	}
	var got []registry.ReviewID
	var cursor string
	for q := (reviewing.Query{Limit: "2"}); ; {
		p, err := fx.service.List(t.Context(), request("bea"), q)
		if err != nil || len(p.Reviews) > 2 {
			t.Fatal(len(p.Reviews), err)
		}
		for _, r := range p.Reviews {
			got = append(got, r.ID)
		}
		if q.Cursor = p.NextCursor; q.Cursor == "" {
			break
		}
		cursor = q.Cursor
	}
	if !slices.Equal(got, want) {
		t.Errorf("the pages have %v, want %v", got, want)
	}
	for server, want := range map[string]int{serverName: 5, "com.example/other": 0} {
		p, err := fx.service.List(t.Context(), request("bea"), reviewing.Query{Server: server})
		if err != nil || len(p.Reviews) != want {
			t.Errorf("of the server %s: %d reviews, %v, want %d", server, len(p.Reviews), err, want)
		}
	}
	ofServer, err := fx.service.List(t.Context(), request("bea"), reviewing.Query{Server: serverName, Limit: "2"})
	if err != nil || ofServer.NextCursor == "" {
		t.Fatalf("a first page of a server: %v", err)
	}
	if p, err := fx.service.List(t.Context(), request("bea"), reviewing.Query{
		Cursor: ofServer.NextCursor,
	}); err != nil || len(p.Reviews) != 3 {
		t.Errorf("the second page: %d reviews, %v", len(p.Reviews), err)
	}
	for label, q := range map[string]reviewing.Query{
		"limit":  {Limit: "101"},
		"server": {Server: "no name"},
		"server must be the one that the cursor was made with": {
			Cursor: ofServer.NextCursor, Server: "com.example/other",
		},
		"state":  {State: "new"},
		"cursor": {Cursor: "AAAA"},
		"state must be the one that the cursor was made with": {Cursor: cursor, State: "approved"},
	} {
		if _, err := fx.service.List(t.Context(), request("bea"), q); !fault.Is(err, fault.Invalid) ||
			!strings.Contains(err.Error(), label) {
			t.Errorf("%+v: %v, want fault.Invalid with %q", q, err, label)
		}
	}
	if _, err := fx.service.List(t.Context(), request("bea"), reviewing.Query{
		Cursor: cursor, State: "pending",
	}); err != nil {
		t.Errorf("the state of the cursor: %v", err)
	}
}

// TestRules checks that a rule approves at once, for its publisher and condition only.
func TestRules(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	const remote = `"remotes":[{"type":"sse","url":"https://one.example/mcp"}]`
	const other = `"remotes":[{"type":"sse","url":"https://two.example/mcp"}]`
	submit := func(what, token, body string, pending bool) publishing.Outcome {
		t.Helper()
		o := fx.submit(t, token, body)
		if (o.Pending != "") != pending || o.Latest == pending {
			t.Errorf("%s: %+v, want it pending: %v", what, o, pending)
		}
		return o
	}
	same := fx.addRule(t, reviewing.RuleDraft{Pattern: "com.example/*", When: "same-origins"})
	first := submit("the first version", "ada", document(serverName, "1.0.0", remote), true)
	fx.approve(t, "bea", first.Pending)
	fx.people.acts = nil
	submit("the same origins", "ada", document(serverName, "1.1.0", remote), false)
	if n := len(fx.people.acts); n != 1 || fx.people.acts[0].Action != "publish" || fx.people.acts[0].Rule != same.ID ||
		fx.people.acts[0].Review == "" {
		t.Errorf("the acts are %+v, want the publication with its approval by the rule", fx.people.acts)
	}
	submit("other origins", "ada", document(serverName, "1.2.0", other), true)
	p, err := fx.service.List(t.Context(), authority.Operator(), reviewing.Query{State: "approved"})
	if err != nil || len(p.Reviews) != 2 || p.Reviews[1].Rule != same.ID || p.Reviews[1].DecidedBy != "" ||
		string(p.Reviews[1].Replaces) != document(serverName, "1.0.0", remote) {
		t.Errorf("the approved reviews are %+v, %v", p.Reviews, err)
	}
	fx.addRule(t, reviewing.RuleDraft{Pattern: "*", When: "any", Publisher: "eve"})
	submit("a rule for the publisher", "eve", document("com.other/x", "1.0.0"), false)
	must.Succeed(t, fx.service.RemoveRule(t.Context(), same.ID, nil))
	submit("after the rule was removed", "ada", document(serverName, "1.3.0", remote), true)
	if rules, err := fx.service.Rules(t.Context()); err != nil || len(rules) != 1 || len(fx.people.changes) != 3 {
		t.Errorf("rules are %+v, %v, changes %+v", rules, err, fx.people.changes)
	}
	for field, d := range map[string]reviewing.RuleDraft{
		"pattern": {When: "any"}, "when": {Pattern: "*"},
		"publisher": {Pattern: "*", When: "any", Publisher: strings.Repeat("x", 201)},
	} {
		_, err := fx.service.AddRule(t.Context(), d)
		wantFault(t, err, fault.Invalid, field, "a wrong "+field)
	}
}

// TestSameOriginsOfAnOlderVersion checks that all approved versions count, not only the latest, and
// deleted ones do not.
func TestSameOriginsOfAnOlderVersion(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	remotes := func(hosts ...string) string {
		for i, host := range hosts {
			hosts[i] = `{"type":"sse","url":"https://` + host + `.example/mcp"}`
		}
		return `"remotes":[` + strings.Join(hosts, ",") + `]`
	}
	fx.approve(t, "bea", fx.submit(t, "ada", document(serverName, "1.0.0", remotes("one"))).Pending)
	fx.approve(t, "bea", fx.submit(t, "ada", document(serverName, "2.0.0", remotes("two"))).Pending)
	fx.addRule(t, reviewing.RuleDraft{Pattern: "*", When: "same-origins"})
	if o := fx.submit(t, "ada", document(serverName, "1.0.1", remotes("one"))); o.Pending != "" {
		t.Errorf("the origins of the first version: %+v, want it served", o)
	}
	if o := fx.submit(t, "ada", document(serverName, "3.0.0", remotes("one", "two"))); o.Pending == "" {
		t.Errorf("the origins of two versions together: %+v, want it pending", o)
	}
	fx.remove(t, "2.0.0")
	if o := fx.submit(t, "ada", document(serverName, "2.0.1", remotes("two"))); o.Pending == "" {
		t.Errorf("the origins of a deleted version: %+v, want it pending", o)
	}
}

// TestApproveEach checks that everything pending is approved, but what cannot be served any more.
func TestApproveEach(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	const remote = `"remotes":[{"type":"sse","url":"https://one.example/mcp"}]`
	fx.submit(t, "ada", document(serverName, "1.0.0", remote))
	fx.submit(t, "ada", document("com.example/b", "1.0.0", remote))
	fx.submit(t, "ada", document("com.example/c", "1.0.0"))
	outcomes := map[string]bool{}
	pending, err := fx.service.List(t.Context(), authority.Operator(), reviewing.Query{})
	for _, r := range pending.Reviews {
		_, err := fx.service.Approve(t.Context(), authority.Operator(), r.ID, "all")
		outcomes[r.Name.String()] = err == nil
	}
	if err != nil || len(outcomes) != 3 || !outcomes[serverName] || outcomes["com.example/b"] ||
		!outcomes["com.example/c"] {
		t.Errorf("the outcomes are %v, %v", outcomes, err)
	}
	if r, err := fx.service.List(t.Context(), authority.Operator(), reviewing.Query{
		State: "approved",
	}); err != nil || len(r.Reviews) != 2 || r.Reviews[0].DecidedBy != review.Operator {
		t.Errorf("approved are %+v, %v", r.Reviews, err)
	}
	if _, err := fx.service.Reject(t.Context(), authority.Operator(), "none", "x"); !fault.Is(err, fault.NotFound) {
		t.Errorf("Reject of a missing review: %v, want fault.NotFound", err)
	}
}
