// Package history reads the versions of servers for use cases: all or some of one server, in pieces
// where the documents are large, and those of all servers. It decides nothing, and shows a caller
// nothing: package browsing does.
package history

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

const (
	// heldBytes limits the documents that are in memory at once. A few documents of the greatest size
	// fit, and a hundred of the usual size.
	heldBytes = 4 << 20
	// eachRecords are the records that EachVersion has in memory at once.
	eachRecords = 100
)

// ErrNoServer returns fault.NotFound for a server that does not exist, or that a caller may not see.
func ErrNoServer() error { return fault.New(fault.NotFound, "server not found") }

// History is all versions of a server, newest publication first.
type History struct {
	Records []registry.Record // all of them
	Long    *Long             // in place of Records when the documents are too large to hold at once
}

// Any reports whether match reports true for a version. A long history must not have been read
// before.
func (h History) Any(ctx context.Context, match func(registry.Record) bool) (bool, error) {
	if h.Long == nil {
		return slices.ContainsFunc(h.Records, match), nil
	}
	for {
		piece, err := h.Long.Next(ctx)
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil || slices.ContainsFunc(piece, match) {
			return err == nil, err
		}
	}
}

// AllVersions returns all versions of a server, including deleted ones if deleted is true. It
// returns fault.NotFound when there are no versions.
func AllVersions(
	ctx context.Context, servers registrystore.ServerReader, name registry.Name, deleted bool,
) (History, error) {
	found, err := servers.Versions(ctx, registrystore.VersionsQuery{Name: name, Bytes: heldBytes, Deleted: deleted})
	switch {
	case err != nil:
		return History{}, err
	case found.More:
		editions, err := servers.Outline(ctx, name, deleted)
		if err == nil && len(editions) == 0 { // they were deleted meanwhile
			err = ErrNoServer()
		}
		return History{Long: &Long{servers: servers, deleted: deleted, editions: editions}}, err
	case len(found.Records) == 0:
		return History{}, ErrNoServer()
	}
	return History{Records: found.Records}, nil
}

// SomeVersions returns the versions of a server that are in releases, newest publication first,
// including deleted ones. The documents of a long history are read after this call, outside the
// transaction of ctx.
func SomeVersions(
	ctx context.Context, servers registrystore.ServerReader, name registry.Name, releases []registry.Release,
) (History, error) {
	all, err := servers.Outline(ctx, name, true)
	if err != nil {
		return History{}, err
	}
	wanted := make(map[registry.Version]bool, len(releases))
	for _, r := range releases {
		wanted[r.Version] = true
	}
	l := &Long{servers: servers, deleted: true, lastOfRun: map[int]bool{}}
	size := 0
	for _, e := range all {
		if wanted[e.Version] {
			l.editions = append(l.editions, e)
			size += e.Size
		} else if len(l.editions) > 0 {
			l.lastOfRun[len(l.editions)-1] = true
		}
	}
	if len(l.editions) != len(releases) {
		return History{}, errChanged
	}
	if size > heldBytes {
		return History{Long: l}, nil
	}
	records := make([]registry.Record, 0, len(releases))
	for {
		piece, err := l.Next(ctx)
		if errors.Is(err, io.EOF) {
			return History{Records: records}, nil
		}
		if err != nil {
			return History{}, err
		}
		records = append(records, piece...)
	}
}

// Long is a history whose documents are read in pieces, so that few of them are in memory at
// once. Its versions are those at the time of its creation: Next returns an error when one has
// changed since. It is not safe for concurrent use.
type Long struct {
	servers  registrystore.ServerReader
	deleted  bool
	editions []registry.Edition
	// lastOfRun has the index of each edition that other versions, which are not part of the
	// history, separate from the next one in the store.
	lastOfRun map[int]bool
	read      int // how many of them Next has returned
}

// chunkBytes limits the documents of a piece, so that a slow reader of a history keeps one piece in memory.
const chunkBytes = 1 << 20

// errChanged ends a history whose versions changed since it began.
var errChanged = errors.New("the versions changed while they were read")

// Editions returns all versions without their documents. The caller must not change the slice.
func (l *Long) Editions() []registry.Edition { return l.editions }

// Next returns the next records, at least one, and io.EOF after the last. Any other error ends the
// history, also when a version differs from its edition. No resource of the store is held between
// two calls.
func (l *Long) Next(ctx context.Context) ([]registry.Record, error) {
	rest := l.editions[l.read:]
	if len(rest) == 0 {
		return nil, io.EOF
	}
	q := registrystore.VersionsQuery{Name: rest[0].Name, Limit: l.chunkLength(), Bytes: chunkBytes, Deleted: l.deleted}
	if l.read > 0 || l.lastOfRun != nil { // no version comes before the first of all
		q.Before = rest[0].PublishedAt.Add(time.Microsecond)
	}
	found, err := l.servers.Versions(ctx, q)
	if err != nil {
		return nil, err
	}
	if len(found.Records) != q.Limit {
		return nil, errChanged
	}
	for i := range found.Records {
		// A document is replaced with a new update time.
		if found.Records[i].Release != rest[i].Release {
			return nil, errChanged
		}
	}
	l.read += q.Limit
	return found.Records, nil
}

// chunkLength returns how many of the unread editions form the next piece.
func (l *Long) chunkLength() int {
	size := 0
	for i := l.read; i < len(l.editions); i++ {
		if size += l.editions[i].Size; size >= chunkBytes || l.lastOfRun[i] {
			return i + 1 - l.read
		}
	}
	return len(l.editions) - l.read
}

// EachVersion calls visit with every version of every server, including deleted ones, ordered by
// name, then version, both bytewise. Each page of records is read separately, so that versions
// published meanwhile may be missing. An error of visit ends it and is returned.
func EachVersion(ctx context.Context, servers registrystore.ServerReader, visit func(registry.Record) error) error {
	q := registrystore.Query{Limit: eachRecords, Bytes: heldBytes, Deleted: true}
	for {
		found, err := servers.List(ctx, q)
		if err != nil {
			return err
		}
		for _, r := range found.Records {
			if err := visit(r); err != nil {
				return err
			}
		}
		if !found.More {
			return nil
		}
		q.AfterName, q.AfterVersion = found.End()
	}
}
