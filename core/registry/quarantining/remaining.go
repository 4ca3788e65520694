package quarantining

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/history"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// Remaining returns what stays listed of a server when one version of it is hidden, and offers the
// same: newest publication first, and nothing for a whole server, or for what is not in the
// registry. Everybody may read all of it.
func (s *Service) Remaining(ctx context.Context, t Target) ([]registry.Shared, error) {
	name, version, err := t.parse()
	if err != nil || version == (registry.Version{}) {
		return nil, withoutMissing(err)
	}
	target, err := s.ports.Reader.Version(ctx, name, version, true)
	if err != nil {
		return nil, withoutMissing(err)
	}
	history, err := history.AllVersions(ctx, s.ports.Reader, name, false)
	if err != nil {
		return nil, withoutMissing(err)
	}
	var all []registry.Shared
	_, err = history.Any(ctx, func(r registry.Record) bool {
		all = append(all, registry.SharedWith(target, []registry.Record{r})...)
		return false
	})
	return all, err
}

// withoutMissing returns an error, or nil for what does not exist or has no name.
func withoutMissing(err error) error {
	if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Invalid) {
		return nil
	}
	return err
}

// Entries returns what is in quarantine of some servers. Everybody may know it (contract C-21).
func (s *Service) Entries(
	ctx context.Context, names ...registry.Name,
) (map[registry.Name][]registry.Quarantined, error) {
	all := map[registry.Name][]registry.Quarantined{}
	for _, name := range names {
		found, err := s.ports.Quarantine.Entries(ctx, name)
		if err != nil {
			return nil, err
		}
		all[name] = found
	}
	return all, nil
}

// notice returns the notice for the people who are responsible for what an entry hides, except for
// the person who hides it. ctx carries a transaction.
func (s *Service) notice(ctx context.Context, q registry.Quarantined) (authority.QuarantineNotice, error) {
	n := authority.QuarantineNotice{
		ServerName: q.Name, Version: q.Version, Reason: string(q.Reason), At: q.Since,
	}
	people, err := s.ports.Writer.Responsible(ctx, q.Name, q.Version)
	for _, person := range people {
		if person != q.By {
			n.People = append(n.People, person)
		}
	}
	return n, err
}

// ByOperators returns the notices of what operators put in quarantine after one time and not after
// another one: their commands send no notices. What is released again has no notice.
func (s *Service) ByOperators(ctx context.Context, after, until time.Time) ([]authority.QuarantineNotice, error) {
	found, err := s.all(ctx, after)
	var notices []authority.QuarantineNotice
	for _, e := range found {
		if e.By != "" || e.Since.After(until) {
			continue
		}
		n, err := transaction.Do(ctx, s.ports.Transactions, func(ctx context.Context) (authority.QuarantineNotice, error) {
			return s.notice(ctx, e)
		})
		if err != nil {
			return nil, err
		}
		notices = append(notices, n)
	}
	return notices, err
}
