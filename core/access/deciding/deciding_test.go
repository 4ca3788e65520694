package deciding_test

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/access/deciding"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/scope"
	"github.com/tollgate-dev/tollgate/core/toolserver"
	"github.com/tollgate-dev/tollgate/core/trustlevel"
	"github.com/tollgate-dev/tollgate/ports/accessstore"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/transaction"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestReasons checks of whom an explanation says why the trust level is what it is.
func TestReasons(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, deciding.Config{})
	for subject, want := range map[string]int{"person:ada@example.com": 1, "service:robot": 1, "everyone": 0, "anyone": 0} {
		for trust, want := range map[string]int{"": want, "FULL_TRUST": 0} {
			if subject == "service:robot" {
				fx.members["robot"] = fx.members[robot]
			}
			who, q, err := deciding.ParseQuestion(deciding.Draft{Subject: subject, Trust: trust, Server: "com.example/weather", Name: "x"})
			must.Succeed(t, err)
			e, err := fx.Explain(t.Context(), who, q)
			if err != nil || len(e.Reasons) != want {
				t.Errorf("%s at %q: %q, error %v", subject, trust, e.Reasons, err)
			}
		}
	}
}

func setText[T ~string](field *T, text string) { *field = T(text) }

// site is what a service knows the world by.
type site struct {
	revision registrystore.Revision
	hint     uint64
	failure  error
	listings []access.Listing
	members  map[string]access.Subject
	reads    int
	listed   chan struct{} // closed by Page; may be nil

	place   int            // of the last change
	changed map[string]int // the place of the last change of each server
	restart int            // of the database
	named   []string       // names that were read one by one
	pages   int
	broken  string       // a name that cannot be read
	during  func() error // called by Changed, once
	torn    bool         // pages cannot be read
	bounded bool         // a read of servers was bound by the time of a call

	calls     []string // that were stored
	callsAway bool     // they cannot be stored
}

// change makes listings what they are now, in place of those with their names.
func (s *site) change(all ...access.Listing) {
	for _, l := range all {
		s.listings = slices.DeleteFunc(s.listings, func(old access.Listing) bool { return old.Name == l.Name })
		if !l.Deleted || len(l.Withdrawn) > 0 {
			s.listings = append(s.listings, l)
		}
		if s.changed == nil {
			s.changed = map[string]int{}
		}
		s.place++
		s.changed[l.Name.String()] = s.place
	}
	s.revision.Changes++
}

func (s *site) Revision(context.Context) (registrystore.Revision, error) {
	s.reads++
	return s.revision, s.failure
}
func (*site) ValidFor() time.Duration                  { return time.Second }
func (*site) AwayAfter() time.Duration                 { return time.Minute }
func (s *site) Hint() uint64                           { return s.hint }
func (*site) Removals(uint64) ([]string, uint64, bool) { return nil, 0, false }

// servers are the servers of a site.
type servers struct{ *site }

func (servers) Snapshot(ctx context.Context, do func(context.Context) error) error { return do(ctx) }

func (s servers) Changed(ctx context.Context, after string) (c accessstore.Changes, err error) {
	deadline, _ := ctx.Deadline()
	s.bounded = s.bounded || !transaction.IsLong(ctx) || time.Until(deadline) < time.Minute
	c.Position = fmt.Sprintf("%d %d", s.restart, s.place)
	var restart, place int
	if _, err := fmt.Sscan(after, &restart, &place); err == nil {
		c.Known = restart == s.restart
		c.Names = slices.DeleteFunc(slices.Sorted(maps.Keys(s.changed)), func(name string) bool { return s.changed[name] <= place })
		slices.SortStableFunc(c.Names, func(a, b string) int { return strings.Compare(s.standing(a), s.standing(b)) })
	}
	if s.during != nil {
		during := s.during
		s.during = nil
		if err := during(); err != nil {
			return c, err
		}
	}
	return c, s.failure
}

// standing orders what is denied before the rest.
func (s *site) standing(name string) string {
	if l := s.listing(name); l.Deleted || l.Quarantined {
		return "denied"
	}
	return "listed"
}

func (s *site) listing(name string) access.Listing {
	if i := slices.IndexFunc(s.listings, func(l access.Listing) bool { return l.Name.String() == name }); i >= 0 {
		return s.listings[i]
	}
	n, _ := toolserver.ParseName(name)
	return access.Listing{Name: n, Deleted: true}
}

func (s servers) Named(_ context.Context, names []string) (all []access.Listing, err error) {
	for _, name := range names {
		s.named = append(s.named, name)
		all = append(all, s.listing(name))
		if name == s.broken {
			return nil, fault.New(fault.Unavailable, "it cannot be read")
		}
	}
	return all, s.failure
}

