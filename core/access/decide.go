package access

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/core/toolserver"
	"github.com/tollgate-dev/tollgate/core/trustlevel"
)

// Question is a call of a server that a proxy wants to forward (contract Z-1).
type Question struct {
	Subject *Subject
	Server  string  // the name that the proxy states; empty for the one at Address
	Address Address // ignored if there is a Server
	Call    Call
	From    netip.Addr // of the client
	At      time.Time
}

// Reason says why a decision is what it is.
type Reason string

// The reasons.
const (
	ByRule            Reason = "rule"
	ByDefault         Reason = "default"
	NotListed         Reason = "not_listed"         // the server is unknown, not listed or deleted
	Disputed          Reason = "disputed"           // programs disagree whether the address leads to a server
	Quarantined       Reason = "quarantined"        // all versions of the server
	InvalidToken      Reason = "invalid_token"      // or it is for others, or the owner is not active
	InsufficientTrust Reason = "insufficient_trust" // of the subject for the rule
	Unreadable        Reason = "unreadable"         // the call, where a rule distinguishes calls
	HeaderMismatch    Reason = "header_mismatch"    // the headers state another call than the body
	ToolChanged       Reason = "tool_changed"       // the tool is not as it was approved
	Away              Reason = "away"               // the database, and the settings allow the call then
)

// Decision is the answer to a Question.
type Decision struct {
	Effect   Effect
	Reason   Reason
	Server   string           // its name; empty if it is unknown
	Rule     RuleName         // that decided; otherwise empty
	Required trustlevel.Level // of a challenge for more trust; otherwise 0, which is a sign-in
	Observed Observed
}

// Observed is what the first rule would have done that was passed over and comes before the one that
// decided, or what the change of a tool would have done; the zero value without one.
type Observed struct {
	Rule   RuleName // empty for the change of a tool
	Effect Effect
	Reason Reason
}

// Decide answers a question (contract Z-3). Of several servers at an address, each must allow the call
// (contract Z-5): otherwise who publishes a server with the URL of another, or below it, would decide with
// rules of their own.
func (s *Snapshot) Decide(q *Question) Decision {
	d, _ := s.decideAbout(q)
	return d
}

// decideAbout returns the decision and the server that it is about; nil if it is unknown.
func (s *Snapshot) decideAbout(q *Question) (worst Decision, about *knownServer) {
	if q.Server != "" {
		if k, ok := s.servers.get(q.Server); ok && !k.Deleted {
			about = k
		}
		worst = s.decideServer(q, about, q.Server)
		for other := range s.othersOf(q.Subject, about) {
			if d := s.decideServer(q, other, ""); rank(d.Effect) < rank(worst.Effect) {
				worst, about = d, other
			}
		}
		return worst, about
	}
	disputed := s.remotes.find(q.Address, func(one remote) {
		k := one.of
		d := Decision{Effect: Deny, Reason: NotListed, Server: k.Name.String()}
		switch {
		case one.misspelled:
			d.Reason = Disputed
		case k.Quarantined || !one.withdrawn:
			d = s.decideServer(q, k, "")
		}
		if about == nil || rank(d.Effect) < rank(worst.Effect) {
			worst, about = d, k
		}
	})
	switch {
	case about != nil:
		return worst, about
	case disputed:
		return Decision{Effect: Deny, Reason: Disputed}, nil
	}
	return s.decideServer(q, nil, ""), nil
}

// rank orders effects: what the caller wants most is greatest.
func rank(e Effect) int { return slices.Index([]Effect{Deny, Challenge, Allow}, e) }

