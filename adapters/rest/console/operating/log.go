package operating

import (
	"context"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/auditlog"
	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/core/fault"
)

const logPath = Path + "/log"

// log shows the audit log of everybody, or of one person.
func (p *Pages) log(ctx context.Context, v *site.Visit) error {
	l := auditlog.Log{Path: logPath, Email: v.Text("email"), Everybody: true}
	user, problems, err := p.filterPerson(ctx, l.Email)
	if err != nil {
		return err
	}
	l.Search = func(ctx context.Context, q auditing.Query) (auditing.Page, error) {
		return p.ports.Trail.Search(ctx, user, q)
	}
	return auditlog.Show(v, l, problems)
}

// filterPerson returns the account of the e-mail address by which a page is filtered; none for no
// address.
func (p *Pages) filterPerson(ctx context.Context, text string) (auth.UserID, site.Problems, error) {
	if text == "" {
		return "", nil, nil
	}
	email, err := auth.ParseEmail(text)
	if err == nil {
		var a auth.Account
		if a, err = p.ports.People.ByEmail(ctx, email); err == nil {
			return a.ID, nil, nil
		}
		if fault.Is(err, fault.Unavailable) {
			return "", nil, err
		}
	}
	return "", site.Problems{{Field: "email", Text: "There is no account with this e-mail address."}}, nil
}
