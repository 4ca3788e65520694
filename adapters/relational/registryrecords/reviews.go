package registryrecords

import (
	"context"
	"database/sql"
	"encoding/json"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// reviewStore stores what was submitted for review. It implements registrystore.Reviews.
type reviewStore struct{ db *database.DB }

func (s *reviewStore) Add(ctx context.Context, r review.Review, limit int) error {
	tx, ok := s.db.Transaction(ctx)
	if !ok {
		return errNoTransaction
	}
	if r.State == review.Pending && r.Kind != review.Tools { // there are at most two lists of a part
		if err := s.requireRoom(ctx, tx, r, limit); err != nil {
			return err
		}
	}
	_, err := tx.NewInsert().Model(newReviewRow(r)).Exec(ctx)
	if err = s.db.ClassifyError(err); fault.Is(err, fault.Conflict) {
		return fault.Wrap(fault.Conflict, "a document of the version waits for review already", err)
	}
	return err
}

// requireRoom returns fault.Exhausted if the submitter of a review has limit pending ones like it.
// Other transactions that add a review of the submitter wait until this one ends.
func (s *reviewStore) requireRoom(ctx context.Context, tx bun.Tx, r review.Review, limit int) error {
	submitter := r.Submitter.Key
	_, err := s.db.ExecStatement(ctx, tx, `INSERT INTO review_submitters (submitter) VALUES (?)
		ON CONFLICT (submitter) DO UPDATE SET submitter = excluded.submitter`, submitter)
	if err != nil {
		return err
	}
	var pending int
	err = s.db.ScanInto(ctx, tx, &pending,
		"SELECT count(*) FROM reviews WHERE submitter = ? AND state = 'pending' AND part = '' AND (source <> '') = ?", submitter, r.IsRequest())
	if err == nil && pending >= limit {
		return fault.Newf(fault.Exhausted,
			"%d documents that you submitted or requested wait for review, which is the limit: wait until some are approved or rejected", pending)
	}
	return err
}

func (s *reviewStore) Decide(ctx context.Context, r review.Review) error {
	return s.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		first := []any{r.First.By, string(r.First.Text)}
		columns, where := []string{"state", "replaced", "decided_by", "decided_at", "comment", "rule", "first_by", "first_at", "first_text"},
			"(?0 = '' OR first_by = ?0 AND first_text = ?1)"
		if r.State == review.Pending {
			columns, where = columns[6:], "NOT (first_by = ?0 AND first_text = ?1)"
		}
		n, err := s.db.AffectedRows(tx.NewUpdate().Model(newReviewRow(r)).Column(columns...).
			Where("id = ? AND state = 'pending'", string(r.ID)).Where(where, first...).Exec(ctx))
		if err == nil && n > 0 && r.State != review.Pending {
			_, err = s.db.ExecStatement(ctx, tx, "DELETE FROM review_tool_lists WHERE review = ?", string(r.ID))
		}
		return changedOr(n, err, fault.New(fault.Conflict, "the review is not pending any more"))
	})
}

func (s *reviewStore) Get(ctx context.Context, id registry.ReviewID) (review.Review, error) {
	return s.readOne(ctx, "id = ?", string(id))
}

func (s *reviewStore) PendingOf(ctx context.Context, name registry.Name, version registry.Version) (review.Review, error) {
	return s.readOne(ctx, "name = ? AND version = ? AND part = '' AND state = 'pending'", name.String(), version.String())
}

func (s *reviewStore) PendingTools(ctx context.Context, l tools.Stored) (review.Review, error) {
	return s.readOne(ctx, "name = ? AND version = ? AND part = ? AND list_source = ? AND state = 'pending'",
		l.Name.String(), l.Version.String(), string(l.Part), string(l.Source))
}

