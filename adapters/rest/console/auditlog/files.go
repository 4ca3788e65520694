package auditlog

import (
	"encoding/json"
	"fmt"
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
	rows, err := csvRows(lines)
	if err != nil {
		return err
	}
	return v.SendCSV("audit.csv", rows)
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

func csvRows(lines []eventLine) ([][]string, error) {
	rows := [][]string{{"time", "who", "what", "from", "type", "outcome", "id", "details"}}
	for _, e := range lines {
		details, err := json.Marshal(e.Details)
		if err != nil {
			return nil, fmt.Errorf("write an event as JSON: %w", err)
		}
		outcome := map[bool]string{true: "done", false: "refused"}[e.Success]
		rows = append(rows, []string{e.Time, e.Who, e.What, e.From, string(e.Type), outcome, string(e.ID), string(details)})
	}
	return rows, nil
}