func (s servers) AddCalls(_ context.Context, day int64, all []accessstore.Calls) error {
	if s.callsAway {
		return fault.New(fault.Unavailable, "the database is away")
	}
	for _, one := range all {
		s.calls = append(s.calls, fmt.Sprintf("%d %s %d %d", day, one.Server, one.All, one.Denied))
	}
	return nil
}

func (servers) CallsOf(_ context.Context, server string, from int64) (accessstore.Calls, error) {
	return accessstore.Calls{Server: server, All: from}, nil
}

// Page returns one server.
func (s servers) Page(_ context.Context, after string) (page []access.Listing, next string, err error) {
	if s.listed != nil && s.pages == 0 {
		close(s.listed)
	}
	if s.pages++; s.torn {
		return nil, "", fault.New(fault.Unavailable, "pages cannot be read")
	}
	slices.SortFunc(s.listings, func(a, b access.Listing) int { return strings.Compare(a.Name.String(), b.Name.String()) })
	for _, l := range s.listings {
		if name := l.Name.String(); name > after {
			return []access.Listing{l}, name, s.failure
		}
	}
	return nil, "", s.failure
}

func (s *site) Find(_ context.Context, holder string) (access.Subject, error) {
	if s.failure != nil {
		return access.Subject{}, s.failure
	}
	found, ok := s.members[holder]
	if !ok {
		return found, fault.New(fault.NotFound, "no such member")
	}
	return found, nil
}

func (s *site) FindLinked(ctx context.Context, issuer, subject string) (access.Subject, error) {
	return s.Find(ctx, issuer+" "+subject)
}

func (*site) Reasons(context.Context, access.Selector) ([]string, error) {
	return []string{"The reason."}, nil
}

func (s *site) FindNamed(ctx context.Context, who access.Selector) (access.Subject, error) {
	found, err := s.Find(ctx, who.Value)
	return found.WithTrust(trustlevel.LimitedTrust), err
}

const robot = "service:robot"

type fixture struct {
	*deciding.Service
	*site

	t        testing.TB
	rules    *fakedb.Kind[access.RuleName, access.Rule]
	clock    *clocktest.Manual
	counted  []access.Decision
	tools    []access.Seen
	logged   []deciding.Answer
	recorded []audit.Change
	refuses  error // what RecordChanges returns
	stores   bool  // RecordChanges has stored the events all the same
	reports  []any
	seen     int
}

func newFixture(t testing.TB, c deciding.Config) *fixture {
	t.Helper()
	name, err := toolserver.ParseName("com.example/weather")
	must.Succeed(t, err)
	c.StaleMax = cmp.Or(c.StaleMax, 5*time.Minute)
	fx := &fixture{t: t, clock: clocktest.NewManual(time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC))}
	fx.site = &site{
		listings: []access.Listing{{Name: name, Remotes: []string{"https://tools.example.com/mcp"}}},
		members:  map[string]access.Subject{},
	}
	for holder, m := range map[string]access.Member{
		robot: {Kind: access.Service, ID: "robot"}, "p1": {Kind: access.Person, ID: "ada@example.com"},
		"ada@example.com": {Kind: access.Person, ID: "ada@example.com"},
	} {
		fx.members[holder] = access.NewSubject(m)
	}
	fx.rules = fakedb.NewAccessRules(fakedb.New())
	fx.Service = fx.newInstance(c)
	return fx
}

// newInstance returns a service that shares the database with others.
func (fx *fixture) newInstance(c deciding.Config) *deciding.Service { return fx.newWaiting(c, fx) }

func (fx *fixture) newWaiting(c deciding.Config, w clock.Waiter) *deciding.Service {
	return deciding.New(c, deciding.Ports{
		Rules: fx.rules, Servers: servers{fx.site}, Members: fx.site, Changes: fx.site, Clock: fx.clock,
		Recorder: fx, Reporter: fx, Waiter: w, Entropy: &entropy{},
		Count:     func(d access.Decision) { fx.counted = append(fx.counted, d) },
		CountTool: func(s access.Seen) { fx.tools = append(fx.tools, s) },
		Log:       func(_ context.Context, _ *deciding.Question, a *deciding.Answer) { fx.logged = append(fx.logged, *a) },
		Resources: func(_ context.Context, url string) (access.Resource, error) {
			if strings.Contains(url, "unknown") {
				return access.Resource{}, fault.New(fault.NotFound, "there is no such resource")
			}
			return access.Resource{URL: url}, nil
		},
	})
}

// quarantine puts the first server into quarantine.
func (fx *fixture) quarantine() {
	l := fx.listings[0]
	l.Quarantined = true
	fx.change(l)
}

