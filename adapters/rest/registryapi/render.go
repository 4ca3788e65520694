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
	b = append(b, `,"metadata":{`...)
	if nextCursor != "" {
		b = append(b, `"nextCursor":`...)
		b = appendString(b, nextCursor)
		b = append(b, ',')
	}
	b = append(b, `"count":`...)
	b = strconv.AppendInt(b, int64(len(records)), 10)
	return append(b, "}}"...)
}

// appendChanged appends an AllVersionsStatusResponse.
func appendChanged(b []byte, records []registry.Record) []byte {
	b = append(b, `{"updatedCount":`...)
	b = strconv.AppendInt(b, int64(len(records)), 10)
	b = append(b, `,"servers":`...)
	b = appendRecords(b, records)
	return append(b, '}')
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
	b = appendTime(append(b, `,"statusChangedAt":`...), r.StatusChangedAt)
	b = appendTime(append(b, `,"publishedAt":`...), r.PublishedAt)
	b = appendTime(append(b, `,"updatedAt":`...), r.UpdatedAt)
	b = append(b, `,"isLatest":`...)
	b = strconv.AppendBool(b, r.Latest)
	return append(b, "}}}"...)
}

// appendTime appends a time as RFC 3339 in UTC with six decimals (decisions
// 1.1). A list has hundreds of them, so the digits are written here.
func appendTime(b []byte, t time.Time) []byte {
	t = t.UTC()
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	b = appendDigits(append(b, '"'), year, 4)
	b = appendDigits(append(b, '-'), int(month), 2)
	b = appendDigits(append(b, '-'), day, 2)
	b = appendDigits(append(b, 'T'), hour, 2)
	b = appendDigits(append(b, ':'), minute, 2)
	b = appendDigits(append(b, ':'), second, 2)
	b = appendDigits(append(b, '.'), t.Nanosecond()/int(time.Microsecond), 6)
	return append(b, 'Z', '"')
}

// appendDigits appends the last n digits of a number, at most six.
func appendDigits(b []byte, number, n int) []byte {
	var digits [6]byte
	for i := n - 1; i >= 0; i-- {
		digits[i] = byte('0' + number%10)
		number /= 10
	}
	return append(b, digits[:n]...)
}

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
