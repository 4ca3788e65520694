package eventlog

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"
	"github.com/sirupsen/logrus/hooks/test"

	"github.com/tollgate-dev/tollgate/core/auth/notices"
	"github.com/tollgate-dev/tollgate/core/auth/retention"
	"github.com/tollgate-dev/tollgate/core/ratelimit/reload"
	"github.com/tollgate-dev/tollgate/test/must"
)

// logLines returns the lines that do writes, with level, error and fields.
func logLines(t *testing.T, do func(*logrus.Entry)) []string {
	t.Helper()
	log, hook := test.NewNullLogger()
	do(logrus.NewEntry(log))
	var lines []string
	for _, e := range hook.AllEntries() {
		text, err := (&logrus.TextFormatter{DisableTimestamp: true, DisableColors: true}).Format(e)
		must.Succeed(t, err)
		lines = append(lines, strings.TrimSpace(string(text)))
	}
	return lines
}

func TestRules(t *testing.T) {
	got := logLines(t, func(log *logrus.Entry) {
		r := New(log)
		r.Report(reload.Rejected{Err: errors.New("a.yaml:1: bad")})
		r.Report(reload.InForce{Domains: 1, Rules: manyRules})
		r.Report(reload.Rejected{Err: errors.New("a.yaml:2: bad")})
	})
	want := []string{
		`level=error msg="rate limit configuration is refused, and there is no previous one" error="a.yaml:1: bad"`,
		`level=info msg="rate limit configuration is in force" domains=1 rules=10000`,
		`level=error msg="rate limit configuration is refused; the previous one stays in force" error="a.yaml:2: bad"`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("the log has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestNotices(t *testing.T) {
	got := logLines(t, func(log *logrus.Entry) {
		n := New(log)
		n.Report(notices.Sent{Kind: notices.Replay})
		n.Report(notices.Withheld{Kind: notices.Replay})
		n.Report(notices.Failed{Kind: notices.Replay, Err: errors.New("refused")})
		n.Report(notices.Dropped{Count: 3})
	})
	want := []string{
		`level=warning msg="a notice could not be delivered" error=refused kind=` + string(notices.Replay),
		`level=warning msg="notices were dropped" notices=3`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("the log has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestRetention(t *testing.T) {
	got := logLines(t, func(log *logrus.Entry) {
		r := New(log)
		r.Report(retention.Swept{})
		r.Report(retention.Swept{
			Removed: []retention.Removed{{Kind: retention.Devices, Count: 2}, {Kind: retention.Sessions, Count: 3}},
			Err:     errors.New("refused"),
		})
	})
	want := []string{
		`level=info msg="old records were removed" devices=2 sessions=3`,
		`level=warning msg="old records could not be removed" error=refused`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("the log has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
