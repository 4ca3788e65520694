package registry

import (
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
)

// Lineage holds all versions of one server. A change of one version may also change others, because
// exactly one version is latest after each change (contract R-23). The caller makes a Lineage from
// the releases that the store has locked, calls one of its methods, and saves Changes.
//
// All methods but Quarantine and Release leave what is in quarantine unchanged: they return
// fault.Forbidden for it, with the reason (contract C-22). They, and not Mirror, do so for a server
// that a mirror has (contract C-64).
type Lineage struct {
	name        Name
	stored      []Release     // as NewLineage got them
	quarantined []Quarantined // what is in quarantine, after the changes so far
	carried     []Quarantined // those of quarantined that an import has added
	prior       []PriorStatus // what WithPrior got, and those that were changed since
	current     []Release     // after the changes so far
}

// NewLineage returns the lineage of a server from its releases, oldest publication first, and what
// of it is in quarantine. It does not change the slices.
func NewLineage(name Name, releases []Release, quarantined ...Quarantined) *Lineage {
	return &Lineage{
		name: name, stored: releases, quarantined: quarantined, current: append([]Release(nil), releases...),
	}
}

// Name returns the name of the server.
func (l *Lineage) Name() Name { return l.name }

// IsEmpty reports whether the server has no versions, not even deleted ones.
func (l *Lineage) IsEmpty() bool { return len(l.current) == 0 }

// Has reports whether the server has a version, deleted or not.
func (l *Lineage) Has(version Version) bool { return l.findVersion(version) >= 0 }

// Publish adds a version. It returns fault.Conflict when the version was published before, deleted
// or not, and when the server has MaxVersions already (contract R-25).
func (l *Lineage) Publish(version Version, now time.Time) (Release, error) {
	if err := l.checkChangeable(version); err != nil {
		return Release{}, err
	}
	if l.findVersion(version) >= 0 {
		return Release{}, fault.Newf(fault.Conflict,
			"version %s of %s already exists, and a published version cannot be published again",
			quote(version.value), l.name)
	}
	if len(l.current) >= MaxVersions {
		return Release{}, errTooManyVersions(l.name)
	}
	at := l.changeTime(now)
	l.current = append(l.current, Release{
		Name: l.name, Version: version, Status: StatusActive, StatusChangedAt: at, PublishedAt: at, UpdatedAt: at,
	})
	l.updateLatest(at)
	return l.current[len(l.current)-1], nil
}

// Replace records that the document of a version was replaced: only its update time changes. It
// returns fault.NotFound when the version is missing or deleted.
func (l *Lineage) Replace(version Version, now time.Time) (Release, error) {
	i, err := l.findLive(version)
	if err != nil {
		return Release{}, err
	}
	l.current[i].UpdatedAt = l.changeTime(now)
	return l.current[i], nil
}

// Delete gives a version the status deleted, without a message. It returns fault.NotFound when the
// version is missing or deleted already.
func (l *Lineage) Delete(version Version, now time.Time) (Release, error) {
	i, err := l.findLive(version)
	if err != nil {
		return Release{}, err
	}
	at := l.changeTime(now)
	l.applyStatus(i, StatusUpdate{status: StatusDeleted}, at)
	l.updateLatest(at)
	return l.current[i], nil
}

// SetStatus changes the status of a version. It returns fault.NotFound when the version is missing,
// fault.Invalid when it has the status and message already (contract R-28).
func (l *Lineage) SetStatus(version Version, u StatusUpdate, now time.Time) (Release, error) {
	if err := l.checkChangeable(version); err != nil {
		return Release{}, err
	}
	i := l.findVersion(version)
	if i < 0 {
		return Release{}, errNoVersion()
	}
	at := l.changeTime(now)
	if !l.applyStatus(i, u, at) {
		return Release{}, errNoChange()
	}
	l.updateLatest(at)
	return l.current[i], nil
}

