package site

import (
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/moment"
)

func TestFormatAgo(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	for between, want := range map[time.Duration]string{
		0: "just now", 59 * time.Second: "just now", time.Minute: "1 min ago", 59*time.Minute + 59*time.Second: "59 min ago",
		time.Hour: "1 hour ago", 23*time.Hour + 59*time.Minute: "23 hours ago", 24 * time.Hour: "1 day ago",
		30 * 24 * time.Hour: "30 days ago", 31 * 24 * time.Hour: "27 Oct 2026",
		-time.Second: "in 1 min", -5 * time.Minute: "in 5 min", -72 * time.Hour: "in 3 days", -40 * 24 * time.Hour: "6 Jan 2027",
	} {
		if got := strings.ReplaceAll(moment.Ago(now.Add(-between), now), "\u00a0", " "); got != want {
			t.Errorf("%s before now is %q, want %q", between, got, want)
		}
	}
}

func TestSections(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/console/operator": "Overview", "/console/operator/people/a@example.com": "People",
		"/console/operator/log": "Audit log", "/console/account": "My account", "/console/account/log": "My audit log",
		"/console/account/sessions/1/end": "My account", "/console/operators": "", "/console/": "",
	} {
		var got string
		if s := sectionOf(path); s != nil {
			for _, l := range s.Links {
				if l.Current {
					got += l.Text
				}
			}
		}
		if got != want {
			t.Errorf("the current link at %s is %q, want %q", path, got, want)
		}
	}
}
