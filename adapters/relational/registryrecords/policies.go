package registryrecords

import (
	"context"
	"database/sql"
	"encoding/json"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// policyStore stores the policies of publishers. It implements registrystore.Policies.
type policyStore struct{ db *database.DB }

// Add implements registrystore.Policies. A conflict is not an error of the statement, so that the
// transaction can go on.
func (s *policyStore) Add(ctx context.Context, p publisher.Policy) error {
	return s.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		n, err := s.db.AffectedRows(tx.NewInsert().Model(newPolicyRow(p)).On("CONFLICT DO NOTHING").Exec(ctx))
		return changedOr(n, err, fault.New(fault.Conflict, "the policy already exists"))
	})
}

func (s *policyStore) Remove(ctx context.Context, id registry.PolicyID) error {
	return s.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		n, err := s.db.AffectedRows(tx.NewDelete().Model((*policyRow)(nil)).Where("id = ?", id).Exec(ctx))
		return changedOr(n, err, errNoPolicy())
	})
}

func (s *policyStore) Find(ctx context.Context, q registrystore.PolicyQuery) ([]publisher.Policy, error) {
	if q.IDs != nil && len(q.IDs) == 0 {
		return nil, ctx.Err()
	}
	return database.CollectAll(ctx, s.db, selectPolicies(&q), func(rows *sql.Rows) (publisher.Policy, error) {
		var row policyRow
		if err := rows.Scan(row.fields()...); err != nil {
			return publisher.Policy{}, err
		}
		return row.toPolicy()
	})
}

// selectPolicies returns the query for the rows of policies. It is prepared for the lookups that
// proofs and publications make. The words of the condition on the method are those of the index
// publisher_policies_due.
func selectPolicies(q *registrystore.PolicyQuery) database.Query {
	fixed := q.CheckedBefore.IsZero()
	var c condition
	if q.IDs != nil {
		args := anyOf(each.Strings(q.IDs))
		c = c.and("id IN (?"+strings.Repeat(", ?", len(args)-1)+")", args...)
		fixed = fixed && len(args) == 1
	}
	if q.Method != "" {
		c = c.and("method = ?", string(q.Method))
	}
	if q.Domain != (publisher.Domain{}) {
		c = c.and("domain = ?", q.Domain.String())
	}
	if q.Issuer != "" {
		c = c.and("issuer = ?", q.Issuer)
	}
	if !q.CheckedBefore.IsZero() {
		c = c.and("method IN ('dns', 'http') AND checked_at < ?", database.NewInstant(q.CheckedBefore))
	}
	if q.After != "" {
		c = c.and("id > ?", string(q.After))
	}
	rows := database.Query{
		Text: "SELECT " + policyColumns + " FROM publisher_policies" + c.where() + " ORDER BY id", Args: c.args,
		Fixed: fixed,
	}
	if q.Limit > 0 {
		rows.Text += " LIMIT ?"
		rows.Args = append(rows.Args, q.Limit)
	}
	return rows
}

func (s *policyStore) Update(ctx context.Context, id registry.PolicyID, change func(*publisher.Policy) error) error {
	return s.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		var row policyRow
		find := s.db.LockForChange(tx.NewSelect().Model(&row).Where("id = ?", id))
		if err := s.db.ClassifyFind(find.Scan(ctx), errNoPolicy()); err != nil {
			return err
		}
		p, err := row.toPolicy()
		if err != nil {
			return err
		}
		if err := change(&p); err != nil {
			return err
		}
		_, err = tx.NewUpdate().Model(newPolicyRow(p)).ExcludeColumn("id").Where("id = ?", id).Exec(ctx)
		return s.db.ClassifyError(err)
	})
}

func errNoPolicy() error { return fault.New(fault.NotFound, "the policy does not exist") }

// policyRow is a row of the table publisher_policies.
type policyRow struct {
	bun.BaseModel `bun:"table:publisher_policies"`

	ID             registry.PolicyID `bun:"id,pk"`
	Method         string            `bun:"method"`
	Pattern        string            `bun:"pattern"`
	Actions        string            `bun:"actions"` // with a comma between them
	Domain         string            `bun:"domain"`
	KeyFingerprint string            `bun:"key_fingerprint"`
	Issuer         string            `bun:"issuer"`
	Subject        string            `bun:"subject"`
	Claims         *string           `bun:"claims"` // a JSON object; otherwise nil
	CreatedBy      registry.Holder   `bun:"created_by"`
	CreatedAt      database.Instant  `bun:"created_at"`
	ExpiresAt      database.Instant  `bun:"expires_at"`
	LastUsedAt     database.Instant  `bun:"last_used_at"`
	UsedKey        string            `bun:"used_key"`
	Bound          *string           `bun:"bound"` // as Claims
	CheckedAt      database.Instant  `bun:"checked_at"`
	GoneSince      database.Instant  `bun:"gone_since"`
	ManagedBy      string            `bun:"managed_by"`
}

