package authrecords_test

import (
	"context"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/relational/authrecords"
	"github.com/tollgate-dev/tollgate/adapters/relational/relationaltest"
)

// insertOldRecords returns the statements that add 20,000 records, as Rows, of each kind that retention
// removes, one for each minute since 2026.
func insertOldRecords(kind string) []string {
	count := strconv.Itoa(relationaltest.Rows(kind, 20_000))
	numbers, at, bytes := "generate_series(1, "+count+") AS n (i)",
		"('2026-01-01T00:00:00Z'::timestamptz + n.i * interval '1 minute')", "n.i::text::bytea"
	late := "'2027-01-01T00:00:00Z'::timestamptz"
	period := "extract(epoch FROM " + at + ")::bigint / 864000"
	id, anna := "('00000000-1234-4abc-8def-' || lpad(n.i::text, 12, '0'))::uuid",
		"'6f1e9c52-57a5-4b60-9b63-2f1c38d7e001'::uuid"
	if kind == relationaltest.SQLite {
		numbers = "(WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < " + count + ") SELECT i FROM n) AS n"
		at, bytes = "(1767225600000000 + n.i * 60000000)", "CAST(n.i AS BLOB)"
		period, late = at+" / 864000000000", "1798761600000000"
		id, anna = "printf('00000000-1234-4abc-8def-%012d', n.i)", "'6f1e9c52-57a5-4b60-9b63-2f1c38d7e001'"
	}
	from := " FROM " + numbers
	empty := "CAST('' AS " + map[string]string{
		relationaltest.SQLite: "BLOB", relationaltest.PostgreSQL: "bytea",
	}[kind] + ")"
	statements := []string{
		`INSERT INTO accounts (id, email, name, phone, password_hash, state, mfa_secret, mfa_active, mfa_last_step)
			VALUES (` + anna + ", 'anna@example.com', '', '', '', 'active', " + empty + ", false, 0)",
		`INSERT INTO devices (id, user_id, identity, trust_status, confirmed, revoked, last_seen, type, browser, os, last_ip_address)
			SELECT ` + id + ", " + anna + ", 'd' || n.i, 'PENDING', n.i % 10 = 0, false, " + at +
			", '', '', '', ''" + from,
		"INSERT INTO device_tokens (hash, device_id, issued_at) SELECT " + bytes + ", " + id + ", " + at + from,
		`INSERT INTO sessions (id, user_id, device_id, device_identity, trust_level, risk_score, expires_at, ip_address, ended_at, end_reason)
			SELECT ` + id + ", " + anna + ", " + id + ", '', 'UNVERIFIED', 0, " + at + ", '', NULL, ''" + from,
		"INSERT INTO refresh_tokens (hash, session_id, expires_at) SELECT " + bytes + ", " + id + ", " + at + from,
		"INSERT INTO history_deferred (session_id, at, additions) SELECT " + id + ", " + at + ", '[]'" + from,
		`INSERT INTO challenges (id, session_id, user_id, method, code_hash, attempts, state, expires_at)
			SELECT ` + id + ", " + id + ", " + anna + ", '', " + empty + ", 0, ''," + at + from,
		"INSERT INTO pending_logins (user_id, device_identity, subject, proven, expires_at) SELECT " + anna +
			", 'd' || n.i, '', false, " + at + from,
		`INSERT INTO company_identities (id, user_id, issuer, subject, email, linked_at, last_used_at)
			SELECT ` + id + ", " + anna + ", '', 's' || n.i, '', " + at + ", " + at + from,
		`INSERT INTO company_logins (id, session_id, identity_id, provider, sid, refresh, answered_at)
			SELECT ` + id + ", CASE WHEN n.i > 19 THEN " + id + " END, " + id + ", '', '', " + empty + ", " + at + from,
		`INSERT INTO oauth_requests (hash, browser, client, redirect_uri, challenge, resource, state, scopes, trust_level,
			max_age, prompt, login_hint, created_at, expires_at)
			SELECT ` + bytes + ", " + empty + ", '', '', '', '', '', '', '', 0, '', '', " + at + ", " + at + from,
		// every second one has ended, and expires later
		`INSERT INTO oauth_families (id, user_id, session_id, client, client_name, redirect_uri, challenge, resource, scopes,
			trust_level, auth_time, provider, subject, created_at, expires_at, ended_at, end_reason)
			SELECT ` + id + ", " + anna + ", CASE WHEN n.i > 19 THEN " + id + " END, 'c' || n.i, '', '', '', '', '', '', " +
			at + ", 'p', 's' || n.i, " + at + ", CASE WHEN n.i % 2 = 0 THEN " + at + " ELSE " + late +
			" END, CASE WHEN n.i % 2 = 1 THEN " + at + " END, ''" + from,
		"INSERT INTO oauth_secrets (hash, family_id, code, issued_at, expires_at) SELECT " + bytes + ", " + id + ", true, " +
			at + ", " + at + from,
		`INSERT INTO oauth_consents (hash, user_id, client, host, resource, scopes, terms, given_at, expires_at)
			SELECT ` + bytes + ", " + anna + ", 'c' || n.i, '', '', '', " + empty + ", " + at + ", " + at + from,
		"INSERT INTO lockouts (key, failed_at, latest) SELECT 'device:' || n.i, '[]', " + at + from,
		"INSERT INTO audit_events (id, time, type, success, details) SELECT " + id + ", " + at +
			", 'LOGIN_ATTEMPT', false, '{}'" + from,
		"INSERT INTO history_counts (user_id, feature, value, sum, last_at, version, period) SELECT " + anna +
			", 12, 'AS' || n.i, 1, " + at + ", 0, " + period + from,
		"INSERT INTO history_totals (feature, value, sum, last_at, version, period) SELECT 12, 'AS' || n.i, 1, " + at +
			", 0, " + period + " + 30" + from,
		"INSERT INTO audit_day_counts (user_id, day, type, events) SELECT " + anna +
			", 20434 + n.i, 'LOGIN_ATTEMPT', 1" + from,
	}
	if kind == relationaltest.PostgreSQL {
		statements = append(statements, "VACUUM ANALYZE")
	}
	return statements
}