// set stores a rule and changes the revision.
func (fx *fixture) set(fields audit.Details) {
	fx.t.Helper()
	fields["order"], fields["servers"] = audit.Number(1), audit.Texts([]string{"com.example/*"})
	r, err := access.ParseRule(fields)
	if err == nil {
		err = fx.rules.Save(fx.t.Context(), r)
	}
	must.Succeed(fx.t, err)
	fx.revision.Access++
	fx.hint++
}

// allow stores a rule that allows calls to a subject, with more fields.
func (fx *fixture) allow(name, subject string, more audit.Details) {
	fx.t.Helper()
	fields := audit.Details{
		"name": audit.Text(name), "effect": audit.Text("allow"), "subjects": audit.Texts([]string{subject}),
	}
	maps.Copy(fields, more)
	fx.set(fields)
}

// RecordChanges stores each event once, as the audit log does.
func (fx *fixture) RecordChanges(_ context.Context, changes ...audit.Change) error {
	if fx.refuses != nil && !fx.stores {
		return fx.refuses
	}
	for _, c := range changes {
		if slices.ContainsFunc(fx.recorded, func(r audit.Change) bool { return r.ID == c.ID }) {
			return fault.New(fault.Conflict, "stored already")
		}
	}
	fx.recorded = append(fx.recorded, changes...)
	if fx.refuses != nil {
		fx.stores = false
	}
	return fx.refuses
}

func (fx *fixture) Report(e any) { fx.reports = append(fx.reports, e) }

// entropy returns other bytes each time.
type entropy struct{ last uint64 }

func (e *entropy) Fill(p []byte) {
	e.last++
	binary.BigEndian.PutUint64(p, e.last)
}

// Wait waits for the end of the context.
func (*fixture) Wait(ctx context.Context, _ time.Duration) bool {
	<-ctx.Done()
	return false
}

func (fx *fixture) answer(q deciding.Question) deciding.Answer {
	fx.t.Helper()
	a, err := fx.Decide(fx.t.Context(), q)
	must.Succeed(fx.t, err)
	return a
}

// wantEvents checks the details of the events since the last call, in their order.
func (fx *fixture) wantEvents(want ...string) {
	fx.t.Helper()
	var got []string
	for _, c := range fx.recorded[fx.seen:] {
		text, err := json.Marshal(c.Details)
		if err != nil || c.Category != audit.AccessDecision || c.Subject != "" {
			fx.t.Errorf("%+v, error %v", c, err)
		}
		got = append(got, string(text))
	}
	fx.seen = len(fx.recorded)
	if !slices.Equal(got, want) {
		fx.t.Errorf("the events are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func question(who authority.Caller) deciding.Question {
	return deciding.Question{Caller: who, Server: "com.example/weather", Call: access.NewCall("tools/call", "forecast")}
}

func tokenOf(holder string) authority.Caller {
	var token authority.Token
	setText(&token.Owner, holder)
	return authority.NewToken(token, netip.Addr{})
}

func (fx *fixture) want(q deciding.Question, effect access.Effect, reason access.Reason) {
	fx.t.Helper()
	d, err := fx.Decide(fx.t.Context(), q)
	if err != nil || d.Effect != effect || d.Reason != reason {
		fx.t.Errorf("got %+v and the error %v, want %s by %s", d, err, effect, reason)
	}
}

// TestSubjects decides for each kind of caller.
func TestSubjects(t *testing.T) {
	fx := newFixture(t, deciding.Config{})
	fx.allow("robots", robot, audit.Details{"minTrust": audit.Text("FULL_TRUST")})
	fx.allow("ada", "person:ada@example.com", audit.Details{"minTrust": audit.Text("LIMITED_TRUST")})
	person := func(level authority.TrustLevel) authority.Caller {
		return authority.NewPerson(authority.Person{UserID: "p1", Trust: authority.Trust{Level: level}}, netip.Addr{})
	}
	fx.want(question(tokenOf(robot)), access.Allow, access.ByRule)
	fx.want(question(person("LIMITED_TRUST")), access.Allow, access.ByRule)
	fx.want(question(person("UNVERIFIED")), access.Challenge, access.InsufficientTrust)
	fx.want(question(tokenOf("unknown")), access.Challenge, access.InvalidToken)
	fx.want(question(authority.NewPublisher(authority.Publisher{}, netip.Addr{})), access.Challenge, access.InvalidToken)
	fx.want(question(authority.Caller{}), access.Challenge, access.ByDefault)
	bad := question(authority.Caller{})
	bad.Refusal = fault.New(fault.Unauthenticated, "bad")
	fx.want(bad, access.Challenge, access.InvalidToken)
	unlisted := question(tokenOf(robot))
	unlisted.Server = "com.example/other"
	fx.want(unlisted, access.Deny, access.NotListed)
}

// TestForeignSubjects decides for owners of access tokens of a company: a person, whom rules find as one,
// and a stranger with groups.
func TestForeignSubjects(t *testing.T) {
	fx := newFixture(t, deciding.Config{})
	allow := func(name, subject, trust string) {
		fx.allow(name, subject, audit.Details{"minTrust": audit.Text(trust)})
	}
	allow("ada", "person:ada@example.com", "UNVERIFIED")
	allow("devs", "group:acme/devs/x", "UNVERIFIED")
	allow("trusted", "group:acme/trusted", "LIMITED_TRUST")
	foreign := func(holder string, groups ...string) deciding.Question {
		f := authority.Foreign{Issuer: "https://login.acme.example", Subject: "u1", Holder: holder, Groups: groups}
		return question(authority.NewForeign(&f, netip.Addr{}))
	}
	for range 2 {
		fx.want(foreign("p1"), access.Allow, access.ByRule)
		fx.want(foreign("p1", "acme/trusted"), access.Allow, access.ByRule) // as the person, by the stored groups
		fx.want(foreign("gone"), access.Challenge, access.InvalidToken)
		fx.want(foreign(""), access.Deny, access.ByDefault)
		fx.want(foreign("", "acme/ops", "acme/devs/x"), access.Allow, access.ByRule)
		fx.want(foreign("", "acme/devs"), access.Deny, access.ByDefault)
		fx.want(foreign("", "acme/trusted"), access.Challenge, access.InsufficientTrust)
	}
	allow("all", "everyone", "UNVERIFIED")
	q := foreign("")
	fx.want(q, access.Allow, access.ByRule)
	for range 10_000 { // more than are kept
		if d, err := fx.Decide(t.Context(), foreign("", "acme/other")); err != nil || d.Effect != access.Allow {
			t.Fatal(d, err)
		}
	}
	fx.want(q, access.Allow, access.ByRule)
}

// TestDenied looks at several calls at once, which is no decision about them.
func TestDenied(t *testing.T) {
	fx := newFixture(t, deciding.Config{})
	fx.set(audit.Details{
		"name": audit.Text("robots"), "effect": audit.Text("allow"), "subjects": audit.Texts([]string{robot}),
		"tools": audit.Texts([]string{"forecast"}),
	})
	calls := []access.Call{access.NewCall("tools/call", "forecast"), access.NewCall("tools/call", "delete")}
	for who, want := range map[string][]bool{robot: {false, true}, "": {false, false}} {
		q := question(authority.Caller{})
		if who != "" {
			q = question(tokenOf(who))
		}
		if got, err := fx.Denied(t.Context(), q, calls); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, error %v, want %v", who, got, err, want)
		}
	}
	fx.failure = fault.New(fault.Unavailable, "away")
	if _, err := fx.Denied(t.Context(), question(tokenOf("p1")), calls); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a caller who is not in memory: error %v", err)
	}
}

