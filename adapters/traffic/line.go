// Package traffic records rate limit requests in files, reads them, and has the JSON of their
// simulation. A file has a JSON object in each line (contract L-60). The package does not decide;
// core/ratelimit/simulate does.
package traffic

import (
	"strconv"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/internal/jsonstring"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
)

// maxLine is the greatest length of a line, in bytes, without its end.
const maxLine = 1 << 20

// lineBegins is the beginning of each recorded line.
const lineBegins = `{"time":"`

// timeFormat is RFC 3339 with as many digits in each line, so that lines that are sorted as texts
// are in order of time.
const timeFormat = "2006-01-02T15:04:05.000000000Z07:00"

// entry is a request with its time and answer.
type entry struct {
	at      time.Time
	request ratelimit.Request
	code    ratelimit.Code
}

// appendLine appends an entry as a line with its end. text is called for each value.
func appendLine(dst []byte, e *entry, text func(string) string) []byte {
	dst = append(dst, lineBegins...)
	dst = e.at.UTC().AppendFormat(dst, timeFormat)
	dst = append(dst, `","domain":`...)
	dst = jsonstring.Append(dst, string(e.request.Domain))
	dst = append(dst, `,"descriptors":[`...)
	for i := range e.request.Descriptors {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendDescriptor(dst, &e.request.Descriptors[i], text)
	}
	dst = append(dst, ']')
	if e.request.Hits > 0 {
		dst = appendNumber(dst, `,"hitsAddend":`, uint64(e.request.Hits))
	}
	if e.code == ratelimit.OverLimit {
		return append(dst, `,"answer":"OVER_LIMIT"}`+"\n"...)
	}
	return append(dst, `,"answer":"OK"}`+"\n"...)
}

func appendDescriptor(dst []byte, d *ratelimit.Descriptor, text func(string) string) []byte {
	dst = append(dst, `{"entries":[`...)
	for i := range d.Entries {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = jsonstring.Append(append(dst, `{"key":`...), d.Entries[i].Key)
		dst = jsonstring.Append(append(dst, `,"value":`...), text(d.Entries[i].Value))
		dst = append(dst, '}')
	}
	dst = append(dst, ']')
	if d.Hits != nil {
		dst = appendNumber(dst, `,"hitsAddend":`, *d.Hits)
	}
	if d.GiveBack {
		dst = append(dst, `,"isNegativeHits":true`...)
	}
	if d.Override != nil {
		dst = appendNumber(dst, `,"limit":{"requestsPerUnit":`, uint64(d.Override.RequestsPerUnit))
		dst = append(dst, `,"unit":"`...)
		dst = append(dst, strings.ToUpper(d.Override.Unit.String())...)
		dst = append(dst, `"}`...)
	}
	return append(dst, '}')
}

func appendNumber(dst []byte, name string, n uint64) []byte {
	return strconv.AppendUint(append(dst, name...), n, 10)
}

// size returns about how many bytes of memory the texts of an entry take.
func (e *entry) size() int {
	n := 128 + len(e.request.Domain)
	for i := range e.request.Descriptors {
		n += 64
		for _, part := range e.request.Descriptors[i].Entries {
			n += 32 + len(part.Key) + len(part.Value)
		}
	}
	return n
}

// newEntry returns an entry that shares no memory with the request, except for texts.
func newEntry(r *ratelimit.Request, code ratelimit.Code) entry {
	e := entry{request: ratelimit.Request{Domain: r.Domain, Hits: r.Hits}, code: code}
	parts := 0
	for i := range r.Descriptors {
		parts += len(r.Descriptors[i].Entries)
	}
	entries := make([]ratelimit.Entry, 0, parts)
	e.request.Descriptors = make([]ratelimit.Descriptor, len(r.Descriptors))
	for i := range r.Descriptors {
		from := &r.Descriptors[i]
		entries = append(entries, from.Entries...)
		d := ratelimit.Descriptor{Entries: entries[len(entries)-len(from.Entries):], GiveBack: from.GiveBack}
		if from.Hits != nil {
			hits := *from.Hits
			d.Hits = &hits
		}
		if from.Override != nil {
			limit := *from.Override
			d.Override = &limit
		}
		e.request.Descriptors[i] = d
	}
	return e
}