// readOne returns the review that a condition selects, or fault.NotFound.
func (s *reviewStore) readOne(ctx context.Context, condition string, args ...any) (review.Review, error) {
	text := "SELECT " + reviewColumns + " FROM reviews WHERE " + condition
	found, err := database.Collect(ctx, s.db, database.Query{Text: text, Args: args, Fixed: true},
		func(rows *sql.Rows) ([]review.Review, error) {
			p, err := collectReviews(rows, 1, 0)
			return p.Reviews, err
		})
	if err == nil && len(found) == 0 {
		err = fault.New(fault.NotFound, "the review does not exist")
	}
	if err != nil {
		return review.Review{}, err
	}
	return found[0], nil
}

func (s *reviewStore) List(ctx context.Context, q registrystore.ReviewQuery) (registrystore.ReviewPage, error) {
	return database.Collect(ctx, s.db, selectReviews(&q), func(rows *sql.Rows) (registrystore.ReviewPage, error) {
		return collectReviews(rows, q.Limit, q.Bytes)
	})
}

func (s *reviewStore) Count(ctx context.Context, q registrystore.ReviewQuery) (map[review.State]int, error) {
	c := filterReviews(&q)
	query := database.Query{Text: "SELECT state, count(*) FROM reviews" + c.where() + " GROUP BY state", Args: c.args}
	return database.Collect(ctx, s.db, query, func(rows *sql.Rows) (map[review.State]int, error) {
		counts := map[review.State]int{}
		for rows.Next() {
			var state review.State
			var n int
			if err := rows.Scan(&state, &n); err != nil {
				return nil, err
			}
			counts[state] = n
		}
		return counts, nil
	})
}

// selectReviews returns the query for the reviews of a page, and one more.
func selectReviews(q *registrystore.ReviewQuery) database.Query {
	c, columns, compare, direction := filterReviews(q), reviewColumns, ">", ""
	if q.Brief {
		columns = briefColumns
	}
	if q.Newest {
		compare, direction = "<", " DESC"
	}
	if !q.After.IsZero() {
		c = c.and("(submitted_at, id) "+compare+" (?, ?)", database.NewInstant(q.After), string(q.AfterID))
	}
	return database.Query{
		Text: "SELECT " + columns + " FROM reviews" + c.where() +
			" ORDER BY submitted_at" + direction + ", id" + direction + " LIMIT ?",
		Args: append(c.args, q.Limit+1),
	}
}

func filterReviews(q *registrystore.ReviewQuery) condition {
	var c condition
	if q.State != "" {
		c = c.and("state = ?", string(q.State))
	}
	if q.Decided {
		c = c.and("state <> 'pending'")
	}
	if q.Refused {
		c = c.and("state IN ('rejected', 'changes_requested')")
	}
	if q.Name != (registry.Name{}) {
		c = c.and("name = ?", q.Name.String())
	}
	if q.Within != (registry.Pattern{}) && q.Within.String() != "*" {
		c = c.also(nameMatches(q.Within))
	}
	if q.Kind != "" {
		c = c.and("kind = ?", string(q.Kind))
	}
	if !q.Until.IsZero() {
		c = c.and("submitted_at < ?", database.NewInstant(q.Until))
	}
	if !q.FirstUntil.IsZero() {
		c = c.and("first_by <> '' AND first_at > ? AND first_at <= ?", database.NewInstant(q.FirstAfter), database.NewInstant(q.FirstUntil))
	}
	if q.By != "" {
		c = c.also(visibleReviews(&registrystore.ReviewQuery{Submitter: q.By}))
	}
	if q.For != "" {
		own := visibleReviews(&registrystore.ReviewQuery{Submitter: string(q.For)})
		c = c.also(condition{"NOT " + own.text, own.args}).and("first_by <> ?", string(q.For))
	}
	if len(q.Patterns) > 0 || q.Submitter != "" {
		c = c.also(visibleReviews(q))
	}
	return c
}

