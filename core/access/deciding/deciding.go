// Package deciding answers whether a call of a server may be forwarded (contract Z-1). It finds out
// who calls, and decides by rules and listings that it keeps in memory. It is the entry point for
// questions on behalf of a proxy; what an answer means to a proxy, its adapter knows.
package deciding

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/scope"
	"github.com/tollgate-dev/tollgate/core/trustlevel"
	"github.com/tollgate-dev/tollgate/ports/accessstore"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/management"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/report"
	"github.com/tollgate-dev/tollgate/ports/secrets"
)

// Config holds the settings of decisions.
type Config struct {
	access.Options

	// On is true if proxies may ask: else the rules decide nothing.
	On bool
	// AwayAllows allows calls whose caller is not in memory while the database is away, and all calls
	// while rules and listings are too old.
	AwayAllows bool
	// StaleMax is how old rules and listings may be by which calls are decided while they cannot be read.
	StaleMax time.Duration
	// LogsAll logs every decision.
	LogsAll bool
}

// Validate returns an error that begins with the name of a field that is out of range.
func (c Config) Validate() error {
	if c.StaleMax < time.Second || c.StaleMax > 30*24*time.Hour {
		return fmt.Errorf("StaleMax: %v is not in the range 1s to 720h", c.StaleMax)
	}
	return nil
}

// Count counts a decision. It is called in parallel.
type Count func(d access.Decision)

// CountTool counts a tool in a list that passes. It is called in parallel.
type CountTool func(access.Seen)

// Log logs a decision. It is called in parallel.
type Log func(ctx context.Context, q *Question, a *Answer)

// Ports are the dependencies of a Service. All fields are required.
type Ports struct {
	Rules   management.Store[access.RuleName, access.Rule] // a change changes registrystore.Revision.Access
	Servers accessstore.Servers
	Members accessstore.Members
	// Resources are those that an operator names in a question.
	Resources Resources
	Changes   registrystore.Changes
	// Recorder writes denials and challenges to the audit log.
	Recorder authority.Recorder
	Reporter report.Reporter
	Count    Count
	// CountTool counts a tool in a list that passes.
	CountTool CountTool
	Log       Log
	Clock     clock.Clock
	Waiter    clock.Waiter
	Entropy   secrets.Entropy
}

// Service decides. It keeps a snapshot of rules and listings, which Follow reads, and which is at
// most a second old unless the database is away. It is safe for concurrent use.
type Service struct {
	config  Config
	ports   Ports
	started time.Time

	memory memory
	ledger ledger
	seen   ledger // of tools in lists
	asked  askedCounters
	heard  heardCalls

	counters callCounters

	foreigners foreigners
}

// New returns a service.
func New(c Config, p Ports) *Service { return &Service{config: c, ports: p, started: p.Clock.Now()} }

// Question is a call that a proxy wants to forward.
type Question struct {
	// Caller and Refusal are what authority.Authority.IdentifyCall returned for the token of the
	// call. Both are zero without a token.
	Caller  authority.Caller
	Refusal error
	// Subject is who calls if that is known without a token, from Named; otherwise nil.
	Subject *access.Subject

	Server  string         // as access.Question has it
	Address access.Address // likewise
	Call    access.Call
	From    netip.Addr // of the client
}

// Answer is the decision about a call, and who the caller is. The subject is anyone if the call is
// allowed without knowing the caller, by access.Away.
type Answer struct {
	access.Decision

	// ID is the id of the event of a denial or a challenge, which is in the audit log soon after the
	// minute: all denials of a subject, server and tool in that minute have one, at all instances. Without a token,
	// one that allows has an id as well, which only the log has.
	ID      audit.EventID
	Subject access.Subject
}

// Decide answers a question, without I/O if the caller was seen within a second. It counts the
// answer, and keeps a denial or a challenge for the audit log, which Run writes. While the database
// is away, it decides by the snapshot that it has, up to Config.StaleMax. After that, and for a caller who
// is not in memory, it returns fault.Unavailable, or allows the call if the settings say so.
func (s *Service) Decide(ctx context.Context, q Question) (Answer, error) {
	s.asked.last.Store(s.ports.Clock.Now().Unix())
	s.asked.calls.Add(1)
	snapshot, subject, err := s.prepare(ctx, &q)
	if err != nil {
		return s.decideAway(ctx, &q, err)
	}
	asked := s.questionOf(&q, &subject)
	a := Answer{Decision: snapshot.Decide(asked), Subject: subject}
	s.ports.Count(a.Decision)
	var counter *callCounter
	if a.Reason != access.InvalidToken { // whatever the rules say
		counter = s.hear(asked, snapshot, &a)
	}
	if counter == nil {
		counter = s.counterOf(snapshot, a.Server)
	}
	counter.note(a.Effect)
	switch {
	case a.Effect == access.Allow && q.Subject != nil:
		a.ID = secrets.NewUUID[audit.EventID](s.ports.Entropy)
	case a.Effect != access.Allow:
		a.ID = s.ledger.noteDenial(&q, &a, asked.At)
	}
	if s.config.LogsAll {
		s.log(ctx, q, a)
	}
	return a, nil
}

// prepare returns what a decision needs.
func (s *Service) prepare(ctx context.Context, q *Question) (*access.Snapshot, access.Subject, error) {
	snapshot, err := s.snapshot(ctx)
	if err != nil {
		return nil, access.Subject{}, err
	}
	subject, err := s.subjectOf(ctx, q)
	return snapshot, subject, err
}

