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

var riskPage = site.ParsePage(templates, "templates/risk.html")

// riskView is the page with the scores of sign-ins.
type riskView struct {
	Email        string // of the person whose sign-ins are shown; empty for everybody
	Rows         []riskRow
	Total        int
	Newer, Older string
}

// riskRow is the evaluation of a sign-in.
type riskRow struct {
	audit.Event
	assessment.Evaluation

	Class       string
	Parts       []partView
	HistoryText string // the score of the history or why it is silent, with what it is used for
}

// partView is a part of a score.
type partView struct {
	Name   string
	Points int
	Text   string
}

// silences are the reasons for which the history has no score.
var silences = map[string]string{
	assessment.SilentInstallation: "no score yet: too few sign-ins of everybody",
	assessment.SilentPerson:       "no score yet: too few sign-ins of this person",
	assessment.SilentUnread:       "no score: the counts could not be read",
}

// describeHistory returns what the history says about a sign-in, or an empty text if it was off.
func describeHistory(h assessment.HistoryEvaluation) string {
	switch {
	case h.Mode == "":
		return ""
	case h.Silent != "":
		return silences[h.Silent]
	case h.Mode == assessment.HistoryOn:
		return fmt.Sprintf("%d, points %d: the higher one counts", h.Score, h.PointsScore)
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
			Category: audit.RiskEvaluation, Limit: perPage, Offset: offset,
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
	r.Total = found.Total
	for _, e := range found.Events {
		row := riskRow{Event: e, Evaluation: assessment.ReadEvaluation(&e)}
		row.Class, row.HistoryText = site.LevelOf(row.TrustLevel).Class, describeHistory(row.History)
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
