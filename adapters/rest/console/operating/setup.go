package operating

import (
	"context"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
)

const setupPath = Path + "/setup"

var setupPage = site.ParsePage(templates, "templates/setup.html")

// Settled is what the settings of the service settle.
type Settled struct {
	Mail      bool // a courier sends e-mail to people
	PublicURL bool
	Postgres  bool // the database has backups of its own
}

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
	return []step{
		{v.Account.MFA.Active, missing{
			"Your authenticator app", "With it, a stolen password is not enough to sign in as you, and you need no e-mail for codes.",
			"", "/console/account/authenticator", "Set up an authenticator app",
		}},
		{p.ports.Settled.Mail, missing{
			"A courier for e-mail", "It sends codes, invitations, notices, and links for forgotten passwords.",
			"OTP_EMAIL_PLUGIN=otp-email, OTP_EMAIL_SETTINGS", "", "",
		}},
		{rest.Secure(v.Ctx), missing{
			"TLS", "Without it, people can sign in on this machine only.", "TLS_CERT and TLS_KEY, or TRUSTED_PROXIES", "", "",
		}},
		{p.ports.Settled.PublicURL, missing{
			"The address of this service", "Links in messages begin with it.", "PUBLIC_URL", "", "",
		}},
		{false, missing{"Backups", "This page cannot see whether you make them.", p.backupCommand(), "", ""}},
	}
}

func (p *Pages) backupCommand() string {
	if p.ports.Settled.Postgres {
		return "pg_dump"
	}
	return "tollgate backup"
}