// decideServer answers a question about one server, which is nil if it is unknown.
func (s *Snapshot) decideServer(q *Question, k *knownServer, stated string) Decision {
	d, unknown := Decision{Effect: Deny, Server: stated}, k == nil
	if unknown {
		if s.options.Unlisted != Allow {
			d.Reason = NotListed
			return d
		}
		k = unlisted(stated)
	} else {
		d.Server = k.Name.String()
	}
	switch {
	case k.Quarantined:
		d.Reason = Quarantined
	case q.Subject.problem != "":
		d.Effect, d.Reason = Challenge, q.Subject.problem
	case q.Subject.resource != nil && !s.includes(q.Subject.resource, k.Name):
		d.Effect, d.Reason = Challenge, InvalidToken
	case q.Subject.Trust() == trustlevel.HighRisk: // no rule opens anything to it
		d.Effect, d.Reason, d.Required = Challenge, InsufficientTrust, trustlevel.Unverified
	case q.Call.Problem == HeaderMismatch:
		d.Reason = HeaderMismatch
	case q.Call.Problem == Unreadable && s.distinguishes(q, k):
		d.Reason = Unreadable
	case s.refusesTool(q, k, &d):
		d.Reason = ToolChanged
	case !s.decideByRules(q, k, &d):
		s.decideByDefault(q, unknown, &d)
	}
	return d
}

// decideByRules reports whether a rule decides.
func (s *Snapshot) decideByRules(q *Question, k *knownServer, d *Decision) bool {
	decides, observes := s.find(q, k)
	if observes < len(s.rules) && d.Observed.Effect == "" {
		r := &s.rules[observes]
		effect, reason, _ := r.apply(q.Subject)
		d.Observed = Observed{r.Name, effect, reason}
	}
	if decides == len(s.rules) {
		return false
	}
	r := &s.rules[decides]
	d.Rule = r.Name
	d.Effect, d.Reason, d.Required = r.apply(q.Subject)
	return true
}

func (s *Snapshot) decideByDefault(q *Question, unlisted bool, d *Decision) {
	switch d.Reason = ByDefault; {
	case unlisted: // the settings allow it
		d.Effect, d.Reason = Allow, NotListed
	case s.options.Default == Allow:
		d.Effect = Allow
	case q.Subject.Kind() == Anonymous:
		d.Effect = Challenge
	}
}

// apply returns what a rule that matches says. Without a token, a sign-in could change a denial.
func (r *Rule) apply(s *Subject) (Effect, Reason, trustlevel.Level) {
	switch {
	case r.Effect == Allow && r.MinTrust != 0 && !s.Trust().Admits(r.MinTrust):
		return Challenge, InsufficientTrust, r.MinTrust
	case r.Effect == Deny && s.Kind() == Anonymous:
		return Challenge, ByRule, 0
	}
	return r.Effect, ByRule, 0
}

// Condition is what a rule requires of a question.
type Condition string

// The conditions, in the order in which they are checked. A rule that only observes fails by its
// mode if all others hold.
const (
	OnSubject Condition = "subjects"
	OnClient  Condition = "clients"
	OnServer  Condition = "servers"
	OnMethod  Condition = "methods"
	OnTool    Condition = "tools"
	OnHint    Condition = "hints"
	OnNetwork Condition = "networks"
	OnTime    Condition = "expiresAt"
	OnMode    Condition = "mode"
)

// failed returns the first condition that does not hold of a call of a server, whose tool has traits; empty if the
// rule matches.
func (r *Rule) failed(q *Question, of toolserver.Name, tool toolserver.Traits) Condition {
	switch {
	case r.selects(q.Subject, of) == Selector{}:
		return OnSubject
	case !r.isOfClient(q.Subject):
		return OnClient
	case !r.covers(of):
		return OnServer
	case len(r.Methods) > 0 && !slices.Contains(r.Methods, q.Call.Class):
		return OnMethod
	case len(r.Tools) > 0 && !r.namesTool(q.Call.Tool()):
		return OnTool
	case len(r.Hints) > 0 && !r.admitsTool(tool):
		return OnHint
	case len(r.Networks) > 0 && !r.admits(q.From):
		return OnNetwork
	case r.hasExpired(q.At):
		return OnTime
	}
	return ""
}

// selects returns the first selector that selects a subject; or the zero value.
func (r *Rule) selects(s *Subject, of toolserver.Name) Selector {
	for _, one := range r.Subjects {
		if s.matches(one, of) {
			return one
		}
	}
	return Selector{}
}

// isOfClient reports whether a rule is about the tokens by which a subject calls.
func (r *Rule) isOfClient(s *Subject) bool {
	return len(r.Clients) == 0 || slices.Contains(r.Clients, s.client)
}

