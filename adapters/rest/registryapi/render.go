package registryapi

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/core/registry"
)

// send answers with the JSON that write appends to a buffer. The buffer is the
// response's own, which the server uses again for later answers.
func send(c *fiber.Ctx, write func([]byte) []byte) error {
	c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
	response := c.Response()
	response.SwapBody(write(response.SwapBody(nil)[:0]))
	return nil
}

// appendList appends a ServerList.
func appendList(b []byte, records []registry.Record, nextCursor string) []byte {
	b = append(b, `{"servers":`...)
	b = appendRecords(b, records)
	return appendListEnd(b, nextCursor, len(records))
}

// appendListEnd appends what follows the records of a ServerList.
func appendListEnd(b []byte, nextCursor string, count int) []byte {
	b = append(b, `,"metadata":{`...)
	if nextCursor != "" {
		b = append(b, `"nextCursor":`...)
		b = appendString(b, nextCursor)
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

// appendChangedBegin appends what comes before the records of an
// AllVersionsStatusResponse.
func appendChangedBegin(b []byte, count int) []byte {
	b = append(b, `{"updatedCount":`...)
	b = strconv.AppendInt(b, int64(count), 10)
	return append(b, `,"servers":`...)
}

// metaSize is about what a record needs beside its document and message.
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

// appendRecord appends a ServerResponse: the document as it is stored, and what
// the registry knows of the version.
func appendRecord(b []byte, r *registry.Record) []byte {
	b = append(b, `{"server":`...)
	b = append(b, r.Document...)
	b = append(b, `,"_meta":{"io.modelcontextprotocol.registry/official":{"status":`...)
	b = appendString(b, string(r.Status))
	if r.StatusMessage != "" {
		b = append(b, `,"statusMessage":`...)
		b = appendString(b, r.StatusMessage)
	}
	b = append(b, `,"statusChangedAt":`...)
	begin := len(b)
	b = appendTime(b, r.StatusChangedAt)
	written := b[begin:] // most versions have one time alone
	b = appendTimeAgain(append(b, `,"publishedAt":`...), r.PublishedAt, r.StatusChangedAt, written)
	b = appendTimeAgain(append(b, `,"updatedAt":`...), r.UpdatedAt, r.StatusChangedAt, written)
	b = append(b, `,"isLatest":`...)
	b = strconv.AppendBool(b, r.Latest)
	return append(b, "}}}"...)
}

// appendTimeAgain appends a time as appendTime does; known has been written
// before.
func appendTimeAgain(b []byte, t, known time.Time, written []byte) []byte {
	if t.Equal(known) {
		return append(b, written...)
	}
	return appendTime(b, t)
}

// appendTime appends a time as RFC 3339 in UTC with six decimals (contract R-2). A list has
// hundreds of them, so the digits are written here.
func appendTime(b []byte, t time.Time) []byte {
	t = t.UTC()
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	micro := t.Nanosecond() / int(time.Microsecond)
	text := [...]byte{
		'"', tens(year / 100), ones(year / 100), tens(year), ones(year), '-', tens(int(month)), ones(int(month)), '-', tens(day), ones(day),
		'T', tens(hour), ones(hour), ':', tens(minute), ones(minute), ':', tens(second), ones(second),
		'.', tens(micro / 10_000), ones(micro / 10_000), tens(micro / 100), ones(micro / 100), tens(micro), ones(micro), 'Z', '"',
	}
	return append(b, text[:]...)
}

// tens returns the last digit but one of a number.
func tens(n int) byte { return '0' + byte(n/10%10) }

// ones returns the last digit of a number.
func ones(n int) byte { return '0' + byte(n%10) }

// appendString appends a JSON string.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if s[i] < ' ' || s[i] == '"' || s[i] == '\\' || s[i] >= utf8.RuneSelf {
			quoted, err := json.Marshal(s)
			if err != nil { // not for a string
				return append(b, `""`...)
			}
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}
