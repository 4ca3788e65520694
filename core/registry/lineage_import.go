package registry

import (
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
)

// Import adds versions with the status, the message and the times that another registry recorded.
// The latest flag follows the rule of this registry (contract R-22). A version without a
// publication time is published now. A version whose publication time is taken gets the next free
// microsecond.
//
// It returns the new releases, and an error for each version that was not added: fault.Conflict
// when the version exists already, deleted or not, or when the server has MaxVersions, and
// fault.Forbidden when it is in quarantine, or a mirror has the server. An earlier
// version whose latest flag moves gets a new update time; an imported one does not.
//
// The lineage has the versions in the order in which they were added, so after Import they may be
// out of the order of publication.
//
// held are the quarantines that the versions had there; otherwise nil. Their entries are
// added (CarriedQuarantine), also for the versions that are here, and such a version is not refused
// for an entry that covers it here. A version that is here itself brings none.
func (l *Lineage) Import(releases []Release, now time.Time, held ...Held) ([]Release, []error) {
	at := l.changeTime(now)
	in := newImporter(l, at)
	added, errs := make([]int, len(releases)), make([]error, len(releases))
	brought := make(map[Version]Held, len(held))
	mirrored := l.checkLocal()
	for i, r := range releases {
		if errs[i] = mirrored; mirrored != nil {
			continue
		}
		hidden := i < len(held) && len(held[i].Entries) > 0
		if errs[i] = CheckQuarantine(l.quarantined, r.Version); errs[i] != nil && !hidden {
			continue
		}
		if added[i], errs[i] = in.addRelease(r); errs[i] == nil && hidden {
			brought[r.Version] = held[i]
		}
	}
	l.carry(brought, at)
	l.updateLatestAfterImport(at)
	result := make([]Release, len(releases))
	for i := range releases {
		if errs[i] == nil {
			result[i] = l.current[added[i]]
		}
	}
	return result, errs
}

// updateLatestAfterImport gives the latest flag as updateLatest does, but sets the update time only
// of versions that existed before the import.
func (l *Lineage) updateLatestAfterImport(at time.Time) {
	if len(l.current) == 0 {
		return
	}
	best := indexOfHighest(l.current)
	for i := range l.current {
		r := &l.current[i]
		if r.Latest == (i == best) {
			continue
		}
		r.Latest = i == best
		if i < len(l.stored) {
			r.UpdatedAt = at
		}
	}
}

// importer adds many versions to a lineage.
type importer struct {
	lineage  *Lineage
	known    map[Version]bool
	occupied map[time.Time]bool // publication times, UTC
	next     time.Time          // later than all times in the lineage
}

func newImporter(l *Lineage, at time.Time) *importer {
	in := &importer{l, make(map[Version]bool, len(l.current)), make(map[time.Time]bool, len(l.current)), at}
	for _, r := range l.current {
		in.known[r.Version] = true
		in.occupied[r.PublishedAt.UTC()] = true
	}
	return in
}

// addRelease adds one version and returns its index in the lineage.
func (in *importer) addRelease(r Release) (int, error) {
	switch {
	case in.known[r.Version]:
		return 0, fault.Newf(fault.Conflict, "version %s of %s already exists", quote(r.Version.value), in.lineage.name)
	case len(in.lineage.current) >= MaxVersions:
		return 0, errTooManyVersions(in.lineage.name)
	}
	r = in.withTimes(r)
	r.Name, r.Latest = in.lineage.name, false
	in.known[r.Version], in.occupied[r.PublishedAt] = true, true
	for _, t := range []time.Time{r.PublishedAt, r.UpdatedAt} {
		if !in.next.After(t) {
			in.next = t.Add(time.Microsecond)
		}
	}
	in.lineage.current = append(in.lineage.current, r)
	return len(in.lineage.current) - 1, nil
}

// withTimes returns the release with all its times: a missing time is derived from the others, and
// no time is before the publication.
func (in *importer) withTimes(r Release) Release {
	if r.PublishedAt.IsZero() {
		r.PublishedAt, r.UpdatedAt, r.StatusChangedAt = in.next, in.next, in.next
		return r
	}
	r.PublishedAt = toMicroseconds(r.PublishedAt)
	for in.occupied[r.PublishedAt] {
		r.PublishedAt = r.PublishedAt.Add(time.Microsecond)
	}
	r.UpdatedAt = laterOf(toMicroseconds(r.UpdatedAt), r.PublishedAt)
	if r.StatusChangedAt.IsZero() && r.Status != StatusActive {
		r.StatusChangedAt = r.UpdatedAt
	}
	r.StatusChangedAt = laterOf(toMicroseconds(r.StatusChangedAt), r.PublishedAt)
	return r
}

func toMicroseconds(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

func laterOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
