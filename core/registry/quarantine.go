package registry

import (
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
)

// Reason says why something is in quarantine, in 1 to MaxStatusMessage characters. ParseReason
// makes one.
type Reason string

// ParseReason returns the reason that s contains. It returns fault.Invalid for a text that is
// blank, and for one that no status message can be (contract C-20).
func ParseReason(s string) (Reason, error) {
	if strings.TrimSpace(s) == "" {
		return "", fault.New(fault.Invalid, "reason must say why, in words")
	}
	if err := checkStatusText("reason", s); err != nil {
		return "", err
	}
	return Reason(s), nil
}

// Quarantined is a server, or one version of it, that is in quarantine (contract C-20).
type Quarantined struct {
	Name    Name
	Version Version // the zero value means the whole server
	Reason  Reason
	Since   time.Time // UTC with microsecond precision
	By      Holder    // the person who put it there; empty for an operator
}

// Forbid returns the error that refuses a change of what is in quarantine (contract C-22).
func (q Quarantined) Forbid() error {
	return fault.Newf(fault.Forbidden, "%s is in quarantine: %s", describeTarget(q.Name, q.Version), q.Reason)
}

// PriorStatus is the status that a version had before its quarantine.
type PriorStatus struct {
	Version   Version
	Status    Status
	Message   string
	ChangedAt time.Time
}

// Held is what is known about the quarantine of a version elsewhere, for exports and imports. The
// zero value is that of a version that was not in quarantine.
type Held struct {
	Entries []Quarantined // which cover the version: its own, that of its server, or both
	Prior   PriorStatus   // without the version
}

// FindQuarantine returns the entry by which a version is in quarantine: its own one, else that of
// the whole server. The entries are all of the server; the zero version means the whole server. The
// result is false if the entry does not exist.
func FindQuarantine(entries []Quarantined, version Version) (Quarantined, bool) {
	var whole Quarantined
	found := false
	for _, q := range entries {
		switch q.Version {
		case version:
			return q, true
		case Version{}:
			whole, found = q, true
		}
	}
	return whole, found
}

// CheckQuarantine returns fault.Forbidden, with the reason, if one of the entries of a server
// covers the version; the zero version means the whole server.
func CheckQuarantine(entries []Quarantined, version Version) error {
	if q, found := FindQuarantine(entries, version); found {
		return q.Forbid()
	}
	return nil
}

// Quarantine puts the version of q, or the whole server, in quarantine: what it covers gets the
// status deleted with its reason. The entries of NewLineage must be all of the server. It returns q
// with the time of the change, and the prior statuses of the versions that no other entry covered.
// It returns fault.NotFound when the version or the server is missing, fault.Conflict when there is
// an entry for it already.
func (l *Lineage) Quarantine(q Quarantined, now time.Time) (Quarantined, []PriorStatus, error) {
	if err := l.checkExists(q.Version); err != nil {
		return Quarantined{}, nil, err
	}
	if _, i := l.findEntry(q.Version); i >= 0 {
		return Quarantined{}, nil, fault.Newf(fault.Conflict, "%s is in quarantine already",
			describeTarget(l.name, q.Version))
	}
	at := l.changeTime(now)
	q.Name, q.Since = l.name, at
	before := l.quarantined
	l.quarantined = append(append([]Quarantined(nil), before...), q)
	var prior []PriorStatus
	for i := range l.current {
		r := l.current[i]
		covering, covered := FindQuarantine(l.quarantined, r.Version)
		if !covered {
			continue
		}
		if _, coveredBefore := FindQuarantine(before, r.Version); !coveredBefore {
			prior = append(prior, PriorStatus{r.Version, r.Status, r.StatusMessage, r.StatusChangedAt})
		}
		l.hide(i, covering, at)
	}
	l.updateLatest(at)
	return q, prior, nil
}

// Release ends the quarantine of a version, or that of the whole server for the zero version. prior
// are all prior statuses of the server. A version that no other entry covers gets its prior status
// again; the others stay deleted, with the reason of the entry that covers them. It returns the
// versions whose prior statuses were used. It returns fault.NotFound when the entry does not exist.
func (l *Lineage) Release(version Version, prior []PriorStatus, now time.Time) ([]Version, error) {
	q, entry := l.findEntry(version)
	if entry < 0 {
		return nil, fault.Newf(fault.NotFound, "%s is not in quarantine", describeTarget(l.name, version))
	}
	at := l.changeTime(now)
	rest := append([]Quarantined(nil), l.quarantined[:entry]...)
	l.quarantined = append(rest, l.quarantined[entry+1:]...)
	for i, r := range l.current {
		covering, covered := FindQuarantine(l.quarantined, r.Version)
		if covered && (q.Version == r.Version || q.Version == Version{}) {
			l.hide(i, covering, at)
		}
	}
	var released []Version
	for _, p := range prior {
		_, covered := FindQuarantine(l.quarantined, p.Version)
		if i := l.findVersion(p.Version); i >= 0 && !covered {
			l.restore(i, p, at)
			released = append(released, p.Version)
		}
	}
	if len(l.current) > 0 {
		l.updateLatest(at)
	}
	return released, nil
}