// policyColumns are the columns of a policyRow, in the order of its fields.
const policyColumns = "id, method, pattern, actions, domain, key_fingerprint, issuer, subject, claims, created_by, created_at, expires_at, " +
	"last_used_at, used_key, bound, checked_at, gone_since, managed_by"

// fields returns where the values of policyColumns belong.
func (r *policyRow) fields() []any {
	return []any{
		&r.ID, &r.Method, &r.Pattern, &r.Actions, &r.Domain, &r.KeyFingerprint, &r.Issuer, &r.Subject, &r.Claims,
		&r.CreatedBy, &r.CreatedAt, &r.ExpiresAt,
		&r.LastUsedAt, &r.UsedKey, &r.Bound, &r.CheckedAt, &r.GoneSince, &r.ManagedBy,
	}
}

func newPolicyRow(p publisher.Policy) *policyRow {
	return &policyRow{
		ID: p.ID, Method: string(p.Method), Pattern: p.Pattern.String(), Actions: joinActions(p.Actions),
		Domain: p.Domain.String(), KeyFingerprint: p.Fingerprint.String(),
		Issuer: p.Issuer, Subject: p.Subject.String(), Claims: encodeClaims(p.Claims),
		CreatedBy: p.CreatedBy, CreatedAt: database.NewInstant(p.CreatedAt),
		ExpiresAt:  database.NewInstant(p.ExpiresAt),
		LastUsedAt: database.NewInstant(p.LastUsedAt), UsedKey: p.UsedKey, Bound: encodeClaims(p.Bound),
		CheckedAt: newCheckTime(p.CheckedAt), GoneSince: database.NewInstant(p.GoneSince), ManagedBy: p.ManagedBy,
	}
}

// toPolicy returns the policy of a row. It returns fault.Internal if a value breaks a rule of the
// model.
func (r *policyRow) toPolicy() (publisher.Policy, error) {
	p := publisher.Policy{
		ID: r.ID, Issuer: r.Issuer, UsedKey: r.UsedKey, CreatedBy: r.CreatedBy, CreatedAt: r.CreatedAt.Time,
		ExpiresAt:  r.ExpiresAt.Time,
		LastUsedAt: r.LastUsedAt.Time, CheckedAt: parseCheckTime(r.CheckedAt), GoneSince: r.GoneSince.Time,
		ManagedBy: r.ManagedBy,
	}
	var broken [8]error
	p.Method, broken[0] = publisher.ParseMethod(r.Method)
	p.Pattern, broken[1] = registry.ParsePattern(r.Pattern)
	p.Actions, broken[2] = parseActions(r.Actions)
	if p.Method.ByDomain() || r.Domain != "" {
		p.Domain, broken[3] = publisher.ParseDomain(r.Domain)
	}
	p.Fingerprint, broken[4] = publisher.ParseFingerprint(r.KeyFingerprint)
	p.Subject, broken[5] = publisher.ParseSubjectPattern(r.Subject)
	p.Claims, broken[6] = decodeClaims(r.Claims)
	p.Bound, broken[7] = decodeClaims(r.Bound)
	return p, checkRow(broken[:]...)
}

// newCheckTime returns the time of a check for its column. The zero time, of a policy that was
// never checked, is the start of 1970 there and not NULL, so that one range of an index has all
// policies that were not checked since some time.
func newCheckTime(t time.Time) database.Instant {
	if t.IsZero() {
		t = time.UnixMicro(0)
	}
	return database.NewInstant(t)
}

func parseCheckTime(i database.Instant) time.Time {
	if i.UnixMicro() == 0 {
		return time.Time{}
	}
	return i.Time
}

func joinActions(actions []publisher.Action) string {
	return strings.Join(each.Strings(actions), ",")
}

func parseActions(text string) (actions []publisher.Action, err error) {
	for word := range strings.SplitSeq(text, ",") {
		a, err := publisher.ParseAction(word)
		if err != nil {
			return nil, err
		}
		actions = append(actions, a)
	}
	return actions, nil
}

// encodeClaims returns claims as a JSON object, otherwise nil.
func encodeClaims(claims map[string]string) *string {
	if len(claims) == 0 {
		return nil
	}
	object, _ := json.Marshal(claims) // a map of strings always has a JSON form
	text := string(object)
	return &text
}

func decodeClaims(text *string) (claims map[string]string, err error) {
	if text == nil {
		return nil, nil
	}
	err = json.Unmarshal([]byte(*text), &claims)
	return claims, err
}
