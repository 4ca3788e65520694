package registrystore

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/registry"
)

// Quarantine stores what is in quarantine, and the statuses that versions had before. It does not
// change the versions themselves, but while there is an entry, the store refuses every status other
// than deleted of what the entry covers (ServerWriter.Save), whichever program writes it. Its
// methods join the transaction that the context carries; Add, SetPrior and Remove must be called in
// one that has locked the server (ServerWriter.Lock), and change only what that server has. A
// change is visible to the next call on every instance.
type Quarantine interface {
	// Entries returns what is in quarantine of one server, ordered by version; the entry of the
	// whole server is the first.
	Entries(ctx context.Context, name registry.Name) ([]registry.Quarantined, error)
	// PriorStatuses returns the statuses that versions of a server had before their quarantine,
	// ordered by version.
	PriorStatuses(ctx context.Context, name registry.Name) ([]registry.PriorStatus, error)
	// Add stores an entry, and prior statuses of versions of its server. A prior status that is
	// stored already does not change. It returns fault.Conflict, and stores nothing, if there is
	// such an entry.
	Add(ctx context.Context, q registry.Quarantined, prior []registry.PriorStatus) error
	// SetPrior stores prior statuses of versions of a server, in place of those that are stored.
	SetPrior(ctx context.Context, name registry.Name, prior []registry.PriorStatus) error
	// Remove deletes the entry of a version, or that of the whole server for the zero version, and
	// the prior statuses of the released versions. It returns fault.NotFound, and deletes nothing,
	// if there is no such entry.
	Remove(ctx context.Context, name registry.Name, version registry.Version, released []registry.Version) error
	// List returns the entries that the query selects, ordered by the bytes of the name and then of
	// the version.
	List(ctx context.Context, q QuarantineQuery) ([]registry.Quarantined, error)
}

// MaxQuarantinePatterns is the greatest number of patterns of a QuarantineQuery.
const MaxQuarantinePatterns = 100

// QuarantineQuery selects entries.
type QuarantineQuery struct {
	Patterns     []registry.Pattern // one of these selects the name; an empty list selects nothing
	AfterName    string             // the entries come after this name and version
	AfterVersion string
	Since        time.Time // the entries were made after this time; zero for any
	Limit        int       // maximum number of entries, at least 1
}
