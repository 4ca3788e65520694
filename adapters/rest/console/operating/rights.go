package operating

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

const (
	rightsPath = Path + "/rights"
	// maxRights is how many grants, and people with them, the page and its file have.
	maxRights = 10_000
)

var rightsPage = site.NewPage(templates, "templates/rights.html")

// rightsView is the page that says who may do what.
type rightsView struct {
	Part, Action string
	Actions      []site.Option
	Rows         []rightRow
	Total, Due   int
	Page, Next   int // Next is 0 on the last page
	Cut          bool
	Add          site.FormView
}

// rightRow is a grant with what the audit log says about it. Zero times are not known.
type rightRow struct {
	registry.GrantRecord
	auditing.GrantHistory

	Name       string // of the person or service account
	LastSignIn time.Time
	Due        bool // somebody should say whether it is still needed
}

func (p *Pages) mountRights(r fiber.Router) {
	p.open(r, rightsPath, p.rights)
	r.Get(rightsPath+".csv", p.page(p.sendRights))
	p.site.Post(r, rightsPath, 0, p.act("Confirm these rights", p.confirmRights, p.rights))
}

func (p *Pages) rights(ctx context.Context, v *site.Visit, problems site.Problems) error {
	view, err := p.readRights(ctx, v)
	if err != nil {
		return err
	}
	view.Page, _ = strconv.Atoi(v.Text("page")) // 0 for what is no number
	view.Page = min(max(view.Page, 1), max(1, (view.Total+perPage-1)/perPage))
	if view.Page*perPage < view.Total {
		view.Next = view.Page + 1
	}
	view.Add = newGrantForm(v, problems)
	view.Rows = view.Rows[(view.Page-1)*perPage : min(view.Page*perPage, view.Total)]
	return v.Render(rightsPage, newHead(v, "Rights", problems, view.Add), view)
}

// readRights returns all rights that the filters select, those first about which somebody should decide, then by name:
// with one read each of the grants, of the people, and of what the audit log says about grants.
func (p *Pages) readRights(ctx context.Context, v *site.Visit) (view rightsView, err error) {
	view.Part, view.Action = v.Text("q"), v.Text("action")
	view.Actions = append([]site.Option{{Text: "Any"}}, grantInputs[0].Options...)
	all, err := p.ports.Grants.Records(ctx, registrystore.GrantQuery{Limit: maxRights})
	if err != nil {
		return view, err
	}
	found, err := p.ports.People.Search(ctx, authstore.DirectoryQuery{Limit: maxRights})
	if err != nil {
		return view, err
	}
	histories, err := p.ports.Trail.Grants(ctx)
	people := map[registry.Holder]authstore.Person{}
	for _, one := range found {
		people[HolderOf(&one)] = one
	}
	view.Cut = len(all) == maxRights || len(found) == maxRights || histories.Cut
	for _, g := range all {
		row := rightRow{
			GrantRecord: g, GrantHistory: histories.Of(string(g.Holder), string(g.Action), g.Pattern.String()),
			Name: cmp.Or(string(people[g.Holder].Email), string(g.Holder)), LastSignIn: people[g.Holder].LastSignIn,
		}
		row.Due = row.IsDue(time.Now())
		if view.Action != "" && view.Action != string(g.Action) || !strings.Contains(row.Name, view.Part) {
			continue
		}
		if row.Due {
			view.Due++
		}
		view.Rows = append(view.Rows, row)
	}
	slices.SortStableFunc(view.Rows, func(a, b rightRow) int {
		if a.Due != b.Due {
			if a.Due {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Action, b.Action))
	})
	view.Total = len(view.Rows)
	return view, err
}

// confirmRights records that the selected grants are still needed.
func (p *Pages) confirmRights(ctx context.Context, v *site.Visit) error {
	var ids []registry.GrantID
	for _, id := range v.Form["id"] {
		ids = append(ids, registry.GrantID(id))
	}
	return v.Done(p.ports.GrantChanges.Confirm(ctx, ids), rightsPath, "confirmed")
}

// sendRights sends all rights that the filters select as CSV.
func (p *Pages) sendRights(ctx context.Context, v *site.Visit) error {
	view, err := p.readRights(ctx, v)
	if err != nil {
		return err
	}
	rows := [][]string{{"holder", "action", "servers", "from", "given", "given by", "last sign-in", "confirmed", "confirmed by"}}
	for _, r := range view.Rows {
		given, failed := v.NameOf(r.Given.Details.Text(audit.DetailActor))
		if failed != nil {
			return failed
		}
		confirmed, failed := v.NameOf(r.Confirmed.Details.Text(audit.DetailActor))
		if failed != nil {
			return failed
		}
		rows = append(rows, []string{
			r.Name, string(r.Action), r.Pattern.String(), r.Origin(), day(r.Given.Time), given, day(r.LastSignIn), day(r.Confirmed.Time), confirmed,
		})
	}
	return v.SendCSV("rights.csv", rows)
}

// day returns a time for a file; empty for one that is not known.
func day(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
