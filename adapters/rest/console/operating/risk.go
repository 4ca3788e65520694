package operating

import (
	"context"
	"fmt"
	"net/url"
	"strconv"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth/assessment"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
)

const riskPath = Path + "/risk"

var riskPage = site.NewPage(templates, "templates/risk.html")

// riskView is the page with the scores of sign-ins.
type riskView struct {
	Email        string // of the person whose sign-ins are shown; empty for everybody
	Rows         []riskRow
	Places       bool // of some sign-in it is known from where it came
	Total        int
	More         bool // there are more than Total
	Newer, Older string
}

// riskRow is the evaluation of a sign-in.
type riskRow struct {
	audit.Event
	assessment.Evaluation

	Level       site.Level
	Parts       []partView
	HistoryText string // the score of the history, with what it is used for; empty without one
}

// partView is a part of a score.
type partView struct {
	Name   string
	Points int
	Text   string
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
	view := riskView{Email: v.Text("email")}
	user, problems, err := p.filterPerson(ctx, view.Email)
	if err != nil {
		return err
	}
	offset, err := strconv.Atoi(v.Text("offset"))
	if err != nil || offset < 0 {
		offset = 0
	}
	if len(problems) == 0 {
		found, err := p.ports.Trail.Search(ctx, user, auditing.Query{
			Category: audit.RiskEvaluation, Limit: perPage, Offset: offset, Most: site.MostCounted,
		})
		if err != nil {
			return err
		}
		view.fill(found, offset)
	}
	return v.Render(riskPage, site.Head{Title: "Risk", Problems: problems}, view)
}

// fill adds the rows and the addresses of the other pages.
func (r *riskView) fill(found auditing.Page, offset int) {
	r.Total, r.More = min(found.Total, site.MostCounted), found.Total > site.MostCounted
	for _, e := range found.Events {
		row := riskRow{Event: e, Evaluation: assessment.ReadEvaluation(&e)}
		row.Level, row.HistoryText = site.LevelOf(row.TrustLevel), describeHistory(row.History)
		r.Places = r.Places || row.Country+row.Organisation != ""
		for _, reason := range row.Reasons {
			row.Parts = append(row.Parts, partView{site.FactorName(reason.Factor), reason.Points, reason.Text})
		}
		r.Rows = append(r.Rows, row)
	}
	if offset > 0 {
		r.Newer = r.address(max(offset-perPage, 0))
	}
	if offset+perPage < found.Total {
		r.Older = r.address(offset + perPage)
	}
}

// address returns the address of the page that begins at an offset.
func (r *riskView) address(offset int) string {
	return riskPath + "?" + url.Values{"email": {r.Email}, "offset": {strconv.Itoa(offset)}}.Encode()
}