func (s *Service) questionOf(q *Question, subject *access.Subject) *access.Question {
	return &access.Question{
		Subject: subject, Server: q.Server, Address: q.Address, Call: q.Call, From: q.From, At: s.ports.Clock.Now(),
	}
}

// decideAway answers a question that cannot be decided because of an error.
func (s *Service) decideAway(ctx context.Context, q *Question, err error) (Answer, error) {
	a := Answer{Decision: access.Decision{Effect: access.Deny, Reason: access.Away, Server: q.Server}}
	if !fault.Is(err, fault.Unavailable) {
		return Answer{}, err
	}
	if s.config.AwayAllows {
		a.Effect, err = access.Allow, nil
	}
	s.ports.Count(a.Decision)
	if s.config.LogsAll {
		s.log(ctx, *q, a)
	}
	if err != nil {
		return Answer{}, err
	}
	return a, nil
}

// log logs a decision. It gets copies, so that decisions that are not logged need no memory for them.
func (s *Service) log(ctx context.Context, q Question, a Answer) { s.ports.Log(ctx, &q, &a) }

// subjectOf returns who calls (contract Z-4).
func (s *Service) subjectOf(ctx context.Context, q *Question) (access.Subject, error) {
	switch {
	case q.Subject != nil:
		return *q.Subject, nil
	case q.Refusal != nil:
		return refused(q.Refusal)
	}
	if f := q.Caller.Foreign(); f != nil {
		return s.foreignSubject(ctx, f)
	}
	if q.Caller.Granted() != nil {
		return s.grantedSubject(ctx, q.Caller)
	}
	holder, err := q.Caller.Person()
	switch {
	case fault.Is(err, fault.Unauthenticated): // no token
		return access.Subject{}, nil
	case err != nil: // the token of a publisher
		return access.Refused(), nil //nolint:nilerr // it is nobody that a rule can name
	}
	return s.member(ctx, string(holder), trustOf(q.Caller))
}

// member returns a person or a service account with a trust level.
func (s *Service) member(ctx context.Context, holder string, level trustlevel.Level) (access.Subject, error) {
	subject, err := s.ports.Members.Find(ctx, holder)
	if fault.Is(err, fault.NotFound) {
		return access.Refused(), nil
	}
	if err != nil {
		return access.Subject{}, err
	}
	return subject.WithTrust(level), nil
}

// Permit returns an error unless a caller may ask what others may do (contract Z-4): by a token with
// the scope decide, whose owner has the grant to operate. It returns fault.Forbidden for others, and
// fault.Unavailable if the caller is not in memory and the database is away.
func (s *Service) Permit(ctx context.Context, who authority.Caller) error {
	if t, ok := who.Token(); !ok || !t.Scopes.Has(scope.Decide) {
		return scope.Insufficient(scope.Decide)
	}
	holder, err := who.Person()
	if err != nil {
		return err
	}
	owner, err := s.ports.Members.Find(ctx, string(holder))
	switch {
	case err == nil && owner.Operates():
		return nil
	case err == nil, fault.Is(err, fault.NotFound):
		return fault.New(fault.Forbidden, "the owner of the token needs the grant operate")
	}
	return err
}

// refused returns the subject of a token that is not accepted. It returns the error if that says
// nothing about the token.
func refused(err error) (access.Subject, error) {
	if kind := fault.KindOf(err); kind == fault.Unavailable || kind == fault.Internal {
		return access.Subject{}, err
	}
	return access.Refused(), nil
}

// trustOf returns the trust level of a caller: that of the session, or full trust in a token.
func trustOf(c authority.Caller) trustlevel.Level {
	if _, ok := c.Token(); ok {
		return trustlevel.FullTrust
	}
	_, name := c.Session()
	level, err := trustlevel.Parse(string(name))
	if err != nil {
		return 0
	}
	return level
}

// Denied reports for each of some calls whether it would be denied, for lists of what a caller may use.
// The call of the question does not matter. A challenge is no denial. No one has made the calls, so that
// nothing is counted and recorded but the tools with a mark (contract W-8). The errors are those of Decide.
func (s *Service) Denied(ctx context.Context, q Question, calls []access.Call) ([]bool, error) {
	denied := make([]bool, len(calls))
	snapshot, subject, err := s.prepare(ctx, &q)
	if s.config.AwayAllows && fault.Is(err, fault.Unavailable) {
		return denied, nil
	}
	if err != nil {
		return nil, err
	}
	asked := s.questionOf(&q, &subject)
	for i := range calls {
		asked.Call = calls[i]
		d := snapshot.Decide(asked)
		if denied[i] = d.Effect == access.Deny; asked.Call.Mark != nil {
			q.Call = asked.Call
			s.see(snapshot, &q, &Answer{Decision: d, Subject: subject}, asked.At)
		}
	}
	return denied, nil
}

// see counts a tool in a list that passes, and keeps one that no approved list has for the audit log.
func (s *Service) see(snapshot *access.Snapshot, q *Question, a *Answer, now time.Time) {
	result := snapshot.See(q.Server, &q.Call)
	if s.ports.CountTool(result); result == access.Unapproved {
		s.seen.noteSeen(q, a, now)
	}
}
