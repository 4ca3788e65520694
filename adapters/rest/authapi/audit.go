package authapi

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/core/each"
)

// defaultPage is the default number of audit entries in a response (contract A-40).
const defaultPage = 100

type logResponse struct {
	Logs   []logEntry `json:"logs"`
	Total  int        `json:"total"`
	Limit  int        `json:"limit"`
	Offset int        `json:"offset"`
}

type logEntry struct {
	ID        audit.EventID  `json:"id"`
	Timestamp string         `json:"timestamp"`
	EventType audit.Category `json:"eventType"`
	Success   bool           `json:"success"`
	Details   audit.Details  `json:"details"`
}

func (a *API) searchLog(c *fiber.Ctx, caller auth.Session) error {
	q, err := readLogQuery(c)
	if err != nil {
		return err
	}
	page, err := a.use.Trail.SearchOwn(c.UserContext(), caller, q)
	if err != nil {
		return err
	}
	logs := each.Map(page.Events, func(e audit.Event) logEntry {
		return logEntry{e.ID, FormatTime(e.Time), e.Category, e.Success, e.Details}
	})
	return sendJSON(c, logResponse{Logs: logs, Total: page.Total, Limit: q.Limit, Offset: q.Offset})
}

// readLogQuery reads the parameters of the audit log. An empty parameter counts as absent. The
// error names all invalid parameters.
func readLogQuery(c *fiber.Ctx) (auditing.Query, error) {
	q := auditing.Query{Limit: defaultPage}
	var problems []error
	if name := queryParam(c, "eventType"); name != "" {
		var err error
		q.Category, err = auth.ParseCategory(name)
		problems = append(problems, err)
	}
	problems = append(problems,
		readTime("startDate", queryParam(c, "startDate"), &q.After),
		readTime("endDate", queryParam(c, "endDate"), &q.Before),
		readNumber("limit", queryParam(c, "limit"), &q.Limit), readNumber("offset", queryParam(c, "offset"), &q.Offset))
	q.After = endOfMillisecond(q.After)
	return q, fieldError(map[string]string{}, append(problems, q.Check())...)
}

// endOfMillisecond returns the last microsecond of the millisecond of t. Entries are stored with
// microseconds and sent with milliseconds. An entry that is sent with the time startDate must not
// count as after it.
func endOfMillisecond(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Truncate(time.Millisecond).Add(time.Millisecond - time.Microsecond)
}

// queryParam returns a copy of a query parameter.
func queryParam(c *fiber.Ctx, name string) string { return strings.Clone(c.Query(name)) }

func readNumber(name, s string, number *int) error {
	if s == "" {
		return nil
	}
	n, err := strconv.ParseInt(s, 10, 32)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return auth.InvalidField(auth.CodeValidation, name, "is out of range")
	case err != nil:
		return auth.InvalidField(auth.CodeValidation, name, "must be a whole number")
	}
	*number = int(n)
	return nil
}

// isoLayouts are the accepted layouts of a time: the extended and the basic format of ISO 8601,
// with or without an offset. Fractions of a second may follow.
var isoLayouts = [...]string{
	"2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05Z07", "2006-01-02T15:04:05",
	"2006-01-02T15:04Z07:00", "2006-01-02T15:04Z0700", "2006-01-02T15:04Z07", "2006-01-02T15:04",
	"20060102T150405Z0700", "20060102T150405Z07", "20060102T150405", "20060102T1504Z0700", "20060102T1504Z07",
	"20060102T1504",
	"2006-01-02", "20060102",
}

// readTime parses a date or a time of ISO 8601; without an offset it is UTC. A client may send the
// plus of the offset unescaped (RFC 3986, 3.4). The query parser turns it into a space, which a
// time never contains; readTime restores it.
func readTime(name, s string, at *time.Time) error {
	if s == "" {
		return nil
	}
	s = strings.ToUpper(strings.ReplaceAll(s, " ", "+"))
	for _, layout := range isoLayouts {
		t, err := time.Parse(layout, s)
		if t = t.UTC(); err == nil && t.Year() >= 1 && t.Year() <= 9999 {
			*at = t
			return nil
		}
	}
	return auth.InvalidField(auth.CodeValidation, name, "must be an ISO 8601 time, for example 2026-01-31T12:00:00Z")
}
