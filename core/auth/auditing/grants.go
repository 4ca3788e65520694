package auditing

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
)

// needed is how long a grant is needed after it was given or confirmed.
const needed = 90 * 24 * time.Hour

// GrantHistory is what the audit log says of a grant. A zero event is not known.
type GrantHistory struct{ Given, Confirmed audit.Event }

// IsDue reports whether somebody should say that the grant is still needed: it was neither given nor confirmed within 90
// days.
func (h GrantHistory) IsDue(now time.Time) bool {
	return now.Sub(h.Given.Time) > needed && now.Sub(h.Confirmed.Time) > needed
}

// GrantHistories are the histories of grants, by their holders.
type GrantHistories struct {
	newest map[string]audit.Event
	Cut    bool // older events are left out
}

// Of returns the history of a grant: of a holder, for an action and a pattern.
func (h GrantHistories) Of(holder, action, pattern string) GrantHistory {
	return GrantHistory{h.newest[grantKey("grant_add", holder, action, pattern)], h.newest[grantKey("grant_confirm", holder, action, pattern)]}
}

func grantKey(act audit.Action, parts ...string) string {
	return string(act) + " " + strings.TrimPrefix(strings.Join(parts, " "), "service:")
}

// Grants returns the histories of all grants, as far as the newest changes of accounts have them.
func (t *Trail) Grants(ctx context.Context) (GrantHistories, error) {
	changes, err := t.Search(ctx, "", Query{Category: audit.AccountChange, Limit: auth.MaxPage, Most: 1})
	h := GrantHistories{map[string]audit.Event{}, len(changes.Events) == auth.MaxPage}
	for _, e := range slices.Backward(changes.Events) {
		h.newest[grantKey(e.Action(), e.Details.Text("userId")+e.Details.Text("service"), e.Details.Text("grant"), e.Details.Text("resource"))] = e
	}
	return h, err
}

const (
	day = 24 * time.Hour
	// Denied calls have risen if the log has at least so many entries of the last day, and at least so
	// many times those of the day before. An entry has the calls of a caller, server and tool in a minute.
	fewDenied  = 20
	manyDenied = 2
	// mostDenied is where entries are counted no further.
	mostDenied = 1000
)

// DeniedCalls are how many entries of the log have denied calls, of the last day and of the day before.
type DeniedCalls struct{ Today, Before int }

// Rose reports whether there are clearly more than the day before.
func (d DeniedCalls) Rose() bool { return d.Today >= fewDenied && d.Today >= manyDenied*d.Before }

// Denied returns the numbers of denied calls. It does not count the day before if those of today are few.
func (t *Trail) Denied(ctx context.Context, now time.Time) (d DeniedCalls, err error) {
	count := func(after, until time.Time) (int, error) {
		failed := false
		page, err := t.Search(ctx, "", Query{
			Category: audit.AccessDecision, Success: &failed, After: after, Before: until, Limit: 1, Most: mostDenied,
		})
		return min(page.Total, mostDenied), err
	}
	if d.Today, err = count(now.Add(-day), now); err == nil && d.Today >= fewDenied {
		d.Before, err = count(now.Add(-2*day), now.Add(-day))
	}
	return d, err
}