// visibleReviews returns the condition for reviews of servers that a pattern selects, or of the
// submitter or its policies.
func visibleReviews(q *registrystore.ReviewQuery) condition {
	var either []string
	var args []any
	if q.Submitter != "" {
		maker := encodeArray([]string{q.Submitter})
		maker = "%" + likeEscaper.Replace(maker[1:len(maker)-1]) + "%"                            // the element of the array
		either = append(either, `submitter = ? OR makers <> 'null' AND makers LIKE ? ESCAPE '\'`) // each has an index
		args = append(args, q.Submitter, maker)
	}
	for _, p := range q.Patterns {
		if p.String() == "*" {
			return condition{text: "true"}
		}
		of := nameMatches(p)
		either, args = append(either, of.text), append(args, of.args...)
	}
	return condition{"(" + strings.Join(either, " OR ") + ")", args}
}

// collectReviews returns the reviews of rows, at most limit, until their documents have the given
// number of bytes; 0 bytes for no maximum.
func collectReviews(rows *sql.Rows, limit, bytes int) (p registrystore.ReviewPage, err error) {
	size := 0
	for rows.Next() {
		if len(p.Reviews) == limit || bytes > 0 && size >= bytes {
			p.More = true
			return p, nil
		}
		var row reviewRow
		if err := rows.Scan(row.fields()...); err != nil {
			return registrystore.ReviewPage{}, err
		}
		r, err := row.toReview()
		if err != nil {
			return registrystore.ReviewPage{}, err
		}
		p.Reviews = append(p.Reviews, r)
		size += len(r.Document)
	}
	return p, nil
}

// reviewRow is a row of the table reviews.
type reviewRow struct {
	bun.BaseModel `bun:"table:reviews"`

	ID          registry.ReviewID `bun:"id,pk"`
	Name        string            `bun:"name"`
	Version     string            `bun:"version"`
	State       string            `bun:"state"`
	Kind        review.Kind       `bun:"kind"`
	Document    []byte            `bun:"document"`
	Replaced    []byte            `bun:"replaced"` // nil if it does not exist
	Checks      string            `bun:"checks"`   // a JSON array
	Submitter   string            `bun:"submitter"`
	Policy      registry.PolicyID `bun:"policy"`
	Makers      string            `bun:"makers"` // a JSON array
	SubmittedAt database.Instant  `bun:"submitted_at"`
	DecidedBy   string            `bun:"decided_by"`
	DecidedAt   database.Instant  `bun:"decided_at"`
	Comment     string            `bun:"comment"`
	Rule        review.RuleID     `bun:"rule"`
	Reason      string            `bun:"reason"`
	Source      string            `bun:"source"`
	Part        tools.PartKey     `bun:"part"`
	ListSource  tools.Source      `bun:"list_source"`
	FirstBy     string            `bun:"first_by"`
	FirstAt     database.Instant  `bun:"first_at"`
	FirstText   review.Text       `bun:"first_text"`
}

// reviewColumns are the columns of a reviewRow, in the order of its fields.
const reviewColumns = "id, name, version, state, kind, document, replaced, checks, submitter, policy, makers, submitted_at, " +
	"decided_by, decided_at, comment, rule, reason, source, part, list_source, first_by, first_at, first_text"

// briefColumns are reviewColumns without documents.
var briefColumns = strings.Replace(reviewColumns, "document, replaced", "NULL, NULL", 1)

// fields returns where the values of reviewColumns belong.
func (r *reviewRow) fields() []any {
	return []any{
		&r.ID, &r.Name, &r.Version, &r.State, &r.Kind, &r.Document, &r.Replaced, &r.Checks, &r.Submitter, &r.Policy,
		&r.Makers, &r.SubmittedAt,
		&r.DecidedBy, &r.DecidedAt, &r.Comment, &r.Rule, &r.Reason, &r.Source, &r.Part, &r.ListSource,
		&r.FirstBy, &r.FirstAt, &r.FirstText,
	}
}

