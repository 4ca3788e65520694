package registry

import (
	"slices"
	"time"
)

// WinsName reports whether a person with the grants who publishes a server takes its name from a
// mirror: one of them is to publish it, and is not over everything (contract C-72).
func WinsName(grants []Grant, name Name) bool {
	return slices.ContainsFunc(grants, func(g Grant) bool {
		return g.Action == ActionPublish && !g.Pattern.IsEverything() && g.Pattern.Matches(name)
	})
}

// Takeover is what ends of a mirrored server when it is published here (contract C-72).
type Takeover struct {
	Mirror string
	At     time.Time
	// Ended are the versions that are deleted now.
	Ended []Release
	// Before are those versions as they were.
	Before []Release
	// Dropped are the versions that the store must delete before it saves the changes: the one that
	// is published, and the oldest ones of very many, so that there is room for those to come.
	Dropped []Version
	// Prior are the statuses that versions in quarantine get back at their release.
	Prior []PriorStatus
}

// maxEnded is the greatest number of versions that stay visible after a takeover.
const maxEnded = MaxVersions / 2

// takenOver is the status message of versions that a takeover ends.
const takenOver = "this server is published here now, and is not mirrored any more"

// TakeOver ends what a mirror brought of the server, before its version is published here: the
// versions become local and deleted. It must be the first change. It returns nil for a server that
// no mirror has, and fault.Forbidden for what is in quarantine.
func (l *Lineage) TakeOver(version Version, now time.Time) (*Takeover, error) {
	mirror := l.Origin().Mirror
	if mirror == "" {
		return nil, nil
	}
	if err := CheckQuarantine(l.quarantined, version); err != nil {
		return nil, err
	}
	at := l.changeTime(now)
	t := &Takeover{Mirror: mirror, At: at}
	all, surplus := l.stored, len(l.stored)-maxEnded
	l.stored, l.current = nil, nil
	for i, r := range all {
		_, held := FindQuarantine(l.quarantined, r.Version)
		if r.Version == version || i < surplus && !held {
			t.Dropped = append(t.Dropped, r.Version)
			continue
		}
		l.stored = append(l.stored, r)
		r.Origin = Origin{}
		l.current = append(l.current, r)
		if held {
			t.Prior = append(t.Prior, PriorStatus{r.Version, StatusDeleted, takenOver, at})
		}
		if last := len(l.current) - 1; r.Status != StatusDeleted {
			l.applyStatus(last, StatusUpdate{status: StatusDeleted, message: takenOver}, at)
			t.Ended, t.Before = append(t.Ended, l.current[last]), append(t.Before, r)
		}
	}
	return t, nil
}
