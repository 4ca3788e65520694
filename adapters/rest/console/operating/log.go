package operating

import (
	"context"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/auditlog"
	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
)

const logPath = Path + "/log"

// log shows the audit log of everybody, or of one person.
func (p *Pages) log(ctx context.Context, v *site.Visit) error {
	l := auditlog.Log{
		Trail: p.ports.Trail, Path: logPath, Back: site.Link{Text: "Operator", Path: Path}, Email: v.Text("email"), Everybody: true,
	}
	if l.Email == "" {
		return auditlog.Show(v, l, nil)
	}
	email, err := auth.ParseEmail(l.Email)
	var a auth.Account
	if err == nil {
		a, err = p.ports.People.ByEmail(ctx, email)
	}
	switch {
	case err != nil && fault.Is(err, fault.Unavailable):
		return err
	case err != nil:
		return auditlog.Show(v, l, site.Problems{{Field: "email", Text: "There is no account with this e-mail address."}})
	}
	l.User = a.ID
	return auditlog.Show(v, l, nil)
}
