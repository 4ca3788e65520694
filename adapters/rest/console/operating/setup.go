package operating

import (
	"cmp"
	"context"
	"slices"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/adapters/rest/overview"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/fitness"
)

const dismissPath = Path + "/dismiss"

// overviewView is the first page of operators.
type overviewView struct {
	overview.Checklist

	Steps     []step
	Dismissed []step
	Open      int // of Steps, those that are not done
}

// step is a step of the setup, with the page or the setting that does it.
type step struct {
	ID, Title, Why, Setting, Link, LinkText string
	Done                                    bool
}

func (p *Pages) overview(ctx context.Context, v *site.Visit) error {
	list, err := p.ports.Overview.ReadChecklist(ctx)
	if err != nil {
		return err
	}
	view := overviewView{Checklist: list}
	for _, one := range steps(v, p.ports.Overview.Facts(), list.Missing) {
		switch {
		case one.Done:
		case v.HasDismissed(one.ID):
			view.Dismissed = append(view.Dismissed, one)
			continue
		default:
			view.Open++
		}
		view.Steps = append(view.Steps, one)
	}
	return v.Render(overviewPage, site.Head{Title: "Operator"}, view)
}

// dismiss leaves a step out of the list, or adds it again, in the browser of the person.
func (p *Pages) dismiss(_ context.Context, v *site.Visit) error {
	id := v.Form.Get("id")
	if !slices.ContainsFunc(steps(v, p.ports.Overview.Facts(), nil), func(one step) bool { return one.ID == id }) {
		return fault.New(fault.NotFound, "there is no such step")
	}
	v.Dismiss(id, v.Form.Get("again") == "")
	return v.Redirect(Path)
}

// steps are all steps of the setup, with what is missing in its words.
func steps(v *site.Visit, facts fitness.Facts, missing []overview.Warning) []step {
	why := map[fitness.Missing]string{}
	for _, m := range missing {
		why[m.Missing] = m.Text
	}
	all := []step{
		{
			"app", "Your authenticator app", "With it, a stolen password is not enough to sign in as you, and you need no e-mail for codes",
			"", "/console/account/authenticator", "Set up an authenticator app", v.Account.MFA.Active,
		},
		{
			"mail", "A courier for e-mail", cmp.Or(why[fitness.Courier], "It sends codes, invitations, notices, and links for forgotten passwords"),
			"OTP_EMAIL_PLUGIN=otp-email, SMTP_HOST, SMTP_FROM", "", "", facts.Mail,
		},
		{
			"tls", "TLS", "Without it, people can sign in on this machine only", "TLS_CERT and TLS_KEY, or TRUSTED_PROXIES", "", "",
			rest.Secure(v.Ctx),
		},
		{ID: "address", Title: "The address of this service", Why: why[fitness.PublicAddress], Setting: "PUBLIC_URL"},
		{ID: "secret", Title: "The root secret", Why: why[fitness.RootSecret], Setting: "SECRET_KEY"},
		{ID: "debug", Title: "The debug listener", Why: why[fitness.PrivateDebugger], Setting: "DEBUG_HOST"},
		{ID: "backup", Title: "Backups", Why: why[fitness.Backup], Setting: "tollgate backup"},
	}
	if facts.Postgres {
		all[6].Why, all[6].Setting = "This page cannot see whether you make them", "pg_dump"
	}
	for i := range all {
		all[i].Done = all[i].Done || all[i].Why == ""
	}
	return all
}
