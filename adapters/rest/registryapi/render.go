package registryapi

import (
	"slices"
	"strconv"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/internal/jsonstring"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/publishing"
)

// sendJSON sends the JSON that write appends to a buffer. It uses the buffer of the response, which
// the server reuses for later responses.
func sendJSON(c *fiber.Ctx, write func([]byte) []byte) {
	c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
	response := c.Response()
	response.SwapBody(write(response.SwapBody(nil)[:0]))
}

// appendList appends a ServerList.
func appendList(b []byte, records []registry.Record, nextCursor string) []byte {
	b = append(b, `{"servers":`...)
	b = appendRecords(b, records)
	return appendListEnd(b, nextCursor, len(records))
}

// appendListEnd appends the part of a ServerList after the records.
func appendListEnd(b []byte, nextCursor string, count int) []byte {
	b = append(b, `,"metadata":{`...)
	if nextCursor != "" {
		b = append(b, `"nextCursor":`...)
		b = jsonstring.Append(b, nextCursor)
		b = append(b, ',')
	}
	b = append(b, `"count":`...)
	b = strconv.AppendInt(b, int64(count), 10)
	return append(b, "}}"...)
}

// appendChanged appends an AllVersionsStatusResponse.
func appendChanged(b []byte, records []registry.Record) []byte {
	b = appendRecords(appendChangedBegin(b, len(records)), records)
	return append(b, '}')
}

// appendChangedBegin appends the part of an AllVersionsStatusResponse before the records.
func appendChangedBegin(b []byte, count int) []byte {
	b = append(b, `{"updatedCount":`...)
	b = strconv.AppendInt(b, int64(count), 10)
	return append(b, `,"servers":`...)
}

// metaSize is the approximate size of a record without its document and message.
const metaSize = 320

func appendRecords(b []byte, records []registry.Record) []byte {
	size := metaSize
	for i := range records {
		size += len(records[i].Document) + len(records[i].StatusMessage) + metaSize
	}
	b = append(slices.Grow(b, size), '[')
	for i := range records {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendRecord(b, &records[i])
	}
	return append(b, ']')
}

// appendRecord appends a ServerResponse: the stored document, and the metadata of the version.
func appendRecord(b []byte, r *registry.Record) []byte {
	b = append(b, `{"server":`...)
	b = append(b, r.Document...)
	b = append(b, `,"_meta":{"`+registry.OfficialMeta+`":{"status":`...)
	b = jsonstring.Append(b, string(r.Status))
	if r.StatusMessage != "" {
		b = append(b, `,"statusMessage":`...)
		b = jsonstring.Append(b, r.StatusMessage)
	}
	b = append(b, `,"statusChangedAt":`...)
	begin := len(b)
	b = jsonstring.AppendTime(b, r.StatusChangedAt)
	statusChangedAt := b[begin:] // of most versions all times are equal, and are formatted once
	b = appendTimeOrCopy(append(b, `,"publishedAt":`...), r.PublishedAt, r.StatusChangedAt, statusChangedAt)
	b = appendTimeOrCopy(append(b, `,"updatedAt":`...), r.UpdatedAt, r.StatusChangedAt, statusChangedAt)
	b = append(b, `,"isLatest":`...)
	b = strconv.AppendBool(b, r.Latest)
	b = append(b, '}')
	if r.Origin != (registry.Origin{}) {
		b = appendOrigin(b, r.Origin)
	}
	return append(b, "}}"...)
}

// appendOrigin appends the origin of a version that a mirror took over (contract C-61).
func appendOrigin(b []byte, o registry.Origin) []byte {
	b = jsonstring.Append(append(b, `,"dev.tollgate/origin":{"mirror":`...), o.Mirror)
	b = jsonstring.Append(append(b, `,"url":`...), o.URL)
	b = jsonstring.AppendTime(append(b, `,"fetchedAt":`...), o.FetchedAt)
	return append(b, '}')
}

// pendingEnd ends a record that waits for review.
const pendingEnd = `,"dev.tollgate/review":{"id":`

// appendPending appends a record that waits for review, with the mark of its review
// (contract C-10).
func appendPending(b []byte, o *publishing.Outcome) []byte {
	b = appendRecord(b, &o.Record)
	b = append(b[:len(b)-len("}}")], pendingEnd...)
	b = jsonstring.Append(b, string(o.Pending))
	return append(b, `,"state":"pending"}}}`...)
}

// appendTimeOrCopy appends t like jsonstring.AppendTime. formatted is the result for known.
func appendTimeOrCopy(b []byte, t, known time.Time, formatted []byte) []byte {
	if t.Equal(known) {
		return append(b, formatted...)
	}
	return jsonstring.AppendTime(b, t)
}
