package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/wiring"
)

// maxNames bounds how many people's addresses a writer of events remembers.
const maxNames = 10_000

// eventWriter writes audit events one by one, so that their number does not
// matter.
type eventWriter struct {
	ctx    context.Context // of the command, whose lifetime the writer has
	op     *wiring.Operator
	out    *bufio.Writer
	format string
	width  int // of the terminal; 0 for anything else
	count  int
	emails map[auth.UserID]auth.Email
}

func newEventWriter(ctx context.Context, op *wiring.Operator, w io.Writer, format string) *eventWriter {
	return &eventWriter{ctx: ctx, op: op, out: bufio.NewWriter(w), format: format, width: columns(w), emails: map[auth.UserID]auth.Email{}}
}

// event is an audit event as it is printed; the names are those of the API.
type event struct {
	ID        auth.EventID   `json:"id"`
	Timestamp string         `json:"timestamp"`
	EventType auth.EventType `json:"eventType"`
	UserID    auth.UserID    `json:"userId,omitempty"`
	Email     auth.Email     `json:"email,omitempty"`
	Success   bool           `json:"success"`
	Details   map[string]any `json:"details"`
}

// write writes one event.
func (w *eventWriter) write(e auth.Event) error {
	email, err := w.email(e.UserID)
	if err != nil {
		return err
	}
	line, err := w.line(event{e.ID, shown(e.Time), e.Type, e.UserID, email, e.Success, e.Details})
	if err != nil {
		return err
	}
	w.count++
	if _, err := w.out.WriteString(line); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// line returns what stands for an event, with what precedes it.
func (w *eventWriter) line(e event) (string, error) {
	before := ""
	switch {
	case w.format == "json" && w.count == 0:
		before = "["
	case w.format == "json":
		before = ","
	}
	if w.format != "table" {
		text, err := encode(e)
		if w.format == "json" {
			return before + "\n  " + text, err
		}
		return text + "\n", err
	}
	details, err := encode(e.Details)
	if err != nil {
		return "", err
	}
	person, result := string(e.Email), "ok"
	if person == "" {
		person = string(e.UserID)
	}
	if person == "" {
		person = "-"
	}
	if !e.Success {
		result = "failed"
	}
	return w.heading() + w.row(e.Timestamp, string(e.EventType), result, printable(person), printable(details)), nil
}

// heading is what the first line of a table begins with.
func (w *eventWriter) heading() string {
	if w.count > 0 {
		return ""
	}
	return w.row("TIME", "TYPE", "RESULT", "PERSON", "DETAILS")
}

// row has columns of a fixed width, since later rows are not known yet. Most
// terminals have no room for the details beside them.
func (w *eventWriter) row(at, kind, result, person, details string) string {
	columns := fmt.Sprintf("%-24s  %-19s  %-6s  %-24s  ", at, kind, result, person)
	return hang(columns, details, w.width) + "\n"
}

// close ends the output.
func (w *eventWriter) close() error {
	end := ""
	switch {
	case w.format == "json" && w.count == 0:
		end = "[]\n"
	case w.format == "json":
		end = "\n]\n"
	case w.format == "table":
		end = w.heading()
	}
	_, err := w.out.WriteString(end)
	if err == nil {
		err = w.out.Flush()
	}
	if err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// email returns a person's address; empty where there is none.
func (w *eventWriter) email(id auth.UserID) (auth.Email, error) {
	email, known := w.emails[id]
	if known || id == "" {
		return email, nil
	}
	account, err := w.op.Accounts.Get(w.ctx, id)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return "", err
	}
	if len(w.emails) >= maxNames {
		clear(w.emails)
	}
	w.emails[id] = account.Email
	return account.Email, nil
}

// encode returns JSON in one line.
func encode(v any) (string, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("print: %w", err)
	}
	return string(text), nil
}
