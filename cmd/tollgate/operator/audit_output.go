package operator

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
)

// eventWriter writes audit events one by one, so that an export of any length fits in memory.
type eventWriter struct {
	run    run
	out    *bufio.Writer
	format string
	width  int // of the terminal; 0 if the output is not a terminal
	count  int
}

func newEventWriter(r run, w io.Writer, format string) *eventWriter {
	width := cli.TerminalWidth(w)
	if format == "wide" {
		format, width = "table", 0
	}
	return &eventWriter{
		run: r, out: bufio.NewWriter(w), format: format, width: width,
	}
}

// AuditEvent is the printed form of an audit event. The JSON names are those of the API.
type AuditEvent struct {
	ID        audit.EventID  `json:"id"`
	Timestamp string         `json:"timestamp"`
	EventType audit.Category `json:"eventType"`
	UserID    auth.UserID    `json:"userId,omitempty"`
	Email     auth.Email     `json:"email,omitempty"`
	Success   bool           `json:"success"`
	Details   audit.Details  `json:"details"`
}

// writeEvent writes one event.
func (w *eventWriter) writeEvent(e audit.Event) error {
	var email auth.Email // empty if the account does not exist
	if found := w.run.emailOf(string(e.Subject)); found != string(e.Subject) {
		email = auth.Email(found)
	}
	line, err := w.formatEvent(AuditEvent{
		e.ID, cli.FormatTime(e.Time), e.Category, auth.UserID(e.Subject), email, e.Success, e.Details,
	})
	if err != nil {
		return err
	}
	w.count++
	if _, err := w.out.WriteString(line); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

// formatEvent returns the text of an event, with the separator or header that precedes it.
func (w *eventWriter) formatEvent(e AuditEvent) (string, error) {
	before := ""
	switch {
	case w.format == "json" && w.count == 0:
		before = "["
	case w.format == "json":
		before = ","
	}
	if w.format == "yaml" {
		text, err := cli.EncodeYAML([]AuditEvent{e})
		return string(text), err
	}
	if w.format != "table" {
		text, err := encodeLine(e)
		if w.format == "json" {
			return before + "\n  " + text, err
		}
		return text + "\n", err
	}
	details, err := encodeLine(e.Details)
	if err != nil {
		return "", err
	}
	person, result := cmp.Or(string(e.Email), string(e.UserID), "-"), "ok"
	if !e.Success {
		result = "failed"
	}
	return w.tableHeader() + w.formatRow(e.Timestamp, string(e.EventType), result, cli.ReplaceControls(person),
		cli.ReplaceControls(details)), nil
}

// tableHeader returns the header line of the table, or nothing after the first row.
func (w *eventWriter) tableHeader() string {
	if w.count > 0 {
		return ""
	}
	return w.formatRow("TIME", "TYPE", "RESULT", "PERSON", "DETAILS")
}

// formatRow formats a row. The columns have a fixed width, because later rows are not known yet. On
// most terminals the details do not fit on the same line and follow below.
func (w *eventWriter) formatRow(at, kind, result, person, details string) string {
	columns := fmt.Sprintf("%-24s  %-19s  %-6s  %-24s  ", at, kind, result, person)
	return cli.HangText(columns, details, w.width) + "\n"
}

// finish writes the end of the output and flushes it.
func (w *eventWriter) finish() error {
	end := ""
	switch {
	case (w.format == "json" || w.format == "yaml") && w.count == 0:
		end = "[]\n"
	case w.format == "json":
		end = "\n]\n"
	case w.format == "table":
		end = w.tableHeader()
	}
	_, err := w.out.WriteString(end)
	if err == nil {
		err = w.out.Flush()
	}
	if err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

// encodeLine returns a value as JSON on one line.
func encodeLine(v any) (string, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("write output: %w", err)
	}
	return string(text), nil
}
