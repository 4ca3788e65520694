package operating

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/assessment"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/core/auth/stepup"
)

const (
	riskPath = Path + "/risk"
	week     = 7 * 24 * time.Hour
	// maxSignIns is how many sign-ins of a person the page Risk has, the newest ones.
	maxSignIns = 10
)

var riskPage = site.NewPage(templates, "templates/risk.html")

// riskView is the page with the people who signed in during a week, those with the highest score first.
type riskView struct {
	Email  string // of the person whose sign-ins are shown; empty for everybody
	Level  string // that sign-ins began with; empty for any
	Least  int    // the lowest score
	Week   time.Time
	Levels []site.Option
	People []*riskPerson
	Hidden int  // people who have no place on the page
	Cut    bool // the week has more events than the page reads
}

// riskPerson is a person with the sign-ins that the filters select. The first row has the highest score.
type riskPerson struct {
	Subject audit.Subject
	Worst   *riskRow
	Rows    []*riskRow
	Count   int
	After   []string // what became of the account, and who did it
}

// riskRow is the evaluation of a sign-in.
type riskRow struct {
	audit.Event
	assessment.Evaluation

	Began, Now  site.Level
	Unusual     []string
	Why         string   // it began with its level
	After       []string // what became of it
	HistoryText string   // the score of the history, with what it is used for; empty without one
}

// describeHistory returns what the history says about a sign-in, or an empty text without a score.
func describeHistory(h assessment.HistoryEvaluation) string {
	switch {
	case h.Mode == "" || h.Silent != "":
		return ""
	case h.Mode == assessment.HistoryOn:
		return fmt.Sprintf("%d, points %d: the lower trust level of both counts", h.Score, h.PointsScore)
	}
	return fmt.Sprintf("%d, points %d: only the points count", h.Score, h.PointsScore)
}

func (p *Pages) risk(ctx context.Context, v *site.Visit) error {
	view := riskView{Email: v.Text("email"), Level: v.Text("level"), Week: weekOf(v.Text("week")), Levels: []site.Option{{Text: "Any"}}}
	for _, l := range auth.TrustLevels() {
		view.Levels = append(view.Levels, site.Option{Value: l.String(), Text: site.LevelOf(l).Name})
	}
	view.Least, _ = strconv.Atoi(v.Text("score")) // 0 for what is no number
	user, problems, err := p.filterPerson(ctx, view.Email)
	if err == nil && len(problems) == 0 {
		err = p.readWeek(ctx, v, user, &view)
	}
	if err != nil {
		return err
	}
	return v.Render(riskPage, site.Head{Title: "Risk", Problems: problems}, &view)
}

// weekOf returns when the week of a day begins, on Monday; for what is no day, the present one.
func weekOf(day string) time.Time {
	t, err := time.Parse(time.DateOnly, day)
	if err != nil || t.Year() < 2000 {
		t = time.Now().UTC().Truncate(24 * time.Hour)
	}
	return t.AddDate(0, 0, -(int(t.Weekday())+6)%7)
}

// Before and Next return the first days of the weeks before and after the shown one.
func (r *riskView) Before() string { return r.Week.Add(-week).Format(time.DateOnly) }

// Next returns an empty text if that week has not begun.
func (r *riskView) Next() string {
	if next := r.Week.Add(week); next.Before(time.Now()) {
		return next.Format(time.DateOnly)
	}
	return ""
}

// readWeek reads the sign-ins of the week, and what became of them, with one read for each kind of events.
func (p *Pages) readWeek(ctx context.Context, v *site.Visit, user auth.UserID, view *riskView) error {
	people, sessions := map[audit.Subject]*riskPerson{}, map[string]*riskRow{}
	for _, category := range []audit.Category{audit.RiskEvaluation, audit.StepUpAttempt, audit.DeviceChange, audit.AccountChange} {
		found, err := p.ports.Trail.Search(ctx, user, auditing.Query{
			Category: category, After: view.Week.Add(-1), Before: view.Week.Add(week), Limit: auth.MaxPage, Most: 1,
		})
		if err != nil {
			return err
		}
		view.Cut = view.Cut || len(found.Events) == auth.MaxPage
		for _, e := range slices.Backward(found.Events) {
			if category == audit.RiskEvaluation {
				view.addSignIn(people, sessions, e)
			} else if err := addOutcome(v, people[e.Subject], sessions[e.Details.Text("sessionId")], &e); err != nil {
				return err
			}
		}
	}
	for _, one := range people {
		view.People = append(view.People, one)
	}
	slices.SortFunc(view.People, func(a, b *riskPerson) int {
		return cmp.Or(b.Worst.Score-a.Worst.Score, cmp.Compare(a.Subject, b.Subject))
	})
	view.Hidden = max(0, len(view.People)-perPage)
	view.People = view.People[:len(view.People)-view.Hidden]
	return nil
}

// addSignIn adds a sign-in that the filters select.
func (r *riskView) addSignIn(people map[audit.Subject]*riskPerson, sessions map[string]*riskRow, e audit.Event) {
	row := &riskRow{Event: e, Evaluation: assessment.ReadEvaluation(&e)}
	if row.Score < r.Least || r.Level != "" && row.TrustLevel.String() != r.Level {
		return
	}
	row.Began, row.HistoryText, row.Why = site.LevelOf(row.TrustLevel), describeHistory(row.History), site.DescribeLevel(row.Evaluation)
	row.Now, row.Unusual = row.Began, site.DescribeReasons(row.Reasons, auth.FullTrust)
	one := people[e.Subject]
	if one == nil {
		one = &riskPerson{Subject: e.Subject, Worst: row}
		people[e.Subject] = one
	}
	if row.Score >= one.Worst.Score {
		one.Worst = row
	}
	one.Count++
	one.Rows = append([]*riskRow{row}, one.Rows[:min(len(one.Rows), maxSignIns-1)]...)
	sessions[string(row.Session)] = row
}

// addOutcome adds what happened to a sign-in or to the account of its person; each may be nil.
func addOutcome(v *site.Visit, one *riskPerson, row *riskRow, e *audit.Event) (err error) {
	sentence := e.Sentence(func(text string) string {
		name, failed := v.NameOf(text)
		err = cmp.Or(err, failed)
		return name
	})
	switch {
	case e.Category == audit.AccountChange && one != nil:
		one.After = append(one.After, sentence)
	case row != nil && len(row.After) < maxSignIns:
		row.After = append(row.After, sentence)
		if e.Category == audit.StepUpAttempt && e.Success && e.Action() == stepup.ActionVerify {
			row.Now = site.LevelOf(auth.FullTrust)
		}
	}
	return err
}
