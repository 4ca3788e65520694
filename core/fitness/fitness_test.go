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
		want   []string // the settings
	}{
		"nothing is missing": {func(*fitness.Facts) {}, nil},
		"nothing is set": {
			func(f *fitness.Facts) { *f = fitness.Facts{RootInDatabase: true} },
			[]string{"OTP_EMAIL_PLUGIN", "SECRET_KEY", "DEBUG_HOST", "PUBLIC_URL", "tollgate backup"},
		},
		"no courier":            {func(f *fitness.Facts) { f.Courier = false }, []string{"OTP_EMAIL_PLUGIN"}},
		"codes by SMS only":     {func(f *fitness.Facts) { f.Mail = false }, nil},
		"root secret":           {func(f *fitness.Facts) { f.RootInDatabase = true }, []string{"SECRET_KEY"}},
		"no address":            {func(f *fitness.Facts) { f.PublicURL = false }, []string{"PUBLIC_URL"}},
		"debug everywhere":      {func(f *fitness.Facts) { f.DebugHost = "0.0.0.0" }, []string{"DEBUG_HOST"}},
		"debug at a name":       {func(f *fitness.Facts) { f.DebugHost = "tollgate.internal" }, []string{"DEBUG_HOST"}},
		"debug on all IPv6":     {func(f *fitness.Facts) { f.DebugHost = "::" }, []string{"DEBUG_HOST"}},
		"debug on IPv6 here":    {func(f *fitness.Facts) { f.DebugHost = "::1" }, nil},
		"debug on localhost":    {func(f *fitness.Facts) { f.DebugHost = "localhost" }, nil},
		"no backup":             {func(f *fitness.Facts) { f.LastBackup = time.Time{} }, []string{"tollgate backup"}},
		"an old backup":         {func(f *fitness.Facts) { f.LastBackup = now.AddDate(0, 0, -8) }, []string{"tollgate backup"}},
		"a backup of this week": {func(f *fitness.Facts) { f.LastBackup = now.AddDate(0, 0, -6) }, nil},
		"PostgreSQL":            {func(f *fitness.Facts) { f.Postgres, f.LastBackup = true, time.Time{} }, nil},
	} {
		facts := fit
		c.change(&facts)
		var got []string
		for _, w := range fitness.Warnings(facts, now) {
			got = append(got, w.Setting)
			if w.Text == "" || strings.HasSuffix(w.Text, ".") {
				t.Errorf("%s: %q", name, w.Text)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
