package operating

import (
	"context"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/fitness"
)

const setupPath = Path + "/setup"

var setupPage = site.NewPage(templates, "templates/setup.html")

// setupView lists what is not set up yet.
type setupView struct{ Missing []missing }

// missing is something that is not set up: with the page or the setting that changes that.
type missing struct{ Title, Why, Setting, Link, LinkText string }

// step is a step of the setup, and whether it is done.
type step struct {
	done bool
	missing
}

// setup shows what is not set up yet.
func (p *Pages) setup(_ context.Context, v *site.Visit) error {
	var view setupView
	for _, one := range p.steps(v) {
		if !one.done {
			view.Missing = append(view.Missing, one.missing)
		}
	}
	return v.Render(setupPage, site.Head{Title: "What is not set up yet"}, view)
}

// steps are all steps of the setup.
func (p *Pages) steps(v *site.Visit) []step {
	facts := p.ports.Overview.Facts()
	return []step{
		{v.Account.MFA.Active, missing{
			"Your authenticator app", "With it, a stolen password is not enough to sign in as you, and you need no e-mail for codes.",
			"", "/console/account/authenticator", "Set up an authenticator app",
		}},
		{facts.Mail, missing{
			"A courier for e-mail", "It sends codes, invitations, notices, and links for forgotten passwords.",
			"OTP_EMAIL_PLUGIN=otp-email, SMTP_HOST, SMTP_FROM", "", "",
		}},
		{rest.Secure(v.Ctx), missing{
			"TLS", "Without it, people can sign in on this machine only.", "TLS_CERT and TLS_KEY, or TRUSTED_PROXIES", "", "",
		}},
		{facts.PublicURL, missing{
			"The address of this service", "Links in messages begin with it.", "PUBLIC_URL", "", "",
		}},
		newBackupStep(facts),
	}
}

// newBackupStep returns the step of backups, of which the service sees those of a SQLite file only.
func newBackupStep(f fitness.Facts) step {
	if f.Postgres {
		return step{false, missing{"Backups", "This page cannot see whether you make them.", "pg_dump", "", ""}}
	}
	return step{!f.LastBackup.IsZero(), missing{"Backups", "None was seen yet.", "tollgate backup", "", ""}}
}
