package catalogue

import (
	"strconv"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/access/deciding"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/accessstore"
)

// maxRulesShown is how many access rules the page of a server lists.
const maxRulesShown = 20

// callersView says who may call a server.
type callersView struct {
	deciding.RulePage

	Operates bool // the person may see the pages of the rules
	More     int  // rules that are not listed
	Week     accessstore.Calls
}

// Calls says how often the server was called in the last week.
func (c callersView) Calls() string {
	text := groupDigits(c.Week.All) + " calls"
	if c.Week.All == 1 {
		text = "1 call"
	}
	return text + ", " + groupDigits(c.Week.Denied) + " denied in the last 7 days"
}

// groupDigits returns a number with commas between thousands.
func groupDigits(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// addCallers adds who may call the server, for operators and for those who may edit it.
func (p *Pages) addCallers(v *site.Visit, view *serverView) error {
	if p.ports.Access == nil || !v.SignedIn() || !v.Session.TrustLevel.Admits(auth.Unverified) {
		return nil
	}
	operates, err := v.Holds(registry.ActionOperate)
	if err != nil {
		return err
	}
	edits, err := v.May(registry.ActionEdit, view.Release.Name)
	if err != nil || !operates && !edits {
		return err
	}
	found, err := p.ports.Access.Rules(v.UserContext(), deciding.RuleQuery{Server: view.Name, Limit: maxRulesShown})
	view.Callers = &callersView{RulePage: found, Operates: operates, More: found.Total - len(found.Rules)}
	if err == nil && found.On {
		view.Callers.Week, err = p.ports.Access.Week(v.UserContext(), view.Name)
	}
	return err
}
