// Package account has the pages on which people look after their own sessions, devices, password,
// second factor and audit log.
package account

import (
	"context"
	"embed"
	"errors"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/auditlog"
	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/access/deciding"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/assessment"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/core/auth/credentials"
	"github.com/tollgate-dev/tollgate/core/auth/devices"
	"github.com/tollgate-dev/tollgate/core/auth/federating"
	"github.com/tollgate-dev/tollgate/core/auth/passkeys"
	"github.com/tollgate-dev/tollgate/core/auth/signin"
	"github.com/tollgate-dev/tollgate/core/auth/tokens"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/core/registry/reviewing"
)

//go:embed templates
var templates embed.FS

var (
	accountPage       = site.NewPage(templates, "templates/account.html")
	passwordPage      = site.NewPage(templates, "templates/password.html")
	authenticatorPage = site.NewPage(templates, "templates/authenticator.html")
	recoveryPage      = site.NewPage(templates, "templates/recovery.html")
)

// Path is the path of the page with the sessions and devices.
const Path = site.Root + "account"

const (
	sessionPath       = Path + "/sessions/:id/end"
	revokePath        = Path + "/devices/:id/revoke"
	trustPath         = Path + "/devices/:id/trust"
	renamePath        = Path + "/devices/:id/name"
	passwordPath      = Path + "/password"
	authenticatorPath = Path + "/authenticator"
	activatePath      = authenticatorPath + "/activate"
	disablePath       = authenticatorPath + "/disable"
	anotherPath       = authenticatorPath + "/another"
	activateMorePath  = anotherPath + "/activate"
	removePath        = authenticatorPath + "/remove"
	codesPath         = authenticatorPath + "/codes"
	logPath           = Path + "/log"
	mailPath          = Path + "/mail"
	unlinkPath        = Path + "/identities/:id/unlink"
)

// Ports are the use cases that the pages call.
type Ports struct {
	SignIn      *signin.Service
	Devices     *devices.Service
	Credentials *credentials.Service
	Trail       *auditing.Trail
	Tokens      *tokens.Service
	Companies   *federating.Service
	Passkeys    *passkeys.Service
	Access      *deciding.Service
	Reviews     *reviewing.Service
	// Applications is empty without the authorization server.
	Applications Applications
}

// Pages are the pages of an account. It is safe for concurrent use.
type Pages struct {
	site  *site.Site
	ports Ports
}

// New returns the pages.
func New(s *site.Site, p Ports) *Pages { return &Pages{s, p} }

// Mount adds the routes.
func (p *Pages) Mount(r fiber.Router) {
	r.Get(Path, p.site.Require(auth.Unverified, p.show))
	p.site.Post(r, sessionPath, 3, site.Act{Level: auth.Unverified, Title: "End this session", Do: withID(p.endSession)})
	p.site.Post(r, revokePath, 3, site.Act{Level: auth.Unverified, Title: "Revoke this device", Do: withID(p.revoke)})
	p.site.Post(r, renamePath, 3, site.Act{
		Level: auth.Unverified, Title: "Rename this device", Do: withID(p.rename), Show: p.showAgain,
	})
	p.site.Post(r, trustPath, 3, site.Act{
		Level: auth.Unverified, Title: "Change the trust of this device", Do: withID(p.setTrust),
	})
	r.Get(passwordPath, p.site.Require(auth.Unverified, func(v *site.Visit) error { return p.showPassword(v, nil) }))
	p.site.Post(r, passwordPath, 0, site.Act{
		Level: auth.FullTrust, Title: "Change the password", Check: p.checkPassword, Do: p.changePassword,
		Show: p.showPassword,
	})
	p.mountAuthenticator(r)
	p.mountTokens(r)
	p.mountPasskeys(r)
	p.mountUsage(r)
	p.mountApplications(r)
	p.site.Post(r, unlinkPath, 3, site.Act{
		Level: auth.FullTrust, Title: "Unlink this company sign-in", Do: withID(p.unlink),
	})
	p.site.Post(r, mailPath, 1, site.Act{
		Level: auth.FullTrust, Title: "Change the mail about reviews", Do: p.chooseMail, Show: p.showAgain,
	})
	r.Get(logPath, p.site.Require(auth.Unverified, p.showLog))
}

// showLog shows the person's own audit log.
func (p *Pages) showLog(v *site.Visit) error {
	search := func(ctx context.Context, q auditing.Query) (auditing.Page, error) {
		return p.ports.Trail.SearchOwn(ctx, v.Session, q)
	}
	return auditlog.Show(v, auditlog.Log{
		Search: search, Path: logPath, Back: site.Link{Text: "My account", Path: Path},
	}, nil)
}

// maxListed is the number of sessions and of devices on the page, the newest first. The API lists
// all.
const maxListed = 100