func newReviewRow(r review.Review) *reviewRow {
	return &reviewRow{
		ID: r.ID, Name: r.Name.String(), Version: r.Version.String(), State: string(r.State), Kind: r.Kind,
		Document: r.Document, Replaced: r.Replaced, Checks: encodeArray(r.Checks),
		Submitter: r.Submitter.Key, Policy: r.Submitter.Policy, Makers: encodeArray(r.Submitter.Makers),
		SubmittedAt: database.NewInstant(r.SubmittedAt),
		DecidedBy:   r.DecidedBy, DecidedAt: database.NewInstant(r.DecidedAt), Comment: r.Comment, Rule: r.Rule,
		Reason: r.Request.Reason, Source: r.Request.Source, Part: r.Part, ListSource: r.Source,
		FirstBy: r.First.By, FirstAt: database.NewInstant(r.First.At), FirstText: r.First.Text,
	}
}

// toReview returns the review of a row. It returns fault.Internal if a value breaks a rule of the
// model.
func (r *reviewRow) toReview() (review.Review, error) {
	v := review.Review{
		ID: r.ID, Kind: r.Kind, Document: r.Document, Replaced: r.Replaced,
		Submitter: review.Submitter{Key: r.Submitter, Policy: r.Policy}, SubmittedAt: r.SubmittedAt.Time,
		DecidedBy: r.DecidedBy, DecidedAt: r.DecidedAt.Time, Comment: r.Comment, Rule: r.Rule,
		Request: review.Request{Reason: r.Reason, Source: r.Source}, Part: r.Part, Source: r.ListSource,
		First: review.Approval{By: r.FirstBy, At: r.FirstAt.Time, Text: r.FirstText},
	}
	var broken [5]error
	v.Name, broken[0] = registry.ParseName(r.Name)
	v.Version, broken[1] = registry.ParseVersion(r.Version)
	v.State, broken[2] = review.ParseState(r.State)
	broken[3] = json.Unmarshal([]byte(r.Checks), &v.Checks)
	broken[4] = json.Unmarshal([]byte(r.Makers), &v.Submitter.Makers)
	return v, checkRow(broken[:]...)
}

// encodeArray returns a list of texts or structs of texts as a JSON array; null without any.
func encodeArray[T any](list []T) string {
	if len(list) == 0 {
		return "null"
	}
	text, _ := json.Marshal(list) // texts always have a JSON form
	return string(text)
}

// Compared implements registrystore.Reviews. Each kind has its own query, so that each reads rows
// by an index.
func (s *reviewStore) Compared(ctx context.Context, pending []review.Review) ([][]byte, error) {
	documents, place := make([][]byte, len(pending)), make(map[string]int, len(pending))
	var ids []any
	for i, r := range pending {
		if r.Kind != review.NewServer {
			place[string(r.ID)] = i
			ids = append(ids, string(r.ID))
		}
	}
	if len(ids) == 0 {
		return documents, ctx.Err()
	}
	selected := " AND r.id IN (?" + strings.Repeat(", ?", len(ids)-1) + ")"
	for _, query := range []database.Query{{
		Text: `SELECT r.id, v.document FROM reviews AS r JOIN versions AS v ON v.name = r.name AND v.version = r.version
				WHERE r.kind = 'replacement'` + selected + `
			UNION ALL SELECT r.id, v.document FROM reviews AS r JOIN versions AS v ON v.name = r.name AND v.is_latest
				WHERE r.kind = 'new-version'` + selected,
		Args: append(ids, ids...),
	}, {
		Text: `SELECT r.id, l.content FROM reviews AS r JOIN tool_lists AS l ON l.name = r.name AND l.version = r.version
				AND l.part = r.part AND l.source = r.list_source AND l.approved WHERE r.kind = 'tools'` + selected,
		Args: ids,
	}} {
		_, err := database.CollectAll(ctx, s.db, query, func(row *sql.Rows) (none struct{}, err error) {
			var id string
			var document []byte
			if err = row.Scan(&id, &document); err == nil {
				documents[place[id]] = document
			}
			return none, err
		})
		if err != nil {
			return nil, err
		}
	}
	return documents, nil
}

func (s *reviewStore) CountPending(ctx context.Context) (n int, err error) {
	find := database.Query{Text: "SELECT count(*) FROM reviews WHERE state = 'pending'", Fixed: true}
	err = s.db.ScanRow(ctx, find, &n)
	return n, err
}

