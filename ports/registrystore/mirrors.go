package registrystore

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/mirror"
)

// MaxSkew is how far the clocks of two instances that read for mirrors may differ.
const MaxSkew = time.Minute

// Mirrors stores the mirrors of other registries. Its methods join the transaction that the context
// carries. A change is visible to the next call on every instance. Times are kept in UTC with
// microseconds.
type Mirrors interface {
	// Put stores a mirror. One with its name gets its other fields, except CreatedAt and of the state
	// all but NextAt and LastFull.
	Put(ctx context.Context, m mirror.Mirror) error
	// Remove deletes a mirror with what it tracks, or returns fault.NotFound. It does not change
	// servers.
	Remove(ctx context.Context, name mirror.Name) error
	// List returns all mirrors with their states, ordered by name.
	List(ctx context.Context) ([]mirror.Mirror, error)
	// SaveState stores the state of a mirror. It returns fault.Conflict, and stores nothing, unless
	// the holder has the lease of the mirror, even one whose time has passed.
	SaveState(ctx context.Context, name mirror.Name, holder string, s mirror.State) error
	// Lease makes the holder the only one that reads the other registry until a time, and reports
	// whether it could: it cannot while another holder's time has not passed. The holder itself
	// gets the new time. A holder whose time is later than the new one by more than MaxSkew is none
	// any more: its clock was ahead. Of parallel calls of several holders, one succeeds. It returns
	// fault.NotFound if the mirror does not exist.
	Lease(ctx context.Context, name mirror.Name, l Lease) (bool, error)
	// Release ends the lease of the holder, if it has it.
	Release(ctx context.Context, name mirror.Name, holder string) error
}

// MirrorRereader makes mirrors compare everything. It joins the transaction that the context
// carries.
type MirrorRereader interface {
	// Reread makes the next read of the other registry compare everything. It does nothing if there
	// is no such mirror.
	Reread(ctx context.Context, of mirror.Name) error
}

// MirroredVersions stores what mirrors have taken. Its methods join the transaction that the
// context carries.
type MirroredVersions interface {
	// Page returns what a mirror tracks of whole servers: of the first ones after a name in the
	// order of the bytes, at most limit servers, ordered by name and then by version.
	Page(ctx context.Context, of mirror.Name, after string, limit int) ([]mirror.Tracked, error)
	// OfServers returns what a mirror tracks of servers, at most MaxNames, ordered by name and then
	// by version.
	OfServers(ctx context.Context, of mirror.Name, names []registry.Name) ([]mirror.Tracked, error)
	// Put stores states, in place of those of the same versions.
	Put(ctx context.Context, of mirror.Name, list []mirror.Tracked) error
	// Adopt makes the servers of a mirror local, so that they can be changed here: their versions
	// lose their origin (registry.Origin). It must be called in a transaction that has locked the
	// servers, at most MaxNames.
	Adopt(ctx context.Context, names []registry.Name) error
	// End makes a server of a mirror local, as Adopt does, forgets what the mirror tracks of it,
	// and deletes some of its versions, so that they can be published again. Like Adopt, it needs
	// the lock.
	End(ctx context.Context, of mirror.Name, name registry.Name, dropped []registry.Version) error
	// Purge deletes servers with all their versions, so that the names can be published again.
	// Nothing of them may be in quarantine. Like Adopt, it needs the locks.
	Purge(ctx context.Context, names []registry.Name) error
}
