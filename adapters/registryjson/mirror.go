package registryjson

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/recordsource"
)

// Limits for reading the list of a registry that a mirror takes servers from. The registry is not
// trusted.
const (
	maxMirrorRecords = 1_000_000       // of all pages
	maxMirrorBytes   = 4 << 30         // of all records, in the temporary file
	maxMirrorNames   = 64 << 20        // bytes of all names, in memory
	maxMirrorPages   = 100_000         // of one list
	maxEmptyPages    = 1_000           // in a row
	maxPageBytes     = 128 << 20       // of one page, after decompression
	maxPageTime      = 2 * time.Minute // for one page
	maxReadTime      = 2 * time.Hour   // for the whole list
	maxCursor        = 4 << 10         // of a nextCursor, in bytes
	mirrorTries      = 3               // attempts to get one page
)

// mirrorLimits are the limits of one list; tests make them smaller.
type mirrorLimits struct {
	records, names, pages, emptyPages int
	bytes, pageBytes                  int64
	readTime                          time.Duration
}

// MirrorSource reads the registries that mirrors take servers from. It implements
// recordsource.Registries. While it reads, and until the list is closed, the records are in a
// temporary file.
type MirrorSource struct {
	client *client
	limits mirrorLimits
}

var _ recordsource.Registries = (*MirrorSource)(nil)

// NewMirrorSource returns a source that uses the proxies of the environment.
func NewMirrorSource() *MirrorSource {
	c := newClient(newRedirectGuard())
	c.tries, c.maxPage = mirrorTries, maxPageTime
	return &MirrorSource{client: c, limits: mirrorLimits{
		records: maxMirrorRecords, names: maxMirrorNames, pages: maxMirrorPages, emptyPages: maxEmptyPages,
		bytes: maxMirrorBytes, pageBytes: maxPageBytes, readTime: maxReadTime,
	}}
}

// Read implements recordsource.Registries.
func (s *MirrorSource) Read(ctx context.Context, r recordsource.ListRequest) (recordsource.List, error) {
	limited, cancel := context.WithTimeoutCause(ctx, s.limits.readTime,
		limitError(fmt.Sprintf("reading the list takes longer than %s", s.limits.readTime)))
	defer cancel()
	records, err := newSpool(s.limits)
	if err != nil {
		return nil, fault.New(fault.Unavailable, err.Error())
	}
	read := &mirrorRead{
		ListRequest: r, limits: s.limits, records: records, seed: maphash.MakeSeed(), cursors: map[uint64]struct{}{},
	}
	if err := read.readPages(limited, s.client); err != nil {
		_ = records.close() // its content is not needed any more
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if cause := context.Cause(limited); cause != nil {
			err = cause
		}
		return nil, read.asFault(err)
	}
	records.sort()
	return &mirrorList{records: records, origin: r.URL.Public()}, nil
}

// mirrorRead is one call of Read.
type mirrorRead struct {
	recordsource.ListRequest
	limits  mirrorLimits
	records *spool
	page    int // the number of the page that is being read

	seed    maphash.Seed
	cursors map[uint64]struct{} // hashes of the cursors of all pages so far
}

// asFault returns the fault for an error of the page that is being read.
func (m *mirrorRead) asFault(err error) error {
	var status statusError
	if errors.As(err, &status) && !m.Since.IsZero() &&
		(status == http.StatusBadRequest || status == http.StatusUnprocessableEntity) {
		return fault.Newf(fault.Unsupported, "%s does not accept updated_since: %s", m.URL.Public(), explain(err))
	}
	return fault.Newf(fault.Unavailable, "%s, page %d: %s", m.URL.Public(), m.page, explain(err))
}

// readPages reads all pages of the list.
func (m *mirrorRead) readPages(ctx context.Context, c *client) error {
	address := m.URL.Address() + "/v0.1/servers"
	if !m.Since.IsZero() {
		address += "?" + url.Values{"updated_since": {m.Since.UTC().Format(time.RFC3339)}}.Encode()
	}
	part, err := newRemotePart(address, c)
	if err != nil {
		return err
	}
	for empty := 0; ; {
		m.page++
		before := m.records.count()
		cursor, err := m.readPage(ctx, part)
		if err != nil {
			return err
		}
		if m.Observe != nil {
			m.Observe(m.records.count())
		}
		empty++
		if m.records.count() > before {
			empty = 0
		}
		if cursor == "" {
			return m.records.flush()
		}
		if err := m.checkCursor(cursor, empty); err != nil {
			return err
		}
		part = part.at(cursor)
	}
}

// checkCursor returns an error if the list must not be read further. empty is the number of pages
// without records before the next page.
func (m *mirrorRead) checkCursor(cursor string, empty int) error {
	hash := maphash.String(m.seed, cursor)
	_, seen := m.cursors[hash]
	switch {
	case len(cursor) > maxCursor:
		return limitError(fmt.Sprintf("the nextCursor is longer than %d bytes", maxCursor))
	case seen:
		return limitError("the nextCursor leads to a page that was read before")
	case empty >= m.limits.emptyPages:
		return limitError(fmt.Sprintf("the last %d pages have no records", m.limits.emptyPages))
	case m.page >= m.limits.pages:
		return limitError(fmt.Sprintf("the list has more than %d pages", m.limits.pages))
	}
	m.cursors[hash] = struct{}{}
	return nil
}

// readPage reads one page and returns the cursor of the next, or "" after the last page.
func (m *mirrorRead) readPage(ctx context.Context, p remotePart) (cursor string, err error) {
	body, err := p.openBody(ctx)
	if err != nil {
		return "", err
	}
	defer body.Close()
	return m.readRecords(body)
}

