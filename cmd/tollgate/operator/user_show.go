package operator

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/federating"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

func newUserShow(p cli.Process) *cobra.Command {
	return newPersonCommand(p, &cobra.Command{
		Use:   "show --email E",
		Short: "Show one person",
		Long: "Show one person: the state of the account, the grants with their origin, the\n" +
			"identities at providers of company sign-in, and the number of\n" +
			"devices and active sessions ('tollgate device list', 'tollgate session list').",
		Example: "  tollgate user show --email ada@example.com",
	}, func(r run, a auth.Account) (cli.Table, error) {
		d, err := readPersonDetails(r, a)
		return d.table(), err
	}, func(r run, a remotePerson) (cli.Table, error) {
		value := shownUser{
			ID: auth.UserID(a.ID), Email: auth.Email(a.Email), Name: a.Name, State: auth.AccountState(a.State),
			Phone: a.Phone, MFA: a.mfa(), CreatedAt: a.CreatedAt, Grants: []shownGrant{},
		}
		devices, err := listOf[deviceRow](r, at("people", a.ID, "devices"), "devices", nil)
		if err != nil {
			return cli.Table{}, err
		}
		sessions, err := listOf[sessionRow](r, at("people", a.ID, "sessions"), "sessions", nil)
		if err != nil {
			return cli.Table{}, err
		}
		value.Devices, value.Sessions = len(devices), len(sessions)
		for _, g := range a.Grants {
			value.Grants = append(value.Grants, shownGrant{registry.Action(g.Action), g.Resource, g.Origin})
		}
		value.Identities, err = listOf[shownIdentity](r, at("people", a.ID, "identities"), "identities", nil)
		return value.table(), err
	})
}

// personDetails contains the account of a person with its grants, identities, devices and sessions.
type personDetails struct {
	account    auth.Account
	grants     []registry.GrantRecord
	identities []federating.Linked
	devices    []auth.Device
	sessions   []auth.Session
}

func readPersonDetails(r run, a auth.Account) (d personDetails, err error) {
	d.account = a
	if d.devices, err = r.Devices.ListDevices(r.ctx, a.ID); err != nil {
		return d, err
	}
	if d.sessions, err = r.Devices.ListSessions(r.ctx, a.ID); err != nil {
		return d, err
	}
	if d.identities, err = r.Providers.Identities(r.ctx, a.ID); err != nil {
		return d, err
	}
	d.grants, err = r.Grants.Records(r.ctx, registrystore.GrantQuery{Holder: registry.Holder(a.ID)})
	return d, err
}

func (d personDetails) table() cli.Table {
	a := &d.account
	codes := len(a.MFA.Recovery)
	value := shownUser{
		a.ID, a.Email, a.Name, a.State, a.Phone, mfaState(&a.MFA), enrolledAt(&a.MFA), &codes,
		cli.FormatTime(a.CreatedAt), cli.FormatTime(a.UpdatedAt),
		len(d.devices), len(d.sessions), make([]shownGrant, len(d.grants)), make([]shownIdentity, len(d.identities)),
	}
	for i := range d.grants {
		g := &d.grants[i]
		value.Grants[i] = shownGrant{g.Action, g.Pattern.String(), g.Origin()}
	}
	for i, l := range d.identities {
		value.Identities[i] = shownIdentity{string(l.Provider), l.Subject, string(l.Email), cli.FormatTime(l.LastUsedAt)}
	}
	return value.table()
}

type shownGrant struct {
	Action   registry.Action `json:"action"`
	Resource string          `json:"resource"`
	Origin   string          `json:"origin"`
}

// shownIdentity is an identity of a person at a provider.
type shownIdentity struct {
	Provider   string `json:"provider"` // empty if it is not configured any more
	Subject    string `json:"subject"`
	Email      string `json:"email"`
	LastUsedAt string `json:"lastUsedAt"`
}

// shownUser is a person in the output of show. The API does not tell when the authenticator was
// enrolled, how many recovery codes are left, and when the account was changed.
type shownUser struct {
	ID            auth.UserID       `json:"id"`
	Email         auth.Email        `json:"email"`
	Name          string            `json:"name"`
	State         auth.AccountState `json:"state"`
	Phone         string            `json:"phone,omitempty"`
	MFA           string            `json:"mfa"`
	MFAEnrolledAt string            `json:"mfaEnrolledAt,omitempty"`
	RecoveryCodes *int              `json:"recoveryCodes,omitempty"`
	CreatedAt     string            `json:"createdAt"`
	UpdatedAt     string            `json:"updatedAt,omitempty"`
	Devices       int               `json:"devices"`
	Sessions      int               `json:"sessions"`
	Grants        []shownGrant      `json:"grants"`
	Identities    []shownIdentity   `json:"identities"`
}

func (value shownUser) table() cli.Table {
	codes := ""
	if value.RecoveryCodes != nil {
		codes = strconv.Itoa(*value.RecoveryCodes)
	}
	rows := [][]string{
		{"id", string(value.ID)}, {"email", string(value.Email)}, {"name", value.Name}, {"state", string(value.State)},
		{"phone", value.Phone}, {"mfa", value.MFA}, {"mfa enrolled", value.MFAEnrolledAt},
		{"recovery codes", codes}, {"created", value.CreatedAt}, {"updated", value.UpdatedAt},
		{"devices", strconv.Itoa(value.Devices)}, {"sessions", strconv.Itoa(value.Sessions)},
	}
	for _, g := range value.Grants {
		rows = append(rows, []string{"grant", string(g.Action) + " " + g.Resource + " (" + g.Origin + ")"})
	}
	for _, i := range value.Identities {
		rows = append(rows, []string{"identity", strings.TrimSpace(i.Provider + " " + i.Subject + " " + i.Email)})
	}
	return cli.Table{Header: []string{"FIELD", "VALUE"}, Rows: rows, Value: value}
}
