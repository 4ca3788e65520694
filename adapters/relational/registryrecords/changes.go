package registryrecords

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// channel is where the triggers of PostgreSQL send notifications of changes (migration
// 0015_changes).
const channel = "tollgate_registry"

// Changes reports changes of versions and views. It implements registrystore.Changes.
type Changes struct {
	db  *database.DB
	log *changeLog

	mu      sync.Mutex
	known   registrystore.Revision
	knownAt time.Time // when the read of known began; zero before the first read
	version int64     // database.DB.DataVersion before the read of known
}

var _ registrystore.Changes = (*Changes)(nil)

// NewChanges returns the changes of servers, and a function that ends their goroutine.
func NewChanges(db *database.DB, s *Servers) (*Changes, func()) {
	c := &Changes{db: db, log: s.changes}
	ctx, end := context.WithCancel(context.Background())
	var listening sync.WaitGroup
	listening.Go(func() { db.Listen(ctx, channel, c.log.noteRemoval) })
	return c, func() {
		end()
		listening.Wait()
	}
}

// Revision implements registrystore.Changes. On SQLite it reads the counters only if something was
// committed since the last read.
func (c *Changes) Revision(ctx context.Context) (registrystore.Revision, error) {
	began := time.Now()
	version, ok, err := c.db.DataVersion(ctx)
	if err != nil {
		return registrystore.Revision{}, err
	}
	before, since, known := c.knownRevision(version, ok)
	if known {
		return before, nil
	}
	r, err := c.readRevision(ctx)
	if err != nil {
		return r, err
	}
	if !since.IsZero() && r.Removals != before.Removals {
		if err := c.readRemovals(ctx, since); err != nil {
			return r, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if began.After(c.knownAt) {
		c.known, c.knownAt, c.version = r, began, version
	}
	return r, nil
}

// knownRevision returns the revision that was read last and when. known is true if the database has
// the same data version since.
func (c *Changes) knownRevision(version int64, ok bool) (r registrystore.Revision, at time.Time, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known, c.knownAt, ok && !c.knownAt.IsZero() && version == c.version
}

func (c *Changes) readRevision(ctx context.Context) (r registrystore.Revision, err error) {
	text := `SELECT CAST(sum(changes) AS bigint), CAST(sum(removals) AS bigint), CAST(sum(views) AS bigint),
		CAST(sum(access) AS bigint) FROM registry_changes`
	err = c.db.ScanRow(ctx, database.Query{Text: text, Fixed: true}, &r.Changes, &r.Removals, &r.Views, &r.Access)
	return r, err
}

// clockDifference is how far the clock of an instance that deleted a version may be behind.
const clockDifference = 10 * time.Minute

// readRemovals adds the servers of which versions were deleted since a time to the log.
func (c *Changes) readRemovals(ctx context.Context, since time.Time) error {
	find := database.Query{
		Text: "SELECT DISTINCT name FROM versions WHERE updated_at > ? AND status = 'deleted' LIMIT ?",
		Args: []any{database.NewInstant(since.Add(-clockDifference)), maxRemovals + 1},
	}
	names, err := database.CollectAll(ctx, c.db, find, database.ScanText[string])
	if err != nil {
		c.log.loseRemovals()
		return err
	}
	c.log.addRemovals(names)
	return nil
}

// Limits of the time for which a revision is valid.
const (
	validFor     = time.Second
	validForFile = 10 * time.Millisecond // where the data version costs microseconds
)

// ValidFor implements registrystore.Changes.
func (c *Changes) ValidFor() time.Duration {
	if c.db.HasDataVersion() {
		return validForFile
	}
	return validFor
}

// AwayAfter implements registrystore.Changes.
func (c *Changes) AwayAfter() time.Duration { return c.db.AwayAfter() }

// Hint implements registrystore.Changes.
func (c *Changes) Hint() uint64 { return c.log.hint.Load() + c.db.Changes() }

// Removals implements registrystore.Changes.
func (c *Changes) Removals(after uint64) (names []string, position uint64, complete bool) {
	return c.log.removalsAfter(after)
}

// maxRemovals is how many removals a changeLog has.
const maxRemovals = 1000

// changeLog has what this process knows of changes without I/O. It is safe for concurrent use.
type changeLog struct {
	hint atomic.Uint64

	mu    sync.Mutex
	names []string // of the last removals
	end   uint64   // position after the last of them
	lost  uint64   // position up to which removals may be missing
}

// noteSaved notes a transaction of this process that saved changes.
func (l *changeLog) noteSaved(changes []registrystore.Change) {
	var removed []string
	for _, c := range changes {
		if c.Release.Status == registry.StatusDeleted {
			removed = append(removed, c.Release.Name.String())
		}
	}
	l.addRemovals(removed)
	l.hint.Add(1)
}

// noteRemoval notes a notification: the name of a server of which a version was deleted, or an
// empty text for any other change.
func (l *changeLog) noteRemoval(name string) {
	if name != "" {
		l.addRemovals([]string{name})
	}
	l.hint.Add(1)
}

func (l *changeLog) addRemovals(names []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end += uint64(len(names))
	if len(names) > maxRemovals { // more than were read
		l.names, l.lost = nil, l.end
		return
	}
	l.names = append(l.names, names...)
	if over := len(l.names) - maxRemovals; over > 0 {
		l.names = append([]string(nil), l.names[over:]...)
	}
}

// loseRemovals notes that there are removals that could not be read.
func (l *changeLog) loseRemovals() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end++
	l.names, l.lost = nil, l.end
}

func (l *changeLog) removalsAfter(position uint64) (names []string, end uint64, complete bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	missed := l.end - min(position, l.end)
	if position < l.lost || missed > uint64(len(l.names)) {
		return nil, l.end, false
	}
	return append([]string(nil), l.names[uint64(len(l.names))-missed:]...), l.end, true
}
