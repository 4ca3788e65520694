package registryjson

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/internal/files"
	"github.com/tollgate-dev/tollgate/adapters/internal/jsonstring"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
	"github.com/tollgate-dev/tollgate/ports/recordsource"
)

// Writer writes an export: {"servers": [...]}, with one record on each line. Equal records result
// in equal bytes.
type Writer struct {
	out *bufio.Writer
	n   int
}

// NewWriter returns a Writer. The export is complete only after Close.
func NewWriter(w io.Writer) *Writer { return &Writer{out: bufio.NewWriterSize(w, 64<<10)} }

// Write appends a record, with the quarantine and the tool lists of its version.
func (w *Writer) Write(v recordsource.Exported) error {
	line, err := appendRecord(nil, v)
	if err != nil {
		return err
	}
	_, _ = w.out.WriteString(w.separator()) // bufio keeps an error and returns it from the next Write
	w.n++
	if _, err = w.out.Write(line); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

// separator returns the text before the next record.
func (w *Writer) separator() string {
	if w.n == 0 {
		return "{\"servers\":[\n"
	}
	return ",\n"
}

// exportMode is the permissions of an export. Its content is public.
const exportMode = 0o644

// WriteFile writes an export to the file at path. It calls write once, and then completes the
// export. The file appears only when it is complete. If it exists already, WriteFile replaces it if
// replace is true, and otherwise returns fault.Conflict.
func WriteFile(path string, replace bool, write func(*Writer) error) error {
	_, err := files.Write(path, files.WriteOptions{Mode: exportMode, Replace: replace}, func(f *os.File) error {
		w := NewWriter(f)
		if err := write(w); err != nil {
			return err
		}
		return w.Close()
	})
	return err
}

// Close completes the export. It does not close the underlying writer.
func (w *Writer) Close() error {
	tail := "\n]}\n"
	if w.n == 0 {
		tail = w.separator() + "]}\n"
	}
	_, _ = w.out.WriteString(tail) // Flush returns the error
	if err := w.out.Flush(); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

// exportedMeta is the registry's data on a version, in the order of the API's responses.
type exportedMeta struct {
	Status          string `json:"status"`
	StatusMessage   string `json:"statusMessage,omitempty"`
	StatusChangedAt string `json:"statusChangedAt"`
	PublishedAt     string `json:"publishedAt"`
	UpdatedAt       string `json:"updatedAt"`
	IsLatest        bool   `json:"isLatest"`
}

// exportedQuarantine is the quarantine of a version, under quarantineKey: the status is the one
// that the version gets when it is released.
type exportedQuarantine struct {
	Entries         []exportedEntry `json:"entries"`
	Status          string          `json:"status"`
	StatusMessage   string          `json:"statusMessage,omitempty"`
	StatusChangedAt *time.Time      `json:"statusChangedAt,omitempty"`
}

// exportedEntry is an entry of a version, or of its server.
type exportedEntry struct {
	Server bool       `json:"server,omitempty"`
	Reason string     `json:"reason"`
	Since  *time.Time `json:"since,omitempty"`
	By     string     `json:"by,omitempty"`
}

// appendRecord appends a record. It copies the stored document unchanged.
func appendRecord(b []byte, v recordsource.Exported) ([]byte, error) {
	r, held := v.Record, v.Held
	values := map[string]any{officialKey: exportedMeta{
		Status: string(r.Status), StatusMessage: r.StatusMessage,
		StatusChangedAt: jsonstring.FormatTime(r.StatusChangedAt), PublishedAt: jsonstring.FormatTime(r.PublishedAt),
		UpdatedAt: jsonstring.FormatTime(r.UpdatedAt),
		IsLatest:  r.Latest,
	}}
	if len(held.Entries) > 0 {
		values[quarantineKey] = newExportedQuarantine(held)
	}
	if v.Owner != (registry.Owner{}) {
		values[ownerKey] = exportedOwner{v.Owner.Team, v.Owner.Contact}
	}
	if len(v.Tools) > 0 {
		values[toolsKey] = newExportedTools(v.Tools)
	}
	var meta bytes.Buffer
	e := json.NewEncoder(&meta)
	e.SetEscapeHTML(false)
	if err := e.Encode(values); err != nil {
		return nil, err
	}
	b = append(append(b, `{"server":`...), r.Document...)
	b = append(append(b, `,"_meta":`...), bytes.TrimSpace(meta.Bytes())...)
	return append(b, '}'), nil
}

func newExportedQuarantine(held registry.Held) exportedQuarantine {
	changed := held.Prior.ChangedAt.UTC()
	q := exportedQuarantine{
		Status: string(held.Prior.Status), StatusMessage: held.Prior.Message, StatusChangedAt: &changed,
	}
	for _, e := range held.Entries {
		since := e.Since.UTC()
		q.Entries = append(q.Entries, exportedEntry{
			e.Version == registry.Version{}, string(e.Reason), &since, string(e.By),
		})
	}
	return q
}

// toolsKey is the key in _meta under which an export has the tool lists of a version.
const toolsKey = "dev.tollgate/tools"

// exportedTools is a tool list: its content is canonical JSON.
type exportedTools struct {
	Remote  string          `json:"remote,omitempty"`
	Package int             `json:"package,omitempty"`
	Source  string          `json:"source"`
	State   string          `json:"state"`
	At      time.Time       `json:"at"`
	By      string          `json:"by"`
	Content json.RawMessage `json:"list"`
}

func newExportedTools(lists []tools.Shown) (all []exportedTools) {
	for _, l := range lists {
		all = append(all, exportedTools{
			l.Remote, l.Package, string(l.Source), string(l.State), l.At.UTC(), l.By.Key, l.List.Canonical(),
		})
	}
	return all
}

// parseTools returns the tool lists in a record's _meta.
func parseTools(raw json.RawMessage) (all []recordsource.ToolList, err error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var lists []exportedTools
	if err := json.Unmarshal(raw, &lists); err != nil {
		return nil, fmt.Errorf("_meta of the record has invalid tool lists: %w", err)
	}
	for _, l := range lists {
		all = append(all, recordsource.ToolList{
			Remote: l.Remote, Package: l.Package, Source: l.Source, State: l.State, By: l.By, At: l.At, Content: l.Content,
		})
	}
	return all, nil
}