// fullScan matches a plan that reads a whole table or a whole index.
var fullScan = map[string]*regexp.Regexp{
	relationaltest.PostgreSQL: regexp.MustCompile(`Seq Scan`),
	relationaltest.SQLite:     regexp.MustCompile(`SCAN|AUTOMATIC|TEMP B-TREE`),
}

// TestRetentionUsesIndexes checks the plans of all queries of a sweep, if twenty records
// has expired.
func TestRetentionUsesIndexes(t *testing.T) {
	relationaltest.InEach(t, func(t *testing.T, db *relationaltest.Database) {
		db.Fill(t, insertOldRecords(db.Kind())...)
		for _, remove := range sweeps(t, db) {
			removed := 0
			plans, err := db.Plans(t.Context(), func(ctx context.Context) (err error) {
				removed, err = remove.do(ctx, time.Date(2026, time.January, 1, 0, 20, 30, 0, time.UTC))
				return err
			})
			if err != nil || len(plans) == 0 || removed < 18 || removed > 20 {
				t.Fatalf("%s: %d plans, %d removed, %v", remove.name, len(plans), removed, err)
			}
			for query, plan := range plans {
				if fullScan[db.Kind()].MatchString(plan) {
					t.Errorf("%s reads a whole table:\n%.300s\n%s", remove.name, query, plan)
				}
			}
		}
	})
}

type sweep struct {
	name string
	do   func(ctx context.Context, before time.Time) (int, error)
}

// sweeps returns the removals in the order of core/auth/retention.
func sweeps(t *testing.T, db *relationaltest.Database) []sweep {
	t.Helper()
	events, stores := authrecords.NewAuditLog(db.DB), newStores(t, db.DB)
	return []sweep{
		{"refresh tokens", stores.RefreshTokens.DeleteExpired},
		{"challenges", stores.Challenges.DeleteExpired},
		{"pending logins", stores.PendingLogins.DeleteExpired},
		{"company sign-ins", stores.Logins.DeleteAbandoned},
		{"authorization requests", stores.Requests.DeleteExpired},
		{"authorizations", stores.Families.DeleteExpired},
		{"consents", stores.Consents.DeleteExpired},
		{"lockouts", stores.Lockouts.DeleteBefore},
		{"sessions", stores.SessionRetention.DeleteExpired},
		{"devices", stores.Devices.DeleteUnused},
		{"counts", historyOf(stores).DeleteExpired},
		{"audit events", func(ctx context.Context, before time.Time) (int, error) {
			return events.DeleteBefore(ctx, before, 1000)
		}},
	}
}