// TestFresh changes a rule and the listing, which hold at the next decision, and reads nothing while
// nothing changes.
func TestFresh(t *testing.T) {
	fx := newFixture(t, deciding.Config{})
	fx.want(question(tokenOf(robot)), access.Deny, access.ByDefault)
	before := fx.reads
	for range 10 {
		fx.want(question(tokenOf(robot)), access.Deny, access.ByDefault)
	}
	if fx.reads != before {
		t.Errorf("%d reads while nothing changed", fx.reads-before)
	}
	fx.allow("robots", robot, nil)
	fx.want(question(tokenOf(robot)), access.Allow, access.ByRule)
	fx.quarantine()
	fx.clock.Advance(time.Second) // another instance: no hint
	fx.want(question(tokenOf(robot)), access.Deny, access.Quarantined)
}

// TestAway decides without the database: what is in memory stays, and what is not is unavailable.
func TestAway(t *testing.T) {
	away := fault.New(fault.Unavailable, "away")
	for _, allows := range []bool{false, true} {
		fx := newFixture(t, deciding.Config{AwayAllows: allows})
		fx.failure = away
		d, err := fx.Decide(t.Context(), question(authority.Caller{}))
		if allows != (err == nil && d.Reason == access.Away && d.Effect == access.Allow) || !allows && !errors.Is(err, away) {
			t.Errorf("before the first read: %+v, error %v", d, err)
		}
		fx.failure = nil
		await.Until(t, "the first decision", func() bool {
			d, err := fx.Decide(t.Context(), question(authority.Caller{}))
			return err == nil && d.Reason == access.ByDefault
		})
		fx.failure = away
		fx.clock.Advance(5 * time.Minute)
		fx.want(question(authority.Caller{}), access.Challenge, access.ByDefault)
		_, err = fx.Decide(t.Context(), question(tokenOf(robot)))
		if (err == nil) != allows {
			t.Errorf("a caller who is not in memory: error %v", err)
		}
	}
}

