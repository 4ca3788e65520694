package operator

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/adapters/tollgateclient"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// defaultEventLimit is the maximum number of events that a search shows by default.
const defaultEventLimit = 100

func newAudit(p cli.Process) *cobra.Command {
	return cli.NewGroup("audit", "Search the audit log: what happened, and who did it", newAuditSearch(p))
}

// auditFlags are the flags of audit search.
type auditFlags struct {
	email, user, event, id, since, until string
	object, actor, outcome               string
	limit                                int

	person   auth.Email  // parsed from email
	personID auth.UserID // parsed from user
}

func newAuditSearch(p cli.Process) *cobra.Command {
	var f auditFlags
	c := &cobra.Command{
		Use:   "search",
		Short: "Search the audit log",
		Long: "Search the audit log, newest events first, as sentences. Without --email and\n" +
			"--user the command shows the events of all people. The wide table has the details.\n\n" +
			"--since and --until take a time in RFC 3339 form, a date, or a duration before\n" +
			"now, for example 36h. Times and dates without a zone are UTC. Events are printed\n" +
			"while they are read, so you can export any number of them (--limit 0). The\n" +
			"format jsonl is one JSON object per line.",
		Example: "  tollgate audit search --email ada@example.com --since 24h\n" +
			"  tollgate audit search --type SUSPICIOUS_ACTIVITY --since 2026-01-01 --limit 20\n" +
			"  tollgate audit search --object com.example/weather --actor ada@example.com --outcome done\n" +
			"  tollgate audit search --limit 0 --output jsonl | gzip > audit.jsonl.gz",
	}
	c.Flags().StringVar(&f.email, "email", "",
		"e-mail address of the person; default: all people, unless --user is given")
	c.Flags().StringVar(&f.user, "user", "", "id of the person")
	c.Flags().StringVar(&f.event, "type", "", "show only events of this type")
	c.Flags().StringVar(&f.id, "id", "", "show only the event with this id, for example that of a decision about a call")
	c.Flags().StringVar(&f.since, "since", "", "show only events at or after this time")
	c.Flags().StringVar(&f.until, "until", "", "show only events before this time")
	c.Flags().IntVar(&f.limit, "limit", defaultEventLimit, "maximum number of events; 0 = all")
	c.Flags().StringVar(&f.object, "object", "", "show only events about this server")
	c.Flags().StringVar(&f.actor, "actor", "", "show only what this person did, by e-mail address, or another actor, by name")
	c.Flags().StringVar(&f.outcome, "outcome", "", "show only what was done, or what was refused: done or refused")
	cli.CompleteValues(c, "type", each.Strings(audit.Categories())...)
	cli.CompleteValues(c, "outcome", outcomeDone, outcomeRefused)
	o := cli.AddFormats(c, "output format: table, wide, json, jsonl or yaml", "table", "wide", "json", "jsonl", "yaml")
	var q auditing.Query
	cli.CheckFirst(c, func() (err error) {
		q, err = f.parseQuery(time.Now())
		return err
	})
	return newPlainCommand(p, c, func(r run) error {
		query, err := f.readQuery(r, q)
		if err != nil {
			return err
		}
		out := newEventWriter(r, p.Stdout, o.Format)
		return cmp.Or(walkEvents(r, query, q.Limit, out.writeEvent), out.finish())
	})
}

