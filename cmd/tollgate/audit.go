package main

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/audit"
	"github.com/tollgate-dev/tollgate/wiring"
)

// defaultEvents is how many events a search shows when nobody says.
const defaultEvents = 100

func newAudit(p process) *cobra.Command {
	c := &cobra.Command{Use: "audit", Short: "Search the record of what happened, and who did it"}
	c.AddCommand(newAuditSearch(p))
	return c
}

// auditFlags are the flags of a search.
type auditFlags struct {
	email, user, event, since, until string
	limit                            int
}

func newAuditSearch(p process) *cobra.Command {
	var f auditFlags
	c := &cobra.Command{
		Use:   "search",
		Short: "Search the audit log",
		Long: "Search the audit log, newest events first: events of one person, or of\n" +
			"everybody.\n\n" +
			"A time is RFC 3339, a date, or a duration back from now, for example 36h. Times\n" +
			"and dates without a zone are UTC. Events are printed while they are read, so\n" +
			"you can export any number of them (--limit 0). jsonl is one JSON object per\n" +
			"line.",
		Example: "  tollgate audit search --email ada@example.com --since 24h\n" +
			"  tollgate audit search --type SUSPICIOUS_ACTIVITY --since 2026-01-01 --limit 20\n" +
			"  tollgate audit search --limit 0 --output jsonl | gzip > audit.jsonl.gz",
		Args: cobra.NoArgs,
	}
	c.Flags().StringVar(&f.email, "email", "", "e-mail address of the person; default: everybody, unless --user is given")
	c.Flags().StringVar(&f.user, "user", "", "id of the person")
	c.Flags().StringVar(&f.event, "type", "", "events of this type only")
	c.Flags().StringVar(&f.since, "since", "", "events at this time or after it")
	c.Flags().StringVar(&f.until, "until", "", "events before this time")
	c.Flags().IntVar(&f.limit, "limit", defaultEvents, "maximum number of events; 0 = all")
	offer(c, "type", texts(auth.EventTypes())...)
	o := addForms(c, "output format: table, json or jsonl", "table", "json", "jsonl")
	c.RunE = func(c *cobra.Command, _ []string) error {
		q, err := f.query(time.Now())
		if err != nil {
			return err
		}
		return withOperator(c, p, func(op *wiring.Operator) error {
			person, err := f.person(c, op)
			if err != nil {
				return err
			}
			out := newEventWriter(c.Context(), op, p.stdout, o.format)
			return cmp.Or(op.Trail.Walk(c.Context(), person, q, out.write), out.close()) // a full disk fails both
		})
	}
	return c
}

// query reads what to search for.
func (f *auditFlags) query(now time.Time) (q audit.Query, err error) {
	if f.email != "" && f.user != "" {
		return q, errors.New("give --email or --user, not both")
	}
	if q.Limit = f.limit; f.limit < 0 {
		return q, fmt.Errorf("--limit: %d is less than 0", f.limit)
	}
	if f.event != "" {
		if q.Type, err = auth.ParseEventType(f.event); err != nil {
			return q, fmt.Errorf("--type: there is no type %q, only %s", f.event, strings.Join(texts(auth.EventTypes()), ", "))
		}
	}
	if q.After, err = moment("--since", f.since, now); err != nil {
		return q, err
	}
	if q.Before, err = moment("--until", f.until, now); err != nil {
		return q, err
	}
	if !q.Before.IsZero() && !q.After.Before(q.Before) {
		return q, fmt.Errorf("--since %s is not before --until %s", f.since, f.until)
	}
	if !q.After.IsZero() {
		q.After = q.After.Add(-time.Microsecond) // the query's bound is not in it, and times have microseconds
	}
	return q, nil
}

// moment reads a time, or a duration back from now; the zero time when there is
// none.
func moment(flag, s string, now time.Time) (time.Time, error) {
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
	return time.Time{}, fmt.Errorf("%s: %q is neither a time (for example 2026-01-31T12:00:00Z) nor a duration (for example 36h)", flag, s)
}

// person returns the id of whose events to show; empty for everybody's.
func (f *auditFlags) person(c *cobra.Command, op *wiring.Operator) (auth.UserID, error) {
	switch {
	case f.user != "":
		return auth.ParseUUID[auth.UserID]("--user", f.user)
	case f.email == "":
		return "", nil
	}
	email, err := auth.ParseEmail(f.email)
	if err != nil {
		return "", err
	}
	account, err := op.People.ByEmail(c.Context(), email)
	return account.ID, notFound(err, "there is no user "+string(email))
}