// accountView is the page with the sessions and devices.
type accountView struct {
	Identities []federating.Linked
	Offers     []federating.Offer // providers that can be linked

	Person        auth.Account
	Level         site.Level
	Sessions      []sessionView
	MoreSessions  int
	Devices       []deviceView
	MoreDevices   int
	Authenticator int         // how many are active
	Mail          review.Mail // about reviews; empty for a person who reviews nothing
}

// sessionView is a session in words.
type sessionView struct {
	auth.Session

	Device  string
	Country string // from which the person signed in; empty if it is not known
	Level   site.Level
	Reasons []string // why the session has its level
	Current bool
}

// deviceView is a device in words.
type deviceView struct {
	auth.Device

	Text    string // its name, or what it is
	NameID  string // the id of the field for its name
	Typed   string // what the field contains
	Renamed bool   // the form was filled in
	Trust   string
	Class   string
	Trusted bool
	Current bool
}

func (p *Pages) show(v *site.Visit) error { return p.showAgain(v, nil) }

// showAgain shows the page, also with the name of a device as it was typed and what is wrong with
// it.
func (p *Pages) showAgain(v *site.Visit, problems site.Problems) error {
	view := accountView{
		Person: v.Account, Level: site.LevelOf(v.Session.TrustLevel), Authenticator: len(v.Account.MFA.Authenticators()),
	}
	renamed, err := pathID[auth.DeviceID](v)
	if err == nil {
		problems = problems.At(nameField(renamed))
	}
	names, err := p.addDevices(v, &view, renamed)
	if err != nil {
		return err
	}
	if err := errors.Join(p.addSessions(v, &view, names), p.addCompanies(v, &view), p.addMail(v, &view)); err != nil {
		return err
	}
	return v.Render(accountPage, site.Head{
		Title: "My account", Notice: notices[v.Text("done")], Problems: problems,
	}, view)
}

// addMail adds how a reviewer wants mail.
func (p *Pages) addMail(v *site.Visit, view *accountView) error {
	reviews, err := v.Holds(registry.ActionReview)
	if err != nil || !reviews {
		return err
	}
	who, err := v.Caller()
	if err != nil {
		return err
	}
	view.Mail, err = p.ports.Reviews.Mail(v.UserContext(), who)
	return err
}

// chooseMail stores how a reviewer wants mail.
func (p *Pages) chooseMail(v *site.Visit) error {
	who, err := v.Caller()
	if err != nil {
		return err
	}
	if err := p.ports.Reviews.ChooseMail(v.UserContext(), who, v.Form.Get("mail")); err != nil {
		return err
	}
	return v.Redirect(Path + "?done=mail#reviews")
}

// addDevices adds the devices, one of them with a name as it was typed, and returns the names of
// all.
func (p *Pages) addDevices(v *site.Visit, view *accountView, renamed auth.DeviceID) (map[auth.DeviceID]string, error) {
	devices, all, err := p.ports.Devices.ListDevices(v.UserContext(), v.Session, auth.PageRequest{Limit: maxListed})
	if err != nil {
		return nil, err
	}
	view.MoreDevices = all - len(devices)
	names := map[auth.DeviceID]string{}
	for _, d := range devices {
		names[d.ID] = nameDevice(d)
		if d.Revoked {
			continue
		}
		row := newDeviceView(d, v.Session.DeviceID)
		if d.ID == renamed {
			row.Typed, row.Renamed = v.Form.Get("name"), true
		}
		view.Devices = append(view.Devices, row)
	}
	return names, nil
}

func (p *Pages) addSessions(v *site.Visit, view *accountView, names map[auth.DeviceID]string) error {
	sessions, all, err := p.ports.Devices.ListSessions(v.UserContext(), v.Session, auth.PageRequest{Limit: maxListed})
	if err != nil {
		return err
	}
	view.MoreSessions = all - len(sessions)
	why, err := p.evaluations(v)
	if err != nil {
		return err
	}
	for _, s := range sessions {
		view.Sessions = append(view.Sessions, sessionView{
			s, names[s.DeviceID], why[s.ID].Country, site.LevelOf(s.TrustLevel),
			explainLevel(s, why, v.Session.TrustLevel), s.ID == v.Session.ID,
		})
	}
	return nil
}

// nameDevice returns the name of a device, or the browser and the system.
func nameDevice(d auth.Device) string {
	switch {
	case d.Name != "":
		return d.Name
	case d.Browser != "" && d.OS != "":
		return d.Browser + " on " + d.OS
	case d.Browser != "":
		return d.Browser
	case d.OS != "":
		return d.OS
	}
	return "Unknown device"
}

