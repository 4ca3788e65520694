package fitness_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/fitness"
)

func TestWarnings(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	fit := fitness.Facts{Courier: true, Mail: true, PublicURL: true, DebugHost: "127.0.0.1", LastBackup: now.Add(-time.Hour)}
	for name, c := range map[string]struct {
		change func(f *fitness.Facts)
		want   []fitness.Missing
	}{
		"nothing is missing": {func(*fitness.Facts) {}, nil},
		"nothing is set": {
			func(f *fitness.Facts) { *f = fitness.Facts{RootInDatabase: true} },
			[]fitness.Missing{fitness.Courier, fitness.RootSecret, fitness.PrivateDebugger, fitness.PublicAddress, fitness.Backup},
		},
		"no courier":            {func(f *fitness.Facts) { f.Courier = false }, []fitness.Missing{fitness.Courier}},
		"codes by SMS only":     {func(f *fitness.Facts) { f.Mail = false }, nil},
		"root secret":           {func(f *fitness.Facts) { f.RootInDatabase = true }, []fitness.Missing{fitness.RootSecret}},
		"no address":            {func(f *fitness.Facts) { f.PublicURL = false }, []fitness.Missing{fitness.PublicAddress}},
		"debug everywhere":      {func(f *fitness.Facts) { f.DebugHost = "0.0.0.0" }, []fitness.Missing{fitness.PrivateDebugger}},
		"debug at a name":       {func(f *fitness.Facts) { f.DebugHost = "tollgate.internal" }, []fitness.Missing{fitness.PrivateDebugger}},
		"debug on all IPv6":     {func(f *fitness.Facts) { f.DebugHost = "::" }, []fitness.Missing{fitness.PrivateDebugger}},
		"debug on IPv6 here":    {func(f *fitness.Facts) { f.DebugHost = "::1" }, nil},
		"debug on localhost":    {func(f *fitness.Facts) { f.DebugHost = "localhost" }, nil},
		"no backup":             {func(f *fitness.Facts) { f.LastBackup = time.Time{} }, []fitness.Missing{fitness.Backup}},
		"an old backup":         {func(f *fitness.Facts) { f.LastBackup = now.AddDate(0, 0, -8) }, []fitness.Missing{fitness.Backup}},
		"a backup of this week": {func(f *fitness.Facts) { f.LastBackup = now.AddDate(0, 0, -6) }, nil},
		"PostgreSQL":            {func(f *fitness.Facts) { f.Postgres, f.LastBackup = true, time.Time{} }, nil},
	} {
		facts := fit
		c.change(&facts)
		var got []fitness.Missing
		for _, w := range fitness.Warnings(facts, now) {
			got = append(got, w.Missing)
			if w.Text == "" || strings.HasSuffix(w.Text, ".") {
				t.Errorf("%s: %q", name, w.Text)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