// isAbout reports whether a rule is about a subject, its client and a server.
func (r *Rule) isAbout(s *Subject, of toolserver.Name) bool {
	return r.isOfClient(s) && r.selects(s, of) != (Selector{}) && r.covers(of)
}

func (r *Rule) covers(of toolserver.Name) bool {
	return slices.ContainsFunc(r.Servers, func(p toolserver.Pattern) bool { return p.Matches(of) })
}

func (r *Rule) namesTool(tool string) bool {
	return tool != "" && slices.ContainsFunc(r.Tools, func(one string) bool {
		prefix, wild := strings.CutSuffix(one, "*")
		return one == tool || wild && strings.HasPrefix(tool, prefix)
	})
}

// admitsTool reports whether the hints of a rule hold of the tool of a call.
func (r *Rule) admitsTool(tool toolserver.Traits) bool { return tool != noTool && hold(r.Hints, tool) }

func (r *Rule) admits(from netip.Addr) bool {
	from = from.Unmap().WithZone("")
	return slices.ContainsFunc(r.Networks, func(n netip.Prefix) bool { return n.Contains(from) })
}

func (r *Rule) hasExpired(now time.Time) bool {
	return !r.ExpiresAt.IsZero() && !now.Before(r.ExpiresAt)
}

// Step is a rule that did not decide, with the first of its conditions that failed.
type Step struct {
	Rule   RuleName
	Failed Condition
}

// Standing says what the registry has of a server.
type Standing string

// The standings.
const (
	Listed       Standing = "listed"
	InQuarantine Standing = "quarantined" // all its versions
	Unlisted     Standing = "not_listed"  // unknown or deleted
)

func standingOf(k *knownServer) Standing {
	switch {
	case k == nil || k.Deleted:
		return Unlisted
	case k.Quarantined:
		return InQuarantine
	}
	return Listed
}

// Explanation says why a decision is what it is (contract Z-15).
type Explanation struct {
	Decision

	Subject  string           // as Subject.String returns it
	Member   Member           // the subject
	Trust    trustlevel.Level // of the subject
	Reasons  []string         // why the subject has it, in sentences; empty if the question says the level
	Listing  Standing         // of the server
	Steps    []Step           // the rules before the one that decided, in their order
	Tool     *ToolFacts       // of the server; nil for a call of no tool
	Selector Selector         // by which the deciding rule selected the subject
	Grant    Grant            // that the selector needs; otherwise the zero value
}

// MaxSteps is how many steps a page may have.
const MaxSteps = 1000

// Page returns at most limit of the steps, from an offset on.
func (e *Explanation) Page(offset, limit int) []Step {
	offset = min(offset, len(e.Steps))
	return e.Steps[offset:min(offset+limit, len(e.Steps))]
}

// Explain answers a question, with the reasons.
func (s *Snapshot) Explain(q *Question) Explanation {
	d, k := s.decideAbout(q)
	e := Explanation{Decision: d, Subject: q.Subject.String(), Member: q.Subject.member, Trust: q.Subject.Trust(), Listing: standingOf(k)}
	if k == nil { // a rule decides about the name that the proxy states
		k = unlisted(q.Server)
	}
	e.Tool = k.factsOf(&q.Call)
	if d.Reason != ByRule && d.Reason != ByDefault && (d.Reason != InsufficientTrust || d.Rule == "") {
		return e
	}
	for i := range s.rules {
		r := &s.rules[i]
		if r.Name == d.Rule {
			e.Selector = r.selects(q.Subject, k.Name)
			e.Grant = q.Subject.grantFor(e.Selector, k.Name)
			break
		}
		failed := r.failed(q, k.Name, k.tools.traitsOf(&q.Call))
		if failed == "" {
			failed = OnMode
		}
		e.Steps = append(e.Steps, Step{r.Name, failed})
	}
	return e
}

// grantFor returns the grant by which a selector selects the subject.
func (s *Subject) grantFor(one Selector, of toolserver.Name) Grant {
	for _, g := range s.member.Grants {
		if one.Kind == SelectGrant && string(g.Action) == one.Value && g.Pattern.Matches(of) {
			return g
		}
	}
	return Grant{}
}