// TestRecorded: denials are counted, and are events: the first of a kind at once, others a minute
// later, in one.
func TestRecorded(t *testing.T) {
	fx := newFixture(t, deciding.Config{LogsAll: true})
	forecast := question(tokenOf(robot))
	first := fx.answer(forecast)
	fx.Record(false)
	fx.wantEvents(`{"actor":"service:robot","effect":"deny","method":"tools/call","reason":"default","serverName":"com.example/weather","tool":"forecast"}`)
	if first.ID == "" || fx.recorded[0].ID != first.ID || !fx.recorded[0].Failed {
		t.Errorf("the decision %s is the event %+v", first.ID, fx.recorded[0])
	}
	second := fx.answer(forecast)
	fx.quarantine()
	fx.hint++
	third := fx.answer(forecast)
	fx.Record(false)
	fx.wantEvents()
	fx.clock.Advance(time.Minute)
	fx.Record(false)
	fx.wantEvents() // another instance may write first
	fx.clock.Advance(3 * time.Second)
	fx.Record(false)
	fx.wantEvents(`{"actor":"service:robot","count":2,"effect":"deny","firstAt":"2026-11-27T12:00:00Z","method":"tools/call",` +
		`"otherReasons":["quarantined"],"reason":"default","serverName":"com.example/weather","tool":"forecast"}`)
	if second.ID != third.ID || second.ID == first.ID || fx.recorded[1].ID != second.ID {
		t.Errorf("the decisions are %s, %s and %s", first.ID, second.ID, third.ID)
	}
	other := forecast
	other.Server, other.From = "", netip.MustParseAddr("192.0.2.7")
	other.Address = access.Address{Scheme: "https", Host: "x.example", Path: "/secret"}
	other.Caller = authority.NewPerson(authority.Person{UserID: "p1"}, netip.Addr{})
	fx.answer(other)
	fx.Record(true)
	fx.wantEvents(`{"actor":"person:p1","effect":"deny","host":"x.example","ipAddress":"192.0.2.7","method":"tools/call","reason":"not_listed","tool":"forecast"}`)
	fx.Record(true)
	fx.wantEvents()
	if len(fx.counted) != 4 || len(fx.logged) != 4 || fx.logged[3].Reason != access.NotListed {
		t.Errorf("counted: %+v, logged: %+v", fx.counted, fx.logged)
	}
}

// TestRecordedByInstances: two instances that deny the same calls write one event a minute together, in
// which all denials are counted, and each decision has an id that leads to an event.
func TestRecordedByInstances(t *testing.T) {
	fx := newFixture(t, deciding.Config{})
	other := fx.newInstance(deciding.Config{})
	const minutes = 6
	denied, ids := 0, map[audit.EventID]bool{}
	for range minutes {
		for second := range 60 {
			for _, s := range []*deciding.Service{fx.Service, other} {
				if second%20 == 7 {
					a, err := s.Decide(t.Context(), question(tokenOf(robot)))
					must.Succeed(t, err)
					denied++
					ids[a.ID] = true
				}
				s.Record(false)
			}
			fx.clock.Advance(time.Second)
		}
	}
	if len(fx.recorded) > minutes {
		t.Errorf("%d events in %d minutes", len(fx.recorded), minutes)
	}
	for range 3 {
		fx.Record(true)
		other.Record(true)
	}
	counted := 0
	for _, c := range fx.recorded {
		counted += max(c.Details.Int("count"), 1)
		delete(ids, c.ID)
	}
	if counted != denied || len(ids) > 0 || len(fx.reports) > 0 {
		t.Errorf("%d of %d denials are counted, and %d ids have no event; reported %+v", counted, denied, len(ids), fx.reports)
	}
}

// TestRecordedWithBounds: no caller fills the memory or the audit log with names of tools.
func TestRecordedWithBounds(t *testing.T) {
	fx := newFixture(t, deciding.Config{})
	for i := range 2000 {
		q := question(tokenOf(robot))
		q.Call = access.NewCall("tools/call", strconv.Itoa(i)+strings.Repeat("ä", 1<<10))
		fx.answer(q)
	}
	fx.Record(false)
	events, rest := 0, 0.0
	for _, c := range fx.recorded {
		events++
		if n, ok := c.Details["count"].(audit.Number); ok && c.Details["others"] != nil {
			rest = float64(n)
		}
		if len(c.Details.Text("tool")) > 210 {
			t.Fatalf("an event has the tool %s", c.Details.Text("tool"))
		}
	}
	if events != 101 || rest != 1900 {
		t.Errorf("%d events, one of %v denials", events, rest)
	}
}