// SetStatusAll changes the status of all versions that are not in quarantine, and returns those
// that changed, newest publication first. It returns fault.NotFound when there are no versions,
// fault.Forbidden when all are in quarantine, fault.Invalid when no version changes.
func (l *Lineage) SetStatusAll(u StatusUpdate, now time.Time) ([]Release, error) {
	if len(l.current) == 0 {
		return nil, errNoServer()
	}
	if err := l.checkChangeable(Version{}); err != nil {
		return nil, err
	}
	at := l.changeTime(now)
	var changed []int
	var refusal error
	skipped := 0
	for i := len(l.current) - 1; i >= 0; i-- {
		if err := CheckQuarantine(l.quarantined, l.current[i].Version); err != nil {
			refusal = err
			skipped++
			continue
		}
		if l.applyStatus(i, u, at) {
			changed = append(changed, i)
		}
	}
	if skipped == len(l.current) {
		return nil, refusal
	}
	if len(changed) == 0 {
		return nil, errNoChange()
	}
	l.updateLatest(at)
	releases := make([]Release, 0, len(changed))
	for _, i := range changed {
		releases = append(releases, l.current[i])
	}
	return releases, nil
}

// Changes returns the releases that differ from those of NewLineage: the versions that were
// changed, and those that gained or lost the latest flag, which also sets their update time.
func (l *Lineage) Changes() []Release {
	var changed []Release
	for i, r := range l.current {
		if i >= len(l.stored) || r != l.stored[i] {
			changed = append(changed, r)
		}
	}
	return changed
}

// applyStatus gives one version a status, and reports whether that changed anything.
func (l *Lineage) applyStatus(i int, u StatusUpdate, at time.Time) bool {
	r := &l.current[i]
	if r.Status == u.status && r.StatusMessage == u.message {
		return false
	}
	if r.Status != u.status {
		r.StatusChangedAt = at
	}
	r.Status, r.StatusMessage, r.UpdatedAt = u.status, u.message, at
	return true
}

// updateLatest gives the latest flag to the version that ranks highest.
func (l *Lineage) updateLatest(at time.Time) {
	best := indexOfHighest(l.current)
	for i := range l.current {
		if r := &l.current[i]; r.Latest != (i == best) {
			r.Latest, r.UpdatedAt = i == best, at
		}
	}
}

// changeTime returns the time of a change: now, in microseconds, but later than all earlier times
// of the server, even if the clock of another instance is ahead.
func (l *Lineage) changeTime(now time.Time) time.Time {
	at := now.UTC().Truncate(time.Microsecond)
	for _, r := range l.current {
		for _, t := range []time.Time{r.PublishedAt, r.UpdatedAt} {
			if !at.After(t) {
				at = t.UTC().Truncate(time.Microsecond).Add(time.Microsecond)
			}
		}
	}
	return at
}

// checkChangeable returns fault.Forbidden when a version, or for the zero version the whole server,
// is in quarantine, or when a mirror has the server.
func (l *Lineage) checkChangeable(version Version) error {
	if err := CheckQuarantine(l.quarantined, version); err != nil {
		return err
	}
	return l.checkLocal()
}

// findLive returns the index of a version, fault.Forbidden when it is in quarantine or mirrored, or
// fault.NotFound when it is missing or deleted.
func (l *Lineage) findLive(version Version) (int, error) {
	if err := l.checkChangeable(version); err != nil {
		return 0, err
	}
	i := l.findVersion(version)
	if i < 0 || l.current[i].Status == StatusDeleted {
		return 0, errNoVersion()
	}
	return i, nil
}

// findVersion returns the index of a version, or -1.
func (l *Lineage) findVersion(version Version) int {
	for i := range l.current {
		if l.current[i].Version == version {
			return i
		}
	}
	return -1
}

func errTooManyVersions(name Name) error {
	return fault.Newf(fault.Conflict, "server %s already has %d versions, the most that are allowed", name, MaxVersions)
}

func errNoServer() error { return fault.New(fault.NotFound, "server not found") }

func errNoVersion() error { return fault.New(fault.NotFound, "server version not found") }

func errNoChange() error {
	return fault.New(fault.Invalid, "no changes to apply: the version already has this status and message")
}
