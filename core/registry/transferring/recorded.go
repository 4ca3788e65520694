package transferring

import (
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/recordsource"
)

// clockSkew is how far the clock of another registry may be ahead. A later time would also move the
// times of all later changes of the server.
const clockSkew = 24 * time.Hour

// Parsed is a record of another registry that follows the rules.
type Parsed struct {
	Name, Version string // as the document has them, clipped; also of a record that breaks a rule
	Document      registry.Document
	Release       registry.Release // without the latest flag
}

// ParseEntry returns the document and the release of a record that is not Broken. lenient accepts
// documents that break rules, as Options.Lenient does. It returns an error, with a sentence for
// operators, for a record that cannot be stored.
func ParseEntry(e recordsource.Entry, lenient bool, now time.Time) (Parsed, error) {
	if e.Unreadable != nil {
		return Parsed{}, e.Unreadable
	}
	draft, err := registry.ParseDraft(e.Document)
	if err != nil {
		return Parsed{}, err
	}
	p := Parsed{Name: registry.Clip(draft.Name()), Version: registry.Clip(draft.Version())}
	if lenient {
		p.Document, err = draft.ImportedDocument()
	} else {
		p.Document, err = draft.Document()
	}
	if err != nil {
		return p, err
	}
	p.Release, err = releaseOf(p.Document, e.Recorded, now)
	return p, err
}

// releaseOf returns the release of a record. Without a status it is active; without a publication
// time it is published now.
func releaseOf(doc registry.Document, r recordsource.Recorded, now time.Time) (registry.Release, error) {
	status := registry.StatusActive
	if r.Status != "" {
		var err error
		if status, err = registry.ParseStatus(r.Status); err != nil {
			return registry.Release{}, err
		}
	}
	if _, err := registry.NewStatusUpdate(status, r.StatusMessage); err != nil {
		return registry.Release{}, err
	}
	for _, t := range []struct {
		name string
		time time.Time
	}{{"publishedAt", r.PublishedAt}, {"updatedAt", r.UpdatedAt}, {"statusChangedAt", r.StatusChangedAt}} {
		if err := checkTime(t.name, t.time, now); err != nil {
			return registry.Release{}, err
		}
	}
	return registry.Release{
		Name: doc.Name(), Version: doc.Version(), Status: status, StatusMessage: r.StatusMessage,
		StatusChangedAt: r.StatusChangedAt, PublishedAt: r.PublishedAt, UpdatedAt: r.UpdatedAt,
	}, nil
}

// maxHolder bounds the person of an entry, a user id of another installation.
const maxHolder = 100

// heldOf returns the quarantine of a version of an export; the zero value without one. It returns
// fault.Invalid if a value breaks a rule.
func heldOf(v registry.Version, recorded *recordsource.Quarantine, now time.Time) (registry.Held, error) {
	if recorded == nil {
		return registry.Held{}, nil
	}
	if len(recorded.Entries) == 0 {
		return registry.Held{}, fault.New(fault.Invalid, "the quarantine of the record has no entries")
	}
	var held registry.Held
	for _, e := range recorded.Entries {
		reason, err := registry.ParseReason(e.Reason)
		if err != nil {
			return registry.Held{}, err
		}
		if err := checkTime("since", e.Since, now); err != nil {
			return registry.Held{}, err
		}
		if !registry.IsText(e.By) || len(e.By) > maxHolder {
			return registry.Held{}, fault.Newf(fault.Invalid, "by must be text of at most %d bytes", maxHolder)
		}
		q := registry.Quarantined{Version: v, Reason: reason, Since: e.Since, By: registry.Holder(e.By)}
		if q.Since.IsZero() {
			q.Since = now
		}
		if e.Server {
			q.Version = registry.Version{}
		}
		held.Entries = append(held.Entries, q)
	}
	status, err := registry.ParseStatus(recorded.Status)
	if err != nil {
		return registry.Held{}, err
	}
	if _, err := registry.NewStatusUpdate(status, recorded.StatusMessage); err != nil {
		return registry.Held{}, err
	}
	if err := checkTime("statusChangedAt", recorded.StatusChangedAt, now); err != nil {
		return registry.Held{}, err
	}
	held.Prior = registry.PriorStatus{
		Version: v, Status: status, Message: recorded.StatusMessage, ChangedAt: recorded.StatusChangedAt,
	}
	return held, nil
}

// checkTime returns fault.Invalid for a time before 1970 or in the future.
func checkTime(name string, t, now time.Time) error {
	switch {
	case t.IsZero():
		return nil
	case t.Before(time.Unix(0, 0)):
		return fault.Newf(fault.Invalid, "%s is before 1970", name)
	case t.After(now.Add(clockSkew)):
		return fault.Newf(fault.Invalid, "%s is in the future", name)
	}
	return nil
}
