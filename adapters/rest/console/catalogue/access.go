package catalogue

import (
	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/access/deciding"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/registry"
)

// maxRulesShown is how many access rules the page of a server lists.
const maxRulesShown = 20

// callersView says who may call a server.
type callersView struct {
	deciding.RulePage

	Operates bool // the person may see the pages of the rules
	More     int  // rules that are not listed
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
	view.Callers = &callersView{found, operates, found.Total - len(found.Rules)}
	return err
}
