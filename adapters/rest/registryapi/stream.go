package registryapi

import (
	"context"
	"encoding/binary"
	"errors"
	"io"

	"github.com/cespare/xxhash/v2"
	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/responsebody"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/history"
)

// streamVersions sends a ServerList that is made while the client receives it.
func (a *API) streamVersions(c *fiber.Ctx, history *history.Long) error {
	return a.bodies.Stream(c, a.newStream(c, history, listBegin, appendListEnd(nil, "", len(history.Editions()))))
}

// streamChanged sends an AllVersionsStatusResponse that is made while the client receives it.
func (a *API) streamChanged(c *fiber.Ctx, room *responsebody.Reservation, changed *history.Long) {
	begin := string(appendChangedBegin(nil, len(changed.Editions())))
	room.Send(c, a.newStream(c, changed, begin+"[", []byte("}")))
}

const listBegin = `{"servers":[`

// newStream returns the JSON of a history between begin, which ends with the bracket of the array
// of records, and end, which follows the array.
func (a *API) newStream(c *fiber.Ctx, history *history.Long, begin string, end []byte) responsebody.Stream {
	c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
	hash, size := summarize(history.Editions())
	w := &historyWriter{ctx: c.UserContext(), history: history, begin: begin, end: append([]byte("]"), end...)}
	log := rest.Log(c, a.config.Log)
	return responsebody.Stream{Hash: hash, Size: len(begin) + size + len(w.end), Next: func() ([]byte, error) {
		piece, err := w.nextPiece()
		if err != nil && !errors.Is(err, io.EOF) {
			log.WithError(err).Error("a response was interrupted")
		}
		return piece, err
	}}
}

// summarize returns the size of the records of versions, with the commas between them, and a hash
// of everything that determines their bytes: the metadata of the versions. The update times in the
// metadata identify the documents.
func summarize(editions []registry.Edition) (sum uint64, size int) {
	hash := xxhash.New()
	var b []byte
	for _, e := range editions {
		b = appendRecord(b[:0], &registry.Record{Release: e.Release})
		size += len(b) + e.Size + len(",")
		_, _ = hash.Write(binary.BigEndian.AppendUint64(b, uint64(e.Size))) // it never fails
	}
	return hash.Sum64(), size - len(",")
}

// historyWriter writes a response with the records of a history in pieces.
type historyWriter struct {
	ctx     context.Context //nolint:containedctx // of the request, whose response the writer writes
	history *history.Long
	begin   string // before the records
	end     []byte // after the records
	buffer  []byte // of the last piece; reused for the next one
	written int    // records
}

// nextPiece returns the next piece, or io.EOF.
func (w *historyWriter) nextPiece() ([]byte, error) {
	records, err := w.history.Next(w.ctx)
	if err != nil {
		return nil, err
	}
	b := w.buffer[:0]
	if w.written == 0 {
		b = append(b, w.begin...)
	}
	for i := range records {
		if w.written > 0 {
			b = append(b, ',')
		}
		b = appendRecord(b, &records[i])
		w.written++
	}
	if w.written == len(w.history.Editions()) {
		b = append(b, w.end...)
	}
	w.buffer = b
	return b, nil
}
