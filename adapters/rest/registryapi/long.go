package registryapi

import (
	"context"
	"encoding/binary"
	"errors"
	"io"

	"github.com/cespare/xxhash/v2"
	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/representation"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/browse"
)

// sendLong answers with a ServerList that is made while the client takes it.
func (a *API) sendLong(c *fiber.Ctx, history *browse.LongHistory) error {
	c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
	sum, size := outline(history.Editions())
	l := &longList{ctx: c.UserContext(), history: history}
	log := rest.Log(c, a.config.Log)
	return a.forms.Stream(c, representation.Stream{Sum: sum, Size: size, Next: func() ([]byte, error) {
		piece, err := l.next()
		if err != nil && !errors.Is(err, io.EOF) {
			log.WithError(err).Error("an answer broke off")
		}
		return piece, err
	}})
}

const (
	longBegin = `{"servers":[`
	longEnd   = `]`
)

// outline returns the size of the list of versions, and a hash of what decides
// over its bytes: all that the registry says of the versions, which tells by
// the update times which documents they have.
func outline(editions []registry.Edition) (sum uint64, size int) {
	hash := xxhash.New()
	var b []byte
	for _, e := range editions {
		b = appendRecord(b[:0], &registry.Record{Release: e.Release})
		size += len(b) + e.Size + len(",")
		_, _ = hash.Write(binary.BigEndian.AppendUint64(b, uint64(e.Size))) // it never fails
	}
	size += len(longBegin) - len(",") + len(appendListEnd([]byte(longEnd), "", len(editions)))
	return hash.Sum64(), size
}

// longList makes a ServerList piece by piece.
type longList struct {
	ctx     context.Context //nolint:containedctx // that of the request, whose answer the list is
	history *browse.LongHistory
	piece   []byte // used again for the next one
	sent    int    // records
}

// next returns the piece that follows, or io.EOF.
func (l *longList) next() ([]byte, error) {
	records, err := l.history.Next(l.ctx)
	if err != nil {
		return nil, err
	}
	b := l.piece[:0]
	if l.sent == 0 {
		b = append(b, longBegin...)
	}
	for i := range records {
		if l.sent > 0 {
			b = append(b, ',')
		}
		b = appendRecord(b, &records[i])
		l.sent++
	}
	if all := len(l.history.Editions()); l.sent == all {
		b = appendListEnd(append(b, longEnd...), "", all)
	}
	l.piece = b
	return b, nil
}
