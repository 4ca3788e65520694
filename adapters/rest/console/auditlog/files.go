package auditlog

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
)

// maxInFile is how many events a file has, the newest ones. The stream of the API has all.
const maxInFile = 10 * auth.MaxPage

// eventLine is an event in a file.
type eventLine struct {
	ID      audit.EventID  `json:"id"`
	Time    string         `json:"time"`
	Type    audit.Category `json:"type"`
	Who     string         `json:"who"`
	What    string         `json:"what"`
	From    string         `json:"from"`
	Success bool           `json:"success"`
	Details audit.Details  `json:"details"`
}

// sendFile sends the events of a query as CSV or JSON.
func (l Log) sendFile(v *site.Visit, q auditing.Query, format string) error {
	lines, err := l.readLines(v, q)
	if err != nil {
		return err
	}
	v.Set(fiber.HeaderCacheControl, "no-store")
	if format != "csv" {
		text, err := json.Marshal(lines)
		if err != nil {
			return fmt.Errorf("write events as JSON: %w", err)
		}
		v.Attachment("audit.json")
		return v.SendJSON(text)
	}
	text, err := writeCSV(lines)
	v.Attachment("audit.csv")
	v.Set(fiber.HeaderContentType, "text/csv; charset=utf-8")
	v.Response().SetBodyRaw(text)
	return err
}

// readLines returns the newest events of a query.
func (l Log) readLines(v *site.Visit, q auditing.Query) ([]eventLine, error) {
	lines := []eventLine{}
	for q.Limit, q.Offset = auth.MaxPage, 0; q.Offset < maxInFile; q.Offset += q.Limit {
		found, err := l.Search(v.UserContext(), q)
		if err != nil {
			return nil, err
		}
		for _, e := range found.Events {
			row, err := l.newEventView(v, e)
			if err != nil {
				return nil, err
			}
			lines = append(lines, eventLine{
				e.ID, e.Time.UTC().Format(time.RFC3339Nano), e.Category, row.Who, row.Text, row.From, e.Success, e.Details,
			})
		}
		if len(found.Events) < q.Limit {
			break
		}
	}
	return lines, nil
}

func writeCSV(lines []eventLine) ([]byte, error) {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	rows := [][]string{{"time", "who", "what", "from", "type", "outcome", "id", "details"}}
	for _, e := range lines {
		details, err := json.Marshal(e.Details)
		if err != nil {
			return nil, fmt.Errorf("write an event as JSON: %w", err)
		}
		outcome := map[bool]string{true: "done", false: "refused"}[e.Success]
		rows = append(rows, []string{
			e.Time, inert(e.Who), inert(e.What), inert(e.From), string(e.Type), outcome, string(e.ID), string(details),
		})
	}
	if err := w.WriteAll(rows); err != nil {
		return nil, fmt.Errorf("write events as CSV: %w", err)
	}
	return b.Bytes(), nil
}

// inert returns a text that a spreadsheet does not take for a formula.
func inert(text string) string {
	if strings.ContainsAny(text[:min(len(text), 1)], "=+-@\t\r") {
		return "'" + text
	}
	return text
}
