package fakedb

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// watchKey identifies a watch.
type watchKey struct {
	name   registry.Name
	remote registry.RemoteURL
}

// watchRow is a watch with its lease.
type watchRow struct {
	Watch tools.Watch
	Lease registrystore.Lease
}

func (w watchRow) isFree(l registrystore.Lease) bool {
	return !w.Lease.Until.After(l.Now) || w.Lease.Until.After(l.Until.Add(registrystore.MaxSkew))
}

func keyOfWatch(w watchRow) watchKey { return watchKey{w.Watch.Name, w.Watch.Remote} }

func byTime(a, b watchRow) int {
	return cmp.Or(a.Watch.NextAt.Compare(b.Watch.NextAt), strings.Compare(a.Watch.Name.String(), b.Watch.Name.String()),
		cmp.Compare(a.Watch.Remote, b.Watch.Remote))
}

// ToolWatches implements [registrystore.ToolWatches].
type ToolWatches struct {
	*table[watchKey, watchRow]
}

// NewToolWatches returns the watches of a database.
func NewToolWatches(db *Database) *ToolWatches { return &ToolWatches{db.toolWatches} }

// versionsOf returns the versions of each remote that can be asked.
func (s *ToolWatches) versionsOf() map[watchKey][]registry.Version {
	all := map[watchKey][]registry.Version{}
	for k, v := range s.db.versions.rows {
		own, hidden := s.db.quarantined.rows[k]
		listed := v.Status != registry.StatusDeleted ||
			hidden && own.By == tools.Service && !s.db.quarantined.has(versionKey{name: k.name})
		for _, remote := range v.Remotes {
			if at := (watchKey{k.name, remote}); listed && tools.CanBeAsked(remote) && len(remote) <= 1000 {
				all[at] = append(all[at], k.version)
			}
		}
	}
	return all
}

// Refresh implements [registrystore.ToolWatches].
func (s *ToolWatches) Refresh(ctx context.Context, now time.Time, interval time.Duration) error {
	return s.db.run(ctx, func(ctx context.Context) error {
		versions := s.versionsOf()
		for k := range versions {
			if !s.has(k) {
				if err := s.put(ctx, watchRow{Watch: tools.Watch{Name: k.name, Remote: k.remote, NextAt: now}}); err != nil {
					return err
				}
			}
		}
		_, err := s.removeAll(ctx, func(w watchRow) bool { return versions[keyOfWatch(w)] == nil && !w.Lease.Until.After(now) })
		if err != nil {
			return err
		}
		_, err = s.changeAll(ctx, func(w watchRow) bool {
			latest := now.Add(interval + registrystore.MaxSkew)
			if w.Watch.Failures > 0 || w.Watch.Unstable {
				latest = latest.Add(24 * time.Hour)
			}
			return w.Watch.NextAt.After(latest)
		}, byTime, func(w *watchRow) { w.Watch.NextAt = now })
		return err
	})
}

// Claim implements [registrystore.ToolWatches].
func (s *ToolWatches) Claim(ctx context.Context, c registrystore.WatchClaim) (w tools.Watch, ok bool, err error) {
	err = s.db.run(ctx, func(ctx context.Context) error {
		if key := (watchKey{c.Name, c.Remote}); c.Remote != "" && !s.has(key) {
			s.log(key)
			s.rows[key] = watchRow{Watch: tools.Watch{Name: c.Name, Remote: c.Remote, NextAt: c.Now}}
		}
		held, err := s.list(ctx, func(w watchRow) bool { return !w.isFree(c.Lease) }, byTime)
		if err != nil || c.Remote == "" && len(held) >= c.Most {
			return err
		}
		found, err := s.listFirst(ctx, 1, func(w watchRow) bool {
			wanted := keyOfWatch(w) == watchKey{c.Name, c.Remote}
			return w.isFree(c.Lease) && (wanted || c.Remote == "" && !w.Watch.NextAt.After(c.Now))
		}, byTime)
		if ok = len(found) == 1; err != nil || !ok {
			return err
		}
		found[0].Lease = c.Lease
		w = found[0].Watch
		w.Versions = s.versionsOf()[keyOfWatch(found[0])]
		slices.SortFunc(w.Versions, func(a, b registry.Version) int { return strings.Compare(a.String(), b.String()) })
		return s.put(ctx, found[0])
	})
	return w, ok, err
}

// Save implements [registrystore.ToolWatches].
func (s *ToolWatches) Save(ctx context.Context, w tools.Watch, holder string) error {
	w.Versions = nil
	return s.db.run(ctx, func(ctx context.Context) error {
		if s.rows[watchKey{w.Name, w.Remote}].Lease.Holder != holder {
			return fault.New(fault.Conflict, "the remote is not watched any more, or another one has its lease")
		}
		return s.put(ctx, watchRow{Watch: w})
	})
}

// Of implements [registrystore.ToolWatches].
func (s *ToolWatches) Of(ctx context.Context, name registry.Name) (all []tools.Watch, err error) {
	found, err := s.list(ctx, func(w watchRow) bool { return w.Watch.Name == name }, func(a, b watchRow) int {
		return cmp.Compare(a.Watch.Remote, b.Watch.Remote)
	})
	for _, w := range found {
		all = append(all, w.Watch)
	}
	return all, err
}

// CountChanged implements [registrystore.ToolWatches].
func (s *ToolWatches) CountChanged(ctx context.Context) (int, error) {
	return result(ctx, s.db, func(context.Context) (int, error) {
		versions := map[versionKey]bool{}
		for k, l := range s.db.toolLists.rows {
			if k.review == "" && l.Source == tools.Asked && (l.State == tools.Differs || l.State == tools.Unstable) {
				versions[k.versionKey] = true
			}
		}
		return len(versions), nil
	})
}
