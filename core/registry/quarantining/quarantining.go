// Package quarantining holds the use cases of quarantine: people who may review, and operators,
// hide a server or one version of it at once, list what is hidden, and release it (contract C-20 to
// C-24). The rules are in package registry; package publishing refuses changes of what is in
// quarantine.
package quarantining

import (
	"context"
	"slices"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/page"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/announce"
	"github.com/tollgate-dev/tollgate/core/registry/change"
	"github.com/tollgate-dev/tollgate/core/registry/mirror"
	"github.com/tollgate-dev/tollgate/core/registry/permit"
	"github.com/tollgate-dev/tollgate/core/registry/receiving"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// The names of actions in the audit log (contract C-23).
const (
	actAdd     audit.Action = "quarantine"
	actRelease audit.Action = "release"
)

// Ports are the dependencies of a Service. All fields are required.
type Ports struct {
	change.Ports

	Reader   registrystore.ServerReader
	Mirrors  registrystore.MirrorRereader
	Grants   registrystore.Grants
	Events   *announce.Recorder
	Notifier authority.ReviewNotifier
	Cursors  *page.Sealer // with a key that all instances share

	ToolLists *receiving.Receiver
	Clock     clock.Clock
}

// Service puts servers in quarantine, lists them and releases them, for people who may review and
// for operators. It is safe for concurrent use, also by operator commands and a running service.
type Service struct{ ports Ports }

// New returns a service.
func New(p Ports) *Service { return &Service{p} }

// Target names a server, or one version of it, by texts that are not validated.
type Target struct {
	ServerName string
	Version    string // empty for the whole server
	// Malformed is why what the caller sent could not be read; nil if it could. The refusal is
	// recorded.
	Malformed error
}

// Draft is what a caller puts in quarantine, and why; not validated.
type Draft struct {
	Target
	Reason string
}

// Add puts a server, or one version, in quarantine, and notifies the people who have published it. A
// reviewing.Reminder notifies them of what operators hide.
//
// Errors, in the order of the checks: that of a malformed draft, fault.Forbidden for a caller who
// may not review the name, below FULL_TRUST, or for a publisher, fault.Invalid with the name of the
// field, fault.NotFound, fault.Conflict when it is in quarantine already. fault.Unavailable when
// the database fails. All are recorded, except those of an operator.
func (s *Service) Add(ctx context.Context, who authority.Caller, d Draft) (registry.Quarantined, error) {
	var added registry.Quarantined
	act, err := s.begin(ctx, who, actAdd, d.Target)
	if err == nil {
		added, err = s.putInQuarantine(ctx, act, d)
	}
	return added, permit.Refuse(ctx, s.ports.Acts, act, err)
}

// putInQuarantine puts the target of a draft in quarantine, and records the act.
func (s *Service) putInQuarantine(ctx context.Context, act authority.Act, d Draft) (registry.Quarantined, error) {
	by, err := act.Caller.Person()
	if err != nil {
		return registry.Quarantined{}, err
	}
	reason, err := registry.ParseReason(d.Reason)
	if err != nil {
		return registry.Quarantined{}, err
	}
	name, version, err := d.parse()
	if err != nil {
		return registry.Quarantined{}, err
	}
	act.Note = string(reason)
	var added registry.Quarantined
	var notice authority.QuarantineNotice
	err = s.commit(ctx, name, func(_ context.Context, l change.Server) (change.Decision, error) {
		var prior []registry.PriorStatus
		var err error
		added, prior, err = l.Quarantine(registry.Quarantined{Version: version, Reason: reason, By: by},
			s.ports.Clock.Now())
		return change.Decision{Act: act, Store: func(ctx context.Context) error {
			if err := s.ports.Quarantine.Add(ctx, added, prior); err != nil {
				return err
			}
			if notice, err = s.notice(ctx, added); err != nil {
				return err
			}
			return l.Save(ctx, s.ports.Writer)
		}, Announce: func(ctx context.Context) error { return s.ports.Events.RecordQuarantined(ctx, added) }}, err
	})
	if err == nil && !act.Caller.IsOperator() {
		s.ports.Notifier.NotifyPublishers(notice)
	}
	return added, err
}

// Release releases a server, or one version. The errors are those of Add without fault.Conflict for
// what is in quarantine already; fault.NotFound when it is not in quarantine, fault.Forbidden when
// the caller has published it, also through an own policy, fault.Conflict when another server now
// has one of the remote URLs. Of a version that is there because of its tools, it approves what was seen last.
func (s *Service) Release(ctx context.Context, who authority.Caller, t Target) error {
	act, err := s.begin(ctx, who, actRelease, t)
	if err == nil {
		err = s.releaseTarget(ctx, act, t)
	}
	return permit.Refuse(ctx, s.ports.Acts, act, err)
}

// releaseTarget releases the target, and records the act. It returns fault.Forbidden if a person is
// responsible for a document of the target (contract C-24).
func (s *Service) releaseTarget(ctx context.Context, act authority.Act, t Target) error {
	name, version, err := t.parse()
	if err != nil {
		return err
	}
	return s.commit(ctx, name, func(ctx context.Context, l change.Server) (change.Decision, error) {
		prior, err := s.ports.Quarantine.PriorStatuses(ctx, name)
		if err != nil {
			return change.Decision{}, err
		}
		hidden, _ := registry.FindQuarantine(l.Quarantined, version)
		released, err := l.Release(version, prior, s.ports.Clock.Now())
		if err == nil {
			err = s.checkNotOwn(ctx, act.Caller, name, version)
		}
		return change.Decision{Act: act, Store: func(ctx context.Context) error {
			if err := s.ports.Quarantine.Remove(ctx, name, version, released); err != nil {
				return err
			}
			if err := s.reread(ctx, l.Origin()); err != nil {
				return err
			}
			if hidden.By == tools.Service {
				if err := s.ports.ToolLists.ApproveSeen(ctx, name, version, s.ports.Clock.Now()); err != nil {
					return err
				}
			}
			return l.Save(ctx, s.ports.Writer)
		}, Announce: func(ctx context.Context) error { return s.ports.Events.RecordReleased(ctx, name, version) }}, err
	})
}

// reread makes the mirror that has brought a server read what it has refused meanwhile, new
// versions and documents.
func (s *Service) reread(ctx context.Context, from registry.Origin) error {
	if from.Mirror == "" {
		return nil
	}
	return s.ports.Mirrors.Reread(ctx, mirror.Name(from.Mirror))
}

// checkNotOwn returns fault.Forbidden if a person is responsible for a document of the target.
func (s *Service) checkNotOwn(
	ctx context.Context, c authority.Caller, name registry.Name, version registry.Version,
) error {
	if c.IsOperator() {
		return nil
	}
	holder, err := c.Person()
	if err != nil {
		return err
	}
	people, err := s.ports.Writer.Responsible(ctx, name, version)
	if err == nil && slices.Contains(people, holder) {
		err = fault.New(fault.Forbidden,
			"you cannot release what you published yourself, or through a policy that you created")
	}
	return err
}

// begin returns the act of a caller with its target, and the error if the caller may not act on it.
func (s *Service) begin(
	ctx context.Context, who authority.Caller, action audit.Action, t Target,
) (authority.Act, error) {
	act := authority.Act{Caller: who, Action: action}
	if _, err := who.Person(); fault.Is(err, fault.Unauthenticated) {
		return act, err
	}
	if t.Malformed != nil {
		return act, t.Malformed
	}
	act.ServerName, act.Version = registry.Clip(t.ServerName), registry.Clip(t.Version)
	return act, permit.RequireReviewer(ctx, s.ports.Grants, who, t.ServerName)
}

// commit changes a server, which may have many versions, so that the transaction may be long.
func (s *Service) commit(
	ctx context.Context, name registry.Name, decide func(context.Context, change.Server) (change.Decision, error),
) error {
	return change.Commit(transaction.Long(ctx), s.ports.Ports, name, decide)
}

// parse returns the name and the version of the target; the zero version for the whole server. It
// returns fault.Invalid without a name, and fault.NotFound for a name or version that is not valid.
func (t Target) parse() (registry.Name, registry.Version, error) {
	if t.ServerName == "" {
		return registry.Name{}, registry.Version{}, fault.New(fault.Invalid, "serverName is missing")
	}
	name, err := registry.ParseName(t.ServerName)
	if err != nil {
		return registry.Name{}, registry.Version{}, fault.New(fault.NotFound, "server not found")
	}
	if t.Version == "" {
		return name, registry.Version{}, nil
	}
	version, err := registry.ParseVersion(t.Version)
	if err != nil {
		return registry.Name{}, registry.Version{}, fault.New(fault.NotFound, "server version not found")
	}
	return name, version, nil
}