func (s *reviewStore) DecidedByOperator(ctx context.Context, after, until time.Time, limit int) ([]review.Review, error) {
	find := database.Query{
		Text: "SELECT " + briefColumns + ` FROM reviews WHERE decided_by = '` + review.Operator +
			`' AND decided_at > ? AND decided_at <= ?
			ORDER BY decided_at, id LIMIT ?`,
		Args: []any{s.db.TimeArgument(after), s.db.TimeArgument(until), limit}, Fixed: true,
	}
	return database.Collect(ctx, s.db, find, func(rows *sql.Rows) ([]review.Review, error) {
		p, err := collectReviews(rows, limit, 0)
		return p.Reviews, err
	})
}

// ruleStore stores the rules of reviews. It implements registrystore.ReviewRules.
type ruleStore struct{ db *database.DB }

// noticeStore stores when reviewers were notified. It implements registrystore.ReviewNotices.
type noticeStore struct{ db *database.DB }

func (s *ruleStore) Add(ctx context.Context, r review.Rule) error {
	_, err := s.db.Exec(ctx,
		"INSERT INTO review_rules (id, pattern, publisher, condition, created_at, managed_by) VALUES (?, ?, ?, ?, ?, ?)",
		string(r.ID), r.Pattern.String(), r.Publisher, string(r.When), database.NewInstant(r.CreatedAt), r.ManagedBy)
	return err
}

func (s *ruleStore) Remove(ctx context.Context, id review.RuleID) error {
	removed, err := s.db.Exec(ctx, "DELETE FROM review_rules WHERE id = ?", string(id))
	return changedOr(removed, err, fault.New(fault.NotFound, "there is no rule with this id"))
}

func (s *ruleStore) All(ctx context.Context) ([]review.Rule, error) {
	q := database.Query{
		Text:  "SELECT id, pattern, publisher, condition, created_at, managed_by FROM review_rules ORDER BY created_at, id",
		Fixed: true,
	}
	return database.CollectAll(ctx, s.db, q, func(row *sql.Rows) (r review.Rule, err error) {
		err = row.Scan(&r.ID, parsedInto(&r.Pattern, registry.ParsePattern), &r.Publisher, parsedInto(&r.When, review.ParseWhen),
			database.TimeInto(&r.CreatedAt), &r.ManagedBy)
		return r, err
	})
}

func (s *noticeStore) Last(ctx context.Context, reviewer registry.Holder) (review.Notified, error) {
	q := database.Query{Text: "SELECT sent_at, mail FROM review_notices WHERE reviewer = ?", Args: []any{string(reviewer)}}
	last := review.Notified{Mail: review.AtOnce}
	err := s.db.ScanRow(ctx, q, database.TimeInto(&last.At), &last.Mail)
	return last, err
}

func (s *noticeStore) Choose(ctx context.Context, reviewer registry.Holder, m review.Mail, now time.Time) error {
	_, err := s.db.Exec(ctx, `INSERT INTO review_notices (reviewer, sent_at, mail) VALUES (?, ?, ?)
		ON CONFLICT (reviewer) DO UPDATE SET mail = excluded.mail`, string(reviewer), database.NewInstant(now), string(m))
	return err
}

func (s *noticeStore) Record(ctx context.Context, reviewer registry.Holder, last, now time.Time) error {
	text, args := "UPDATE review_notices SET sent_at = ? WHERE reviewer = ? AND sent_at = ?",
		[]any{database.NewInstant(now), string(reviewer), database.NewInstant(last)}
	if last.IsZero() {
		text, args = "INSERT INTO review_notices (reviewer, sent_at) VALUES (?, ?) ON CONFLICT DO NOTHING", []any{
			string(reviewer), database.NewInstant(now),
		}
	}
	changed, err := s.db.Exec(ctx, text, args...)
	return changedOr(changed, err, fault.New(fault.Conflict, "the reviewer was notified meanwhile"))
}
