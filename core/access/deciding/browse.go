package deciding

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/fields"
	"github.com/tollgate-dev/tollgate/core/toolserver"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

// RuleQuery selects rules for people who look at them.
type RuleQuery struct {
	Subject string // as Draft has it; empty for all
	Server  string // its name; empty for all
	Offset  int
	Limit   int
}

// RulePage is a part of the rules, in the order in which they are tried.
type RulePage struct {
	Rules   []ListedRule
	Total   int
	Options access.Options
	On      bool // Config.On
	Asked   Asked
}

// Asked is how often, and when last, this instance was asked about a call since its start.
type Asked struct {
	Last  time.Time // zero if it never was
	Calls int64
}

// askedCounters count what Asked has. The zero value is never.
type askedCounters struct {
	last, calls atomic.Int64 // last in Unix seconds
}

func (c *askedCounters) read() (a Asked) {
	if a.Calls = c.calls.Load(); a.Calls > 0 {
		a.Last = time.Unix(c.last.Load(), 0)
	}
	return a
}

// ListedRule is a rule in a list.
type ListedRule struct {
	access.Rule

	Ended    bool
	LocksOut bool // its removal does, as access.Snapshot.LocksOut has it
}

// Rules returns the rules that could apply to a subject and a server. It returns fault.Invalid, about
// the field, if one is wrong, and fault.Violated for a subject that does not exist.
func (s *Service) Rules(ctx context.Context, q RuleQuery) (RulePage, error) {
	snapshot, err := s.newest(ctx)
	if err != nil {
		return RulePage{}, err
	}
	filter, err := s.filterOf(ctx, q)
	if err != nil {
		return RulePage{}, err
	}
	found, total := snapshot.Select(filter, q.Offset, q.Limit)
	page := RulePage{
		Rules: make([]ListedRule, len(found)), Total: total, Options: snapshot.Options(), On: s.config.On, Asked: s.asked.read(),
	}
	now := s.ports.Clock.Now()
	for i := range found {
		page.Rules[i] = ListedRule{found[i], found[i].HasEnded(now), snapshot.LocksOut(found[i].Name, nil, now)}
	}
	return page, nil
}

func (s *Service) filterOf(ctx context.Context, q RuleQuery) (filter access.Filter, err error) {
	if q.Server != "" {
		if filter.Server, err = toolserver.ParseName(q.Server); err != nil {
			return filter, fields.Invalid("server", ": %s", fault.PublicMessage(err))
		}
	}
	if q.Subject == "" {
		return filter, nil
	}
	selector, err := access.ParseSelector(q.Subject)
	if err != nil {
		return filter, fields.Invalid("subject", ": %s", fault.PublicMessage(err))
	}
	subject, err := s.named(ctx, Who{Subject: selector})
	filter.Subject = &subject
	return filter, err
}

// CheckLockout returns fault.Invalid, about the field confirm, if no call with a token is allowed any
// more with a rule in place of the one with its name, although some call is allowed now.
func (s *Service) CheckLockout(ctx context.Context, next *access.Rule) error {
	snapshot, err := s.newest(ctx)
	if err == nil && snapshot.LocksOut(next.Name, next, s.ports.Clock.Now()) {
		err = fields.Invalid("confirm", ": with this rule, no call of any server is allowed any more")
	}
	return err
}

// On reports whether proxies may ask: else the rules decide nothing.
func (s *Service) On() bool { return s.config.On }

// UsagePage is a part of what a caller may use.
type UsagePage struct {
	Usages []access.Usage
	Next   string // the name after which the following page begins; empty on the last one
}

// Usage returns what a caller may use, of the servers whose names are greater than after, and at most
// limit of them.
func (s *Service) Usage(ctx context.Context, who authority.Caller, after string, limit int) (UsagePage, error) {
	snapshot, subject, err := s.prepare(ctx, &Question{Caller: who})
	if err != nil {
		return UsagePage{}, err
	}
	var page UsagePage
	page.Usages, page.Next = snapshot.Usages(&subject, s.ports.Clock.Now(), after, limit)
	return page, nil
}
