package mirror

import (
	"crypto/sha256"
	"time"

	"github.com/tollgate-dev/tollgate/core/registry"
)

// Tracked is the state of a version in another registry that a mirror has taken.
type Tracked struct {
	Name    registry.Name
	Version registry.Version
	// Hash is the SHA-256 hash of the document.
	Hash    [sha256.Size]byte
	Status  registry.Status
	Message string
	// PublishedAt is UTC with microseconds; zero if the other registry gives no time.
	PublishedAt time.Time
	// StatusChangedAt likewise. It is zero for a status that the other registry did not give.
	StatusChangedAt time.Time
	// Review is the review to which the document was submitted; empty if it was listed at once. The
	// document is not listed while the review is pending or rejected.
	Review registry.ReviewID
}

// Upstream returns the state for the lineage of the server. document says whether the document is
// another one than the one that is listed.
func (t *Tracked) Upstream(document bool) registry.Upstream {
	return registry.Upstream{
		Release: registry.Release{
			Name: t.Name, Version: t.Version, Status: t.Status, StatusMessage: t.Message,
			StatusChangedAt: t.StatusChangedAt, PublishedAt: t.PublishedAt,
		},
		Document: document,
	}
}

// IsListed reports whether the other registry lists the version.
func (t *Tracked) IsListed() bool { return t.Status != registry.StatusDeleted }
