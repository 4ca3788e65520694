package browse

import (
	"context"
	"errors"
	"io"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/serverstore"
)

// History is all versions of a server, newest publication first.
type History struct {
	Records []registry.Record // all of them
	Long    *LongHistory      // in place of Records where their documents are too large to be held at once
}

// Versions returns all versions of a server. includeDeleted is true, false or
// empty, which is false; anything else is fault.Invalid. No such server, or
// only deleted versions where they are not asked for, is fault.NotFound
// (decisions 1.2).
func (b *Browser) Versions(ctx context.Context, serverName, includeDeleted string) (History, error) {
	deleted, err := parseFlag("include_deleted", includeDeleted)
	if err != nil {
		return History{}, err
	}
	name, err := registry.ParseName(serverName)
	if err != nil {
		return History{}, errNoServer()
	}
	found, err := b.servers.Versions(ctx, serverstore.VersionsQuery{Name: name, Bytes: pageBytes, Deleted: deleted})
	if err != nil {
		return History{}, err
	}
	if found.More {
		long, err := b.outline(ctx, name, deleted)
		return History{Long: long}, err
	}
	if len(found.Records) == 0 {
		return History{}, errNoServer()
	}
	return History{Records: found.Records}, nil
}

// outline returns a history whose documents are yet to be read.
func (b *Browser) outline(ctx context.Context, name registry.Name, deleted bool) (*LongHistory, error) {
	editions, err := b.servers.Outline(ctx, name, deleted)
	if err != nil {
		return nil, err
	}
	if len(editions) == 0 { // they were deleted in between
		return nil, errNoServer()
	}
	return &LongHistory{servers: b.servers, deleted: deleted, editions: editions}, nil
}

// LongHistory is a history whose documents are read piece by piece, so that
// few of them are held at once. What it is was settled at one moment: a piece
// that has changed since is refused. It is for one caller.
type LongHistory struct {
	servers  serverstore.Reader
	deleted  bool
	editions []registry.Edition
	read     int // how many of them Next has returned
}

// chunkBytes bounds the documents of a piece, as pageBytes those of a page. A
// slow reader of a history keeps a piece in memory.
const chunkBytes = 1 << 20

// errChanged ends a history that is not what it was when it began.
var errChanged = errors.New("the versions changed while they were read")

// Editions returns all versions without their documents. The caller leaves the
// slice as it is.
func (l *LongHistory) Editions() []registry.Edition { return l.editions }

// Next returns the records that follow, at least one, and io.EOF behind the
// last. An error ends the history, also when a version is no longer what
// Editions tells. Nothing of the store is held between two calls.
func (l *LongHistory) Next(ctx context.Context) ([]registry.Record, error) {
	rest := l.editions[l.read:]
	if len(rest) == 0 {
		return nil, io.EOF
	}
	q := serverstore.VersionsQuery{Name: rest[0].Name, Limit: chunk(rest), Bytes: chunkBytes, Deleted: l.deleted}
	if l.read > 0 {
		q.Before = l.editions[l.read-1].PublishedAt
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

// chunk returns how many of the first editions are a piece.
func chunk(editions []registry.Edition) int {
	n, size := 0, 0
	for n < len(editions) && size < chunkBytes {
		size += editions[n].Size
		n++
	}
	return n
}
