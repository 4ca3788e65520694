package authapi

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/audit"
)

// defaultPage is how many audit entries an answer has by default (contract A-40).
const defaultPage = 100

// Trail is the audit log of a person. *audit.Trail is one.
type Trail interface {
	Search(ctx context.Context, user auth.UserID, q audit.Query) (audit.Page, error)
}

type logAnswer struct {
	Logs   []logEntry `json:"logs"`
	Total  int        `json:"total"`
	Limit  int        `json:"limit"`
	Offset int        `json:"offset"`
}

type logEntry struct {
	ID        auth.EventID   `json:"id"`
	Timestamp string         `json:"timestamp"`
	EventType auth.EventType `json:"eventType"`
	Success   bool           `json:"success"`
	Details   map[string]any `json:"details"`
}

func (a *API) searchLog(c *fiber.Ctx, caller auth.Session) error {
	q, err := readLogQuery(c)
	if err != nil {
		return err
	}
	page, err := a.trail.Search(c.UserContext(), caller.UserID, q)
	if err != nil {
		return err
	}
	out := logAnswer{Logs: make([]logEntry, 0, len(page.Events)), Total: page.Total, Limit: q.Limit, Offset: q.Offset}
	for _, e := range page.Events {
		if e.Details == nil {
			e.Details = map[string]any{}
		}
		out.Logs = append(out.Logs, logEntry{e.ID, instant(e.Time), e.Type, e.Success, e.Details})
	}
	return answer(c, out)
}

// readLogQuery reads the parameters of the audit log; an empty one counts as
// absent. All that are wrong are named.
func readLogQuery(c *fiber.Ctx) (audit.Query, error) {
	q := audit.Query{Limit: defaultPage}
	b, problems := body{faults: &faults{map[string]string{}, map[string]string{}}}, []error(nil)
	if name := query(c, "eventType"); name != "" {
		var err error
		q.Type, err = auth.ParseEventType(name)
		problems = append(problems, err)
	}
	problems = append(problems,
		readTime("startDate", query(c, "startDate"), &q.After), readTime("endDate", query(c, "endDate"), &q.Before),
		readNumber("limit", query(c, "limit"), &q.Limit), readNumber("offset", query(c, "offset"), &q.Offset))
	q.After = endOfInstant(q.After)
	return q, b.err(append(problems, q.Check())...)
}

// endOfInstant returns the last microsecond that an answer writes as it writes
// t. What is shown at startDate is not after it, although more of its time is
// stored than is shown.
func endOfInstant(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Truncate(time.Millisecond).Add(time.Millisecond - time.Microsecond)
}

// query returns a copy of a parameter of the query.
func query(c *fiber.Ctx, name string) string { return strings.Clone(c.Query(name)) }

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

// isoForms are the forms of a time that are read: the extended and the basic
// one of ISO 8601, with an offset or without; fractions of a second may follow.
var isoForms = [...]string{
	"2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05Z07", "2006-01-02T15:04:05",
	"2006-01-02T15:04Z07:00", "2006-01-02T15:04Z0700", "2006-01-02T15:04Z07", "2006-01-02T15:04",
	"20060102T150405Z0700", "20060102T150405Z07", "20060102T150405", "20060102T1504Z0700", "20060102T1504Z07", "20060102T1504",
	"2006-01-02", "20060102",
}

// readTime reads a date or a time of ISO 8601; without an offset it is UTC. The
// plus of an offset need not be escaped: a URL may hold it as it is (RFC 3986,
// 3.4), and has arrived as a space then, which no time has.
func readTime(name, s string, at *time.Time) error {
	if s == "" {
		return nil
	}
	s = strings.ToUpper(strings.ReplaceAll(s, " ", "+"))
	for _, form := range isoForms {
		t, err := time.Parse(form, s)
		if t = t.UTC(); err == nil && t.Year() >= 1 && t.Year() <= 9999 {
			*at = t
			return nil
		}
	}
	return auth.InvalidField(auth.CodeValidation, name, "must be an ISO 8601 time, for example 2026-01-31T12:00:00Z")
}
