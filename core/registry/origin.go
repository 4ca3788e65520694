package registry

import (
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
)

// Origin says from which other registry a mirror took a version (contract C-60). The zero value is
// the origin of a version that was published here.
type Origin struct {
	Mirror    string    // the name of the mirror
	URL       string    // of the other registry, without secrets
	FetchedAt time.Time // when the document was read; UTC with microsecond precision
}

// Forbid returns the error that refuses a change of a mirrored server here (contract C-64).
func (o Origin) Forbid(name Name) error {
	return fault.Newf(fault.Forbidden, "%s is mirrored from %s by the mirror %s, and changes only there", name,
		o.URL, o.Mirror)
}

// Origin returns the origin of the server: the zero value if it was published here, or has no
// versions. All versions of a server have the same mirror.
func (l *Lineage) Origin() Origin {
	if len(l.current) == 0 {
		return Origin{}
	}
	return l.current[0].Origin
}

// checkLocal returns fault.Forbidden if a mirror has the server.
func (l *Lineage) checkLocal() error {
	if o := l.Origin(); o != (Origin{}) {
		return o.Forbid(l.name)
	}
	return nil
}

// Upstream is the state of a version in the registry that a mirror reads.
type Upstream struct {
	Release       // Latest, UpdatedAt and Origin are ignored
	Document bool // the document is another one than here, or the version is new here
}

// MirrorChange is what Mirror did to a version.
type MirrorChange string

// The values of MirrorChange.
const (
	MirrorNothing  MirrorChange = ""
	MirrorAdded    MirrorChange = "added"
	MirrorReplaced MirrorChange = "replaced" // the document, and perhaps the status
	MirrorStatus   MirrorChange = "status"   // the status or its message only
	MirrorHidden   MirrorChange = "hidden"   // likewise, of a version in quarantine: it shows after the release
)

// Mirror gives versions the state that they have in the registry that a mirror reads: it adds those
// that are missing, and changes the status of the others. The latest flag follows the rule of this
// registry, and the times of updates are those here, so that a reader who follows updates misses
// nothing. The time of publication of a version never changes.
//
// It returns what happened to each version, and an error for each that was left as it is:
// fault.Forbidden for a new version or a new document of what is in quarantine, fault.Conflict when
// the server has MaxVersions, or when it has another origin. Of a version in quarantine, the prior
// status follows (WithPrior, CarriedQuarantine), so that a release does not list what the other
// registry has deleted.
func (l *Lineage) Mirror(o Origin, versions []Upstream, now time.Time) ([]MirrorChange, []error) {
	at := l.changeTime(now)
	in := newImporter(l, at)
	changes, errs := make([]MirrorChange, len(versions)), make([]error, len(versions))
	here := make(map[Version]int, len(l.current))
	for i, r := range l.current {
		here[r.Version] = i
	}
	foreign := l.CheckMirror(o.Mirror)
	for i, u := range versions {
		if foreign != nil {
			errs[i] = foreign
			continue
		}
		stored, ok := here[u.Version]
		if errs[i] = CheckQuarantine(l.quarantined, u.Version); errs[i] != nil {
			if !ok {
				continue
			}
			if l.followHidden(l.current[stored], StatusUpdate{status: u.Status, message: u.StatusMessage}, at) {
				changes[i] = MirrorHidden
			}
			if !u.Document {
				errs[i] = nil
			}
			continue
		}
		if ok {
			changes[i] = l.followUpstream(stored, o, u, at)
			continue
		}
		added := u.Release
		added.UpdatedAt, added.Origin = at, o
		place, err := in.addRelease(added)
		if err != nil {
			errs[i] = err
			continue
		}
		here[u.Version], changes[i] = place, MirrorAdded
	}
	l.updateLatestAfterImport(at)
	return changes, errs
}

// CheckMirror returns fault.Conflict if the server has versions that the mirror did not bring: what
// was published here comes first, and then the mirror that brought the server first (contract
// C-65).
func (l *Lineage) CheckMirror(mirror string) error {
	switch o := l.Origin(); {
	case len(l.current) == 0 || o.Mirror == mirror:
		return nil
	case o == Origin{}:
		return fault.Newf(fault.Conflict, "%s was published here, and what is here comes first", l.name)
	default:
		return fault.Newf(fault.Conflict, "%s belongs to the mirror %s", l.name, o.Mirror)
	}
}

// followUpstream gives a version that is here its state upstream.
func (l *Lineage) followUpstream(i int, o Origin, u Upstream, at time.Time) MirrorChange {
	changed := l.applyStatus(i, StatusUpdate{status: u.Status, message: u.StatusMessage}, at)
	if r := &l.current[i]; !u.StatusChangedAt.IsZero() {
		if since := laterOf(toMicroseconds(u.StatusChangedAt), r.PublishedAt); !since.Equal(r.StatusChangedAt) {
			r.StatusChangedAt, r.UpdatedAt, changed = since, at, true
		}
	}
	switch {
	case u.Document:
		l.current[i].UpdatedAt, l.current[i].Origin = at, o
		return MirrorReplaced
	case changed:
		return MirrorStatus
	}
	return MirrorNothing
}