// hide gives a version the status that an entry gives it.
func (l *Lineage) hide(i int, q Quarantined, at time.Time) {
	l.applyStatus(i, StatusUpdate{status: StatusDeleted, message: string(q.Reason)}, at)
}

// restore gives a version its prior status.
func (l *Lineage) restore(i int, p PriorStatus, at time.Time) {
	r := &l.current[i]
	r.Status, r.StatusMessage, r.StatusChangedAt, r.UpdatedAt = p.Status, p.Message, p.ChangedAt, at
}

// checkExists returns fault.NotFound when the server has no such version, or for the zero version
// no version at all.
func (l *Lineage) checkExists(version Version) error {
	switch {
	case version == Version{} && len(l.current) == 0:
		return errNoServer()
	case version != Version{} && l.findVersion(version) < 0:
		return errNoVersion()
	}
	return nil
}

// findEntry returns the entry of a version, or that of the whole server for the zero version, and
// its index; -1 without one.
func (l *Lineage) findEntry(version Version) (Quarantined, int) {
	for i, q := range l.quarantined {
		if q.Version == version {
			return q, i
		}
	}
	return Quarantined{}, -1
}

// describeTarget returns the words for a version, or for the whole server.
func describeTarget(name Name, version Version) string {
	if version == (Version{}) {
		return name.String()
	}
	return name.String() + " " + version.String()
}

// WithPrior gives the lineage the prior statuses of its server, which Mirror needs if something is
// in quarantine. It returns the lineage.
func (l *Lineage) WithPrior(prior []PriorStatus) *Lineage {
	l.prior = append([]PriorStatus(nil), prior...)
	return l
}

// CarriedQuarantine returns the entries that an import has added, and the prior statuses of the
// server, of which Import and Mirror change some.
func (l *Lineage) CarriedQuarantine() ([]Quarantined, []PriorStatus) { return l.carried, l.prior }

// followHidden gives a version in quarantine the status that the registry has from which it is
// mirrored: it gets it when it is released. It reports whether that changed anything.
func (l *Lineage) followHidden(r Release, u StatusUpdate, at time.Time) bool {
	i := l.findPrior(r.Version)
	if i < 0 {
		i = len(l.prior)
		l.prior = append(l.prior, PriorStatus{r.Version, r.Status, r.StatusMessage, r.StatusChangedAt})
	}
	p := &l.prior[i]
	if p.Status == u.status && p.Message == u.message {
		return false
	}
	if p.Status != u.status {
		p.ChangedAt = at
	}
	p.Status, p.Message = u.status, u.message
	return true
}

// findPrior returns the index of the prior status of a version, or -1.
func (l *Lineage) findPrior(version Version) int {
	return slices.IndexFunc(l.prior, func(p PriorStatus) bool { return p.Version == version })
}

// carry adds the entries that versions of an import bring, and hides what they cover. held are
// those of the versions that were added, whose statuses are those of their quarantine already.
func (l *Lineage) carry(held map[Version]Held, at time.Time) {
	before := l.quarantined
	for _, r := range l.current {
		for _, q := range held[r.Version].Entries {
			if q.Name = l.name; q.Version != (Version{}) && q.Version != r.Version {
				continue
			}
			if _, i := l.findEntry(q.Version); i < 0 {
				l.quarantined = append(l.quarantined[:len(l.quarantined):len(l.quarantined)], q)
				l.carried = append(l.carried, q)
			}
		}
	}
	for i, r := range l.current {
		covering, covered := FindQuarantine(l.quarantined, r.Version)
		_, coveredBefore := FindQuarantine(before, r.Version)
		brought, added := held[r.Version]
		if !covered || coveredBefore && !added {
			continue
		}
		p := PriorStatus{r.Version, r.Status, r.StatusMessage, r.StatusChangedAt}
		if added && len(brought.Entries) > 0 {
			p = brought.Prior
			p.Version = r.Version
		}
		l.prior = append(l.prior, p)
		if r.Status != StatusDeleted || r.StatusMessage != string(covering.Reason) {
			l.hide(i, covering, at)
		}
	}
}
