package registryjson

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/recordsource"
)

// mirrorList implements recordsource.List. Equal versions of a server come in the order of their
// arrival.
type mirrorList struct {
	records *spool
	origin  string // the registry, for messages
	next    int    // the position in the order of the records
}

// Next implements recordsource.List.
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

// entry returns a record.
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

// Rewind implements recordsource.List.
func (l *mirrorList) Rewind() { l.next = 0 }

// Records implements recordsource.List.
func (l *mirrorList) Records() int { return l.records.count() }

// Close implements recordsource.List.
func (l *mirrorList) Close() error { return l.records.close() }