// readRecords adds the records of a page and returns the cursor of the next page.
func (m *mirrorRead) readRecords(body io.Reader) (cursor string, err error) {
	page := newRecordReader(&pageReader{from: body, left: m.limits.pageBytes, limit: m.limits.pageBytes})
	for {
		raw, err := page.nextRecord()
		switch {
		case errors.Is(err, io.EOF):
			return page.nextCursor, checkPage(page)
		case errors.Is(err, errTooLarge):
			raw = nil
		case err != nil:
			return "", err
		}
		if !page.inObject {
			return finishEmptyPage(page, raw)
		}
		if err := m.records.add(nameOf(raw), raw); err != nil {
			return "", err
		}
	}
}

var (
	errNotAList = errors.New("the response is not a list of servers; check the URL")
	errMetadata = errors.New("the metadata of the list cannot be read")
)

// checkPage returns an error if a page that was read to its end is not the page of a list.
func checkPage(page *recordReader) error {
	switch {
	case !page.inObject:
		return errNotAList
	case page.badMetadata:
		return errMetadata
	}
	return nil
}

// finishEmptyPage returns the cursor of a page whose servers are null, which some registries return
// for an empty list. Any other JSON is an error.
func finishEmptyPage(page *recordReader, text []byte) (cursor string, err error) {
	var members map[string]json.RawMessage
	if page.list || json.Unmarshal(text, &members) != nil || string(members["servers"]) != "null" {
		return "", errNotAList
	}
	var metadata struct {
		NextCursor string `json:"nextCursor"`
	}
	if text, ok := members["metadata"]; ok && json.Unmarshal(text, &metadata) != nil {
		return "", errMetadata
	}
	if _, err := page.nextRecord(); !errors.Is(err, io.EOF) {
		return "", err
	}
	return metadata.NextCursor, nil
}

// nameOf returns the name in the document of a record, or "" if it cannot be read.
func nameOf(record []byte) string {
	var members, document map[string]json.RawMessage // a struct would also match names in another case
	if json.Unmarshal(record, &members) != nil {
		return ""
	}
	document = members
	if server, wrapped := members["server"]; wrapped {
		document = nil
		if json.Unmarshal(server, &document) != nil {
			return ""
		}
	}
	var name string
	if json.Unmarshal(document["name"], &name) != nil {
		return ""
	}
	return name
}

// pageReader returns the bytes of a page, and an error if there are more than the limit.
type pageReader struct {
	from        io.Reader
	left, limit int64
}

func (p *pageReader) Read(b []byte) (int, error) {
	if int64(len(b)) > p.left+1 {
		b = b[:p.left+1]
	}
	n, err := p.from.Read(b)
	p.left -= int64(n)
	if p.left < 0 {
		p.left = 0
		return 0, limitError(fmt.Sprintf("the page is larger than %d bytes", p.limit))
	}
	return n, err
}

// mirrorList implements recordsource.List. Equal versions of a server come in the order of their
// arrival.
type mirrorList struct {
	records *spool
	origin  string // the registry, for messages
	next    int    // the position in the order of the records
}

func (l *mirrorList) Next(ctx context.Context) (recordsource.Server, error) {
	order := l.records.order
	if l.next >= len(order) {
		return recordsource.Server{}, io.EOF
	}
	first := l.records.name(int(order[l.next]))
	end := l.next
	for end < len(order) && bytes.Equal(l.records.name(int(order[end])), first) {
		end++
	}
	server := recordsource.Server{Name: string(first)}
	size := 0
	for i := l.next; i < end; i++ {
		if err := ctx.Err(); err != nil {
			return recordsource.Server{}, err
		}
		e, err := l.entry(int(order[i]))
		if err != nil {
			return recordsource.Server{}, fault.New(fault.Unavailable, err.Error())
		}
		if size += len(e.Document) + len(e.Recorded.Status) +
			len(e.Recorded.StatusMessage); len(server.Entries) == recordsource.MaxServerRecords ||
			size > recordsource.MaxServerBytes {
			server.Entries = append(server.Entries, recordsource.Entry{
				Origin: e.Origin, Unreadable: tooManyError(end - i),
			})
			break
		}
		server.Entries = append(server.Entries, e)
	}
	l.next = end
	return server, nil
}

// tooManyError returns the error for the last n records of a server.
func tooManyError(n int) error {
	return fmt.Errorf("the server has more than %d records or %d bytes; %d records are left out",
		recordsource.MaxServerRecords, recordsource.MaxServerBytes, n)
}

func (l *mirrorList) entry(record int) (recordsource.Entry, error) {
	origin := fmt.Sprintf("%s, record %d", l.origin, record+1)
	text, err := l.records.text(record)
	switch {
	case err != nil:
		return recordsource.Entry{}, err
	case text == nil:
		return recordsource.Entry{Origin: origin, Unreadable: errTooLarge}, nil
	}
	e := newEntry(origin, text)
	if e.Unreadable != nil {
		e.Unreadable = shorten(e.Unreadable)
	}
	return e, nil
}

// maxProblem is the greatest length of the text of an error that quotes a record, in bytes.
const maxProblem = 300

// shorten returns an error with the beginning of the text of err. It does not keep err, which may
// hold a large part of a record.
func shorten(err error) error {
	text := err.Error()
	if len(text) > maxProblem {
		text = strings.ToValidUTF8(text[:maxProblem], "") + "…"
	}
	return errors.New(text)
}

func (l *mirrorList) Rewind() { l.next = 0 }

func (l *mirrorList) Records() int { return l.records.count() }

func (l *mirrorList) Close() error { return l.records.close() }
