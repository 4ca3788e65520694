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
	return a.forms.Stream(c, a.stream(c, history, listBegin, appendListEnd(nil, "", len(history.Editions()))))
}

// sendLongChange answers with an AllVersionsStatusResponse that is made while
// the client takes it.
func (a *API) sendLongChange(c *fiber.Ctx, room *representation.Room, changed *browse.LongHistory) {
	begin := string(appendChangedBegin(nil, len(changed.Editions())))
	room.Send(c, a.stream(c, changed, begin+"[", []byte("}")))
}

const listBegin = `{"servers":[`

// stream returns the JSON of a history, with what comes before its records and
// behind their array.
func (a *API) stream(c *fiber.Ctx, history *browse.LongHistory, begin string, end []byte) representation.Stream {
	c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
	sum, size := outline(history.Editions())
	l := &longList{ctx: c.UserContext(), history: history, begin: begin, end: append([]byte("]"), end...)}
	log := rest.Log(c, a.config.Log)
	return representation.Stream{Sum: sum, Size: len(begin) + size + len(l.end), Next: func() ([]byte, error) {
		piece, err := l.next()
		if err != nil && !errors.Is(err, io.EOF) {
			log.WithError(err).Error("a response was interrupted")
		}
		return piece, err
	}}
}

// outline returns the size of the records of versions with the commas between
// them, and a hash of what decides over their bytes: all that the registry says of the versions, which tells by
// the update times which documents they have.
func outline(editions []registry.Edition) (sum uint64, size int) {
	hash := xxhash.New()
	var b []byte
	for _, e := range editions {
		b = appendRecord(b[:0], &registry.Record{Release: e.Release})
		size += len(b) + e.Size + len(",")
		_, _ = hash.Write(binary.BigEndian.AppendUint64(b, uint64(e.Size))) // it never fails
	}
	return hash.Sum64(), size - len(",")
}

// longList makes an answer with the records of a history piece by piece.
type longList struct {
	ctx     context.Context //nolint:containedctx // that of the request, whose answer the list is
	history *browse.LongHistory
	begin   string // what comes before the records
	end     []byte // what comes behind them
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
		b = append(b, l.begin...)
	}
	for i := range records {
		if l.sent > 0 {
			b = append(b, ',')
		}
		b = appendRecord(b, &records[i])
		l.sent++
	}
	if l.sent == len(l.history.Editions()) {
		b = append(b, l.end...)
	}
	l.piece = b
	return b, nil
}
