// Package deciding answers whether a call of a server may be forwarded (contract Z-1). It finds out
// who calls, and decides by rules and listings that it keeps in memory. It is the entry point for
// what asks on behalf of a proxy; what an answer means to a proxy, its adapter knows.
package deciding

import (
	"context"
	"net/netip"

	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/trustlevel"
	"github.com/tollgate-dev/tollgate/ports/accessstore"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// Config holds the settings of decisions.
type Config struct {
	access.Options

	// AwayAllows allows calls whose caller is not in memory while the database is away.
	AwayAllows bool
}

// Ports are the dependencies of a Service. All fields are required.
type Ports struct {
	Rules   accessstore.Rules
	Servers accessstore.Servers
	Members accessstore.Members
	Changes registrystore.Changes
	Clock   clock.Clock
}

// Service decides. It keeps a snapshot of rules and listings, which is at most a second old unless
// the database is away. It is safe for concurrent use.
type Service struct {
	config Config
	ports  Ports
	memory memory
}

// New returns a service.
func New(c Config, p Ports) *Service { return &Service{config: c, ports: p} }

// Question is a call that a proxy wants to forward.
type Question struct {
	// Caller and Refusal are what authority.Authority.IdentifyReader returned for the token of the
	// call. Both are zero without a token.
	Caller  authority.Caller
	Refusal error

	Server  string         // as access.Question has it
	Address access.Address // likewise
	Call    access.Call
	From    netip.Addr // of the client
}

// Answer is the decision about a call, and who the caller is. The subject is anyone if the call is
// allowed without knowing the caller, by access.Away.
type Answer struct {
	access.Decision

	Subject access.Subject
}

// Decide answers a question, without I/O if the caller was seen within a second. While the database
// is away, it decides by the snapshot that it has; for a caller who is not in memory it returns
// fault.Unavailable, or allows the call if the settings say so.
func (s *Service) Decide(ctx context.Context, q Question) (Answer, error) {
	snapshot, subject, err := s.prepare(ctx, &q)
	if err != nil {
		return s.decideAway(&q, err)
	}
	return Answer{snapshot.Decide(s.questionOf(&q, subject)), *subject}, nil
}

// prepare returns what a decision needs.
func (s *Service) prepare(ctx context.Context, q *Question) (*access.Snapshot, *access.Subject, error) {
	snapshot, err := s.snapshot(ctx)
	if err != nil {
		return nil, nil, err
	}
	subject, err := s.subjectOf(ctx, q)
	return snapshot, &subject, err
}

func (s *Service) questionOf(q *Question, subject *access.Subject) *access.Question {
	return &access.Question{
		Subject: subject, Server: q.Server, Address: q.Address, Call: q.Call, From: q.From, At: s.ports.Clock.Now(),
	}
}

// decideAway answers a question that cannot be decided because of an error.
func (s *Service) decideAway(q *Question, err error) (Answer, error) {
	if s.config.AwayAllows && fault.Is(err, fault.Unavailable) {
		return Answer{Decision: access.Decision{Effect: access.Allow, Reason: access.Away, Server: q.Server}}, nil
	}
	return Answer{}, err
}

// subjectOf returns who calls (contract Z-4).
func (s *Service) subjectOf(ctx context.Context, q *Question) (access.Subject, error) {
	if q.Refusal != nil {
		return refused(q.Refusal)
	}
	holder, err := q.Caller.Person()
	switch {
	case fault.Is(err, fault.Unauthenticated): // no token
		return access.Subject{}, nil
	case err != nil: // the token of a publisher
		return access.Refused(), nil //nolint:nilerr // it is nobody that a rule can name
	}
	subject, err := s.ports.Members.Find(ctx, string(holder))
	if fault.Is(err, fault.NotFound) {
		return access.Refused(), nil
	}
	if err != nil {
		return access.Subject{}, err
	}
	return subject.WithTrust(trustOf(q.Caller)), nil
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
