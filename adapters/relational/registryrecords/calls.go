package registryrecords

import (
	"context"
	"strings"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/ports/accessstore"
)

func (s listingStore) AddCalls(ctx context.Context, day int64, all []accessstore.Calls) error {
	if len(all) == 0 {
		return ctx.Err()
	}
	var args []any
	for _, one := range all {
		args = append(args, day, one.Server, one.All, one.Denied)
	}
	// The old days go first: an error means that nothing was added, and the caller adds it again.
	if _, err := s.db.Exec(ctx, "DELETE FROM server_calls WHERE day <= ?", day-accessstore.KeptDays); err != nil {
		return err
	}
	_, err := s.db.Exec(ctx, "INSERT INTO server_calls (day, name, calls, denied) VALUES (?, ?, ?, ?)"+strings.Repeat(", (?, ?, ?, ?)", len(all)-1)+
		" ON CONFLICT (day, name) DO UPDATE SET calls = server_calls.calls + EXCLUDED.calls, denied = server_calls.denied + EXCLUDED.denied", args...)
	return err
}

func (s listingStore) CallsOf(ctx context.Context, server string, from int64) (accessstore.Calls, error) {
	args := []any{server}
	for day := range int64(accessstore.KeptDays) { // each is found by the key
		args = append(args, from+day)
	}
	q := database.Query{Text: "SELECT coalesce(sum(calls), 0), coalesce(sum(denied), 0) FROM server_calls WHERE name = ? AND day IN (?" +
		strings.Repeat(", ?", accessstore.KeptDays-1) + ")", Args: args, Fixed: true}
	found := accessstore.Calls{Server: server}
	return found, s.db.ScanRow(ctx, q, &found.All, &found.Denied)
}