// TestRecordedAmongOthers: whatever others do, there is an event of the denial of a person that names them,
// and the tool and the server as long as there is room for them.
func TestRecordedAmongOthers(t *testing.T) {
	t.Parallel()
	call := func(fx *fixture, holder, server, tool string) deciding.Answer {
		q := question(authority.Caller{})
		if holder != "" {
			fx.members[holder] = access.NewSubject(access.Member{Kind: access.Service, ID: holder})
			q = question(tokenOf(holder))
		}
		q.Server, q.Call = server, access.NewCall("tools/call", tool)
		return fx.answer(q)
	}
	for name, c := range map[string]struct {
		noise func(fx *fixture, i int)
		most  int    // events of all of it
		want  string // the event
	}{
		"strangers with names of tools": {
			func(fx *fixture, i int) { call(fx, "", "com.example/weather", fmt.Sprint("t", i)) }, 2,
			`{"actor":"service:ada","effect":"deny","method":"tools/call","reason":"default","serverName":"com.example/weather","tool":"secret"}`,
		},
		"strangers with names of servers": {
			func(fx *fixture, i int) { call(fx, "", fmt.Sprint("com.example/s", i), "t") }, 202,
			`{"actor":"service:ada","effect":"deny","method":"tools/call","reason":"default","serverName":"com.example/weather","tool":"secret"}`,
		},
		"another service account": {
			func(fx *fixture, i int) { call(fx, "mallory", fmt.Sprint("com.example/s", i), fmt.Sprint("t", i)) }, 202,
			`{"actor":"service:ada","effect":"deny","method":"tools/call","reason":"default","serverName":"com.example/weather","tool":"secret"}`,
		},
		"many service accounts": {
			func(fx *fixture, i int) { call(fx, fmt.Sprint("m", i%10), "com.example/weather", fmt.Sprint("t", i)) }, 511,
			`{"actor":"service:ada","effect":"deny","others":true,"reason":"default","serverName":"com.example/weather"}`,
		},
		"the account itself": {
			func(fx *fixture, i int) { call(fx, "ada", "com.example/other", fmt.Sprint("t", i)) }, 102,
			`{"actor":"service:ada","effect":"deny","others":true,"reason":"default","serverName":"com.example/weather"}`,
		},
		"more accounts than there is room for": {
			func(fx *fixture, i int) { call(fx, fmt.Sprint("m", i), "com.example/weather", "t") }, 1502,
			`{"count":502,"effect":"deny","firstAt":"2026-11-27T12:00:00Z","others":true,"reason":"default"}`,
		},
	} {
		fx := newFixture(t, deciding.Config{})
		for i := range 2001 {
			c.noise(fx, i)
		}
		a := call(fx, "ada", "com.example/weather", "secret")
		fx.Record(true)
		i := slices.IndexFunc(fx.recorded, func(r audit.Change) bool { return r.ID == a.ID })
		if i < 0 {
			t.Errorf("%s: the decision has no event", name)
			continue
		}
		text, err := json.Marshal(fx.recorded[i].Details)
		must.Succeed(t, err)
		if string(text) != c.want || len(fx.recorded) > c.most {
			t.Errorf("%s: %d events, one is %s, want %s", name, len(fx.recorded), text, c.want)
		}
		fx.clock.Advance(2 * time.Minute)
		fx.Record(true) // forgets the kinds of the minute, and with them the shares
		if again := call(fx, "ada", "com.example/weather", "secret"); again.ID == a.ID {
			t.Errorf("%s: a later decision has the same event", name)
		}
		fx.Record(true)
		if last := fx.recorded[len(fx.recorded)-1].Details; last.Text("tool") != "secret" {
			t.Errorf("%s: after the minute, the event is %v", name, last)
		}
	}
}

// TestRecordedLater: what cannot be written is written later, once.
func TestRecordedLater(t *testing.T) {
	fx := newFixture(t, deciding.Config{})
	fx.refuses, fx.stores = fault.New(fault.Unavailable, "away"), true
	fx.answer(question(tokenOf(robot)))
	fx.Record(false)
	stored := fx.recorded
	fx.Record(false)
	fx.refuses = nil
	fx.answer(question(authority.Caller{}))
	fx.Record(false)
	if len(stored) != 1 || len(fx.recorded) != 1 || len(fx.reports) != 1 {
		t.Errorf("stored %+v and %+v, reported %+v", stored, fx.recorded, fx.reports)
	}
	fx.Record(true)
	if len(fx.recorded) != 2 || fx.recorded[1].Details.Text("effect") != "challenge" {
		t.Errorf("stored at the end: %+v", fx.recorded)
	}
}

// TestRecordedWhenItEnds: Run writes what is left.
func TestRecordedWhenItEnds(t *testing.T) {
	fx := newFixture(t, deciding.Config{})
	fx.answer(question(authority.Caller{}))
	ctx, end := context.WithCancel(t.Context())
	end()
	fx.Run(ctx)
	if len(fx.recorded) != 1 {
		t.Errorf("%d events", len(fx.recorded))
	}
}