func newDeviceView(d auth.Device, current auth.DeviceID) deviceView {
	view := deviceView{
		Device: d, Text: nameDevice(d), NameID: nameField(d.ID), Typed: d.Name, Trust: "Not verified yet",
		Class: "warn", Current: d.ID == current,
	}
	switch {
	case d.TrustStatus == auth.DeviceUntrusted:
		view.Trust, view.Class = "Not trusted", "bad"
	case d.Trusted() && d.Confirmed:
		view.Trust, view.Class, view.Trusted = "Trusted", "good", true
	case d.TrustStatus == auth.DeviceTrusted && !d.Confirmed:
		view.Trust, view.Trusted = "Trusted, but not verified yet", true
	case d.TrustStatus == auth.DeviceTrusted:
		view.Trust, view.Trusted = "Trusted after the next code", true
	case d.Confirmed:
		view.Trust, view.Class = "Verified", ""
	}
	return view
}

func nameField(id auth.DeviceID) string { return "name-" + string(id) }

// evaluations is how many of the last evaluations are searched for those of the sessions.
const evaluations = 200

// evaluations returns the last evaluations of the person's sign-ins, by their sessions.
func (p *Pages) evaluations(v *site.Visit) (map[auth.SessionID]assessment.Evaluation, error) {
	found, err := p.ports.Trail.Search(v.UserContext(), v.Session.UserID, auditing.Query{
		Category: audit.RiskEvaluation, Limit: evaluations,
	})
	if err != nil {
		return nil, err
	}
	all := map[auth.SessionID]assessment.Evaluation{}
	for _, e := range found.Events {
		evaluation := assessment.ReadEvaluation(&e)
		all[evaluation.Session] = evaluation
	}
	return all, nil
}

// explainLevel returns why a session has its trust level, as far as that is known, in words for a
// reader with a session of a level.
func explainLevel(s auth.Session, all map[auth.SessionID]assessment.Evaluation, reader auth.TrustLevel) []string {
	e, known := all[s.ID]
	switch {
	case !known:
		return nil
	case s.TrustLevel != auth.FullTrust:
		return site.DescribeReasons(e.Reasons, reader)
	case e.TrustLevel != auth.FullTrust:
		return []string{"A code was entered."}
	case len(e.Reasons) > 0:
		return []string{site.DescribeLevel(e)}
	}
	return []string{"Nothing was unusual about the sign-in."}
}

// notices say what has just been done.
var notices = map[string]string{
	"session": "The session is ended.", "revoked": "The device is revoked, and its sessions are ended.",
	"trusted": "The device is trusted from its next sign-in on.", "untrusted": "The device is not trusted any more.",
	"unproven": "The device is trusted from its next sign-in on. This counts only after a code was entered on it.",
	"mail":     "Mail about reviews comes as you have chosen.",
	"renamed":  "The device is renamed.",
	"password": "The password is changed, and all other sessions are ended.",
	"disabled": "The authenticator app is turned off.", "another": "The authenticator app is added.",
	"removed": "The authenticator app is removed.", "token": "The token is removed.", "tokens": "The tokens are removed.",
	"passkey": "The passkey is added.", "passkey-name": "The passkey is renamed.", "passkey-removed": "The passkey is removed, and all other sessions are ended.",
	"application": "The access of the application is revoked.",
	"linked":      "The company sign-in is linked.", "unlinked": "The company sign-in is unlinked, and the sessions that came from it are ended.",
}

func (p *Pages) endSession(v *site.Visit, id auth.SessionID) error {
	return v.Done(p.ports.SignIn.Terminate(v.UserContext(), v.Session, id), Path, "session")
}

func (p *Pages) revoke(v *site.Visit, id auth.DeviceID) error {
	_, err := p.ports.Devices.Revoke(v.UserContext(), v.Session, id)
	return v.Done(err, Path, "revoked")
}

func (p *Pages) rename(v *site.Visit, id auth.DeviceID) error {
	_, err := p.ports.Devices.Rename(v.UserContext(), v.Session, id, v.Form.Get("name"))
	return v.Done(err, Path, "renamed")
}

// setTrust marks a device as trusted or not. That may lower the session of this browser, whose
// cookie then changes.
func (p *Pages) setTrust(v *site.Visit, id auth.DeviceID) error {
	status, done := auth.DeviceTrusted, "trusted"
	if v.Form.Get("trust") == "no" {
		status, done = auth.DeviceUntrusted, "untrusted"
	}
	device, err := p.ports.Devices.SetTrust(v.UserContext(), v.Session, id, status)
	if err != nil {
		return err
	}
	if device.MarkUnproven {
		done = "unproven"
	}
	return v.Done(v.RotateCookie(), Path, done)
}

// pathID returns the id in the path. It returns fault.NotFound if that is no id.
func pathID[ID ~string](v *site.Visit) (ID, error) {
	text, err := v.Param("id")
	if err != nil {
		return "", err
	}
	id, err := auth.ParseUUID[ID]("id", text)
	if err != nil {
		return "", fault.New(fault.NotFound, "there is no such page")
	}
	return id, nil
}

// withID returns an act on what has the id in the path.
func withID[ID ~string](do func(*site.Visit, ID) error) func(*site.Visit) error {
	return func(v *site.Visit) error {
		id, err := pathID[ID](v)
		if err != nil {
			return err
		}
		return do(v, id)
	}
}