// readQuery returns the parameters of a query of the API.
func (f *auditFlags) readQuery(r run, q auditing.Query) (url.Values, error) {
	query := url.Values{}
	holder, err := shownPerson{ID: string(f.personID)}, error(nil)
	if f.person != "" {
		holder, err = r.person(f.person)
	}
	actor := f.actor
	if email, parsed := auth.ParseEmail(f.actor); parsed == nil && err == nil {
		var by shownPerson
		by, err = r.person(email)
		actor = audit.PersonActor + by.ID
	}
	since := q.After
	if !since.IsZero() {
		since = since.Add(time.Microsecond) // the API includes it
	}
	for name, value := range map[string]string{
		"id": string(q.ID), "type": string(q.Category), "person": holder.ID, "since": formatBound(since),
		"until": formatBound(q.Before), "server": f.object, "actor": actor, "outcome": f.outcome,
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return query, err
}

// formatBound returns a time with all its digits; empty for the zero time.
func formatBound(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// The outcomes of events.
const (
	outcomeDone    = "done"
	outcomeRefused = "refused"
)

// errEnough ends the reading of a list.
var errEnough = errors.New("enough")

// walkEvents calls visit for at most limit events of the API, all for 0.
func walkEvents(r run, query url.Values, limit int, visit func(audit.Event) error) error {
	request := tollgateclient.Request{Method: http.MethodGet, Path: at("audit"), Query: query}
	n := 0
	err := tollgateclient.ReadPages(request, "events", r.call, func(items json.RawMessage) error {
		var events []struct {
			ID      audit.EventID  `json:"id"`
			Time    time.Time      `json:"time"`
			Type    audit.Category `json:"type"`
			Person  audit.Subject  `json:"person"`
			Success bool           `json:"success"`
			Details audit.Details  `json:"details"`
		}
		if err := json.Unmarshal(items, &events); err != nil {
			return fault.Wrap(fault.Internal, "the service lists events in another form", err)
		}
		for _, e := range events {
			err := visit(audit.Event{
				ID: e.ID, Time: e.Time, Category: e.Type, Subject: e.Person, Success: e.Success, Details: e.Details,
			})
			if err != nil {
				return err
			}
			if n++; n == limit {
				return errEnough
			}
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// parseQuery returns the query that the flags describe.
func (f *auditFlags) parseQuery(now time.Time) (q auditing.Query, err error) {
	switch {
	case f.email != "" && f.user != "":
		return q, errors.New("give --email or --user, not both")
	case f.email != "":
		f.person, err = auth.ParseEmail(f.email)
	case f.user != "":
		f.personID, err = auth.ParseUUID[auth.UserID]("--user", f.user)
	}
	if err != nil {
		return q, err
	}
	if f.id != "" {
		if q.ID, err = auth.ParseUUID[audit.EventID]("--id", f.id); err != nil {
			return q, err
		}
	}
	if f.outcome != "" && f.outcome != outcomeDone && f.outcome != outcomeRefused {
		return q, fmt.Errorf("--outcome: %q is not done or refused", f.outcome)
	}
	if q.Limit = f.limit; f.limit < 0 {
		return q, fmt.Errorf("--limit: %d is less than 0", f.limit)
	}
	if f.event != "" {
		if q.Category, err = auth.ParseCategory(f.event); err != nil {
			return q, fmt.Errorf("--type: %q is not one of %s", f.event,
				strings.Join(each.Strings(audit.Categories()), ", "))
		}
	}
	if q.After, err = parseTime("--since", f.since, now); err != nil {
		return q, err
	}
	if q.Before, err = parseTime("--until", f.until, now); err != nil {
		return q, err
	}
	if !q.Before.IsZero() && !q.After.Before(q.Before) {
		return q, fmt.Errorf("--since %s is not before --until %s", f.since, f.until)
	}
	if !q.After.IsZero() {
		q.After = q.After.Add(-time.Microsecond) // the query excludes its bound; stored times have microseconds
	}
	return q, nil
}

// parseTime parses a time, or a duration before now. For an empty text it returns the zero time.
func parseTime(flag, s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	for _, form := range [...]string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", time.DateOnly} {
		if t, err := time.Parse(form, s); err == nil && t.Year() >= 1 {
			return t, nil
		}
	}
	return time.Time{},
		fmt.Errorf("%s: %q is neither a time (for example 2026-01-31T12:00:00Z) nor a duration (for example 36h)", flag,
			s)
}

// eventWriter writes audit events one by one, so that an export of any length fits in memory.
type eventWriter struct {
	run    run
	out    *bufio.Writer
	format string
	wide   bool // exact times, and details in place of sentences
	width  int  // of the terminal; 0 if the output is not a terminal
	count  int
}

func newEventWriter(r run, w io.Writer, format string) *eventWriter {
	width, wide := cli.TerminalWidth(w), format == "wide"
	if wide {
		format, width = "table", 0
	}
	return &eventWriter{run: r, out: bufio.NewWriter(w), format: format, wide: wide, width: width}
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

func (w *eventWriter) writeEvent(e audit.Event) error {
	var email auth.Email // empty if the account does not exist
	if found := w.run.emailOf(string(e.Subject)); found != string(e.Subject) {
		email = auth.Email(found)
	}
	var line string
	var err error
	if w.format == "table" && !w.wide {
		name := func(text string) string { return w.run.emailOf(strings.TrimPrefix(text, audit.PersonActor)) }
		line = w.tableHeader() + w.formatSentence(cli.Ago(e.Time), cli.ReplaceControls(cmp.Or(name(e.Who()), "-")), cli.ReplaceControls(e.Sentence(name)))
	} else {
		line, err = w.formatEvent(AuditEvent{
			e.ID, cli.FormatTime(e.Time), e.Category, auth.UserID(e.Subject), email, e.Success, e.Details,
		})
	}
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
	if !w.wide {
		return w.formatSentence("TIME", "WHO", "WHAT")
	}
	return w.formatRow("TIME", "TYPE", "RESULT", "PERSON", "DETAILS")
}

// formatSentence formats a row of what somebody did.
func (w *eventWriter) formatSentence(at, who, what string) string {
	return cli.HangText(fmt.Sprintf("%-12s  %-24s  ", at, who), what, w.width) + "\n"
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
