package registry

import (
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
)

// Import adds versions as another registry recorded them: each keeps its status, its message and
// its times, except that the latest flag is given by the rule of this registry (contract R-22). A
// version without a publication time is published now. One whose publication time another version
// has already is given the next microsecond that is free.
//
// It returns the versions as they now stand, and an error beside each that was
// not added: fault.Conflict when it is here already, deleted or not, or when
// the server has MaxVersions. Of versions that were here before, one whose
// flag turns gets a new update time; those that come in together tell nothing
// of the order in which they came.
//
// The versions are held in the order in which they were added, so after an
// Import that need not be the order of publication.
func (l *Lineage) Import(releases []Release, now time.Time) ([]Release, []error) {
	at := l.stamp(now)
	in := newIntake(l, at)
	added, errs := make([]int, len(releases)), make([]error, len(releases))
	for i, r := range releases {
		added[i], errs[i] = in.add(r)
	}
	l.electKeeping(at)
	result := make([]Release, len(releases))
	for i := range releases {
		if errs[i] == nil {
			result[i] = l.now[added[i]]
		}
	}
	return result, errs
}

// electKeeping gives the latest flag as elect does, but moves the update time
// only of versions that were there before.
func (l *Lineage) electKeeping(at time.Time) {
	if len(l.now) == 0 {
		return
	}
	best := l.best()
	for i := range l.now {
		r := &l.now[i]
		if r.Latest == (i == best) {
			continue
		}
		r.Latest = i == best
		if i < len(l.before) {
			r.UpdatedAt = at
		}
	}
}

// intake adds many versions to a lineage.
type intake struct {
	lineage  *Lineage
	known    map[Version]bool
	occupied map[time.Time]bool // publication times, UTC
	next     time.Time          // later than all times there are
}

func newIntake(l *Lineage, at time.Time) *intake {
	in := &intake{l, make(map[Version]bool, len(l.now)), make(map[time.Time]bool, len(l.now)), at}
	for _, r := range l.now {
		in.known[r.Version] = true
		in.occupied[r.PublishedAt.UTC()] = true
	}
	return in
}

// add adds one version and returns its place in the lineage.
func (in *intake) add(r Release) (int, error) {
	switch {
	case in.known[r.Version]:
		return 0, fault.Newf(fault.Conflict, "", "version %s of %s is here already", quote(r.Version.value), in.lineage.name)
	case len(in.lineage.now) >= MaxVersions:
		return 0, errFull(in.lineage.name)
	}
	r = in.dated(r)
	r.Name, r.Latest = in.lineage.name, false
	in.known[r.Version], in.occupied[r.PublishedAt] = true, true
	for _, t := range []time.Time{r.PublishedAt, r.UpdatedAt} {
		if !in.next.After(t) {
			in.next = t.Add(time.Microsecond)
		}
	}
	in.lineage.now = append(in.lineage.now, r)
	return len(in.lineage.now) - 1, nil
}

// dated completes the times of a version: what is missing follows from what is
// there, and none comes before the publication.
func (in *intake) dated(r Release) Release {
	if r.PublishedAt.IsZero() {
		r.PublishedAt, r.UpdatedAt, r.StatusChangedAt = in.next, in.next, in.next
		return r
	}
	r.PublishedAt = micros(r.PublishedAt)
	for in.occupied[r.PublishedAt] {
		r.PublishedAt = r.PublishedAt.Add(time.Microsecond)
	}
	r.UpdatedAt = later(micros(r.UpdatedAt), r.PublishedAt)
	if r.StatusChangedAt.IsZero() && r.Status != StatusActive {
		r.StatusChangedAt = r.UpdatedAt
	}
	r.StatusChangedAt = later(micros(r.StatusChangedAt), r.PublishedAt)
	return r
}

func micros(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