// TestReadAtStart checks that rules and listings are read before anybody needs them.
func TestReadAtStart(t *testing.T) {
	fx := newFixture(t, deciding.Config{})
	fx.listed = make(chan struct{})
	ctx, end := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { fx.Follow(ctx) })
	<-fx.listed
	end()
	running.Wait()
}

// TestExplain explains what Decide decides, for subjects that are named.
func TestExplain(t *testing.T) {
	fx := newFixture(t, deciding.Config{})
	fx.allow("ada", "person:ada@example.com", nil)
	explain := func(d deciding.Draft) (access.Explanation, error) {
		who, q, err := deciding.ParseQuestion(d)
		if err != nil {
			return access.Explanation{}, err
		}
		return fx.Explain(t.Context(), who, q)
	}
	e, err := explain(deciding.Draft{Subject: "person:ada@example.com", URL: "https://tools.example.com/mcp/x", Name: "forecast"})
	if err != nil || e.Effect != access.Allow || e.Rule != "ada" || e.Listing != access.Listed ||
		e.Trust != trustlevel.LimitedTrust || e.Server != "com.example/weather" {
		t.Errorf("got %+v, error %v", e, err)
	}
	e, err = explain(deciding.Draft{Subject: "everyone", Server: "com.example/weather"})
	if err != nil || e.Effect != access.Deny || len(e.Steps) != 1 || e.Steps[0].Failed != access.OnSubject {
		t.Errorf("got %+v, error %v", e, err)
	}
	fx.allow("devs", "group:acme/devs", nil)
	for group, want := range map[string]access.Effect{"acme/devs": access.Allow, "acme/others": access.Deny} {
		if e, err := explain(deciding.Draft{Subject: "group:" + group, Server: "com.example/weather", Name: "forecast"}); err != nil || e.Effect != want {
			t.Errorf("a member of %s: %s, %v", group, e.Effect, err)
		}
	}
	for field, d := range map[string]deciding.Draft{
		"subject": {Subject: "grant:publish", Server: "com.example/weather"}, "trust": {Subject: "anyone", Trust: "x", Server: "x"},
		"server": {Subject: "anyone"}, "url": {Subject: "anyone", URL: "x"}, "address": {Subject: "anyone", Server: "x", Address: "x"},
	} {
		_, err := explain(d)
		if f, ok := fault.As(err); !ok || f.Field != field {
			t.Errorf("%+v: error %v, want one about %s", d, err, field)
		}
	}
	if _, err := explain(deciding.Draft{Subject: "person:no@example.com", Server: "x"}); !fault.Is(err, fault.Invalid) {
		t.Errorf("an unknown person: %v", err)
	}
}

// TestRulesForPeople lists the rules as they are now, those about a subject and a server, and says which
// one must not go.
func TestRulesForPeople(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, deciding.Config{Options: access.Options{Unlisted: access.Allow}})
	list := func(q deciding.RuleQuery) deciding.RulePage {
		t.Helper()
		q.Limit = 10
		page, err := fx.Rules(t.Context(), q)
		must.Succeed(t, err)
		return page
	}
	if page := list(deciding.RuleQuery{}); page.Total != 0 || page.Options.Unlisted != access.Allow {
		t.Errorf("without rules: %+v", page)
	}
	fx.allow("robot", "service:robot", nil)
	fx.hint-- // no hint: a list waits for no second
	page := list(deciding.RuleQuery{})
	if page.Total != 1 || !page.Rules[0].LocksOut || page.Rules[0].Ended {
		t.Errorf("the only rule: %+v", page)
	}
	fx.allow("ended", "everyone", audit.Details{"expiresAt": audit.Text("2026-11-27T11:00:00Z")})
	fx.hint--
	if page := list(deciding.RuleQuery{}); page.Total != 2 || !page.Rules[0].Ended || !page.Rules[1].LocksOut {
		t.Errorf("with one that has ended: %+v", page)
	}
	if page := list(deciding.RuleQuery{Subject: "person:ada@example.com", Server: "com.example/weather"}); page.Total != 1 || page.Rules[0].Name != "ended" {
		t.Errorf("those of a person: %+v", page)
	}
	if page := list(deciding.RuleQuery{Server: "org.example/x"}); page.Total != 0 {
		t.Errorf("those of another server: %+v", page)
	}
	for _, q := range []deciding.RuleQuery{{Server: "x"}, {Subject: "x"}, {Subject: "person:none@example.com"}, {Subject: "grant:publish"}} {
		if _, err := fx.Rules(t.Context(), q); !fault.Is(err, fault.Invalid) {
			t.Errorf("%+v: %v", q, err)
		}
	}
	stop, err := access.ParseRule(audit.Details{
		"name": audit.Text("robot"), "order": audit.Number(1), "effect": audit.Text("deny"), "subjects": audit.Texts([]string{"anyone"}),
		"servers": audit.Texts([]string{"*"}),
	})
	must.Succeed(t, err)
	if err := fx.CheckLockout(t.Context(), &stop); !fault.Is(err, fault.Invalid) {
		t.Errorf("a rule that denies all in place of the one that allows: %v", err)
	}
	stop.Name, stop.Order = "last", 2
	if err := fx.CheckLockout(t.Context(), &stop); err != nil {
		t.Errorf("a rule that denies all after one that allows: %v", err)
	}
}

