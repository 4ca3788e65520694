package registry

import (
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
)

// Lineage is all versions of one server, on which every change is decided as a whole: after each
// exactly one of them is latest (contract R-23). It is made from what the store locked, and its
// changes go back there.
type Lineage struct {
	name   Name
	before []Release
	now    []Release
}

// NewLineage returns the lineage of a server from its releases, oldest
// publication first. The releases are not changed.
func NewLineage(name Name, releases []Release) *Lineage {
	return &Lineage{name, releases, append([]Release(nil), releases...)}
}

// Publish adds a version. fault.Conflict when it was ever published, deleted or not, and when the
// server has MaxVersions already (contract R-25).
func (l *Lineage) Publish(version Version, now time.Time) (Release, error) {
	if l.find(version) >= 0 {
		return Release{}, fault.Newf(fault.Conflict, "", "version %s of %s was published before, and a version is published once", quote(version.value), l.name)
	}
	if len(l.now) >= MaxVersions {
		return Release{}, errFull(l.name)
	}
	at := l.stamp(now)
	l.now = append(l.now, Release{
		Name: l.name, Version: version, Status: StatusActive, StatusChangedAt: at, PublishedAt: at, UpdatedAt: at,
	})
	l.elect(at)
	return l.now[len(l.now)-1], nil
}

// Replace notes that the document of a version was replaced: only its update
// time moves. fault.NotFound when it is missing or deleted.
func (l *Lineage) Replace(version Version, now time.Time) (Release, error) {
	i, err := l.living(version)
	if err != nil {
		return Release{}, err
	}
	l.now[i].UpdatedAt = l.stamp(now)
	return l.now[i], nil
}

// Delete gives a version the status deleted, without a message.
// fault.NotFound when it is missing or deleted already.
func (l *Lineage) Delete(version Version, now time.Time) (Release, error) {
	i, err := l.living(version)
	if err != nil {
		return Release{}, err
	}
	at := l.stamp(now)
	l.apply(i, StatusUpdate{status: StatusDeleted}, at)
	l.elect(at)
	return l.now[i], nil
}

// SetStatus changes the status of a version. fault.NotFound when it is missing, fault.Invalid when
// it has the status and message already (contract R-28).
func (l *Lineage) SetStatus(version Version, u StatusUpdate, now time.Time) (Release, error) {
	i := l.find(version)
	if i < 0 {
		return Release{}, errNoVersion()
	}
	at := l.stamp(now)
	if !l.apply(i, u, at) {
		return Release{}, errNoChange()
	}
	l.elect(at)
	return l.now[i], nil
}

// SetStatusAll changes the status of all versions and returns those that did
// not stand so already, newest publication first. fault.NotFound when there
// are no versions, fault.Invalid when all stand so.
func (l *Lineage) SetStatusAll(u StatusUpdate, now time.Time) ([]Release, error) {
	if len(l.now) == 0 {
		return nil, fault.New(fault.NotFound, "", "server not found")
	}
	at := l.stamp(now)
	var changed []int
	for i := len(l.now) - 1; i >= 0; i-- {
		if l.apply(i, u, at) {
			changed = append(changed, i)
		}
	}
	if len(changed) == 0 {
		return nil, errNoChange()
	}
	l.elect(at)
	releases := make([]Release, 0, len(changed))
	for _, i := range changed {
		releases = append(releases, l.now[i])
	}
	return releases, nil
}

// Changes returns the releases that are not as they were: those that were
// changed themselves, and those whose latest flag turned, which have a new
// update time too.
func (l *Lineage) Changes() []Release {
	var changed []Release
	for i, r := range l.now {
		if i >= len(l.before) || r != l.before[i] {
			changed = append(changed, r)
		}
	}
	return changed
}

// apply gives one version a status, and tells whether that changed anything.
func (l *Lineage) apply(i int, u StatusUpdate, at time.Time) bool {
	r := &l.now[i]
	if r.Status == u.status && r.StatusMessage == u.message {
		return false
	}
	if r.Status != u.status {
		r.StatusChangedAt = at
	}
	r.Status, r.StatusMessage, r.UpdatedAt = u.status, u.message, at
	return true
}

// elect gives the latest flag to the version that outranks all others.
func (l *Lineage) elect(at time.Time) {
	best := l.best()
	for i := range l.now {
		if r := &l.now[i]; r.Latest != (i == best) {
			r.Latest, r.UpdatedAt = i == best, at
		}
	}
}

// best returns the version that outranks all others; there is one at least.
func (l *Lineage) best() int {
	best, bestRank := 0, rank(l.now[0])
	for i := 1; i < len(l.now); i++ {
		if r := rank(l.now[i]); r.over(bestRank) {
			best, bestRank = i, r
		}
	}
	return best
}

// stamp returns the time of a change: now, in microseconds, but later than all
// that happened to the server before, whatever the clocks of other instances
// say.
func (l *Lineage) stamp(now time.Time) time.Time {
	at := now.UTC().Truncate(time.Microsecond)
	for _, r := range l.now {
		for _, t := range []time.Time{r.PublishedAt, r.UpdatedAt} {
			if !at.After(t) {
				at = t.UTC().Truncate(time.Microsecond).Add(time.Microsecond)
			}
		}
	}
	return at
}

func (l *Lineage) living(version Version) (int, error) {
	i := l.find(version)
	if i < 0 || l.now[i].Status == StatusDeleted {
		return 0, errNoVersion()
	}
	return i, nil
}

func (l *Lineage) find(version Version) int {
	for i := range l.now {
		if l.now[i].Version == version {
			return i
		}
	}
	return -1
}

func errFull(name Name) error {
	return fault.Newf(fault.Conflict, "", "server %s has %d versions already, and no more are allowed", name, MaxVersions)
}

func errNoVersion() error { return fault.New(fault.NotFound, "", "server version not found") }

func errNoChange() error {
	return fault.New(fault.Invalid, "", "no changes to apply: the status and its message are as requested already")
}
