package exportfile

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/tollgate-dev/tollgate/core/registry"
)

// timeForm is RFC 3339 in UTC with six decimals (contract R-2).
const timeForm = "2006-01-02T15:04:05.000000Z"

// Writer writes an export: {"servers": [...]}, one record on each line. The
// same records make the same bytes.
type Writer struct {
	out *bufio.Writer
	n   int
}

// NewWriter begins an export. It is whole after Close only.
func NewWriter(w io.Writer) *Writer { return &Writer{out: bufio.NewWriterSize(w, 64<<10)} }

// Write appends a record.
func (w *Writer) Write(r registry.Record) error {
	line, err := appendRecord(nil, r)
	if err != nil {
		return err
	}
	_, _ = w.out.WriteString(w.lead()) // a failure is kept, and returned by the next line
	w.n++
	if _, err = w.out.Write(line); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

func (w *Writer) lead() string {
	if w.n == 0 {
		return "{\"servers\":[\n"
	}
	return ",\n"
}

// Close ends the export. It does not close what the export is written to.
func (w *Writer) Close() error {
	tail := "\n]}\n"
	if w.n == 0 {
		tail = w.lead() + "]}\n"
	}
	_, _ = w.out.WriteString(tail) // Flush returns what failed
	if err := w.out.Flush(); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

// exported is what a registry tells of a version, in the order of the API's
// answers.
type exported struct {
	Status          string `json:"status"`
	StatusMessage   string `json:"statusMessage,omitempty"`
	StatusChangedAt string `json:"statusChangedAt"`
	PublishedAt     string `json:"publishedAt"`
	UpdatedAt       string `json:"updatedAt"`
	IsLatest        bool   `json:"isLatest"`
}

// appendRecord appends a record with its document as it is stored.
func appendRecord(b []byte, r registry.Record) ([]byte, error) {
	var meta bytes.Buffer
	e := json.NewEncoder(&meta)
	e.SetEscapeHTML(false)
	err := e.Encode(map[string]exported{officialKey: {
		Status: string(r.Status), StatusMessage: r.StatusMessage,
		StatusChangedAt: stamp(r.StatusChangedAt), PublishedAt: stamp(r.PublishedAt), UpdatedAt: stamp(r.UpdatedAt),
		IsLatest: r.Latest,
	}})
	if err != nil {
		return nil, err
	}
	b = append(append(b, `{"server":`...), r.Document...)
	b = append(append(b, `,"_meta":`...), bytes.TrimSpace(meta.Bytes())...)
	return append(b, '}'), nil
}

func stamp(t time.Time) string { return t.UTC().Format(timeForm) }