// TestPermit checks who may ask what others may do.
func TestPermit(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, deciding.Config{})
	fx.members["operator"] = access.NewSubject(access.Member{
		Kind: access.Service, ID: "proxy", Grants: []access.Grant{{Action: toolserver.ActionOperate}},
	})
	fx.members["reviewer"] = access.NewSubject(access.Member{
		Kind: access.Service, ID: "proxy", Grants: []access.Grant{{Action: toolserver.ActionReview}},
	})
	for name, c := range map[string]struct {
		owner  string
		scopes scope.Set
		want   bool
	}{
		"an operator":           {"operator", scope.Set{scope.Decide}, true},
		"without the scope":     {"operator", scope.Set{scope.Admin}, false},
		"another grant":         {"reviewer", scope.Set{scope.Decide}, false},
		"somebody who has left": {"p9", scope.Set{scope.Decide}, false},
	} {
		who := authority.NewToken(authority.Token{Owner: registry.Holder(c.owner), Scopes: c.scopes}, netip.Addr{})
		if err := fx.Permit(t.Context(), who); (err == nil) != c.want || err != nil && !fault.Is(err, fault.Forbidden) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if err := fx.Permit(t.Context(), authority.Caller{}); !fault.Is(err, fault.Forbidden) {
		t.Errorf("without a token: error %v", err)
	}
	fx.failure = fault.New(fault.Unavailable, "away")
	who := authority.NewToken(authority.Token{Owner: "operator", Scopes: scope.Set{scope.Decide}}, netip.Addr{})
	if err := fx.Permit(t.Context(), who); !fault.Is(err, fault.Unavailable) {
		t.Errorf("while the database is away: error %v", err)
	}
}

// TestNamedTokens checks who a token of a company provider is that a question names.
func TestNamedTokens(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, deciding.Config{})
	fx.members["https://login.example.com u1"] = fx.members["p1"]
	fx.members["https://login.example.com u2"] = access.Refused()
	for id, want := range map[string]string{
		"https://login.example.com u1": "person:ada@example.com", "https://login.example.com u2": "", "https://login.example.com u3": "jwt:https://login.example.com u3",
	} {
		s, err := fx.Named(t.Context(), "jwt", id)
		if err != nil || s.String() != want || s.Trust() != trustlevel.Unverified {
			t.Errorf("%s: %s at %s, error %v", id, s.String(), s.Trust(), err)
		}
	}
}

// BenchmarkDecide decides a call by what is in memory; the rules are measured in package access.
func BenchmarkDecide(b *testing.B) {
	fx := newFixture(b, deciding.Config{})
	fx.allow("robot", "service:robot", nil)
	fx.clock.Advance(time.Second)
	q := deciding.Question{
		Caller:  authority.NewToken(authority.Token{Owner: robot}, netip.Addr{}),
		Address: access.Address{Scheme: "https", Host: "tools.example.com", Path: "/mcp"}, Call: access.NewCall("tools/call", "forecast"),
	}
	if a, err := fx.Decide(b.Context(), q); err != nil || a.Effect != access.Allow {
		b.Fatal(a, err)
	}
	b.ReportAllocs()
	for b.Loop() {
		fx.counted = fx.counted[:0]
		if _, err := fx.Decide(b.Context(), q); err != nil {
			b.Fatal(err)
		}
	}
}

// TestAsked: a page of rules says whether anybody obeys them.
func TestAsked(t *testing.T) {
	fx := newFixture(t, deciding.Config{On: true})
	read := func() deciding.RulePage {
		page, err := fx.Rules(t.Context(), deciding.RuleQuery{})
		must.Succeed(t, err)
		return page
	}
	if got := read(); !got.On || got.Asked != (deciding.Asked{}) {
		t.Errorf("at first: %+v", got)
	}
	fx.want(question(authority.Caller{}), access.Challenge, access.ByDefault)
	fx.want(question(authority.Caller{}), access.Challenge, access.ByDefault)
	if got := read().Asked; got.Calls != 2 || !got.Last.Equal(fx.clock.Now()) {
		t.Errorf("after two calls: %+v", got)
	}
}
